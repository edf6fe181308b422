"""Comparison of the closed-form shift with the corruption that it approximates: a table of docs/max_margin_shift.md.

    python examples/corruption_study.py --into docs/max_margin_shift.md

Compares PCA of the shifted rows with five rounds of the paper's problem (7), and with 50 noisy copies of each row,
weighted by exp(−C·hinge) (equations 4 and 5): the angle between the spans, and the accuracy of a linear SVM on the
components of held-out rows. Data sets are scikit-learn's own. Without --into the table is printed. Takes about 15 CPU
seconds.
"""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from study_parts import arguments, markdown, show

from discrim import PCA, MaxMarginShift

DATA = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
MOST_ROWS = 400
COMPONENTS = 2
SIGMA2 = (0.1, 1.0, 10.0)
WAYS = {"closed form": {}, "5 rounds": {"n_rounds": 5}, "50 copies": {"copies": 50}}


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels, at most MOST_ROWS of them, without constant columns."""
    X, y = DATA[name](return_X_y=True)
    kept = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    X, y = X[kept], y[kept]
    return X[:, X.std(axis=0) > 0], y


def lines_of(names: Sequence[str], splits: int) -> Iterator[str]:
    """Yield the table: a row for each data set and σ²."""
    rows = []
    for name in names:
        X, y = table_of(name)
        for sigma2 in SIGMA2:
            angles, accuracies, plain = {way: [] for way in WAYS}, {way: [] for way in WAYS}, []
            for train, test in StratifiedShuffleSplit(splits, test_size=0.5, random_state=0).split(X, y):
                scaler = StandardScaler().fit(X[train])
                fitted, unseen = scaler.transform(X[train]), scaler.transform(X[test])
                plain.append(accuracy(PCA(COMPONENTS).fit(fitted), fitted, y[train], unseen, y[test]))
                closed = None
                for way, options in WAYS.items():
                    model = MaxMarginShift(PCA(COMPONENTS), sigma2=sigma2, tol=1e-6, random_state=0, **options)
                    model.fit(fitted, y[train])
                    closed = model.components_ if closed is None else closed
                    angles[way].append(np.degrees(subspace_angles(closed.T, model.components_.T)).max())
                    accuracies[way].append(accuracy(model, fitted, y[train], unseen, y[test]))
            turned = [f"{np.mean(angles[way]):.1f}°" for way in list(WAYS)[1:]]
            right = [f"{100 * np.mean(accuracies[way]):.1f}" for way in WAYS]
            rows.append([f"{name}, σ² = {sigma2:g}", f"{100 * np.mean(plain):.1f}", *right, *turned])
    yield f"Accuracy in % of a linear SVM on {COMPONENTS} components, mean of {splits} random halves; then the largest"
    yield "angle between the span of the closed form and the span of the other way.\n"
    head = ["data", "PCA", *WAYS, *(f"angle to {way}" for way in list(WAYS)[1:])]
    yield from markdown(head, rows)


def accuracy(model, X, y, X_test, y_test) -> float:
    classifier = make_pipeline(StandardScaler(), LinearSVC(dual=False)).fit(model.transform(X), y)
    return float(classifier.score(model.transform(X_test), y_test))


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, jobs=False)
    parser.add_argument("--splits", type=int, default=10, help="random halves")
    parser.add_argument("--data", action="append", choices=list(DATA), help="this data set; may be given again")
    options = parser.parse_args(given)
    warnings.simplefilter("ignore")
    show(lines_of(options.data or list(DATA), options.splits), options.into, "corruption")


if __name__ == "__main__":
    main()
