"""Does max-margin data shifting help extractors that know no labels? The figures of docs/max_margin_shift.md.

    DISCRIM_DATA=folder python examples/shift_study.py --jobs 2 --into docs/max_margin_shift.md

The folder holds mnist_test10k.csv.gz and opencv_digits.csv.gz, pixels and a column "target". Without --into the tables
are printed.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, FactorAnalysis, FastICA, SparsePCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from discrim import PCA, Autoencoder, MarginSubspace, MaxMarginShift
from discrim.evaluation.gradients import hog
from discrim.reducers.embedding import median_square_distance
from discrim.reducers.shift_search import SHIFTS

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
CLASSES = 10


@dataclass(frozen=True)
class Data:
    """A data set as the paper takes it: rows to train with, random features, width of the kernel in medians."""

    name: str
    X: np.ndarray
    y: np.ndarray
    n_train: int
    n_features: int
    width: float

    def split(self, seed: int) -> list[np.ndarray]:
        """Training rows, test rows, training labels, test labels."""
        return train_test_split(self.X, self.y, train_size=self.n_train, stratify=self.y, random_state=seed)

    def random_features(self, X: np.ndarray, seed: int, *, positive: bool = False) -> Any:
        gamma = 1 / (self.width * median_square_distance(X, random_state=seed))
        sampler = RBFSampler(gamma=gamma, n_components=self.n_features, random_state=seed)
        return make_pipeline(sampler, MinMaxScaler((0, 1) if positive else (-1, 1), clip=positive))


# accuracy without → with the shift: as printed, and in the reference runs (shift chosen on a hold-out set)
TABLE_4 = {
    ("MNIST", 5, "PCA"): ("64.4 → 69.7", "56.5 → 65.1"),
    ("MNIST", 10, "PCA"): ("75.3 → 79.2", "75.2 → 84.3"),
    ("MNIST", 20, "PCA"): ("81.5 → 83.0", "81.9 → 82.2"),
    ("MNIST", 5, "AE"): ("43.8 → 49.7", "30.8 → 32.7"),
    ("MNIST", 10, "AE"): ("58.1 → 76.3", "40.6 → 80.5"),
    ("MNIST", 20, "AE"): ("77.7 → 81.6", "73.2 → 84.2"),
    ("MNIST", 5, "RFF-PCA"): ("64.4 → 73.7", "56.6 → 63.0"),
    ("MNIST", 10, "RFF-PCA"): ("74.7 → 81.7", "73.9 → 86.1"),
    ("MNIST", 20, "RFF-PCA"): ("81.0 → 83.1", "81.4 → 84.8"),
    ("Digits", 5, "PCA"): ("58.3 → 79.4", "72.0 → 83.3"),
    ("Digits", 10, "PCA"): ("79.6 → 89.1", "86.7 → 93.0"),
    ("Digits", 20, "PCA"): ("86.8 → 90.2", "90.0 → 92.6"),
    ("Digits", 5, "AE"): ("73.5 → 79.0", "66.9 → 81.0"),
    ("Digits", 10, "AE"): ("87.4 → 93.0", "83.1 → 91.4"),
    ("Digits", 20, "AE"): ("92.7 → 93.6", "86.7 → 91.5"),
    ("Digits", 5, "RFF-PCA"): ("70.8 → 83.8", "72.3 → 77.4"),
    ("Digits", 10, "RFF-PCA"): ("85.8 → 94.0", "85.9 → 93.9"),
    ("Digits", 20, "RFF-PCA"): ("91.9 → 94.3", "90.6 → 93.8"),
}
TABLE_3 = {
    ("MNIST", "ICA"): ("57.8 → 63.7", "58.0 → 65.0"),
    ("MNIST", "SPCA"): ("30.3 → 48.8", "57.5 → 64.5"),
    ("MNIST", "KM"): ("48.1 → 61.8", "52.4 → 59.3"),
    ("MNIST", "FA"): ("64.9 → 74.4", "57.8 → 65.0"),
    ("MNIST", "NMF"): ("38.3 → 47.6", "52.9 → 56.0"),
    ("Digits", "ICA"): ("62.8 → 81.6", "73.4 → 83.6"),
    ("Digits", "SPCA"): ("63.5 → 75.5", "73.1 → 80.3"),
    ("Digits", "KM"): ("63.2 → 71.2", "65.1 → 70.4"),
    ("Digits", "FA"): ("70.0 → 86.1", "73.7 → 79.2"),
    ("Digits", "NMF"): ("28.4 → 72.1", "69.0 → 76.8"),
}


def pixels_of(file: str) -> tuple[np.ndarray, np.ndarray]:
    """Square images and their labels."""
    table = pd.read_csv(Path(os.environ["DISCRIM_DATA"]) / f"{file}.csv.gz")
    labels = table.pop("target").to_numpy()
    side = round(table.shape[1] ** 0.5)
    return table.to_numpy(dtype=float).reshape(-1, side, side), labels


def both() -> dict[str, Data]:
    """MNIST as pixels, the digits as gradients."""
    mnist, of_mnist = pixels_of("mnist_test10k")
    digits, of_digits = pixels_of("opencv_digits")
    return {
        "MNIST": Data("MNIST", mnist.reshape(len(mnist), -1), of_mnist, 500, 1000, 2.0),
        "Digits": Data("Digits", hog(digits), of_digits, 2500, 500, 1.0),
    }


def extractor(name: str, k: int) -> Any:
    return {
        "PCA": PCA(k),
        "RFF-PCA": PCA(k),
        "AE": Autoencoder(k, max_iter=100),
        "ICA": FastICA(k, max_iter=200, tol=1e-3),
        "SPCA": SparsePCA(k, max_iter=20, method="cd"),
        "KM": KMeans(k, n_init=3),
        "FA": FactorAnalysis(k, max_iter=100),
        "NMF": NMF(k, init="nndsvda", max_iter=100),
    }[name]


def accuracy(model: Any, parts: list[np.ndarray]) -> float:
    """Of a linear one-vs-rest SVM (C = 1) on the features, centred and scaled to an overall rms of 1."""
    X, X_test, y, y_test = parts
    features, of_test = model.transform(X), model.transform(X_test)
    centre = features.mean(axis=0)
    scale = np.sqrt(np.mean((features - centre) ** 2))
    classifier = LinearSVC(dual=False).fit((features - centre) / scale, y)
    return 100 * classifier.score((of_test - centre) / scale, y_test)


def trial(data: Data, name: str, k: int, seed: int, folds: Any) -> dict[str, float]:
    """Accuracy without and with the shift, the shift that was chosen, and accuracy in the SVM's subspace."""
    warnings.simplefilter("ignore")
    X, X_test, y, _ = parts = data.split(seed)
    if name not in ("PCA", "AE"):
        embedding = data.random_features(X, seed, positive=name == "NMF").fit(X)
        X, X_test = parts[:2] = [embedding.transform(X), embedding.transform(X_test)]
    common = {"extractor": extractor(name, k), "random_state": seed}
    plain = MaxMarginShift(shift=0, **common).fit(X, y)
    shifted = MaxMarginShift(shift="cv", cv=folds, **common).fit(X, y)
    result = {"plain": accuracy(plain, parts), "shifted": accuracy(shifted, parts), "shift": shifted.shift_}
    if name in ("PCA", "RFF-PCA"):
        result["subspace"] = accuracy(MarginSubspace(min(k, CLASSES - 1)).fit(X, y), parts)
    return result


