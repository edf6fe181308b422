"""Tables that the tests are made with, and which of many one failed on."""

from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from sklearn.utils.validation import _get_feature_names


@contextmanager
def of(what):
    """What fails inside says of which of several things it failed."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"of {what}")
        raise


def labelled(n, d, n_classes=3, seed=0):
    """Classes of uneven size with means and deviations of their own; no two directions alike, no tied distances."""
    rng = np.random.default_rng(seed)
    shares = np.arange(n_classes, 0, -1) / np.arange(1, n_classes + 1).sum()
    y = rng.permutation(np.searchsorted(np.cumsum(shares), (np.arange(n) + 0.5) / n))
    rows = rng.standard_normal((n, d)) * np.geomspace(3.0, 0.3, d)
    return rows * (1 + 0.4 * y)[:, None] + 1.5 * rng.standard_normal((n_classes, d))[y], y


def graded(n, d, smallest, n_classes=2, seed=0):
    """Wide rows whose centred singular values fall evenly, on a log scale, from 1 to `smallest`: (X, y, V)."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, n - 1))])[0][:, 1:]  # columns of sum zero
    V = np.linalg.qr(rng.standard_normal((d, n - 1)))[0]
    return (U * np.geomspace(1.0, smallest, n - 1)) @ V.T, np.arange(n) % n_classes, V


def with_names_that_are_read(frame):
    """The frame, unless this scikit-learn does not see its columns' names (of polars without __dataframe__, say)."""
    if _get_feature_names(frame) is None:
        pytest.skip(f"scikit-learn {sklearn.__version__} does not read the names of {type(frame).__module__}'s columns")
    return frame
