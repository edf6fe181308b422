"""Accuracy, size, refined columns and explanations of the posterior map: tables of docs/posterior_map.md.

    DISCRIM_DATA=folder python examples/posterior_map_study.py --store map.json --into docs/posterior_map.md

Four studies on the shared data sets: two components against the best classifier on all columns; accuracy against rows
and landmarks; refined scales of columns; importances against permutation importance. With --store the results are kept,
and a second run computes only what is missing.
"""

import json
import os
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from study_parts import arguments, markdown, show

from discrim import PosteriorMap, RegularizedLDA
from discrim.core import kernel_choice, posterior_rule

# fmt: off
SETS = (
    "bank", "banknote", "breast_w", "climate_crashes", "cnae9", "ecoli", "heart_statlog", "ilpd",
    "ionosphere", "iris", "isolet1560", "letter", "mnist_test10k", "mushrooms", "occupancy", "ocr_letters",
    "opencv_digits", "orl", "pima", "planning_relax", "retinopathy", "satimage", "sonar", "spambase",
    "splice", "vehicle", "vertebral_2c", "wdbc", "yale", "yaleb",
)
# fmt: on
NOISY = "five columns of 500"
REFINED = (NOISY, "splice", "spambase", "satimage", "ionosphere", "opencv_digits", "isolet1560")
COLUMNS = ("ecoli", "vehicle", "satimage", "wdbc", "pima", "ionosphere", "spambase", "letter")
LARGE = {"letter": (5_000, 10_000, 15_000), "mnist_test10k": (2_500, 5_000, 7_500)}
LANDMARKS = (300, 1_000, 2_000)
PARTNERS = {
    "LR": LogisticRegression(max_iter=1_000),
    "RBF SVM": SVC(C=10),
    "forest": RandomForestClassifier(200, random_state=0),
}


def noisy_columns() -> pd.DataFrame:
    """Return 2,000 rows in clusters at the corners of a cube, with 5 columns, 15 mixtures of them and 480 of noise.

    The corners have random labels, which no hyperplane separates.
    """
    rng = np.random.default_rng(1)
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    labels, corner = rng.permutation(np.repeat([0, 1], 16)), rng.integers(32, size=2_000)
    signal = cube[corner] + 0.4 * rng.standard_normal((2_000, 5))
    mixtures = signal @ rng.standard_normal((5, 15)) / 2
    table = pd.DataFrame(np.c_[signal, mixtures, rng.standard_normal((2_000, 480))])
    return table.assign(target=labels[corner])


