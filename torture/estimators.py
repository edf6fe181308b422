"""Every estimator and many options on extreme tables: finite results, or an error of discrim."""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

import discrim
from discrim.registry import OUR_METHODS
from torture.outcome import Outcome

Rng = np.random.Generator

# texts of errors from numpy, LAPACK and scikit-learn, which do not help the user or are wrong for a finite table
FOREIGN = ("LAPACK", "leading minor", "broadcast", "out of bounds", "ingular matrix", "did not converge", "ARPACK",
           "infs or NaNs", "zero-size array", "could not convert", "contains NaN", "contains inf")  # fmt: skip
USES = ("transform", "predict", "decision_function", "predict_proba", "predict_log_proba")
UNBOUNDED = {"eigenvalues_", "noise_variance_", "gamma_"}  # squares of the columns' unit, which may overflow
STATED_NAN = {"bayes_error_", "shift_scores_"}

OTHERS: dict[str, Callable[[int], Any]] = {
    "PosteriorMap": lambda seed: discrim.PosteriorMap(random_state=seed),
    "KernelMap": lambda seed: discrim.KernelMap(random_state=seed),
    "MaxMarginShift": lambda seed: discrim.MaxMarginShift(discrim.PCA(2), random_state=seed),
    "Autoencoder": lambda seed: discrim.Autoencoder(2, max_iter=5, random_state=seed),
    "CrammerSingerSVC": lambda seed: discrim.CrammerSingerSVC(random_state=seed, max_iter=300),
    "RefinedHyperplane": lambda seed: discrim.RefinedHyperplane(),
}
OPTIONS: dict[str, list[Any]] = {
    "shrinkage": [0, 1e-8, 0.1, 1.0, "oas", "ledoit_wolf", "cv"],
    "priors": [None, "equal"],
    "class_weight": [None, "balanced"],
    "n_components": [None, 1, 0.9],
    "nested": [True],
    "kernel": ["linear", "rbf", "poly", "laplacian", "cosine", "sigmoid", "chi2"],
    "gamma": [0.1, "cv", "median"],
    "sharpness": [0.5, "tempered"],
    "n_landmarks": [2, 5],
    "shift": [0, 0.3, "cv"],
    "embedding": ["rff", "nystroem"],
    "fit_intercept": [True, False],
    "rule": ["none", "best"],
    "ties": ["all", "lowest"],
    "enemies": ["any", "each"],
    "score": ["bhattacharyya"],
    "cv": [2],
}


def fuzzed(rng: Rng, until: float) -> Outcome:
    outcome = Outcome(
        "fits of random tables by every estimator and option",
        "finite results or an error of discrim; no repeated warning and none of numpy's",
    )
    makers = {one.name: (lambda seed, one=one: one.estimator(int(rng.integers(1, 5)), seed)) for one in OUR_METHODS}
    makers |= OTHERS
    names = list(makers)
    while time.monotonic() < until:
        model = with_drawn_options(makers[names[rng.integers(len(names))]](int(rng.integers(2**31))), rng)
        X, y = drawn_table(rng)
        outcome.runs += 1
        outcome.faults += [f"{model} on {described(X)}: {fault}"[:300] for fault in faults_of(model, X, y)]
    return outcome


def faults_of(model: Any, X: Any, y: NDArray[np.int_]) -> Iterator[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
            yield from faults_of_attributes(model)
            for use in USES:
                if hasattr(model, use):
                    result = np.asarray(getattr(model, use)(X))
                    if result.dtype.kind == "f" and not np.isfinite(result).all():
                        yield f"{use} returns values that are not finite"
        except (ValueError, TypeError) as error:
            if type(error) not in (ValueError, TypeError) or any(word in str(error) for word in FOREIGN):
                yield f"{type(error).__name__}: {error}"
        except Exception as error:
            yield f"{type(error).__name__}: {error}"
    kinds = Counter(kind_of(one) for one in caught)
    yield from (f"warned {times} times: {kind}" for kind, times in kinds.items() if times > 1)
    yield from (
        f"{one.filename}:{one.lineno}: {one.message}" for one in caught if issubclass(one.category, RuntimeWarning)
    )


def faults_of_attributes(model: Any) -> Iterator[str]:
    for name, value in vars(model).items():
        public = name.endswith("_") and not name.startswith("_") and name not in UNBOUNDED | STATED_NAN
        numbers = np.asarray(value) if public and isinstance(value, float | np.ndarray) else np.empty(0)
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            yield f"{name} is not finite"


def kind_of(one: warnings.WarningMessage) -> str:
    """Return the text of a warning without numbers and quoted names."""
    return re.sub(r"'[^']*'|\d", "", str(one.message))[:60]


def drawn_table(rng: Rng) -> tuple[Any, NDArray[np.int_]]:
    """Draw a table of random shape with up to three of FAULTS."""
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 60))
    n_classes = int(rng.integers(2, 6))
    X = rng.standard_normal((n, d))
    y = rng.integers(n_classes, size=n)
    X[:, : min(d, n_classes)] += 2 * np.eye(max(d, n_classes))[:n_classes, : min(d, n_classes)][y]
    with np.errstate(over="ignore"):
        for fault in rng.choice(list(FAULTS), size=rng.integers(0, 4), replace=False):
            X = FAULTS[fault](X, rng)
        X = X.clip(-1e308, 1e308)
        if rng.random() < 0.2:
            X = X.astype(np.float32).clip(-3e38, 3e38)
    return (sp.csr_array(X) if rng.random() < 0.25 else X), y


def _outlier_row(X: NDArray[Any], rng: Rng) -> NDArray[Any]:
    X = X.copy()
    X[rng.integers(len(X))] *= 10.0 ** rng.integers(3, 12)
    return X


FAULTS: dict[str, Callable[[NDArray[Any], Rng], NDArray[Any]]] = {
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


def with_drawn_options(model: Any, rng: Rng) -> Any:
    """Set up to two parameters of the model to random valid values."""
    model = clone(model)
    names = [name for name in OPTIONS if name in model.get_params(deep=False)]
    for name in rng.permutation(names)[: rng.integers(0, 3)]:
        model.set_params(**{name: OPTIONS[name][rng.integers(len(OPTIONS[name]))]})
    return model


def described(X: Any) -> str:
    kind = "sparse" if sp.issparse(X) else "dense"
    return f"{kind} {X.dtype} {X.shape[0]}×{X.shape[1]}"
