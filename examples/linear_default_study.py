"""Two attempts to improve the default reducer: the tables of docs/bayes_error_lda.md.

    DISCRIM_DATA=folder python examples/linear_default_study.py --into docs/bayes_error_lda.md

First, the ridge of shrinkage="cv": the highest held-out accuracy, or the least log loss among the ridges within one
standard error of it (at temperature 1, or at each ridge's best temperature). Second, more than one component for two
classes: after the discriminant, PCA of its complement, or directions in which the class covariances differ most.
"""

import sys
import warnings
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from default_reducer_study import DATASETS as MORE_CLASSES
from nonlinear_study import COUNTS, TWO_CLASSES
from sklearn.preprocessing import StandardScaler
from study_parts import CLASSIFIERS, arguments, difference, drawn, markdown, show

from discrim import BayesErrorLDA, PosteriorMap
from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.summary import LEVEL
from discrim.tables import catalogue

ACCURACY, LOSS, TEMPERED = "highest accuracy", "least log loss", "least log loss at the best temperature"
PCA, GAP, BHATTACHARYYA = "PCA of the complement", "difference of covariances", "Bhattacharyya distance"
TEST_TO_TRAIN = 1 / 4
Key = tuple[str, int, str, str]  # data, K, classifier, variant
Rows = np.ndarray


def splits_of(name: str, most: int, n_splits: int) -> Iterator[tuple[int, Rows, Rows, Rows, Rows]]:
    """Yield the number of a split, its training rows and labels, and its test rows and labels, standardised."""
    table = drawn(catalogue.load(name, download=False), most)
    X = np.asarray(table.X.toarray() if hasattr(table.X, "toarray") else table.X, dtype=float)
    for number, (train, test) in enumerate(named_protocol("holdout-80-20", n_splits=n_splits).splits(table.y, 0)):
        scaler = StandardScaler().fit(X[train])
        yield number, scaler.transform(X[train]), table.y[train], scaler.transform(X[test]), table.y[test]


# ---------------------------------------------------------------------- the ridge


def ridges(X: Rows, y: Rows) -> dict[str, float]:
    """Return the ridge that each rule chooses."""
    path = BayesErrorLDA(1).fit(X, y).path_
    accuracies, losses = path.accuracies[:, 0], path.losses[:, 0]
    best = accuracies.max()
    near = accuracies >= best - np.sqrt(best * (1 - best) / len(y)) - 1e-12
    alone = accuracies >= best - 1e-12
    found = {
        what: path.shrinkages[np.where(of, losses, np.inf).argmin()] for what, of in ((ACCURACY, alone), (LOSS, near))
    }
    return {**found, TEMPERED: PosteriorMap(1, kernel="linear").fit(X, y).shrinkage_}


def by_ridge(X: Rows, y: Rows, new: Rows) -> Iterator[tuple[str, int, Rows, Rows]]:
    counts = COUNTS if len(np.unique(y)) > 2 else COUNTS[:1]  # for two classes the others are pads
    for rule, shrinkage in ridges(X, y).items():
        for k in (k for k in counts if k <= min(X.shape[1], len(X) - 1)):
            model = BayesErrorLDA(k, shrinkage=shrinkage).fit(X, y)
            yield rule, k, model.transform(X), model.transform(new)


# ---------------------------------------------------------------------- beyond the discriminant of two classes


def by_pads(X: Rows, y: Rows, new: Rows) -> Iterator[tuple[str, int, Rows, Rows]]:
    most = min(COUNTS[-1], X.shape[1], len(X) - 1)
    model = BayesErrorLDA(most).fit(X, y)
    maps = {PCA: (model.transform(X), model.transform(new)), **by_covariances(X, y, new, model.shrinkage_, most)}
    for what, (Z, Z_new) in maps.items():
        for k in (k for k in COUNTS if 1 < k <= most):
            yield what, k, Z[:, :k], Z_new[:, :k]