def curve(data: Data, k: int, seed: int) -> list[tuple[float, float]]:
    """Accuracy and reconstruction error of the training rows (PCA's is 1) for each shift."""
    parts = data.split(seed)
    X, y = parts[0], parts[2]
    points = []
    for shift in SHIFTS:
        model = MaxMarginShift(PCA(k), shift=shift).fit(X, y)
        error = float(np.sum((X - model.inverse_transform(model.transform(X))) ** 2))
        points.append((accuracy(model, parts), error))
    return [(right, error / points[0][1]) for right, error in points]


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def line(title: str, figures: tuple[str, str], trials: list[dict[str, float]]) -> list[str]:
    plain, shifted = (np.array([t[which] for t in trials]) for which in ("plain", "shifted"))
    gains = shifted - plain
    subspace = f"{np.mean([t['subspace'] for t in trials]):.1f}" if "subspace" in trials[0] else "–"
    chosen = ", ".join(f"{shift:g}" for shift in sorted(t["shift"] for t in trials))
    ours = f"{plain.mean():.1f} → {shifted.mean():.1f}"
    return [title, *figures, ours, f"{gains.mean():+.1f} ({(gains > 0).sum()}/{len(gains)})", chosen, subspace]


HEAD = ["data, K, extractor", "printed", "reference", "ours", "gain (splits won)", "shifts chosen", "SVM subspace"]


