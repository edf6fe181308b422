"""Tables for tests, and a note that names the failing one of several inputs."""

from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from sklearn.utils.validation import _get_feature_names


@contextmanager
def note(what):
    """Add to an exception which of several inputs raised it."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"for {what}")
        raise


def labelled(n, d, n_classes=3, seed=0):
    """Return rows of classes that differ in size, mean and spread, without equal directions or distances."""
    rng = np.random.default_rng(seed)
    shares = np.arange(n_classes, 0, -1) / np.arange(1, n_classes + 1).sum()
    y = rng.permutation(np.searchsorted(np.cumsum(shares), (np.arange(n) + 0.5) / n))
    rows = rng.standard_normal((n, d)) * np.geomspace(3.0, 0.3, d)
    return rows * (1 + 0.4 * y)[:, None] + 1.5 * rng.standard_normal((n_classes, d))[y], y


def graded(n, d, smallest, n_classes=2, seed=0):
    """Return (X, y, V): wide rows with centred singular values from 1 to `smallest`, evenly spaced on a log scale."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, n - 1))])[0][:, 1:]  # columns of sum zero
    V = np.linalg.qr(rng.standard_normal((d, n - 1)))[0]
    return (U * np.geomspace(1.0, smallest, n - 1)) @ V.T, np.arange(n) % n_classes, V


def with_names_that_are_read(frame):
    """Return the frame, or skip if this scikit-learn cannot read its column names."""
    if _get_feature_names(frame) is None:
        pytest.skip(f"scikit-learn {sklearn.__version__} does not read the names of {type(frame).__module__}'s columns")
    return frame
