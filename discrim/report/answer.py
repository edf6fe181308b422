"""The answer for a page: the verdict as short texts, and what to type to get the features."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from discrim.data import catalogue
from discrim.data.preprocessing import preprocessing
from discrim.engines.table_files import is_read_in_parts
from discrim.evaluation.methods import METHODS
from discrim.evaluation.result import Cell
from discrim.evaluation.sentences import COSTS, HELPS, in_components, percent
from discrim.evaluation.summary import METRICS, Line
from discrim.evaluation.verdict import Contrast, Verdict
from discrim.report.results import Results

MARKS = {"better": "▲", "worse": "▼"}
HOLDS = {
    "better": "better, and the corrected test says so",
    "worse": "worse, and the corrected test says so",
    "no difference shown": "no difference shown by the corrected test",
}


@dataclass(frozen=True)
class Against:
    """The recommended pipeline beside another, as a figure and in words."""

    name: str
    points: str
    verdict: str
    words: str


@dataclass(frozen=True)
class Answer:
    """What the first screen of a page says of a data set, from `Results.verdict`.

    Attributes
    ----------
    verdict : Verdict or None
        All of it as values; None where no reduction could be judged, and then `sentences` says so.
    line : Line or None
        The line of results of the recommended method and classifier.
    metric : str
        The score that decides, in words.
    score : str
        The honest score of the recommended pipeline in percent, or where there is none the score it was chosen by.
    interval : str
        Its interval in percent, empty where there is none.
    score_method : str
        How the score was found, in words.
    baseline : str
        Score of naming the largest class in percent, empty where it is not known.
    argmax : str
        What had the highest score, and which; empty where it is the recommended one.
    against : tuple of Against
        Beside the best line of PCA and of raw features.
    sentences : tuple of str
        The verdict in words: whether reducing helps, beside PCA, what to take.
    remarks : tuple of str
        What a reader must know of how it was found.
    command : str
        What to type in a terminal to get the features, empty where that is not known.
    code : str
        The same in Python.
    """

    verdict: Verdict | None
    line: Line | None
    metric: str
    score: str
    interval: str
    score_method: str
    baseline: str
    argmax: str
    against: tuple[Against, ...]
    sentences: tuple[str, ...]
    remarks: tuple[str, ...]
    command: str
    code: str


def answer_of(results: Results, data: str = "", reading: tuple[str, ...] = ()) -> Answer:
    """data, reading : what the data are called on the command line and how they are read, where that is known."""
    verdict, metric = results.verdict, METRICS[results.metric]
    if verdict is None:
        said = ("No reduction could be judged: every trial failed or was skipped.",)
        return Answer(None, None, metric, "", "", "", "", "", (), said, results.remarks, "", "")
    chosen, honest = verdict.recommended, verdict.honest
    low, high = (verdict.low, verdict.high) if honest is None else (honest.low, honest.high)
    if not data and results.setting.data in {one.name for one in catalogue.entries()}:
        data = results.setting.data
    pca = None if verdict.against_pca is None else _against("PCA", verdict.against_pca)
    raw = None if verdict.against_raw is None else _against("raw features", verdict.against_raw)
    best = verdict.best
    return Answer(
        verdict,
        next(
            (line for line in results.lines if (line.method, line.classifier) == (chosen.method, chosen.classifier)),
            None,
        ),
        metric,
        f"{100 * (verdict.score if honest is None else honest.mean):.1f}",
        "" if math.isnan(low) else f"{100 * max(low, 0):.1f}–{100 * min(high, 1):.1f}",
        "on the splits it was chosen on"
        if honest is None
        else f"on rows that had no part in the choice ({honest.method})",
        "" if math.isnan(verdict.majority) else f"{100 * verdict.majority:.1f}",
        ""
        if best == chosen
        else f"{best.method} with {in_components(best.k)} and {best.judge}: {percent(verdict.best_score)}",
        tuple(filter(None, (pca, raw))),
        verdict.sentences,
        results.remarks,
        project_command(chosen, data, reading, results.setting.scale),
        python_code(chosen, results.setting.scale, results.setting.impute),
    )


def p_in_words(p_value: float) -> str:
    """With spaces that do not break."""
    return "p\u00a0<\u00a00.001" if p_value < 0.001 else f"p\u00a0=\u00a0{p_value:.3f}"


def points(value: float) -> str:
    """A difference of scores in points, with a proper minus."""
    return f"{100 * value:+.1f}".replace("-", "−")


def _against(name: str, found: Contrast) -> Against:
    verdict = {HELPS: "better", COSTS: "worse"}.get(found.finding, "no difference shown")
    called = (
        f"{name} ({in_components(found.other.k)}, {found.other.classifier})"
        if name == "PCA"
        else f"{name} ({found.other.classifier})"
    )
    return Against(called, points(found.difference), verdict, f"{HOLDS[verdict]} ({p_in_words(found.p_value)})")


def project_command(best: Cell, data: str, reading: tuple[str, ...], scale: str) -> str:
    """What to type in a terminal to get the features; empty where it is no reduction by name, or no known file."""
    if not data or best.method not in METHODS or METHODS[best.method].build is None:
        return ""
    words = ["discrim", "project", data, *reading]
    words += ["--method", best.method, "-k", str(best.k), *(["--scale", scale] if scale != "standard" else [])]
    out = "features" if is_read_in_parts(Path(data)) else "features.csv"
    return shlex.join([*words, "--out", out, "--model", "model.discrim"])


def python_code(best: Cell, scale: str, impute: str = "") -> str:
    """The same in Python; empty where it is no reduction by name."""
    if best.method not in METHODS or METHODS[best.method].build is None:
        return ""
    method = METHODS[best.method]
    model, place = method.estimator(best.k, 0), "discrim" if method.ours else str(method.build).partition(":")[0]
    own = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    before = preprocessing(scale, impute or None)
    imports = {f"from {'.'.join(type(step).__module__.split('.')[:2])} import {type(step).__name__}" for step in before}
    names = sorted(set(re.findall(r"\b([A-Z]\w+)\(", " ".join(map(_written, own)))))
    steps = [*before, *own]
    if len(steps) > 1:
        imports.add("from sklearn.pipeline import make_pipeline")
    written = ", ".join(map(_written, steps))
    return "\n".join(
        [
            *sorted(imports),
            f"from {place} import {', '.join(names)}",
            "",
            f"model = make_pipeline({written})" if len(steps) > 1 else f"model = {written}",
            "features = model.fit(X, y).transform(X)",
        ]
    )


def _written(estimator: Any) -> str:
    """The estimator as code, on one line, with the parameters that are not its defaults."""
    return " ".join(repr(estimator).split())
