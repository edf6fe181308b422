"""Tables with columns of one type each, for every way in: files, frames, Dask and Spark."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from discrim import MaximumMarginCriterion

REFUSED = "refused"
A = [0.5, 2.0, 1e3, 4.0, -1.0, 8.0]
XY = ["x", "y"] * 3


def typed(a=A, b=(1.0, -3.25, 7.0, 0.125, 2.0, 9.0), t=XY):
    return pa.table({"a": pa.array(a) if isinstance(a, list) else a, "b": pa.array(list(b)), "t": t})


TYPED = {
    "doubles": (typed(), XY),
    "single precision": (typed(pa.array(A, pa.float32()), np.array([1, 2, 3, 4, 5, 6.5], np.float32)), XY),
    "half precision": (typed(pa.array(np.array(A, np.float16))), XY),
    "integers": (typed(pa.array([1, 2, 3, 4, 5, 2**53 + 1])), XY),
    "unsigned": (typed(pa.array([1, 2, 3, 4, 5, 2**64 - 1], pa.uint64())), XY),
    "truth values": (typed(pa.array([True, False] * 3)), XY),
    "decimals": (typed(pa.array([Decimal("1.25"), Decimal("-3"), *map(Decimal, "1234")])), XY),
    "numbers as text": (typed(pa.array(["1", "2.5", "3", "4", "5", "6"])), XY),
    "text": (typed(pa.array(list("pqpqpq"))), REFUSED),
    "categories": (typed(pa.array(list("pqpqpq")).dictionary_encode()), REFUSED),
    "a null": (typed(pa.array([1.0, None, 3, 4, 5, 6])), REFUSED),
    "a null among integers": (typed(pa.array([1, None, 3, 4, 5, 6])), REFUSED),
    "NaN": (typed(pa.array([1.0, np.nan, 3, 4, 5, 6])), REFUSED),
    "infinity": (typed(pa.array([1.0, np.inf, 3, 4, 5, 6])), REFUSED),
    "dates": (typed(pa.array(np.arange(6).astype("M8[s]"))), REFUSED),
    "lists": (typed(pa.array([[1], [2], [3], [4], [5], [6]])), REFUSED),
    "nothing but nulls": (typed(pa.nulls(6)), REFUSED),
    "labels: integers": (typed(t=[1, 2] * 3), [1, 2] * 3),
    "labels: 10 and 9": (typed(t=[10, 9] * 3), [10, 9] * 3),
    "labels: small integers": (typed(t=pa.array([1, 2] * 3, pa.int8())), [1, 2] * 3),
    "labels: truth values": (typed(t=[True, False] * 3), [True, False] * 3),
    "labels: whole doubles": (typed(t=[1.0, 2.0] * 3), [1, 2] * 3),
    "labels: fractions": (typed(t=[0.5, 1.0] * 3), ["0.5", "1.0"] * 3),
    "labels: NaN": (typed(t=[1.0, np.nan] * 3), REFUSED),
    "labels: null": (typed(t=["x", None] * 3), REFUSED),
    "labels: NaT": (typed(t=pa.array([0, None] * 3, pa.timestamp("s"))), REFUSED),
    "labels: dates": (typed(t=pa.array([0, 1] * 3, pa.date32())), ["1970-01-01", "1970-01-02"] * 3),
    "labels: text of numbers": (typed(t=["1", "2"] * 3), ["1", "2"] * 3),
    "labels: 01 and 1": (typed(t=["01", "1"] * 3), ["01", "1"] * 3),
    "labels: NA": (typed(t=["NA", "b"] * 3), REFUSED),
    "labels: empty": (typed(t=["", "b"] * 3), REFUSED),
    "labels: blanks": (typed(t=[" x", "y "] * 3), XY),
    "labels: zero character": (typed(t=["a\0", "a"] * 3), REFUSED),
    "labels: binary": (typed(t=pa.array([b"x", b"y"] * 3)), XY),
    "labels: binary, no text": (typed(t=pa.array([b"\xff", b"y"] * 3)), REFUSED),
    "labels: categories": (typed(t=pa.array(XY).dictionary_encode()), XY),
    "labels: neutralised formula": (typed(t=["'=a", "b"] * 3), ["'=a", "b"] * 3),
    "names: blanks": (typed().rename_columns([" a", "b", "t "]), XY),
    "names: decomposed": (typed().rename_columns(["e\u0301", "b", "t"]), XY),
    "names: twice": (typed().rename_columns(["b", "b", "t"]), REFUSED),
    "names: of an index": (typed().rename_columns(["__index_level_0__", "b", "t"]), REFUSED),
    "names: with dots": (typed().rename_columns([".a", "b.c[0]", "t"]), XY),
}


def outcome_of(fit):
    """Return the labels and the model of a fit of rows in memory or on workers, or that it is refused."""
    try:
        model = fit(MaximumMarginCriterion(1))
    except (ValueError, TypeError):
        return REFUSED
    return [str(label) for label in model.classes_.tolist()], model.components_.astype(float).round(5).tolist()


FRAMES = {name: case for name, case in TYPED.items() if len(set(case[0].column_names)) == 3}
ONLY_FILES_CHANGE = {  # a file states what a missing label is, and its texts have no blanks; a frame's are as they are
    "labels: whole doubles": ["1.0", "2.0"],
    "labels: blanks": [" x", "y "],
    "labels: NA": ["NA", "b"],
    "labels: empty": ["", "b"],
    "labels: zero character": ["a", "a\0"],
    "names: of an index": ["x", "y"],
}
ONLY_FILES_TAKE = {"labels: fractions", "labels: dates", "labels: binary"}  # as text, which labels of a frame are not
