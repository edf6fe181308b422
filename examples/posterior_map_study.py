"""Accuracy, size and explanations of the posterior map: the second group of tables of docs/posterior_map.md.

    DISCRIM_DATA=folder python examples/posterior_map_study.py --store map.json --into docs/posterior_map.md

Three studies on shared data sets: two components against the best classifier on all columns; accuracy against rows and
landmarks; importances against permutation importance. With --store the results are kept, and a second run computes
only what is missing. It takes about ten minutes on one core with the default of 1,500 rows per data set.
"""

import json
import os
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from study_parts import markdown

from discrim import PosteriorMap, RegularizedLDA

BEGIN, END = "<!-- map study: begin -->", "<!-- map study: end -->"
SETS = ("ecoli", "vehicle", "satimage", "wdbc", "pima", "ionosphere", "spambase", "splice", "letter", "isolet1560")
COLUMNS = ("ecoli", "vehicle", "satimage", "wdbc", "pima", "ionosphere", "spambase", "letter")
LARGE = {"letter": (5_000, 10_000, 15_000), "mnist_test10k": (2_500, 5_000, 7_500)}
LANDMARKS = (300, 1_000, 2_000)


def halves(name: str, rows: int, share: int) -> tuple[Any, Any, Any, Any]:
    """Return scaled training and test rows with labels; every `share`-th row is a test row."""
    table = pd.read_csv(Path(os.environ["DISCRIM_DATA"]) / f"{name}.csv.gz")
    table = table.groupby("target").filter(lambda some: len(some) > 3)
    table = table.sample(min(rows, len(table)), random_state=0)
    X, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    test = np.arange(len(y)) % share == 0
    scaler = StandardScaler().fit(X[~test])
    return scaler.transform(X[~test]), y[~test], scaler.transform(X[test]), y[test]


def partners(name: str, rows: int) -> dict[str, Any]:
    """Accuracy of classifiers on all columns, and of 15-NN on the map."""
    X, y, new, truth = halves(name, rows, 3)
    judges = {"LR": LogisticRegression(max_iter=2_000), "SVM": SVC(C=10), "forest": RandomForestClassifier(200)}
    found: dict[str, Any] = {label: 100 * judge.fit(X, y).score(new, truth) for label, judge in judges.items()}
    n_classes, started = len(np.unique(y)), time.process_time()
    model = PosteriorMap(min(2, n_classes - 1)).fit(X, y)
    found["seconds"], found["rule"] = time.process_time() - started, model.kernel_.name
    for k in sorted({1, 2, 5, n_classes - 1}):
        some = model.with_components(min(k, n_classes - 1))
        judge = KNeighborsClassifier(15).fit(some.transform(X), y)
        found["C−1" if k == n_classes - 1 else str(k)] = 100 * judge.score(some.transform(new), truth)
    found["error"] = 100 * np.sqrt(max(found["forest"], 1) / 100 * (1 - found["forest"] / 100) / len(truth))
    return found


def sizes(name: str, rows: int) -> dict[str, Any]:
    """Accuracy and CPU seconds for numbers of rows and landmarks; the test rows are the same."""
    X, y, new, truth = halves(name, 10**9, 4)
    found: dict[str, Any] = {}
    for n in LARGE[name]:
        for m in LANDMARKS:
            started = time.process_time()
            model = PosteriorMap(2, kernel="rbf", n_landmarks=m).fit(X[:n], y[:n])
            found[f"{n} {m}"] = [100 * model.score(new, truth), time.process_time() - started]
    return found


def explanations(name: str, rows: int) -> dict[str, Any]:
    """Rank correlation of importances with permutation importance (by log loss and by accuracy) on test rows."""
    X, y, new, truth = halves(name, min(rows, 1_000), 2)
    found: dict[str, Any] = {"columns": X.shape[1]}
    for label, model in {"map": PosteriorMap(2, classifier="rule"), "RegularizedLDA": RegularizedLDA()}.items():
        model.fit(X, y)
        for scoring in ("neg_log_loss", "accuracy"):
            permuted = permutation_importance(model, new, truth, scoring=scoring, n_repeats=5, random_state=0)
            found[f"{label} {scoring}"] = float(spearmanr(permuted.importances_mean, model.feature_importances_)[0])
    return found


