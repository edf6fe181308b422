"""Which classifiers judge reductions best? The table of docs/compare.md.

    DISCRIM_DATA=folder python examples/judges_study.py --into docs/compare.md

Every candidate classifier scores every default method with 1, 2, 5 and C−1 components. The loss of a set of classifiers
on a data set is the score of the best pipeline of all candidates minus that of the set's best pipeline.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from study_parts import arguments, drawn, markdown, show

from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import named_methods
from discrim.evaluation.plan import Grid, automatic_counts, product, training_sizes
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.results import Result, Scores
from discrim.evaluation.run import Memory, run
from discrim.tables import catalogue

CANDIDATES = ("logistic", "5-nn", "naive-bayes", "rbf-svm", "svm")
DATASETS = (
    "breast_w",
    "colon",
    "ecoli",
    "heart_statlog",
    "ionosphere",
    "iris",
    "opencv_digits",
    "pima",
    "satimage",
    "sonar",
    "spambase",
    "splice",
    "vehicle",
    "wdbc",
)
MOST_ROWS, SPLITS = 600, 5


def results_on(name: str) -> list[Result]:
    """Score every default method with every candidate."""
    table = drawn(catalogue.load(name, download=False), MOST_ROWS)
    protocol = named_protocol("holdout-80-20", n_splits=SPLITS)
    methods = [one for one in named_methods(["default"], table.n_samples) if one.build is not None]
    counts = [k for k in automatic_counts(training_sizes(table, protocol)) if k < 10]
    cells = product(methods, counts, [CLASSIFIERS[name] for name in CANDIDATES], table.n_features)
    began = time.process_time()
    rows = run(Grid(name, table, cells, protocol), Memory(), jobs=1)
    print(f"{name}: {len(rows)} trials, {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


def losses(rows: Sequence[Result]) -> dict[tuple[str, ...], float]:
    """Return the loss in points of each set of one or two classifiers."""
    scores = Scores.from_rows(rows, "accuracy").complete()
    means = scores.values.mean(axis=1)
    best = {one: max(means[at] for at, cell in enumerate(scores.cells) if cell.classifier == one) for one in CANDIDATES}
    sets = [chosen for size in (1, 2) for chosen in combinations(CANDIDATES, size)]
    top = max(best.values())
    return {chosen: 100 * (top - max(best[one] for one in chosen)) for chosen in sets}


def lines() -> Iterator[str]:
    """Yield the table, the smallest mean loss first."""
    found = [losses(results_on(name)) for name in DATASETS]
    table = []
    for chosen in found[0]:
        lost = np.array([of_data[chosen] for of_data in found])
        figures = [f"{lost.mean():.2f}", f"{lost.max():.1f}", str(int((lost < 0.5).sum()))]
        table.append((lost.mean(), [" and ".join(chosen), *figures]))
    heads = ["judges", "mean loss (points)", "largest loss", f"within 0.5 points, of {len(DATASETS)}"]
    yield from markdown(heads, [row for _, row in sorted(table)])


if __name__ == "__main__":
    options = arguments(__doc__, jobs=False).parse_args()
    show(lines(), options.into, "judges")
