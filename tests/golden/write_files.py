"""Write the files of this folder with the version whose files must stay readable.

Run `python tests/golden/write_files.py`.
`expected.npz` holds the rows and what the fitted models gave when the files were written.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discrim import PCA, FisherLDA, KernelMap, PosteriorMap, RegularizedLDA, SparsePLSDA, compare, save
from discrim.evaluation.store import Store

FOLDER = Path(__file__).parent
X, CODES = (part[::3] for part in load_iris(return_X_y=True))
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]


def fitted_models():
    """Return the models by name; a pipeline inside a pipeline is among them."""
    inner = make_pipeline(StandardScaler(), RegularizedLDA(2))
    return {
        "fisher": FisherLDA(2).fit(X, Y),
        "nested": make_pipeline(SimpleImputer(strategy="median"), inner).fit(X, Y),
        "posterior": make_pipeline(MinMaxScaler(), PosteriorMap(2)).fit(X, Y),
        "kernel": make_pipeline(KernelMap(n_landmarks=20, random_state=0), FisherLDA(2)).fit(X, Y),
        "sparse": make_pipeline(StandardScaler(), SparsePLSDA(2, keep=2)).fit(X, Y),
        "stream": PCA(2).partial_fit(X[:20]).partial_fit(X[20:]),
    }


def main():
    """Write models, statistics and a store."""
    expected = {"X": X, "y": Y}
    for name, model in fitted_models().items():
        save(model, FOLDER / f"{name}.discrim", about={"feature_names": ["a", "b", "c", "d"]})
        expected[name] = model.transform(X)
        if hasattr(model, "predict"):
            expected[f"{name}_predicted"] = model.predict(X)
    statistics = FisherLDA(2).statistics(X, Y)
    (FOLDER / "fisher.statistics").write_bytes(statistics.to_bytes())
    store = FOLDER / "trials.store"
    store.unlink(missing_ok=True)
    compare(X, Y, methods="pca", classifiers="1-nn", n_components=1, n_splits=2, store=store)
    with Store(store, read_only=True) as opened:
        expected["accuracies"] = np.array([one.scores["accuracy"] for one in opened.rows()])
    for leftover in FOLDER.glob("trials.store?*"):
        leftover.unlink()
    np.savez(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
