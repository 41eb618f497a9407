"""Benchmarks: `make bench` prints them all. They print numbers and gate nothing."""
