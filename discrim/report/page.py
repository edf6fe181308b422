"""Results → one HTML file that holds all it needs: words and tables as text, charts as JSON, and what draws them.

Nothing in the page leaves it: its content policy allows the page's own scripts by their hash and no connection at all,
and the charts' buttons are those named in report.js. Names come from files, so they are escaped by the templates, and
by `payload.as_json` where they are values. The charts are drawn by plotly.js, whose part for points, lines and bars is
shipped in `vendor`, of the version the page was tested with.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from discrim.data import catalogue
from discrim.data.columnar import MissingExtraError
from discrim.data.writing import whole_file
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.methods import METHODS
from discrim.evaluation.printed import BETTER, WORSE
from discrim.evaluation.sentences import in_components, in_p, percent
from discrim.evaluation.summary import METRICS, Line
from discrim.report.accuracy_curves import AccuracyCurveValues
from discrim.report.chart import Chart, shortened
from discrim.report.confusions import Confusions
from discrim.report.critical_difference import CriticalDifferenceValues
from discrim.report.fitted import natural
from discrim.report.next_steps import project_command, python_code
from discrim.report.payload import Words, as_json, features_json, figure_json
from discrim.report.permuted_scores import permutation_chart
from discrim.report.refits import CLASSIFIERS_VIEW, Allotment, Looks, MapView, looks_of
from discrim.report.results import Results

MOST_CLASSES = 24  # that are drawn by name
MOST_CURVES = 8  # that are shown from the start
ARROWS = 8
MARKS = {"better": BETTER, "worse": WORSE}
FILTERS: dict[str, Callable[..., Any]] = {
    "components": in_components,
    "shortened": shortened,
    "hundred": lambda share: f"{100 * share:.1f}",
    "share": lambda share: "–" if share is None else percent(share),
    "p": lambda p_value: in_p(p_value).replace(" ", "\u00a0"),  # spaces that do not break
    "points": lambda difference: f"{100 * difference:+.1f}".replace("-", "−"),
    "naturally": lambda pairs: sorted(pairs, key=lambda pair: natural(pair[0])),
}
Choices = Iterator[tuple[Sequence[int], Chart]]


@dataclass(frozen=True)
class Origin:
    """Where results come from, for what to type next: the command that was typed, the data's name and options in it."""

    command: str = ""
    data: str = ""
    reading: tuple[str, ...] = ()


def write_report(
    found: Comparison | Sequence[Results], path: str | os.PathLike[str], origin: Origin | None = None
) -> None:
    """Write the report as one HTML page; the file appears whole or not at all.

    Parameters
    ----------
    found : Comparison or sequence of Results
        What `compare` gave, or the results of several data sets.
    path : str or path
        The file.
    origin : Origin, default=None
        Where the table came from, for the commands that the page offers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import compare, write_report
    >>> answer = compare(*load_wine(return_X_y=True), n_splits=2)  # doctest: +SKIP
    >>> write_report(answer, "wine.html")  # doctest: +SKIP
    """
    text = page([Results.of(found)] if isinstance(found, Comparison) else found, origin or Origin())
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def page(results: Sequence[Results], origin: Origin) -> str:
    """The page as text."""
    if not results:
        raise ValueError("There are no results to report. Run discrim compare first.")
    allotment = Allotment.among(len(results))
    looks = [looks_of(one, allotment) for one in results]
    by_data: dict[str, Results] = {}
    for one in results:
        by_data.setdefault(one.setting.data, one)  # data that were tried in several ways count by the first
    overall = ranks_by_classifier(by_data)
    return framed(
        "report.html",
        _drawn(results, looks, overall),
        title=results[0].label if len(results) == 1 else f"{len(by_data)} data sets",
        n_datasets=len(by_data),
        decides={name: METRICS[one.metric] for name, one in by_data.items()},
        blocks=[_said(*pair, origin) for pair in zip(results, looks, strict=True)],
        overall=overall,
        origin=origin,
    )


def framed(template: str, charts: dict[str, Any], **said: Any) -> str:
    """A page that holds all it needs: a template's words, its charts, the style, and what draws."""
    plotly, script = _file("vendor", "plotly-basic.min.js"), _file("templates", "report.js")
    return _template(template).render(
        **said,
        values=as_json(charts),
        style=_file("templates", "report.css"),
        plotly=plotly,
        script=script,
        policy=content_policy([plotly, script]),
    )


# ---------------------------------------------------------------------- what is drawn


def _drawn(
    results: Sequence[Results], looks: Sequence[Looks], overall: dict[str, CriticalDifferenceValues]
) -> dict[str, Any]:
    """All charts, by data set and figure, then by the numbers chosen in the figure's menus."""
    words = Words()
    blocks = []
    for one, look in zip(results, looks, strict=True):
        figures = {"curves": _curves(one), "map": _maps(look), "features": _features(look), "circle": _circles(look)}
        figures["margins"] = (((at,), fit.margins.chart(MOST_CLASSES)) for at, fit in enumerate(look.refits))
        figures["spectrum"] = _spectra(look, one.metric)
        figures["permutations"] = _permuted(one)
        charts = {name: figure_json(choices, words) for name, choices in figures.items()}
        blocks.append({"figures": charts, "features": features_json([fit.loadings for fit in look.refits])})
    ranks = figure_json((((at,), one.chart()) for at, one in enumerate(overall.values())), words)
    return {"blocks": blocks, "ranks": ranks, "words": words.all}


