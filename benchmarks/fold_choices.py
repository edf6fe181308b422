"""Default folds and folds by content: the ridge that each chooses, and the accuracy on new rows.

`python -m benchmarks.fold_choices docs/scale.md` writes the table. It holds no times, so the machine may be busy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.tables import gaussians
from benchmarks.timing import Row, write_between
from discrim import BayesErrorLDA, HashKFold

ROWS = ("folds",)
N_SPLITS = 20
TABLES = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "400×60 normals, five classes": lambda: gaussians(400, 60, 5, 2.0),
}
START, END = "<!-- measured: python -m benchmarks.fold_choices docs/scale.md -->\n", "<!-- end of fold choices -->\n"


def found() -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the median ridge and the mean accuracy of each kind of folds."""
    for name, load in TABLES.items():
        X, y = load()
        chosen = []
        for cv in (5, HashKFold(5)):
            fits = []
            for train, test in StratifiedShuffleSplit(N_SPLITS, test_size=0.5, random_state=0).split(X, y):
                model = BayesErrorLDA(cv=cv).fit(X[train], y[train])
                fits.append((model.shrinkage_, model.score(X[test], y[test])))
            chosen.append((float(np.median([ridge for ridge, _ in fits])), float(np.mean([one for _, one in fits]))))
        yield name, chosen


def cases(_: set[str]) -> Iterator[Row]:
    """Yield how much less accurate the fit with folds by content is."""
    warnings.simplefilter("ignore")
    for name, (default, by_content) in found():
        work = f"BayesErrorLDA of half of {name}: accuracy by default folds − by content"
        yield {"row": "folds", "work": work, "goal": 0.01, "ratio": default[1] - by_content[1]}


def written() -> str:
    """Return the table of the page."""
    warnings.simplefilter("ignore")
    lines = [
        "| half of the rows of | ridge, default folds | by content | new rows correct, default folds | by content |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, chosen in found():
        (ridge, right), (hashed, also_right) = chosen
        lines.append(f"| {name} | {ridge:.2g} | {hashed:.2g} | {100 * right:.1f} % | {100 * also_right:.1f} % |")
    notes = f"`BayesErrorLDA()`; medians of the ridge and means of the accuracy over {N_SPLITS} divisions into halves."
    return "\n".join([*lines, "", notes, ""])


if __name__ == "__main__":
    write_between(Path(sys.argv[1]), START, END, written())