def split_rows(name: str, rows: int, share: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return scaled training and test rows with labels; one row of `share` is a test row."""
    path = Path(os.environ["DISCRIM_DATA"]) / f"{name}.csv.gz"
    table = noisy_columns() if name == NOISY else pd.read_csv(path)
    table = table.groupby("target").filter(lambda some: len(some) > 3)
    table = table.sample(min(rows, len(table)), random_state=seed)
    X, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    test = np.arange(len(y)) % share == 0
    scaler = StandardScaler().fit(X[~test])
    return scaler.transform(X[~test]), y[~test], scaler.transform(X[test]), y[test]


def compare_with_classifiers(name: str, options: Namespace) -> dict[str, Any]:
    """Return the accuracy of classifiers on all columns, and of 15-NN on the map, over splits."""
    found: dict[str, Any] = {"rules": []}
    n_rows, seconds = 0, 0.0
    for seed in range(options.splits):
        X, y, new, truth = split_rows(name, options.rows, 3, seed)
        for label, partner in PARTNERS.items():
            found.setdefault(label, []).append(100 * partner.fit(X, y).score(new, truth))
        smallest = int(np.unique(y, return_counts=True)[1].min())
        n_classes, started = len(np.unique(y)), time.process_time()
        model = PosteriorMap(None).fit(X, y)
        seconds += time.process_time() - started
        for k in sorted({min(k, n_classes - 1) for k in (1, 2, 5, n_classes - 1)}):
            some, label = model.with_components(k), "C−1" if k == n_classes - 1 else str(k)
            for key, most in ((label, 15 if smallest >= 15 else 5), (f"{label} by 15", 15)):
                neighbours = KNeighborsClassifier(most).fit(some.transform(X), y)
                found.setdefault(key, []).append(100 * neighbours.score(some.transform(new), truth))
        found["rules"].append(model.kernel_.name.replace("RandomForestClassifier", "forest"))
        n_rows += len(truth)
    best = max(np.mean(found[label]) for label in PARTNERS) / 100
    return found | {"error": 100 * np.sqrt(best * (1 - best) / n_rows), "seconds": seconds / options.splits}


def vary_size(name: str, options: Namespace) -> dict[str, Any]:
    """Return accuracy and CPU seconds for numbers of rows and landmarks, on the same test rows."""
    X, y, new, truth = split_rows(name, 10**9, 4)
    found: dict[str, Any] = {}
    for n in LARGE[name]:
        for m in LANDMARKS:
            started = time.process_time()
            model = PosteriorMap(2, kernel="rbf", n_landmarks=m).fit(X[:n], y[:n])
            found[f"{n} {m}"] = [100 * model.score(new, truth), time.process_time() - started]
    return found


def refine_columns(name: str, options: Namespace) -> dict[str, Any]:
    """Return accuracy, log loss and CPU seconds with different numbers of rounds that refine the scales of columns."""
    X, y, new, truth = split_rows(name, 1_500, 3)
    axes = PCA(5).fit(X)
    neighbours = KNeighborsClassifier(5).fit(axes.transform(X), y)
    found: dict[str, Any] = {"PCA": 100 * neighbours.score(axes.transform(new), truth)}
    columns, rounds = posterior_rule.REFINED_COLUMNS, kernel_choice.ROUNDS
    for n_rounds in range(4):
        posterior_rule.REFINED_COLUMNS, kernel_choice.ROUNDS = columns if n_rounds else 10**9, n_rounds
        started = time.process_time()
        model = PosteriorMap(1, classifier="rule").fit(X, y)
        seconds = time.process_time() - started
        loss = log_loss(truth, model.predict_proba(new), labels=model.classes_)
        found[str(n_rounds)] = [100 * model.score(new, truth), loss, seconds, "refined" in model.kernel_.why]
    posterior_rule.REFINED_COLUMNS, kernel_choice.ROUNDS = columns, rounds
    return found


def explain_columns(name: str, options: Namespace) -> dict[str, Any]:
    """Return rank correlations of importances with permutation importance on test rows."""
    X, y, new, truth = split_rows(name, 1_000, 2)
    found: dict[str, Any] = {"columns": X.shape[1]}
    for label, model in {"map": PosteriorMap(2, classifier="rule"), "RegularizedLDA": RegularizedLDA()}.items():
        model.fit(X, y)
        for scoring in ("neg_log_loss", "accuracy"):
            permuted = permutation_importance(model, new, truth, scoring=scoring, n_repeats=5, random_state=0)
            found[f"{label} {scoring}"] = float(spearmanr(permuted.importances_mean, model.feature_importances_)[0])
    return found


STUDIES: dict[str, tuple[Callable[[str, Namespace], dict[str, Any]], tuple[str, ...]]] = {
    "classifiers": (compare_with_classifiers, SETS),
    "sizes": (vary_size, tuple(LARGE)),
    "refined": (refine_columns, REFINED),
    "explanations": (explain_columns, COLUMNS),
}


# ---------------------------------------------------------------------- tables


def table_of_classifiers(found: dict[str, Any], options: Namespace) -> Iterator[str]:
    """Yield the accuracies, and on how many data sets the map is as good as the best classifier."""
    means = {
        name: {key: float(np.mean(value)) for key, value in one.items() if key != "rules"}
        for name, one in found.items()
    }
    close, close_by_15 = (
        [
            one.get(f"2{judge}", one.get(f"C−1{judge}", 0)) >= max(one[label] for label in PARTNERS) - one["error"]
            for one in means.values()
        ]
        for judge in ("", " by 15")
    )
    found_in = f"{sum(close)} of {len(close)} data sets ({100 * np.mean(close):.0f} %)"
    yield f"**Two components against classifiers on all columns**, accuracy in %, mean over {options.splits} splits of"
    yield f"at most {options.rows:,} rows, of which a third are test rows. The map is classified by 15 nearest"
    yield "neighbours, or 5 if a class has fewer than 15 training rows. With K = 2 (K = 1 for two classes) the map is"
    yield "ahead of the best of the three classifiers, or behind by no more than one standard error, on"
    yield f"{found_in}; with 15 neighbours everywhere, on {sum(close_by_15)}.\n"
    keys = [*PARTNERS, "1", "2", "5", "C−1"]
    head = ["data", *PARTNERS, "K = 1", "K = 2", "K = 5", "K = C−1", "chosen", "as good", "CPU s"]
    rows = [
        [
            name,
            *(f"{one[key]:.1f}" if key in one else "–" for key in keys),
            ", ".join(dict.fromkeys(found[name]["rules"])),
            "yes" if good else "no",
            f"{one['seconds']:.1f}",
        ]
        for (name, one), good in zip(means.items(), close, strict=True)
    ]
    yield from markdown(head, rows)


def table_of_sizes(found: dict[str, Any], options: Namespace) -> Iterator[str]:
    """Yield accuracy and seconds by rows and landmarks."""
    yield "**Rows and landmarks**: accuracy of `PosteriorMap(2, kernel='rbf')` on a quarter of the rows, %, and CPU"
    yield "seconds. The 70,000 digits of which mnist_test10k is a part are not among the shared data.\n"
    rows = [
        [name, f"{n:,}", *("{:.1f} ({:.1f} s)".format(*one[f"{n} {m}"]) for m in LANDMARKS)]
        for name, one in found.items()
        for n in LARGE[name]
    ]
    yield from markdown(["data", "training rows", *(f"{m:,} landmarks" for m in LANDMARKS)], rows)


def table_of_refined_columns(found: dict[str, Any], options: Namespace) -> Iterator[str]:
    """Yield accuracy, log loss and seconds by the number of rounds."""
    yield "**Refined scales of columns**: accuracy of `PosteriorMap(classifier='rule')` on new rows, %, log loss and"
    yield "CPU seconds by the number of rounds; * if refined scales were chosen. The first table has 5 columns with a"
    yield "signal, 15 mixtures of them and 480 columns of noise. The map uses 3 rounds.\n"
    rows = [
        [
            name,
            *("{:.1f}, {:.3f} ({:.1f} s)".format(*one[str(n)]) + " *" * one[str(n)][3] for n in range(4)),
            f"{one['PCA']:.1f}",
        ]
        for name, one in found.items()
    ]
    yield from markdown(["data", "0 rounds", "1 round", "2 rounds", "3 rounds", "5-NN on PCA(5)"], rows)


def table_of_explanations(found: dict[str, Any], options: Namespace) -> Iterator[str]:
    """Yield the rank correlations."""
    yield "**Importances against permutation importance**: rank correlation over the columns, on rows not fitted.\n"
    keys = ("map neg_log_loss", "map accuracy", "RegularizedLDA neg_log_loss", "RegularizedLDA accuracy")
    rows = [[name, str(one["columns"]), *(f"{one[key]:.2f}" for key in keys)] for name, one in found.items()]
    head = ["data", "columns", "map, log loss", "map, accuracy", "RegularizedLDA, log loss", "RegularizedLDA, accuracy"]
    yield from markdown(head, rows)


TABLES = (table_of_classifiers, table_of_sizes, table_of_refined_columns, table_of_explanations)


def main() -> None:
    """Run what is missing, and write or print the tables."""
    parser = arguments(__doc__, jobs=False)
    parser.add_argument("--store", type=Path, help="file of results")
    parser.add_argument("--rows", type=int, default=900, help="rows used of a data set in the first study")
    parser.add_argument("--splits", type=int, default=2, help="splits of the first study")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(options.store.read_text()) if options.store and options.store.exists() else {}
    for label, (study, names) in STUDIES.items():
        for name in names:
            key = f"{label} {name} {options.rows} {options.splits}"
            if key not in known:
                known[key] = study(name, options)
                print(key, known[key], flush=True)
                if options.store:
                    options.store.write_text(json.dumps(known, default=float))
    lines = [
        line
        for table, (label, (_, names)) in zip(TABLES, STUDIES.items(), strict=True)
        for line in table({name: known[f"{label} {name} {options.rows} {options.splits}"] for name in names}, options)
    ]
    show(lines, options.into, "map study")


if __name__ == "__main__":
    main()
