"""Tasks of workers, in a module with few imports because each new worker imports it."""

import errno
import os
import signal
import time

import numpy as np
from threadpoolctl import threadpool_info


def double(number):
    return 2 * number


def kill_at_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def kill_at_three_once(marker, number):
    if number == 3 and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def threads_of_worker(number):
    time.sleep(0.2)
    np.ones((50, 50)) @ np.ones((50, 50))
    return os.getpid(), max([pool["num_threads"] for pool in threadpool_info()], default=1)


def full(number):
    raise OSError(errno.ENOSPC, "No space left on device")
