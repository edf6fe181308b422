"""Engines for tables larger than memory: each gathers statistics of parts, independent of the method."""
