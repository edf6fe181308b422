"""Checks of parameters: an error names the parameter, the possible values, the value given, and what to do.

An estimator declares what each parameter may be (`_parameter_constraints`, as scikit-learn's do), and
`check_parameters` holds it to that. What depends on the classes (priors, class weights) is checked with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv

WEIGHT_RANGE = 1e-100, 1e100  # the largest weight may lie here: some methods square them


@dataclass(frozen=True)
class Possible:
    """One kind of value a parameter may have: its description and a test."""

    words: str
    holds: Callable[[Any], bool]


WHOLE = int, np.integer
NUMBERS = (*WHOLE, float, np.floating)
Constraints = dict[str, tuple[Possible, ...]]


def is_number(value: Any, kinds: tuple[type, ...] = NUMBERS) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def whole(least: int, words: str = "") -> Possible:
    """Return the constraint of an int ≥ `least`."""
    words = words or f"an int ≥ {least}"
    return Possible(words, lambda value: isinstance(value, WHOLE) and type(value) is not bool and bool(value >= least))


def number(words: str, holds: Callable[[Any], bool]) -> Possible:
    """Return the constraint of a number (not a bool) of which something holds."""
    return Possible(words, lambda value: isinstance(value, NUMBERS) and type(value) is not bool and bool(holds(value)))


def named(*choices: str) -> tuple[Possible, ...]:
    """Return the constraint of one of some names."""
    return tuple(
        Possible(repr(choice), lambda value, choice=choice: isinstance(value, str) and value == choice)  # type: ignore
        for choice in choices
    )


POSITIVE = (number("a finite number above 0", lambda value: 0 < value < np.inf),)
_FRACTION = Possible(
    "a fraction in (0, 1) of what there is to keep",
    lambda value: isinstance(value, (float, np.floating)) and bool(0 < value < 1),
)
NOTHING = Possible("or None", lambda value: value is None)
_ALL = Possible("or None for all", lambda value: value is None)
COUNT = (whole(1), _FRACTION, _ALL)
COUNT_OR_CV = (whole(1), _FRACTION, *named("cv"), _ALL)
SHARE = number("a number in [0, 1]", lambda value: 0 <= value <= 1)
PASSES = (whole(1, "an int ≥ 1: passes of the SVM over the rows"),)
GAPS = (*named("pairwise"), NOTHING)
_FAR = "a number ≥ 0 (how far the rows move relative to their spread; 0 is the plain extractor, 0.3 to 10 are useful)"
SHIFT = (number(_FAR, lambda value: 0 <= value < np.inf), *named("cv"))
FOLDS = (whole(2, "a whole number from 2 on"),)
SEED = (whole(0, "a whole number ≥ 0, which every part of a table can be given"), NOTHING)
BYTES = (number("a number of bytes, e.g. 8 * 2**30", lambda value: value >= 0),)
FLAG = (Possible("True or False", lambda value: isinstance(value, (bool, np.bool_))),)


def check_parameters(estimator: Any) -> None:
    """Raise where a parameter is none of what its estimator declares possible."""
    given, constraints = vars(estimator), estimator._parameter_constraints
    if not constraints.keys() <= given.keys():  # kept in another way
        given = estimator.get_params(deep=False)
    for name, possible in constraints.items():
        require(name, given[name], possible)


def require(name: str, value: Any, possible: Sequence[Possible]) -> None:
    """Raise if a value is not possible."""
    if not any(one.holds(value) for one in possible):
        *others, last = [one.words for one in possible]
        listed = f"{', '.join(others)} or {last.removeprefix('or ')}" if others else last
        raise ValueError(f"{name} must be {listed}; got {value!r}.")


def plain_count(n_components: Any) -> int | float | None:
    """Return a checked count as an int, a fraction, or None (all; "cv" is not known yet)."""
    if n_components is None or isinstance(n_components, str):
        return None
    return int(n_components) if isinstance(n_components, WHOLE) else float(n_components)


def require_emphasis(emphasis: Any, n_classes: int) -> None:
    if emphasis is not None and (np.shape(emphasis) != (n_classes,) or not (np.asarray(emphasis) > 0).all()):
        raise ValueError(
            f"emphasis must be a number above 0 for each of {n_classes} classes; got shape {np.shape(emphasis)}."
        )


def checked_priors(priors: Any, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class probabilities: the classes' own shares (None), "equal", or given ones."""
    if priors is None:
        return shares
    if isinstance(priors, str) and priors == "equal":
        return np.full(len(shares), 1 / len(shares))
    if isinstance(priors, str):
        raise ValueError(f"priors must be None, 'equal' or one probability per class; got {priors!r}.")
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != shares.shape or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
        raise ValueError(
            f"priors must be {len(shares)} positive numbers (one per class, in the order of classes_) that sum to 1; "
            f"got {priors!r}."
        )
    return given


def class_factors(
    class_weight: Any, classes: NDArray[Any], totals: NDArray[np.float64], known: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return a factor for the weights of each class: 1, equal totals ("balanced"), or those of a dict by label.

    known : all labels there may be, where `classes` are those of a part of the rows.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (len(totals) * totals)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict by label; got {class_weight!r}.")
    labels = (classes if known is None else known).tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[:5]}, but the labels are {labels[:10]}. Use the labels as in y: text "
            "is not a number."
        )
    if not all(is_number(one) and WEIGHT_RANGE[0] <= one <= WEIGHT_RANGE[1] for one in class_weight.values()):
        raise ValueError(
            f"Factors of class_weight must be from {WEIGHT_RANGE[0]:g} to {WEIGHT_RANGE[1]:g}; got {class_weight!r}."
        )
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)


