"""The list of estimators, with the options that make them other methods, over which every law file is parametrised.

A new method is one more line here. The facts say what a law may ask of it; the defaults are those of most methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from discrim import (
    PCA,
    PCALDA,
    BayesErrorLDA,
    BayesErrorPCA,
    FisherLDA,
    MarginPCA,
    MaximumMarginCriterion,
    NullSpaceLDA,
    OrthogonalLDA,
    RegularizedLDA,
    UncorrelatedLDA,
)


@dataclass(frozen=True)
class Case:
    """A method by name: `case(k)` makes the estimator that keeps k components."""

    name: str
    build: Callable[..., Any]
    supervised: bool = True
    streams: bool = True  # has partial_fit: its statistics add up
    whole_weights: bool = False  # takes whole-number weights only
    counts_enter: bool = False  # n itself enters, so that every row twice (or weights × 2) is another problem
    rotates: bool = True  # X → XQ turns the directions with it
    scales: bool = True  # X → sX leaves the directions, and 1e±300 is as good as 1
    orthonormal: bool = True  # W Wᵀ = I
    nests: bool = True  # the first of many components are those of few
    lanczos: bool = True  # a few directions can be had from products with X alone
    lanczos_pads: bool = True  # more of them than there are discriminants, too

    def __call__(self, n_components: Any = 2) -> Any:
        return self.build(n_components=n_components)

    def __str__(self) -> str:
        return self.name


NEAREST = {"streams": False, "whole_weights": True, "counts_enter": True}
DISCRIMINANTS = {"orthonormal": False, "lanczos": False}
INFLATED = {**DISCRIMINANTS, "counts_enter": True}  # κ comes from the number of rows, on the Lanczos path from a fold

CASES = [
    Case("PCA", PCA, supervised=False),
    Case("MarginPCA-all", partial(MarginPCA, pairs="all")),
    Case("MarginPCA-mean", partial(MarginPCA, pairs="mean")),
    Case("MarginPCA-median", partial(MarginPCA, pairs="median"), streams=False, rotates=False),
    Case("MarginPCA-nearest", partial(MarginPCA, pairs="nearest"), **NEAREST),
    Case("MarginPCA-any", partial(MarginPCA, pairs="nearest", enemies="any"), **NEAREST),
    Case("BayesErrorPCA", BayesErrorPCA, lanczos=False),
    Case("BayesErrorPCA-bhattacharyya", partial(BayesErrorPCA, score="bhattacharyya"), lanczos=False),
    Case("FisherLDA", FisherLDA, **DISCRIMINANTS),
    Case("RegularizedLDA-0.3", partial(RegularizedLDA, shrinkage=0.3), orthonormal=False),
    Case("RegularizedLDA-oas", partial(RegularizedLDA, shrinkage="oas"), **DISCRIMINANTS, counts_enter=True),
    Case(
        "RegularizedLDA-ledoit_wolf",
        partial(RegularizedLDA, shrinkage="ledoit_wolf"),
        **DISCRIMINANTS,
        streams=False,
        counts_enter=True,
    ),
    Case("UncorrelatedLDA", UncorrelatedLDA, **DISCRIMINANTS),
    Case("OrthogonalLDA", OrthogonalLDA, lanczos=False),
    Case("NullSpaceLDA", NullSpaceLDA, lanczos=False),
    Case("PCALDA", PCALDA, **DISCRIMINANTS),
    Case("BayesErrorLDA", partial(BayesErrorLDA, shrinkage=0.3, cv=None), **INFLATED, nests=False),
    Case("BayesErrorLDA-nested", partial(BayesErrorLDA, shrinkage=0.3, cv=None, nested=True), **INFLATED),
    Case("MaximumMarginCriterion", MaximumMarginCriterion, lanczos_pads=False),
]
# cross-validation chooses for these: the laws of row order and repetition are for given splits only
FOLDS = {**DISCRIMINANTS, "streams": False, "counts_enter": True}
CHOSEN_BY_FOLDS = [Case("RegularizedLDA-cv", RegularizedLDA, **FOLDS), Case("BayesErrorLDA-cv", BayesErrorLDA, **FOLDS)]
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
