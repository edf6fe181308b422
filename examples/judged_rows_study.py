"""Number of held-out rows per fold that choosing a ridge needs, on large real tables.

Needs the data sets in the folder that DISCRIM_DATA names. Prints the table of docs/discriminant_analysis.md.
"""

import sys
import warnings

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from discrim import BayesErrorLDA, RegularizedLDA
from discrim.core import cross_validation as shrinkage_path
from discrim.tables.catalogue import load

NAMES = ("satimage", "mnist_test10k", "letter", "ocr_letters")
ROWS = (250, 500, 1_000, 2_000, 4_000, 10**9)
SPLITS = StratifiedShuffleSplit(5, test_size=0.2, random_state=0)
NEIGHBOURS_OF = 2_000  # number of test rows, and half the number of training rows, of 5-NN in the components


def main() -> None:
    warnings.simplefilter("ignore")
    print("| table | rows per fold | γ (odds) | accuracy | log loss | 5-NN in BayesErrorLDA(5) |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or NAMES:
        table = load(name)
        found: dict[int, list[tuple[float, ...]]] = {most: [] for most in ROWS}
        for training, test in SPLITS.split(table.X, table.y):
            scaler = StandardScaler().fit(table.X[training])
            X, Z = scaler.transform(table.X[training]), scaler.transform(table.X[test])
            for most in ROWS:
                found[most].append(judged(most, X, table.y[training], Z, table.y[test]))
        n, d = table.X.shape
        for number, (most, splits) in enumerate(found.items()):
            odds, accuracy, loss, neighbours = zip(*splits, strict=True)
            title = f"{name} {n:,}×{d}" if number == 0 else ""
            rows = f"{most:,}" if most < n else "all"
            ridges = f"{min(odds):.2g} – {max(odds):.2g}"
            cells = f"{100 * np.mean(accuracy):.2f} | {np.mean(loss):.4f} | {100 * np.mean(neighbours):.2f}"
            print(f"| {title} | {rows} | {ridges} | {cells} |", flush=True)


def judged(most: int, X: np.ndarray, y: np.ndarray, Z: np.ndarray, wanted: np.ndarray) -> tuple[float, ...]:
    """Return the odds of the ridge chosen with `most` rows per fold, its accuracy and log loss, and 5-NN's accuracy."""
    shrinkage_path.JUDGED_ROWS = most
    rule, reducer = RegularizedLDA().fit(X, y), BayesErrorLDA(5).fit(X, y)
    some, others = slice(2 * NEIGHBOURS_OF), slice(NEIGHBOURS_OF)
    neighbours = KNeighborsClassifier(5).fit(reducer.transform(X[some]), y[some])
    return (
        rule.shrinkage_ / (1 - rule.shrinkage_),
        rule.score(Z, wanted),
        log_loss(wanted, rule.predict_proba(Z), labels=rule.classes_),
        neighbours.score(reducer.transform(Z[others]), wanted[others]),
    )


if __name__ == "__main__":
    main()
