"""What the maps beyond straight lines are worth: the figures of docs/posterior_map.md.

    DISCRIM_DATA=folder python examples/nonlinear_study.py --store study.sqlite --into docs/posterior_map.md

The folder holds the data sets (`discrim datasets` tells which are there). With --store the results are kept, and a
second run does only what is missing. Supervised UMAP takes part with --umap, where umap-learn is installed
(pip install 'discrim[study]').
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from default_reducer_study import drawn, figure, markdown

from discrim import compare
from discrim.data import catalogue
from discrim.evaluation.grid import Cell
from discrim.evaluation.summary import scores_by_cell

TWO_CLASSES = ("wdbc", "pima", "ionosphere", "sonar", "splice", "spambase", "ilpd", "leukemia", "colon", "prostate")
MORE_CLASSES = ("wine", "vehicle", "satimage", "digits", "opencv_digits", "isolet1560", "letter")
METHODS = ("bayes-error-lda", "kernel-bayes-error-lda", "posterior-map")
COUNTS = (1, 2, 3, 5, 10)
CLASSIFIERS = ("svm", "5-nn", "naive-bayes")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def accuracies(name: str, options: argparse.Namespace) -> dict[tuple[str, int], float]:
    """Mean accuracy over splits and classifiers, in percent; K beyond what a method has is all it has, raw is K = 0."""
    table = drawn(catalogue.load(name, download=False), options.rows)
    methods = [*METHODS, "raw", *supervised_umap(options.umap)]
    counts = [k for k in COUNTS if k <= table.n_features]
    found = compare(
        table.X,
        table.y,
        methods=methods,
        classifiers=CLASSIFIERS,
        n_components=counts,
        n_splits=options.splits,
        n_jobs=1,
        store=options.store,
        name=name,
    )
    scores = scores_by_cell([row for row in found.rows if row["status"] == "ok"], "accuracy")
    result = {}
    for method in dict.fromkeys(cell.method for cell in scores):
        possible = sorted({cell.k for cell in scores if cell.method == method})
        for k in COUNTS:
            least = [one for one in possible if one <= k] or possible
            cells = [scores.get(Cell(method, least[-1], classifier)) for classifier in CLASSIFIERS]
            result[method, k] = 100 * float(np.mean([np.mean(list(cell.values())) for cell in cells if cell]))
    return result


def supervised_umap(wanted: bool) -> list[object]:
    if not wanted:
        return []
    from umap import UMAP

    return [UMAP(n_components=2, random_state=0)]


def tables(found: dict[str, dict[tuple[str, int], float]], splits: int, rows: int) -> Iterator[str]:
    yield f"Mean accuracy, %, over {splits} splits and three classifiers (SVM, five neighbours, naive Bayes); at most"
    yield f"{rows:,} rows of a data set. Where a method has fewer than K components, all it has.\n"
    for title, names in (("two classes", TWO_CLASSES), ("more classes", MORE_CLASSES)):
        part = [found[name] for name in names if name in found]
        if part:
            yield f"**{len(part)} data sets with {title}**\n"
            yield from markdown(["method", *(f"K = {k}" for k in COUNTS)], list(_means(part)))
    yield "By data set, K = 2:\n"
    listed = list(dict.fromkeys(method for one in found.values() for method, _ in one))
    lines = [[name, *(figure(one.get((method, 2), np.nan)) for method in listed)] for name, one in found.items()]
    yield from markdown(["data", *listed], lines)


def _means(part: list[dict[tuple[str, int], float]]) -> Iterator[list[str]]:
    for method in dict.fromkeys(method for one in part for method, _ in one):
        yield [method, *(figure(float(np.mean([one.get((method, k), np.nan) for one in part]))) for k in COUNTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, help="file that keeps the results")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000, help="rows used of larger data sets")
    parser.add_argument("--datasets", default=",".join((*TWO_CLASSES, *MORE_CLASSES)))
    parser.add_argument("--umap", action="store_true", help="supervised UMAP too")
    parser.add_argument("--into", type=Path, help="the page whose figures to replace")
    options = parser.parse_args()
    found = {name: accuracies(name, options) for name in options.datasets.split(",")}
    lines = list(tables(found, options.splits, options.rows))
    if options.into is None:
        print("\n".join(lines))
        return
    before, rest = options.into.read_text(encoding="utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}"
    options.into.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
