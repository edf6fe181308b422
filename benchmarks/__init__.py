"""Ratios against peers: CPU time of one thread, both sides interleaved in one process, medians.

`make bench` prints every row; `python -m benchmarks 1 4` prints rows 1 and 4.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
