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
FOLDS = (whole(2, "a whole number from 2 on"),)
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


def require_transformer(name: str, transformer: Any) -> None:
    if isinstance(transformer, type) or not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
        what = f"the class {transformer.__name__}" if isinstance(transformer, type) else f"{transformer!r}"
        raise TypeError(
            f"{name} must be a transformer, an object with fit and transform; got {what}. Pass an instance such "
            "as discrim.PCA(n_components=5), sklearn.decomposition.FastICA(n_components=5) or a Pipeline of them."
        )
