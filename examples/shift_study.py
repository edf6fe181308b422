"""Effect of max-margin data shifting on unsupervised extractors: the tables of docs/max_margin_shift.md.

    DISCRIM_DATA=folder python examples/shift_study.py --store shifting.sqlite --into docs/max_margin_shift.md

Tables 3 and 4 and figure 3 are those of `discrim reproduce max-margin-data-shifting`; results that are missing from its
store are computed. In addition: the SVM's own subspace, and few labels.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from study_parts import arguments, markdown, show

from discrim import PCA, MarginSubspace, MaxMarginShift
from discrim.evaluation.run import opened_store
from discrim.evaluation.store import Store
from discrim.papers.conventions import any_classifier, any_method
from discrim.papers.page import shift_of
from discrim.papers.reproduce import Outcome, reproduced
from discrim.papers.study import PrintedCell, PrintedTable, study

STUDY = study("max-margin-data-shifting")
SHIFTED = "MMDS-"
NAMES = {"mnist_test10k": "MNIST", "opencv_digits": "Digits", "ocr_letters": "Letters"}
HEAD = ["data, K, extractor", "printed", "reference", "ours", "gain (splits won)", "shifts chosen"]
LABELS = ((50, 5), (50, 10), (200, 5), (200, 10))  # number of labelled rows, and K


def outcomes(table: PrintedTable, store: Store, options: Namespace, measure: str = "") -> list[Outcome]:
    """Return the outcomes of a table's cells, or another measure of the same trials."""
    cells = tuple(cell._replace(measure=measure) if measure else cell for cell in table.cells)
    part = replace(STUDY, tables=(replace(table, cells=cells),))
    return reproduced(part, store, splits=options.splits, jobs=options.jobs, as_stored=options.as_stored)


def accuracy(table: PrintedTable, parts: list[np.ndarray], model) -> float:
    """Return the accuracy in % of the study's SVM on a fitted model's features."""
    X, X_test, y, y_test = parts
    svm = any_classifier(table.names.classifiers["SVM"]).build().fit(model.transform(X), y)
    return 100 * float(np.mean(svm.predict(model.transform(X_test)) == y_test))


# ---------------------------------------------------------------------- with and without the shift


def pairs(table: PrintedTable, store: Store, options: Namespace) -> Iterator[tuple[Outcome, Outcome, Outcome]]:
    """Yield the outcome without the shift, with it, and the chosen shifts, for each extractor and K."""
    found = {one.cell[:2]: one for one in outcomes(table, store, options)}
    chosen = {one.cell[:2]: one for one in outcomes(table, store, options, "shift")}
    for (method, k), plain in found.items():
        shifted = found.get((SHIFTED + method, k))
        if shifted is not None and not plain.missing and not shifted.missing:
            yield plain, shifted, chosen[shifted.cell[:2]]


def line(plain: Outcome, shifted: Outcome, chosen: Outcome) -> list[str]:
    both = list(zip(plain.figures, shifted.figures, strict=False))
    gains = np.array([after - before for before, after in both])
    printed, reference = (
        f"{before:.1f} → {after:.1f}" for before, after in zip(plain.cell[3:6:2], shifted.cell[3:6:2], strict=True)
    )
    ours = " → ".join(f"{mean:.1f}" for mean in np.mean(both, axis=0))
    title = f"{NAMES[plain.table.dataset]}, {plain.cell.k}, {plain.cell.method}"
    shifts = ", ".join(f"{shift:g}" for shift in sorted(chosen.figures))
    return [title, printed, reference, ours, f"{gains.mean():+.1f} ({(gains > 0).sum()}/{len(gains)})", shifts]


def subspace(table: PrintedTable, cell: PrintedCell, n_splits: int) -> str:
    """Return the accuracy on the SVM's own directions over the first n_splits splits."""
    rows, found = STUDY.rows_of(table), []
    for train, test in islice(table.splitting(rows.n_samples).splits(rows.y), n_splits):
        model = any_method(table.names.methods[cell.method]).estimator(cell.k, 0).fit(rows.X[train], rows.y[train])
        seen = [model.seen(rows.X[train]), model.seen(rows.X[test]), rows.y[train], rows.y[test]]
        directions = MarginSubspace(min(cell.k, len(rows.class_counts()) - 1)).fit(seen[0], seen[2])
        found.append(accuracy(table, seen, directions))
    return f"{np.mean(found):.1f}"


