"""Rivals whose statistics add up, beside our own PCA: what the labels cost beyond the one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bayes_error_lda import classes
from benchmarks.timing import Row, ratio_row
from discrim import (
    PCA,
    PLSDA,
    OptimalLowRank,
    PairwiseEigenvectors,
    SupervisedPCA,
    SupervisedProbabilisticPCA,
)

ROWS = ("company",)
# Beyond the pass, SupervisedProbabilisticPCA iterates EM and PairwiseEigenvectors solves 90 eigenproblems, one for
# each pair of classes, on d×d matrices whatever n: a ratio to PCA is no goal for these two.
GOALS = {
    SupervisedPCA: 1.2,
    OptimalLowRank: 1.2,
    PLSDA: 1.2,
    SupervisedProbabilisticPCA: None,
    PairwiseEigenvectors: None,
}


def measure() -> Iterator[Row]:
    for n in (10_000, 100_000):
        X, y = classes(n, 100, 10)
        for method, goal in GOALS.items():
            yield ratio_row(
                "company",
                f"{method.__name__}(10) {n:,}×100, 10 classes / our PCA",
                lambda m=method, X=X, y=y: m(10).fit(X, y),
                lambda X=X: PCA(10).fit(X),
                goal,
            )
