"""Real tables with fewer rows than columns: accuracy of the LDA family, of scikit-learn's LDA and of a linear SVM.

Needs the data sets in the folder that DISCRIM_DATA names. Prints the table of docs/discriminant_analysis.md.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from discrim import PCALDA, FisherLDA, NullSpaceLDA, OrthogonalLDA, RegularizedLDA, UncorrelatedLDA
from discrim.tables.catalogue import load

NAMES = ("colon", "leukemia", "prostate", "srbct", "orl", "yale")
METHODS: dict[str, Any] = {
    "RegularizedLDA (cv)": RegularizedLDA(),
    "RegularizedLDA (0.1)": RegularizedLDA(shrinkage=0.1),
    "RegularizedLDA (ledoit_wolf)": RegularizedLDA(shrinkage="ledoit_wolf"),
    "NullSpaceLDA": NullSpaceLDA(),
    "OrthogonalLDA": OrthogonalLDA(),
    "UncorrelatedLDA": UncorrelatedLDA(),
    "FisherLDA": FisherLDA(),
    "PCALDA": PCALDA(),
    "scikit-learn LDA (svd)": LinearDiscriminantAnalysis(),
    "scikit-learn LDA (shrinkage)": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "linear SVM": LinearSVC(C=0.01, dual=True, max_iter=20_000),
}
D_CUBED = 2_500  # with more columns scikit-learn's shrinkage solver takes minutes


def main() -> None:
    warnings.simplefilter("ignore")
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    tables = {name: load(name) for name in sys.argv[1:] or NAMES}
    print("| method | " + " | ".join(f"{n} {t.X.shape[0]}×{t.X.shape[1]}" for n, t in tables.items()) + " | seconds |")
    print("| --- |" + " --- |" * (len(tables) + 1))
    for title, model in METHODS.items():
        cells, start = [], time.process_time()
        for table in tables.values():
            if title == "scikit-learn LDA (shrinkage)" and table.X.shape[1] > D_CUBED:
                cells.append("–")
                continue
            scores = cross_val_score(make_pipeline(StandardScaler(), model), table.X, table.y, cv=folds)
            cells.append(f"{100 * np.mean(scores):.1f}")
        print(f"| {title} | " + " | ".join(cells) + f" | {time.process_time() - start:.0f} |", flush=True)


if __name__ == "__main__":
    main()
