"""Benchmarks: `make bench`, or one of them by `python -m benchmarks NAME`."""
