"""Benchmarks: see README.md. `make bench` runs all that need no options of their own."""
