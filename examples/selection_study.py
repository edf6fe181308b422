"""Refinement as feature selection, the outlook of its paper: a table of docs/refinement.md.

    DISCRIM_DATA=folder python examples/selection_study.py --into docs/refinement.md

Columns are ranked by the size of their weight in a hyperplane on standardised columns: LDA, LDA refined by a rule, or
an SVM with an L1 penalty (columns in the order in which they enter). A linear SVM on the first m columns is judged on
held-out rows of random 80/20 splits. Without --into the table is printed. Takes some ten CPU seconds.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from study_parts import arguments, markdown, show

from discrim.estimators.refined_hyperplane import RefinedHyperplane
from discrim.papers.study import study

PAPER = study("lda-refinement")
DATA = ("breast_w", "heart_statlog", "ilpd", "ecoli")
KEPT = (1, 2, 4, 8)
PENALTIES = np.geomspace(1e-3, 1, 20)


def by_refinement(rule: str | None) -> Callable[..., np.ndarray]:
    """Return the ranking by the weights of LDA, refined by the rule (None: not refined)."""

    def ranking(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        model = RefinedHyperplane(rule=rule or "none", reference_class=None).fit(X, y)
        weights = model.initial_coef_ if rule is None else model.coef_
        return np.argsort(-np.abs(weights[0]), kind="stable")

    return ranking


def by_l1(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the columns in the order in which they enter an SVM as its L1 penalty decreases."""
    order: list[int] = []
    for C in PENALTIES:
        weights = LinearSVC(penalty="l1", dual=False, C=C, class_weight="balanced").fit(X, y).coef_[0]
        order += [at for at in np.argsort(-np.abs(weights), kind="stable") if weights[at] and at not in order]
    return np.array(order + [at for at in range(X.shape[1]) if at not in order])


WAYS = {"LDA": by_refinement(None), "none": by_refinement("none"), "sign": by_refinement("sign"),
        "d-min": by_refinement("discriminant-min"), "L1": by_l1}  # fmt: skip


def lines_of(names: Sequence[str], splits: int) -> Iterator[str]:
    """Yield the table: a row for each data set and number of columns."""
    rows = []
    for name in names:
        table = next(one for one in PAPER.tables if one.dataset == name)
        whole = PAPER.rows_of(replace(table, prepare=""))
        X, y = np.asarray(whole.X, dtype=float), np.asarray(whole.y)
        right = {(way, m): [] for way in WAYS for m in KEPT}
        full = []
        for train, test in StratifiedShuffleSplit(splits, test_size=0.2, random_state=0).split(X, y):
            varying = X[train].std(axis=0) > 0
            scaler = StandardScaler().fit(X[train][:, varying])
            fitted, unseen = scaler.transform(X[train][:, varying]), scaler.transform(X[test][:, varying])
            full.append(score(fitted, y[train], unseen, y[test]))
            rankings = {way: ranking(fitted, y[train]) for way, ranking in WAYS.items()}
            for way, m in right:
                chosen = rankings[way][:m]
                right[way, m].append(score(fitted[:, chosen], y[train], unseen[:, chosen], y[test]))
        for m in (some for some in KEPT if some < X.shape[1]):
            figures = [f"{100 * np.mean(right[way, m]):.1f}" for way in WAYS]
            rows.append([f"{name}, {m} of {X.shape[1]}", *figures, f"{100 * np.mean(full):.1f}"])
    yield f"Balanced accuracy in % of a linear SVM on the columns chosen, mean of {splits} random 80/20 splits.\n"
    yield from markdown(["data, columns", *WAYS, "all columns"], rows)


def score(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    predicted = LinearSVC(dual=False, class_weight="balanced").fit(X, y).predict(X_test)
    return float(np.mean([np.mean(predicted[y_test == label] == label) for label in np.unique(y_test)]))


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, jobs=False)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--data", action="append", choices=DATA, help="this data set; may be given again")
    options = parser.parse_args(given)
    warnings.simplefilter("ignore")
    show(lines_of(options.data or DATA, options.splits), options.into, "selection")


if __name__ == "__main__":
    main()
