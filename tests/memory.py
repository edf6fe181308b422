"""Peak memory of a call, and its largest allocation."""

import sys
import tracemalloc


def peak_of(call):
    """Return the largest number of bytes that were allocated at once during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def largest_allocation(call, peak):
    """Repeat the call, and describe the line that holds most memory when nearly all of the peak is in use."""
    snapshots = []

    def look(frame, event, argument):
        if not snapshots and tracemalloc.get_traced_memory()[0] > 0.9 * peak:
            snapshots.append(tracemalloc.take_snapshot())

    tracemalloc.start(12)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        traced = snapshots[0] if snapshots else tracemalloc.take_snapshot()
        tracemalloc.stop()
    largest = traced.statistics("traceback")[0]
    return "\n".join([f"{largest.size:,} bytes in {largest.count} blocks, allocated by", *largest.traceback.format()])


def assert_peak_below(limit, call):
    """Call twice, and fail with the largest allocation if the second call takes `limit` bytes or more.

    The first call compiles and loads what is needed once.
    """
    call()
    peak = peak_of(call)
    if peak >= limit:
        raise AssertionError(
            f"The peak must be below {limit:,.0f} bytes; got {peak:,}. Largest allocation: "
            + largest_allocation(call, peak)
        )