def _curves(results: Results) -> Choices:
    values, methods = AccuracyCurveValues.of(results), list(dict.fromkeys(line.method for line in results.lines))
    for at, classifier in enumerate(dict.fromkeys(line.classifier for line in results.lines)):
        yield (at,), values.chart(classifier, methods, most_shown=MOST_CURVES)


def _maps(look: Looks) -> Choices:
    for at, one in enumerate(look.maps):
        for view, shown in enumerate(one.views):
            k = len(shown.projection.component_names)
            chart = shown.projection.chart(range(k), hover=_hover(shown, look), most_classes=MOST_CLASSES)
            right = f"{100 * shown.confusions.accuracy:.1f} %"
            seen = f"Five neighbours on {in_components(k)} are right on {right} of the new rows"
            told = (*_how_it_is_drawn(chart), "; ".join(filter(None, [seen, chart.told])))
            yield (at, view), replace(chart, told=" ".join(told))


def _how_it_is_drawn(chart: Chart) -> Iterator[str]:
    """What holds of this map: one component has no ellipses and no unit upwards, a classifier's view no ellipses."""
    yield (
        "One unit is as long in all directions."
        if chart.equal
        else "Rows of a class stand side by side only to be seen: their height means nothing."
    )
    if any(mark.part == "outlines" for mark in chart.marks):
        yield "Ellipses hold 95 % of a normal class of fitted rows: new rows that leave them show overfitting."


def _hover(shown: MapView, look: Looks) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    fitted, new = look.rows
    return {"fitted row": fitted}, {"row": new, "taken for": shown.predicted}


def _features(look: Looks) -> Choices:
    for at, fit in enumerate(look.refits):
        kinds = ("structure", "loadings") if fit.loadings.loadings is not None else ("structure",)
        for component in range(len(fit.loadings.component_names)):
            for number, kind in enumerate(kinds):
                yield (at, component, number), fit.loadings.chart(kind, component)


def _circles(look: Looks) -> Choices:
    for at, fit in enumerate(look.refits):
        if len(fit.loadings.component_names) > 1:
            yield (at,), fit.loadings.arrows_chart(count=ARROWS)


def _spectra(look: Looks, metric: str) -> Choices:
    for at, fit in enumerate(look.refits):
        seen = {k: 1 - mean for k, mean in fit.line.curve.items()} if metric == "accuracy" else None
        yield (at,), fit.spectrum.chart(seen)


def _permuted(results: Results) -> Choices:
    if results.permutations is not None:
        yield (), permutation_chart(results.permutations)


# ---------------------------------------------------------------------- what is said


def content_policy(scripts: Sequence[str]) -> str:
    """Nothing but these scripts, the page's own style, and pictures that the page itself makes."""
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def ranks_by_classifier(by_data: Mapping[str, Results]) -> dict[str, CriticalDifferenceValues]:
    """Mean ranks over the data sets for every classifier, on each by its own score; empty for a single data set."""
    rows, metric = ({name: getattr(one, what) for name, one in by_data.items()} for what in ("rows", "metric"))
    classifiers = sorted({line.classifier for one in by_data.values() for line in one.lines})
    found = {name: CriticalDifferenceValues.of_rows(rows, name, metric=metric) for name in classifiers}
    return {name: values for name, values in found.items() if values is not None}


def _said(results: Results, look: Looks, origin: Origin) -> dict[str, Any]:
    """What the template says of one data set."""
    lines, setting = results.lines, results.setting
    best = None if results.verdict is None else results.verdict.recommended
    in_catalogue = setting.data if setting.data in {one.name for one in catalogue.entries()} else ""
    return {
        "results": results,
        "command": best and project_command(best, origin.data or in_catalogue, origin.reading, setting.scale),
        "code": best and python_code(best, setting.scale, setting.impute),
        "rows": list(zip(lines, _tracks(lines), strict=True)),
        "metric": METRICS[results.metric],
        "classifiers": list(dict.fromkeys(line.classifier for line in lines)),
        "look": look,
        "confusions": _confusions(results),
        "glosses": {name: METHODS[name].gloss for name in {line.method for line in lines} & METHODS.keys()},
    }


def _confusions(results: Results) -> Confusions | None:
    """Held-out rows of all splits by the recommended pipeline, where the results tell."""
    verdict = results.verdict
    if verdict is None or verdict.confusion is None:
        return None
    return Confusions.of(verdict.classes, verdict.confusion)


def _tracks(lines: Sequence[Line]) -> list[list[float]]:
    """Where low end, high end and mean of each line lie between the lowest and the highest end of all, in percent."""
    ends = [(max(one.low, 0.0), min(one.high, 1.0)) if one.n_splits > 1 else (one.mean, one.mean) for one in lines]
    low, high = min((end[0] for end in ends), default=0.0), max((end[1] for end in ends), default=1.0)
    width = (high - low) or 1.0
    places = [(*end, line.mean) for end, line in zip(ends, lines, strict=True)]
    return [[round(100 * (value - low) / width, 2) for value in place] for place in places]


def _template(name: str) -> Any:
    jinja2 = _needed("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("discrim.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {"marks": MARKS, "classifiers_view": CLASSIFIERS_VIEW}
    return environment.get_template(name)


def require_libraries() -> None:
    """Refuse where a page could not be written for want of a library, before results are waited for."""
    _needed("jinja2")


def _file(folder: str, name: str) -> str:
    return (files("discrim.report") / folder / name).read_text(encoding="utf-8")


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"A report needs {module}, which is not installed. Install it with pip install 'discrim[report]'."
        ) from error


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
