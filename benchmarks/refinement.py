"""What refining a hyperplane costs, beside the initial fit and beside the SVM alone.

    python -m benchmarks refinement

CPU seconds of one thread, sides taken in turn, medians. The initial classifier is our LDA; "rule" is the choice of
the merged terms alone, "refined" the whole fit, initial classifier included.
"""

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from discrim.estimators.merging_rules import MERGED_SET, Terms
from discrim.estimators.pair_refinement import Pair, Settings, Standard, initial_hyperplane
from discrim.estimators.refined_hyperplane import RefinedHyperplane

ROWS = ("refinement",)
N_ROWS = 200
FEATURES = (100, 2_000, 20_000)
RUNS = 5
RULES = ("sign", "min", "discriminant-max")


def rows_and_labels(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes whose means differ in every tenth feature."""
    rng = np.random.default_rng(d)
    y = np.arange(N_ROWS) % 2
    X = rng.normal(size=(N_ROWS, d))
    X[:, ::10] += 4.0 / np.sqrt(d / 10) * y[:, None]
    return X, y


def medians(sides: dict[str, Callable[[], Any]], runs: int = RUNS) -> dict[str, float]:
    """CPU seconds of each side, the sides taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs + 1):
        for name, run in sides.items():
            begin = time.process_time()
            run()
            seconds[name].append(time.process_time() - begin)
    return {name: median(taken[1:]) for name, taken in seconds.items()}  # the first run warms up


def sides(d: int) -> dict[str, Callable[[], Any]]:
    X, y = rows_and_labels(d)
    model = RefinedHyperplane()
    settings = Settings(**{name: getattr(model, name) for name in Settings.__dataclass_fields__})
    ones = np.ones(N_ROWS)
    pair = Pair(X, y == 1, ones, ones.astype(np.intp), np.array([0, 1]), weighted=False)
    standard = Standard.of(pair, "minority", "drop")
    standardised = standard.of_pair(pair)
    terms = Terms(initial_hyperplane(standardised, settings).weights, standardised.rows, y == 1, ones)
    runs: dict[str, Callable[[], Any]] = {
        "initial fit": lambda: initial_hyperplane(standardised, settings),
        "SVM alone": lambda: SVC(kernel="linear").fit(X, y),
    }
    for rule in RULES:
        runs[f"rule {rule}"] = lambda rule=rule: MERGED_SET[rule](terms)
        runs[f"refined by {rule}"] = lambda rule=rule: RefinedHyperplane(rule=rule).fit(X, y)
    return runs


def measure() -> list[dict[str, Any]]:
    """One line for each size, rule and yardstick: refinement beyond the initial fit, as a ratio to the yardstick."""
    warnings.filterwarnings("ignore", message="The within-class scatter is singular")  # as it must be where n < d
    lines = []
    for d in FEATURES:
        with threadpool_limits(1):
            seconds = medians(sides(d))
        for rule in RULES:
            beyond = seconds[f"refined by {rule}"] - seconds["initial fit"]
            for yardstick in ("initial fit", "SVM alone"):
                work = f"refinement by {rule} / {yardstick}, {N_ROWS}×{d}"
                lines.append(_line(work, beyond / seconds[yardstick], seconds[yardstick]))
            work = f"rule {rule} alone / initial fit, {N_ROWS}×{d}"
            lines.append(_line(work, seconds[f"rule {rule}"] / seconds["initial fit"], seconds["initial fit"]))
    return lines


def _line(work: str, ratio: float, yardstick: float) -> dict[str, Any]:
    return {"row": "refinement", "work": work, "goal": None, "ratio": ratio, "yardstick_seconds": yardstick}


if __name__ == "__main__":
    for line in measure():
        print(f"{line['work']:<62} {line['ratio']:8.3f}   (yardstick {1e3 * line['yardstick_seconds']:9.2f} ms)")