def table_4(store: Store, options: Namespace) -> Iterator[str]:
    yield "**Table 4: accuracy in %, without → with the shift.** KPCA is PCA of random Fourier features.\n"
    rows = []
    for table in STUDY.part("4").tables:
        for plain, shifted, chosen in pairs(table, store, options):
            # the subspace of an autoencoder's rows is that of PCA's
            own = "–" if plain.cell.method == "AE" else subspace(table, plain.cell, plain.n_splits)
            rows.append([*line(plain, shifted, chosen), own])
    yield from markdown([*HEAD, "SVM subspace"], rows)


def table_3(store: Store, options: Namespace) -> Iterator[str]:
    yield "**Table 3: the same for five other extractors on random Fourier features.**\n"
    tables = STUDY.part("3").tables
    yield from markdown(HEAD, [line(*three) for table in tables for three in pairs(table, store, options)])


def figure_3(store: Store, options: Namespace) -> Iterator[str]:
    yield "**Figure 3: five components of Digits for each shift**; the error is that of reconstructed training rows,"
    yield "relative to shift 0.\n"
    (table,) = STUDY.part(figure="3").tables
    there = [one for one in outcomes(table, store, options) if not one.missing]
    fewest = min((len(one.figures) for one in there), default=0)  # shifts are compared on the same splits
    rows = []
    for (measure, extractor), group in groupby(there, lambda one: (one.cell.measure, one.cell.method.split()[0])):
        values = {shift_of(one): float(np.mean(one.figures[:fewest])) for one in group}
        error = measure != "accuracy"
        shown = [f"{value / values[0.0]:.3f}" if error else f"{value:.1f}" for value in values.values()]
        rows.append([f"{extractor}, {'error' if error else measure}", *shown])
    yield from markdown(["", *(f"{shift:g}" for shift in dict.fromkeys(map(shift_of, there)))], rows)


# ---------------------------------------------------------------------- rows without a label


def few_labels(table: PrintedTable, n_labelled: int, k: int, seed: int) -> list[float]:
    """Return the accuracy of PCA and of shifted PCA, each on the labelled rows alone and on all rows."""
    rows = STUDY.rows_of(table)
    codes = np.unique(rows.y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(rows.X, codes, train_size=0.5, stratify=codes, random_state=seed)
    labelled, others = train_test_split(np.arange(len(y)), train_size=n_labelled, stratify=y, random_state=seed)
    parts = [X[labelled], X_test, y[labelled], y_test]
    labels = y.astype(float)
    labels[others] = np.nan
    shift = MaxMarginShift(PCA(k), shift="cv", random_state=seed)
    models = PCA(k).fit(X[labelled]), PCA(k).fit(X), clone(shift).fit(X[labelled], y[labelled]), shift.fit(X, labels)
    return [accuracy(table, parts, model) for model in models]


def semi_supervised(store: Store, options: Namespace) -> Iterator[str]:
    (digits,) = STUDY.part("4", "opencv_digits").tables
    seeds = range(2 * min(options.splits or 4, 4))
    rows = []
    for n, k in LABELS:
        runs = Parallel(options.jobs)(delayed(few_labels)(digits, n, k, seed) for seed in seeds)
        rows.append([f"{n} labels, K = {k}", *[f"{right:.1f}" for right in np.mean(runs, axis=0)]])
    yield "**Few labels (Digits)**: accuracy with features learnt from the labelled rows, or from all 2,500 rows.\n"
    yield from markdown(["labels", "PCA, labelled", "PCA, all", "shifted, labelled", "shifted, all"], rows)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--store", type=Path, help="file that keeps the results of the reproduction")
    parser.add_argument("--splits", type=int, help="fewer splits than the study has")
    parser.add_argument("--as-stored", action="store_true", help="use the stored results; compute none")
    options = parser.parse_args()
    with opened_store(options.store) as store:
        parts = (table_4, table_3, figure_3, semi_supervised)
        show((text for part in parts for text in part(store, options)), options.into)


if __name__ == "__main__":
    main()
