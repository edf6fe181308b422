"""Estimators that the laws are parametrised with: those of the registry, and options that make them other methods.

The entry of a method in the registry adds it here, and gives its `Laws`.
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
from discrim.registry import DISCRIMINANTS, OUR_METHODS, Laws, Method


@dataclass(frozen=True)
class Case:
    """Method by its name; `case(k)` returns an estimator with k components."""

    name: str
    build: Callable[..., Any]
    laws: Laws

    def __call__(self, n_components: Any = 2) -> Any:
        return self.build(n_components=n_components)

    def __str__(self) -> str:
        return self.name


INFLATED = replace(DISCRIMINANTS, counts_enter=True)  # κ depends on the number of rows; on the Lanczos path on a fold
FEW_FOLDS = {"sparse-pls-da": 2, "screened-pca": 2}  # these fit every fold for every number of columns


def with_few_folds(method: Method, n_components: Any) -> Any:
    """Return the estimator of a method, with fewer folds where each fold is slow."""
    estimator = method.estimator(n_components, 0)
    return estimator.set_params(cv=FEW_FOLDS[method.name]) if method.name in FEW_FOLDS else estimator


LISTED = [Case(one.name, partial(with_few_folds, one), one.laws) for one in OUR_METHODS]
NEAREST = Laws(streams=False)
OPTIONS = [
    Case("margin-pca-any", partial(MarginPCA, pairs="nearest", enemies="any"), NEAREST),
    Case("margin-pca-all-ties", partial(MarginPCA, pairs="nearest", ties="all"), replace(NEAREST, counts_enter=True)),
    Case(
        "margin-pca-lowest",
        partial(MarginPCA, pairs="nearest", ties="lowest"),
        replace(NEAREST, whole_weights=True, counts_enter=True, breaks_ties=True),
    ),
    Case("bayes-error-pca-bhattacharyya", partial(BayesErrorPCA, score="bhattacharyya"), Laws(by_products=False)),
    Case("regularized-lda-0.3", partial(RegularizedLDA, shrinkage=0.3), Laws(orthonormal=False)),
    Case("regularized-lda-oas", partial(RegularizedLDA, shrinkage="oas"), INFLATED),
    Case(
        "regularized-lda-ledoit-wolf",
        partial(RegularizedLDA, shrinkage="ledoit_wolf"),
        replace(INFLATED, streams=False),
    ),
    Case(
        "heteroscedastic-lda-0.3", partial(HeteroscedasticLDA, shrinkage=0.3), replace(DISCRIMINANTS, sees_shapes=True)
    ),
    Case("heteroscedastic-lda-oas", partial(HeteroscedasticLDA, shrinkage="oas"), replace(INFLATED, sees_shapes=True)),
    Case("bayes-error-lda-0.3", partial(BayesErrorLDA, shrinkage=0.3, cv=None), replace(INFLATED, nests=False)),
    Case("bayes-error-lda-nested", partial(BayesErrorLDA, shrinkage=0.3, cv=None, nested=True), INFLATED),
]
NOT_LINEAR = [case for case in LISTED if not case.laws.linear]
CASES = [
    case
    for case in LISTED
    if case.laws.linear and not (case.laws.chosen_by_folds or case.laws.uses_svm or case.laws.iterated)
] + OPTIONS
CHOSEN_BY_FOLDS = [case for case in LISTED if case.laws.chosen_by_folds]
WITH_DEFAULTS = CASES + CHOSEN_BY_FOLDS
KEEPING_COLUMNS = CASES + [case for case in CHOSEN_BY_FOLDS if case.laws.rotates]  # without a selection of columns
ITERATED = [case for case in LISTED if case.laws.iterated]
USES_SVM = [case for case in LISTED if case.laws.uses_svm]
SUPERVISED = [case for case in CASES if case.laws.supervised]
STREAMED = [case for case in CASES if case.laws.streams]


# warnings of some methods on some tables, which the laws do not test
QUIET = pytest.mark.filterwarnings(
    "ignore:The null space of the within-class scatter:UserWarning",
    "ignore:The within-class scatter is singular:UserWarning",
    "ignore:Along no direction does the between-class spread:UserWarning",
)


def over(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise a test with cases, named by their methods."""
    return pytest.mark.parametrize("case", cases, ids=str)


def with_coordinates(basis: str | None, estimator: Any) -> Any:
    """Return the estimator with the named coordinates instead of its own choice."""
    plan = None if basis is None else Plan(basis, f"{basis}, as the caller wished")
    needs = estimator._needs

    def limited() -> Needs:
        declared = needs()
        return declared if declared.coordinates is not None else replace(declared, coordinates=plan)

    estimator._needs = limited
    return estimator
