"""The estimators over which every law file is parametrised: the registry's, and options that make them other methods.

A new method comes here by its entry in the registry, which also says what a law may not ask of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from discrim import BayesErrorLDA, BayesErrorPCA, HeteroscedasticLDA, MarginPCA, RegularizedLDA
from discrim.core.coordinates.choose import Plan
from discrim.core.problem import Needs
from discrim.registry import OUR_METHODS


@dataclass(frozen=True)
class Case:
    """A method by name: `case(k)` makes the estimator that keeps k components."""

    name: str
    build: Callable[..., Any]
    supervised: bool = True
    streams: bool = True  # has partial_fit: its statistics add up
    whole_weights: bool = False  # takes whole-number weights only
    breaks_ties: bool = False  # by the order of rows
    counts_enter: bool = False  # n itself enters, so that every row twice (or weights × 2) is another problem
    rotates: bool = True  # X → XQ turns the directions with it
    scales: bool = True  # X → sX leaves the directions, and 1e±300 is as good as 1
    orthonormal: bool = True  # W Wᵀ = I
    inverts: bool = True  # where not orthonormal: divides by the spread within classes
    nests: bool = True  # the first of many components are those of few
    lanczos: bool = True  # a few directions can be had from products with X alone
    lanczos_pads: bool = True  # more of them than there are discriminants, too
    chosen_by_folds: bool = False  # cross-validation chooses: row order and repetition are for given splits only
    sees_shapes: bool = False  # finds directions where class means coincide and their covariances do not
    linear: bool = True  # has components_: features are (x − mean) times them
    iterated: bool = False  # as exact as its tolerance: its laws are in tests/estimators/test_alternating.py
    of_the_svm: bool = False  # as exact as the SVM's duality gap, at most C−1 directions: test_shift_invariances

    def __call__(self, n_components: Any = 2) -> Any:
        return self.build(n_components=n_components)

    def __str__(self) -> str:
        return self.name


DISCRIMINANTS = {"orthonormal": False, "lanczos": False}
INFLATED = {**DISCRIMINANTS, "counts_enter": True}  # κ comes from the number of rows, on the Lanczos path from a fold
LISTED = [Case(one.name, partial(one.estimator, seed=0), **one.laws) for one in OUR_METHODS]
OPTIONS = [
    Case("margin-pca-any", partial(MarginPCA, pairs="nearest", enemies="any"), streams=False),
    Case("margin-pca-all-ties", partial(MarginPCA, pairs="nearest", ties="all"), streams=False, counts_enter=True),
    Case(
        "margin-pca-lowest",
        partial(MarginPCA, pairs="nearest", ties="lowest"),
        streams=False,
        whole_weights=True,
        counts_enter=True,
        breaks_ties=True,
    ),
    Case("bayes-error-pca-bhattacharyya", partial(BayesErrorPCA, score="bhattacharyya"), lanczos=False),
    Case("regularized-lda-0.3", partial(RegularizedLDA, shrinkage=0.3), orthonormal=False),
    Case("regularized-lda-oas", partial(RegularizedLDA, shrinkage="oas"), **INFLATED),
    Case("regularized-lda-ledoit-wolf", partial(RegularizedLDA, shrinkage="ledoit_wolf"), **INFLATED, streams=False),
    Case("heteroscedastic-lda-0.3", partial(HeteroscedasticLDA, shrinkage=0.3), **DISCRIMINANTS, sees_shapes=True),
    Case("heteroscedastic-lda-oas", partial(HeteroscedasticLDA, shrinkage="oas"), **INFLATED, sees_shapes=True),
    Case("bayes-error-lda-0.3", partial(BayesErrorLDA, shrinkage=0.3, cv=None), **INFLATED, nests=False),
    Case("bayes-error-lda-nested", partial(BayesErrorLDA, shrinkage=0.3, cv=None, nested=True), **INFLATED),
]
NOT_LINEAR = [case for case in LISTED if not case.linear]
CASES = [
    case for case in LISTED if case.linear and not (case.chosen_by_folds or case.of_the_svm or case.iterated)
] + OPTIONS
CHOSEN_BY_FOLDS = [case for case in LISTED if case.chosen_by_folds]
ITERATED = [case for case in LISTED if case.iterated]
OF_THE_SVM = [case for case in LISTED if case.of_the_svm]
SUPERVISED = [case for case in CASES if case.supervised]
STREAMED = [case for case in CASES if case.streams]


# what some methods rightly say of some tables, which is not what the laws are about
QUIET = pytest.mark.filterwarnings(
    "ignore:The null space of the within-class scatter:UserWarning",
    "ignore:The within-class scatter is singular:UserWarning",
    "ignore:Along no direction does the between-class spread:UserWarning",
)


def over(cases: list[Case]) -> pytest.MarkDecorator:
    """A test for each of the cases, called by its name."""
    return pytest.mark.parametrize("case", cases, ids=str)


def posed_in(basis: str | None, estimator: Any) -> Any:
    """The estimator, to pose its problem in the coordinates of that name whatever the decision table says."""
    plan = None if basis is None else Plan(basis, f"{basis}, as the caller wished")
    needs = estimator._needs

    def posed() -> Needs:
        declared = needs()
        return declared if declared.coordinates is not None else replace(declared, coordinates=plan)

    estimator._needs = posed
    return estimator