def table_4(data: dict[str, Data], repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for (name, k, kind), figures in TABLE_4.items():
        times = max(1, repetitions // 2) if kind == "AE" else repetitions
        folds = hold_out() if kind == "AE" else 5
        trials = Parallel(jobs)(delayed(trial)(data[name], kind, k, seed, folds) for seed in range(times))
        rows.append(line(f"{name}, {k}, {kind}", figures, trials))
    yield "**Table 4: accuracy in %, without → with the shift.**\n"
    yield from table(HEAD, rows)


def table_3(data: dict[str, Data], repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for (name, kind), figures in TABLE_3.items():
        trials = Parallel(jobs)(
            delayed(trial)(data[name], kind, 5, seed, hold_out()) for seed in range(max(1, repetitions // 2))
        )
        rows.append(line(f"{name}, 5, {kind}", figures, trials))
    yield "**Table 3: the same for five other extractors on random Fourier features.**\n"
    yield from table(HEAD[:-1], [row[:-1] for row in rows])


def figure_3(data: dict[str, Data], repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for one in data.values():
        curves = np.mean(Parallel(jobs)(delayed(curve)(one, 5, seed) for seed in range(repetitions)), axis=0)
        rows.append([f"{one.name}, accuracy", *[f"{right:.1f}" for right, _ in curves]])
        rows.append([f"{one.name}, error", *[f"{error:.3f}" for _, error in curves]])
    yield "**Figure 3: PCA with K = 5 over the shift**; the error is that of reconstructed training rows, PCA's = 1.\n"
    yield from table(["data", *[f"{shift:g}" for shift in SHIFTS]], rows)


def few_labels(data: Data, n_labelled: int, k: int, seed: int) -> list[float]:
    """Accuracy of PCA and shifted PCA, each of the labelled rows alone and with the others as rows without a label."""
    X, X_test, y, y_test = data.split(seed)
    labelled, others = train_test_split(np.arange(len(y)), train_size=n_labelled, stratify=y, random_state=seed)
    parts = [X[labelled], X_test, y[labelled], y_test]
    labels = y.astype(float)
    labels[others] = np.nan
    shift = MaxMarginShift(PCA(k), shift="cv", random_state=seed)
    models = PCA(k).fit(X[labelled]), PCA(k).fit(X), clone(shift).fit(X[labelled], y[labelled]), shift.fit(X, labels)
    return [accuracy(model, parts) for model in models]


def semi_supervised(data: dict[str, Data], repetitions: int, jobs: int) -> Iterator[str]:
    rows = []
    for n, k in ((50, 5), (50, 10), (200, 5), (200, 10)):
        runs = Parallel(jobs)(delayed(few_labels)(data["Digits"], n, k, seed) for seed in range(2 * repetitions))
        rows.append([f"{n} labels, K = {k}", *[f"{right:.1f}" for right in np.mean(runs, axis=0)]])
    yield "**Few labels (Digits)**: accuracy of features learnt from the labelled rows, or from all 2,500.\n"
    yield from table(["labels", "PCA, labelled", "PCA, all", "shifted, labelled", "shifted, all"], rows)


def hold_out() -> StratifiedShuffleSplit:
    return StratifiedShuffleSplit(1, test_size=0.3, random_state=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=4, help="splits (half as many for slow extractors)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--into", type=Path, help="the page whose figures to replace")
    options = parser.parse_args()
    data, lines = both(), []
    for part in (table_4, table_3, figure_3, semi_supervised):
        for text in part(data, options.repetitions, options.jobs):
            lines.append(text)
            if options.into is None:
                print(text, flush=True)
    if options.into is not None:
        before, rest = options.into.read_text(encoding="utf-8").split(BEGIN)
        page = f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}"
        options.into.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