def require_folds(cv: Any, largest_class: int) -> None:
    if cv < 2:
        raise ValueError(f"cv must be an int ≥ 2, a splitter or a list of splits; got {cv}.")
    if largest_class < 2:
        raise ValueError(
            "Some class must have at least two rows, so that one can be held out; got one row in every class. Pass a "
            "number for each parameter that is cross-validated (such as shrinkage, keep or n_components)."
        )


SPLITS_BY_ROW = PredefinedSplit, type(check_cv([]))  # splitters that hold the numbers of rows, or one fold for each


def names_rows(cv: Any) -> bool:
    """Return whether the splits name rows of one table by their numbers."""
    return isinstance(cv, SPLITS_BY_ROW) or not (cv is None or is_number(cv) or hasattr(cv, "split"))


def require_unnumbered(cv: Any) -> None:
    """Raise where splits name rows by numbers, of a table in parts: those of a sample of its rows are other rows."""
    if names_rows(cv):
        raise ValueError(
            "cv names rows by their numbers, which rows of a table in parts do not have. Pass a number of folds, a "
            "HashKFold or a splitter."
        )


def require_groups(groups: Any, n_rows: int, cv: Any) -> NDArray[Any]:
    """Return one group for each row; raise if the folds cannot keep groups together."""
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(f"groups must be one group for each of {n_rows} rows; got shape {given.shape}.")
    if type(cv).__name__ == "HashKFold":
        raise ValueError(
            "groups cannot be used with cv=HashKFold, whose folds follow from the content of rows. Pass a number of "
            "folds, or a splitter that takes groups such as sklearn.model_selection.GroupKFold."
        )
    return given


def checked_keep(keep: Any, n_components: int, n_features: int) -> list[int] | None:
    """Return how many features each component keeps; None if folds choose."""
    if isinstance(keep, str) and keep == "cv":
        return None
    counts = list(keep) if isinstance(keep, (list, tuple, np.ndarray)) else [keep] * n_components
    if not all(is_number(count, WHOLE) and count >= 1 for count in counts):
        raise ValueError(f"keep must be an int ≥ 1, one for each component, or 'cv'; got {keep!r}.")
    if len(counts) < n_components:
        raise ValueError(f"keep must be one number for all components or one for each of {n_components}; got {keep!r}.")
    return [min(int(count), n_features) for count in counts]


def seed_number(random_state: Any) -> int:
    """Return a seed for all parts of a table: a whole number ≥ 0, 0 for None."""
    require("random_state", random_state, SEED)
    return int(random_state or 0)


def checked_row_numbers(numbers: Any, n_rows: int) -> NDArray[np.intp]:
    """Row numbers of one side of a split, from numbers or from a mask."""
    array = np.asarray(numbers)
    if array.dtype == bool:
        if len(array) != n_rows:
            raise ValueError(f"A mask of cv must have one bool for each of {n_rows} rows; got {len(array)}.")
        return np.flatnonzero(array)
    array = array.astype(np.intp)
    wrong = array[(array < -n_rows) | (array >= n_rows)]
    if len(wrong):
        raise ValueError(f"Rows of cv must be numbers from 0 to {n_rows - 1}; got {int(wrong[0])}.")
    return np.where(array < 0, array + n_rows, array)


def require_splits(splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]]) -> None:
    if not splits:
        raise ValueError(
            "cv gives no split at all. Pass an int ≥ 2, a splitter, or a list of (train, test) row numbers."
        )
    for number, sides in enumerate(splits):
        for side, name in zip(sides, ("train", "test"), strict=True):
            if len(side) == 0:
                raise ValueError(
                    f"Split {number} of cv has no row of positive weight to {name} on. Give both sides of every split "
                    "at least one."
                )


def require_transformer(name: str, transformer: Any) -> None:
    if isinstance(transformer, type) or not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
        what = f"the class {transformer.__name__}" if isinstance(transformer, type) else f"{transformer!r}"
        raise TypeError(
            f"{name} must be a transformer, an object with fit and transform; got {what}. Pass an instance such "
            "as discrim.PCA(n_components=5), sklearn.decomposition.FastICA(n_components=5) or a Pipeline of them."
        )


def require_unweighted(estimator: Any, weights: Any) -> None:
    """Raise where rows have weights that a covariance estimator cannot take."""
    if weights is not None:
        raise ValueError(
            f"sample_weight and class_weight cannot be used with covariance_estimator={estimator!r}, which takes no "
            "weights. Leave the weights out, repeat the rows, or use RegularizedLDA, which takes weights."
        )


def require_covariance(estimator: Any, fitted: Any, size: int) -> NDArray[np.float64]:
    """Return the covariance that an estimator found, checked to have that many columns."""
    found = np.asarray(getattr(fitted, "covariance_", np.empty(0)), dtype=np.float64)
    if found.shape != (size, size):
        raise ValueError(
            f"covariance_estimator must set covariance_ of shape {(size, size)} when fitted; got {estimator!r}. Pass "
            "an object with fit(X) and covariance_, such as sklearn.covariance.OAS()."
        )
    return found
