"""Ratios against peers: CPU time of one thread, both sides interleaved in one process, medians.

`make bench` prints the goals; `make bench ROW=cv` (or `python -m benchmarks cv lda`) prints some rows.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