STUDIES: dict[str, tuple[Callable[[str, int], dict[str, Any]], tuple[str, ...]]] = {
    "partners": (partners, SETS),
    "sizes": (sizes, tuple(LARGE)),
    "explanations": (explanations, COLUMNS),
}


def tables(known: dict[str, Any], options: Namespace) -> Iterator[str]:
    """Write the three studies as Markdown."""
    found = {name: known[f"partners {name} {options.rows}"] for name in SETS}
    close = [
        one.get("2", one["C−1"]) >= max(one[label] for label in ("LR", "SVM", "forest")) - one["error"]
        for one in found.values()
    ]
    yield f"**Two components against classifiers on all columns**, %, on a third of at most {options.rows:,} rows."
    yield "With K = 2 the map is ahead of the best of the three classifiers, or behind by no more than one standard"
    yield f"error, on {sum(close)} of {len(close)} data sets.\n"
    head = ["data", "LR", "RBF SVM", "forest", "K = 1", "K = 2", "K = 5", "K = C−1", "chosen", "CPU s"]
    keys = ("LR", "SVM", "forest", "1", "2", "5", "C−1")
    rows = [
        [name, *(f"{one[key]:.1f}" if key in one else "–" for key in keys), one["rule"], f"{one['seconds']:.1f}"]
        for name, one in found.items()
    ]
    yield from markdown(head, rows)
    yield "**Rows and landmarks**: accuracy of `PosteriorMap(2, kernel='rbf')` on new rows, %, and CPU seconds.\n"
    rows = []
    for name, counts in LARGE.items():
        if (of_set := known.get(f"sizes {name} {options.rows}")) is None:
            continue
        for n in counts:
            cells = [of_set[f"{n} {m}"] for m in LANDMARKS]
            rows.append([name, f"{n:,}", *(f"{accuracy:.1f} ({seconds:.1f} s)" for accuracy, seconds in cells)])
    yield from markdown(["data", "training rows", *(f"{m:,} landmarks" for m in LANDMARKS)], rows)
    if f"explanations {COLUMNS[0]} {options.rows}" not in known:
        return
    yield "**Importances against permutation importance**: rank correlation over the columns, on rows not fitted.\n"
    keys = ("map neg_log_loss", "map accuracy", "RegularizedLDA neg_log_loss", "RegularizedLDA accuracy")
    asked = {name: known.get(f"explanations {name} {options.rows}") for name in COLUMNS}
    found = {name: one for name, one in asked.items() if one is not None}
    rows = [[name, str(one["columns"]), *(f"{one[key]:.2f}" for key in keys)] for name, one in found.items()]
    head = ["data", "columns", "map, log loss", "map, accuracy", "RegularizedLDA, log loss", "RegularizedLDA, accuracy"]
    yield from markdown(head, rows)


def main() -> None:
    """Run what is missing, and write or print the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="file of results")
    parser.add_argument("--into", type=Path, help="page with the markers of the study")
    parser.add_argument("--known", action="store_true", help="write what the store has, and compute nothing")
    parser.add_argument("--rows", type=int, default=1_500, help="most rows of a data set in the first study")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(options.store.read_text()) if options.store and options.store.exists() else {}
    for label, (study, names) in STUDIES.items():
        for name in names:
            key = f"{label} {name} {options.rows}"
            if key not in known and not options.known:
                known[key] = study(name, options.rows)
                print(key, known[key], flush=True)
                if options.store:
                    options.store.write_text(json.dumps(known))
    text = "\n".join(tables(known, options))
    if options.into is None:
        print(text)
        return
    page = options.into.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    options.into.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
