"""The reductions that can be compared, by name: one line each.

A method is how to build it for K components, from which K on its components are nested (then one fit serves every K
from there), how many components it can have at most, and whether it takes sparse rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import FastICA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.random_projection import GaussianRandomProjection

from discrim.evaluation.baselines import (
    MOST_NCA_ROWS,
    CanonicalCorrelations,
    LassoSelection,
    NeighborhoodComponents,
    PartialLeastSquares,
)
from discrim.reducers.bayes_error_lda import BayesErrorLDA
from discrim.reducers.bayes_error_pca import BayesErrorPCA
from discrim.reducers.fisher_lda import FisherLDA
from discrim.reducers.margin_pca import MarginPCA
from discrim.reducers.margin_subspace import MarginSubspace
from discrim.reducers.max_margin_shift import MaxMarginShift
from discrim.reducers.maximum_margin_criterion import MaximumMarginCriterion
from discrim.reducers.null_space_lda import NullSpaceLDA
from discrim.reducers.orthogonal_lda import OrthogonalLDA
from discrim.reducers.pca import PCA
from discrim.reducers.pca_lda import PCALDA
from discrim.reducers.regularized_lda import RegularizedLDA
from discrim.reducers.uncorrelated_lda import UncorrelatedLDA


class Sizes(NamedTuple):
    """What the training part of a split has."""

    n_rows: int
    n_features: int
    n_classes: int


def from_the_first(sizes: Sizes) -> float:
    return 1


def from_all_discriminants(sizes: Sizes) -> float:
    return sizes.n_classes - 1


def never(sizes: Sizes) -> float:
    return np.inf


def directions_of_rows(sizes: Sizes) -> int:
    """As many as the centred rows can span."""
    return min(sizes.n_rows - 1, sizes.n_features)


def fewer_than_classes(sizes: Sizes) -> int:
    return min(sizes.n_classes - 1, sizes.n_features)


def fewer_than_columns(sizes: Sizes) -> int:
    return min(sizes.n_rows, sizes.n_features) - 1


@dataclass(frozen=True)
class Method:
    """A reduction by name.

    build : takes n_components, and random_state where `seeded`; None stands for the features as they are
    nested_from : the K from which on the first components of more are the components of fewer: one fit serves them all
    """

    name: str
    gloss: str
    build: Callable[..., Any] | None
    nested_from: Callable[[Sizes], float] = from_the_first
    most_components: Callable[[Sizes], int] = directions_of_rows
    seeded: bool = False
    takes_sparse: bool = True
    ours: bool = True
    note: str = ""

    def estimator(self, n_components: int, seed: int) -> Any:
        """An unfitted transformer with that many components."""
        assert self.build is not None
        return self.build(n_components=n_components, **({"random_state": seed} if self.seeded else {}))


def _shifted_pca(n_components: int) -> MaxMarginShift:
    return MaxMarginShift(PCA(n_components))


_OURS = (
    Method(
        "bayes-error-lda",
        "discriminants of least pairwise Bayes error",
        BayesErrorLDA,
        nested_from=from_all_discriminants,
    ),
    Method("regularized-lda", "linear discriminants with a ridge chosen by cross-validation", RegularizedLDA),
    Method("fisher-lda", "classical linear discriminants", FisherLDA),
    Method("uncorrelated-lda", "discriminants with uncorrelated features, also for n < d", UncorrelatedLDA),
    Method("orthogonal-lda", "orthonormal discriminants, also for n < d", OrthogonalLDA),
    Method("null-space-lda", "class means apart where classes do not vary, for n < d", NullSpaceLDA),
    Method("pca-lda", "principal components, then discriminants", PCALDA),
    Method("max-margin-criterion", "between minus within-class scatter", MaximumMarginCriterion),
    Method(
        "margin-subspace",
        "directions of a multiclass SVM's weights",
        MarginSubspace,
        most_components=fewer_than_classes,
    ),
    Method("max-margin-shift", "PCA of rows moved away from other classes", _shifted_pca),
    Method("margin-pca-all", "PCA of all differences between classes", partial(MarginPCA, pairs="all")),
    Method("margin-pca-mean", "PCA of differences to other classes' means", partial(MarginPCA, pairs="mean")),
    Method("margin-pca-median", "PCA of differences to other classes' medians", partial(MarginPCA, pairs="median")),
    Method("margin-pca-nearest", "PCA of differences to the nearest enemies", partial(MarginPCA, pairs="nearest")),
    Method("bayes-error-pca", "principal components of least Bayes error", BayesErrorPCA),
    Method("pca", "directions of largest variance, without labels", PCA),
)

_sklearn = partial(Method, ours=False)
_BASELINES = (
    _sklearn("raw", "the features as they are, not reduced", None),
    _sklearn(
        "lsi",
        "truncated singular value decomposition",
        partial(TruncatedSVD, algorithm="arpack"),
        most_components=fewer_than_columns,
        seeded=True,
    ),
    _sklearn(
        "ica",
        "independent components (FastICA)",
        partial(FastICA, whiten="unit-variance", max_iter=500),
        nested_from=never,
        seeded=True,
        takes_sparse=False,
    ),
    _sklearn(
        "cca",
        "canonical correlations with the class indicators",
        CanonicalCorrelations,
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _sklearn("pls", "partial least squares on the class indicators", PartialLeastSquares, takes_sparse=False),
    _sklearn("lasso", "columns chosen along the lasso path", LassoSelection, nested_from=never, takes_sparse=False),
    _sklearn(
        "lda",
        "scikit-learn's linear discriminant analysis",
        LinearDiscriminantAnalysis,
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _sklearn(
        "nca",
        "neighbourhood components analysis",
        NeighborhoodComponents,
        nested_from=never,
        seeded=True,
        takes_sparse=False,
        note=f"fitted on at most {MOST_NCA_ROWS:,} training rows",
    ),
    _sklearn("random-projection", "Gaussian random directions", GaussianRandomProjection, seeded=True),
)

METHODS: dict[str, Method] = {method.name: method for method in (*_OURS, *_BASELINES)}
RAW = METHODS["raw"]
DEFAULT_METHODS = (
    "bayes-error-lda",
    "regularized-lda",
    "margin-subspace",
    "margin-pca-mean",
    "bayes-error-pca",
    "pca",
    "raw",
)


def named_methods(names: Iterable[str]) -> tuple[Method, ...]:
    """The methods of these names, in this order, each once; "all" stands for all, "default" for the short list."""
    wanted: dict[str, Method] = {}
    for name in names:
        chosen = {"all": tuple(METHODS), "default": DEFAULT_METHODS}.get(name, (name,))
        wanted.update((one, named(one, METHODS, "method")) for one in chosen)
    return tuple(wanted.values())


def named(name: str, known: dict[str, Any], noun: str) -> Any:
    """The entry of that name, or an error that says which names there are."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"No {noun} is named {name!r}. {meant}There are: {', '.join(known)}.")
