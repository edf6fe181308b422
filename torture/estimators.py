"""Every method and many options on tables no one would make: a result that is finite, or an error that is ours."""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from discrim.registry import OUR_METHODS
from torture.outcome import Outcome

EXPECTED = (ValueError, TypeError)  # with words of ours: numpy's and LAPACK's own do not say what to do
FOREIGN = ("LAPACK", "leading minor", "broadcast", "out of bounds", "Singular matrix", "did not converge", "ARPACK")


def fuzzed(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("fits of drawn tables by every method and option", "a finite result or an error in our words")
    while time.monotonic() < until:
        method = OUR_METHODS[rng.integers(len(OUR_METHODS))]
        X, y = drawn_table(rng)
        k = int(rng.integers(1, 5))
        seed = int(rng.integers(2**31))
        outcome.times += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = with_drawn_options(method.estimator(k, seed), rng)
                features = model.fit(X, y).transform(X)
            if not np.isfinite(features).all():
                outcome.faults.append(f"{model} on {described(X)}: features that are not finite")
        except EXPECTED as error:
            if type(error) not in EXPECTED and not type(error).__module__.startswith("sklearn"):
                outcome.faults.append(f"{method.name} on {described(X)}: {type(error).__name__}: {error}"[:300])
            elif any(word in str(error) for word in FOREIGN):
                outcome.faults.append(f"{method.name} on {described(X)}: {error}"[:300])
        except Exception as error:
            outcome.faults.append(f"{method.name} on {described(X)}: {type(error).__name__}: {error}"[:300])
    return outcome


def drawn_table(rng: np.random.Generator) -> tuple[object, NDArray[np.int_]]:
    """Few or many rows, few or many columns, with one or several of the faults that tables have."""
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 60))
    n_classes = int(rng.integers(2, 6))
    X = rng.standard_normal((n, d))
    y = rng.integers(n_classes, size=n)
    X[:, : min(d, n_classes)] += 2 * np.eye(max(d, n_classes))[:n_classes, : min(d, n_classes)][y]
    for fault in rng.choice(list(FAULTS), size=rng.integers(0, 4), replace=False):
        X = FAULTS[fault](X, rng)
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    return (sp.csr_array(X) if rng.random() < 0.25 else X), y


def _outlier_row(X: NDArray, rng: np.random.Generator) -> NDArray:
    X = X.copy()
    X[rng.integers(len(X))] *= 10.0 ** rng.integers(3, 12)
    return X


FAULTS = {
    "outlier row": _outlier_row,
    "duplicated column": lambda X, rng: np.c_[X, X[:, [0]] * (1 + 10.0 ** -rng.integers(4, 17))],
    "powers": lambda X, rng: np.vander(X[:, 0], min(12, X.shape[1] + 3)),
    "sentinel": lambda X, rng: np.where(rng.random(X.shape) < 0.05, -9999.0, X),
    "heavy tails": lambda X, rng: np.sign(X) * np.expm1(np.minimum(np.abs(X) * 4, 300)),
    "constant column": lambda X, rng: np.c_[X, np.full(len(X), rng.choice([0.0, 1.0, 1e12]))],
    "offset": lambda X, rng: X + 10.0 ** rng.integers(0, 9),
    "tiny": lambda X, rng: X * 10.0 ** -rng.integers(10, 150),
    "huge": lambda X, rng: X * 10.0 ** rng.integers(10, 150),
    "counts": lambda X, rng: np.floor(np.abs(X) * 2),
    "repeated rows": lambda X, rng: X[np.sort(rng.integers(len(X), size=len(X)))],
    "scales": lambda X, rng: X * 10.0 ** rng.uniform(-8, 8, X.shape[1]),
}


def with_drawn_options(model: object, rng: np.random.Generator) -> object:
    """One or two of its parameters set to something possible."""
    possible = {
        "shrinkage": [0, 0.1, 1.0, "oas", "ledoit_wolf", "cv"],
        "priors": [None, "equal"],
        "class_weight": [None, "balanced"],
        "n_components": [None, 1, 0.9],
        "nested": [True],
    }
    known = model.get_params()
    names = [name for name in possible if name in known]
    for name in rng.permutation(names)[: rng.integers(0, 3)]:
        value = possible[name][rng.integers(len(possible[name]))]
        model = clone(model).set_params(**{name: value})
    return model


def described(X: object) -> str:
    kind = "sparse" if sp.issparse(X) else "dense"
    return f"{kind} {X.dtype} {X.shape[0]}×{X.shape[1]}"
