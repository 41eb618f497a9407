"""Compare what two commits write and print, byte for byte: see `bench.same_bytes.main`."""
