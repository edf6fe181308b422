"""Benchmarks against other packages: `make bench` measures the main table and writes docs/performance.md.

`make bench ROW=cv` (or `python -m benchmarks cv lda`) measures some rows, `ROW=all` every topic.
"""
