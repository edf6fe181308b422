"""The answer in words: what is best, by how much, whether that holds, and what to type to get it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from discrim.data import catalogue
from discrim.evaluation.methods import METHODS
from discrim.evaluation.summary import METRICS, Difference, Line
from discrim.report.results import Results

MARKS = {"better": "▲", "worse": "▼"}
HOLDS = {
    "better": "better, and the corrected test says so",
    "worse": "worse, and the corrected test says so",
    "no difference shown": "no difference shown by the corrected test",
}


@dataclass(frozen=True)
class Against:
    """The best method beside another, as a figure and in words."""

    name: str
    points: str
    verdict: str
    words: str


@dataclass(frozen=True)
class Answer:
    """What the first screen of a page says of a data set; `best` is None where no reduction could be judged."""

    best: Line | None
    metric: str
    score: str
    interval: str
    against: tuple[Against, ...]
    meaning: str
    command: str
    code: str


def answer_of(results: Results, data: str = "", reading: tuple[str, ...] = ()) -> Answer:
    """data, reading : what the data are called on the command line and how they are read, where that is known."""
    best, metric = results.best, METRICS[results.metric]
    if best is None:
        meaning = "No reduction could be judged: every trial failed or was skipped."
        return Answer(None, metric, "", "", (), meaning, "", "")
    interval = f"{100 * max(best.low, 0):.1f}–{100 * min(best.high, 1):.1f}" if best.n_splits > 1 else ""
    others = ((f"PCA with {in_components(best.k)}", best.against_pca), ("raw features", best.against_raw))
    against = tuple(_against(name, found) for name, found in others if found is not None)
    if not data and results.setting.data in {one.name for one in catalogue.entries()}:
        data = results.setting.data
    command = project_command(best, data, reading, results.setting.scale)
    code = python_code(best, results.setting.scale)
    return Answer(best, metric, f"{100 * best.mean:.1f}", interval, against, _meaning(best, results), command, code)


def in_components(k: int) -> str:
    return f"{k} component{'' if k == 1 else 's'}"


def p_in_words(p_value: float) -> str:
    """With spaces that do not break."""
    return "p\u00a0<\u00a00.001" if p_value < 0.001 else f"p\u00a0=\u00a0{p_value:.3f}"


def points(value: float) -> str:
    """A difference of scores in points, with a proper minus."""
    return f"{100 * value:+.1f}".replace("-", "−")


def _against(name: str, found: Difference) -> Against:
    return Against(name, points(found.mean), found.verdict, f"{HOLDS[found.verdict]} ({p_in_words(found.adjusted)})")


def _meaning(best: Line, results: Results) -> str:
    """What follows from the comparison with raw features; where no difference is shown, that is all that is said."""
    features = results.sizes.get("features")
    few, many = in_components(best.k), f"the {features} features" if features else "the features"
    if best.against_raw is None:
        return ""
    first = "PCA, which uses no labels, is not outdone here. " if best.method == "pca" else ""
    return (
        first
        + {
            "better": f"Reducing helps here: {few} classify better than {many} as they are.",
            "worse": f"Reducing has its price here: {many} as they are classify better than {few}.",
            "no difference shown": f"No loss is shown in going from {many} to {few}, and no gain.",
        }[best.against_raw.verdict]
    )


def project_command(best: Line, data: str, reading: tuple[str, ...], scale: str) -> str:
    """What to type in a terminal to get the features; empty where it is no reduction of discrim, or no known file."""
    if not data or best.method not in METHODS or not METHODS[best.method].ours:
        return ""
    words = ["discrim", "project", data, *reading]
    words += ["--method", best.method, "-k", str(best.k), *(["--scale", scale] if scale != "standard" else [])]
    return shlex.join([*words, "--out", "features.csv", "--model", "model.discrim"])


def python_code(best: Line, scale: str) -> str:
    """The same in Python; empty where it is no reduction of discrim."""
    if best.method not in METHODS or not METHODS[best.method].ours:
        return ""
    model = _written(METHODS[best.method].estimator(best.k, 0))
    names = sorted(set(re.findall(r"\b([A-Z]\w+)\(", model)))
    lines = [f"from discrim import {', '.join(names)}"]
    scaler = {"standard": "StandardScaler()", "range": "MinMaxScaler((-1, 1))"}.get(scale)
    if scaler:
        lines = [
            "from sklearn.pipeline import make_pipeline",
            f"from sklearn.preprocessing import {scaler.partition('(')[0]}",
            *lines,
        ]
        model = f"make_pipeline({scaler}, {model})"
    return "\n".join([*lines, "", f"model = {model}", "features = model.fit(X, y).transform(X)"])


def _written(estimator: Any) -> str:
    """The estimator as code, on one line, with the parameters that are not its defaults."""
    return " ".join(repr(estimator).split())
