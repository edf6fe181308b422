"""Which reduction keeps the breast-cancer classes apart? Accuracy of 5-NN on K components, 20 stratified holdouts."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, BayesErrorPCA, FisherLDA, MarginPCA, RegularizedLDA

METHODS = {
    "PCA": PCA,
    "MarginPCA all pairs": lambda k: MarginPCA(k, pairs="all"),
    "MarginPCA other mean": lambda k: MarginPCA(k, pairs="mean"),
    "MarginPCA other median": lambda k: MarginPCA(k, pairs="median"),
    "MarginPCA nearest enemies": lambda k: MarginPCA(k, pairs="nearest"),
    "BayesErrorPCA": BayesErrorPCA,
    "FisherLDA": FisherLDA,
    "RegularizedLDA": RegularizedLDA,
}
COUNTS = (1, 2, 3, 5)


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    splits = StratifiedShuffleSplit(20, test_size=0.2, random_state=0)
    print(f"Breast cancer, {X.shape[0]} rows, {X.shape[1]} columns: test accuracy (%) of 5-NN on K components\n")
    print(f"{'':26}" + "".join(f"{f'K={k}':>14}" for k in COUNTS))
    for name, method in METHODS.items():
        cells = []
        for k in COUNTS:
            model = make_pipeline(StandardScaler(), method(k), KNeighborsClassifier(5))
            scores = 100 * cross_val_score(model, X, y, cv=splits)
            cells.append(f"{np.mean(scores):6.1f} ± {np.std(scores):3.1f}")
        print(f"{name:26}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