def by_covariances(X: Rows, y: Rows, new: Rows, shrinkage: float, most: int) -> dict[str, tuple[Rows, Rows]]:
    """Return the discriminant, then eigenvectors of S₁ − S₂ in coordinates whitened by Σ_γ, in two orders."""
    _, singular, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    axes = axes[singular > 1e-9 * singular[0]].T
    rows, news = ((part - X.mean(axis=0)) @ axes for part in (X, new))
    classes = [rows[y == label] for label in np.unique(y)]
    within = sum(np.cov(part.T, bias=True).reshape(axes.shape[1], -1) * len(part) for part in classes) / len(X)
    ridge = max(shrinkage, 1e-3)
    values, vectors = np.linalg.eigh(
        (1 - ridge) * within + ridge * np.trace(within) / len(within) * np.eye(len(within))
    )
    whiten = vectors / np.sqrt(values)
    white = [part @ whiten for part in classes]
    first = white[0].mean(axis=0) - white[1].mean(axis=0)
    first /= np.linalg.norm(first)
    complement = np.eye(len(first)) - np.outer(first, first)
    covariances = [np.cov(part.T, bias=True).reshape(len(first), -1) for part in white]
    gaps, others = np.linalg.eigh(complement @ (covariances[0] - covariances[1]) @ complement)
    a, b = (np.maximum(np.einsum("ij,ik,kj->j", others, one, others), 1e-3) for one in covariances)
    orders = {GAP: np.abs(gaps), BHATTACHARYYA: np.log((a + b) / (2 * np.sqrt(a * b)))}
    found = {}
    for what, worth in orders.items():
        chosen = whiten @ np.column_stack([first, others[:, np.argsort(-worth)[: most - 1]]])
        found[what] = rows @ chosen, news @ chosen
    return found


# ---------------------------------------------------------------------- figures


def tried(names: tuple[str, ...], ways, options: Namespace) -> dict[Key, dict[int, float]]:
    """Return the accuracy of every split."""
    scores: dict[Key, dict[int, float]] = defaultdict(dict)
    for name in names:
        for number, X, y, new, truth in splits_of(name, options.rows, options.splits):
            for what, k, Z, Z_new in ways(X, y, new):
                for one in named_classifiers(CLASSIFIERS):
                    scores[name, k, one.name, what][number] = float(
                        np.mean(one.build().fit(Z, y).predict(Z_new) == truth)
                    )
        print(f"{name} is done", file=sys.stderr, flush=True)
    return scores


def table(scores: dict[Key, dict[int, float]], first: str) -> Iterator[str]:
    """Yield means by classifier and K, and the number of cells (data × K × classifier) that differ from the first."""
    counts = sorted({k for _, k, *_ in scores})
    rows = []
    for what in dict.fromkeys(what for *_, what in scores):
        gaps = [difference(scores[key], scores[(*key[:3], first)], TEST_TO_TRAIN) for key in scores if key[3] == what]
        means = f"{100 * np.mean([gap.mean for gap in gaps if gap]):+.2f}"
        shown = [gap.mean > 0 for gap in gaps if gap and gap.p_value < LEVEL]
        against = ["", ""] if what == first else [means, f"{shown.count(True)} / {shown.count(False)} of {len(gaps)}"]
        for classifier in CLASSIFIERS:
            of_way = {key: one for key, one in scores.items() if key[2:] == (classifier, what)}
            by_count = [
                np.mean([np.mean(list(one.values())) for key, one in of_way.items() if key[1] == k]) for k in counts
            ]
            label, shown_now = (what, against) if classifier == CLASSIFIERS[0] else ("", ["", ""])
            rows.append([label, classifier, *(f"{100 * mean:.1f}" for mean in by_count), *shown_now])
    head = ["", "classifier", *(f"K = {k}" for k in counts), "mean difference", "cells better / worse at 5 %"]
    yield from markdown(head, rows)


def tables(options: Namespace) -> Iterator[str]:
    yield f"{options.splits} random 80/20 splits, at most {options.rows:,} rows per data set; mean accuracy, %.\n"
    for names, classes in ((MORE_CLASSES, "more than two classes"), (TWO_CLASSES, "two classes")):
        yield f"**The ridge**, {len(names)} data sets with {classes}:\n"
        yield from table(tried(names, by_ridge, options), ACCURACY)
    yield f"**Beyond the discriminant**, the {len(TWO_CLASSES)} data sets with two classes:\n"
    yield from table(tried(TWO_CLASSES, by_pads, options), PCA)


def main() -> None:
    parser = arguments(__doc__, jobs=False)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=400, help="rows used of larger data sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # pads that tie at the cut
    show(tables(options), options.into, "tried")


if __name__ == "__main__":
    main()
