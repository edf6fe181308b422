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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import product
from typing import Any

from discrim.evaluation.comparison import JudgedRun
from discrim.evaluation.methods import METHODS
from discrim.evaluation.summary import METRICS, Line
from discrim.evaluation.wording import BETTER, WORSE, dropped_and_joined, in_components, in_p, percent
from discrim.report.accuracy_curves import AccuracyCurveValues
from discrim.report.chart import Chart, shortened
from discrim.report.confusions import Confusions
from discrim.report.critical_difference import CriticalDifferenceValues
from discrim.report.data_facts import DataFacts
from discrim.report.fitted import natural
from discrim.report.next_steps import Origin, commands, python_code
from discrim.report.payload import Charts, Words, as_json, features_json, figure_json
from discrim.report.permuted_scores import permutation_chart
from discrim.report.refits import CLASSIFIERS_VIEW, Allotment, Looks, MapView, looks_of
from discrim.tables import catalogue
from discrim.tables.formats import MissingExtraError
from discrim.tables.writing import whole_file

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
FIGURES = ("curves", "map", "features", "circle", "margins", "spectrum", "permutations")


def write_report(
    found: JudgedRun | Sequence[JudgedRun], path: str | os.PathLike[str], origin: Origin | None = None
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
    text = page([found] if isinstance(found, JudgedRun) else found, origin or Origin())
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def page(results: Sequence[JudgedRun], origin: Origin) -> str:
    """The page as text."""
    if not results:
        raise ValueError("There are no results to report. Run discrim compare first.")
    allotment = Allotment.among(len(results))
    looks = [looks_of(one, allotment) for one in results]
    by_data: dict[str, JudgedRun] = {}
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


def framed(template: str, charts: dict[str, Any], *, package: str = "discrim.report", **said: Any) -> str:
    """Render a package's template as one self-contained page with its charts, style and script."""
    plotly, script = _file("vendor", "plotly-basic.min.js"), _file("templates", "report.js")
    return _template(template, package).render(
        **said,
        values=as_json(charts),
        style=_file("templates", "report.css"),
        plotly=plotly,
        script=script,
        policy=content_policy([plotly, script]),
    )


# ---------------------------------------------------------------------- what is drawn


def _drawn(
    results: Sequence[JudgedRun], looks: Sequence[Looks], overall: dict[str, CriticalDifferenceValues]
) -> dict[str, Any]:
    """All charts, by data set and figure, then by the numbers chosen in the figure's menus."""
    words = Words()
    blocks = []
    for one, look in zip(results, looks, strict=True):
        figures = {name: figure_json(charts, words) for name, charts in _figures(one, look).items()}
        blocks.append({"figures": figures, "features": features_json([fit.loadings for fit in look.refits])})
    ranks = figure_json({(at,): one.chart() for at, one in enumerate(overall.values())}, words)
    return {"blocks": blocks, "ranks": ranks, "words": words.all}


def _figures(results: JudgedRun, look: Looks) -> dict[str, Charts]:
    """The charts of one data set by figure."""
    found: dict[str, Charts] = {name: {} for name in FIGURES}
    curves, methods = AccuracyCurveValues.of(results), list(dict.fromkeys(line.method for line in results.lines))
    for at, classifier in enumerate(_classifiers(results)):
        found["curves"][at,] = curves.chart(classifier, methods, most_shown=MOST_CURVES)
    for at, one in enumerate(look.maps):
        for view, shown in enumerate(one.views):
            found["map"][at, view] = _map_chart(shown, look)
    for at, fit in enumerate(look.refits):
        if not fit.margins.collapsed:
            found["margins"][at,] = fit.margins.chart(MOST_CLASSES)
        seen = {k: 1 - mean for k, mean in fit.line.curve.items()} if results.metric == "accuracy" else None
        found["spectrum"][at,] = fit.spectrum.chart(seen)
        components = range(len(fit.loadings.component_names))
        if len(components) > 1:
            found["circle"][at,] = fit.loadings.arrows_chart(count=ARROWS)
        for component, (number, kind) in product(components, enumerate(fit.loadings.kinds)):
            found["features"][at, component, number] = fit.loadings.chart(kind, component)
    if results.permutations is not None:
        found["permutations"][()] = permutation_chart(results.permutations)
    return found


def _map_chart(shown: MapView, look: Looks) -> Chart:
    """One component has no ellipses and no unit upwards, a classifier's view no ellipses; so it is said."""
    k, (fitted, new) = len(shown.projection.component_names), look.rows
    hover = {"fitted row": fitted}, {"row": new, "taken for": shown.predicted}
    chart = shown.projection.chart(range(k), hover=hover, most_classes=MOST_CLASSES)
    told = ["Rows of a class stand side by side only to be seen: their height means nothing."]
    if chart.equal:
        told = ["One unit is as long in all directions."]
    if any(chart.of("outlines")):
        told.append("Ellipses hold 95 % of a normal class of fitted rows: new rows that leave them show overfitting.")
    right = percent(shown.confusions.accuracy)
    seen = f"Five neighbours on {in_components(k)} are right on {right} of the new rows"
    return replace(chart, told=" ".join([*told, "; ".join(filter(None, [seen, chart.told]))]))


# ---------------------------------------------------------------------- what is said


def content_policy(scripts: Sequence[str]) -> str:
    """Nothing but these scripts, the page's own style, and pictures that the page itself makes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def ranks_by_classifier(by_data: Mapping[str, JudgedRun]) -> dict[str, CriticalDifferenceValues]:
    """Mean ranks over the data sets for every classifier, on each by its own score; empty for a single data set."""
    rows, metric = ({name: getattr(one, what) for name, one in by_data.items()} for what in ("rows", "metric"))
    classifiers = sorted({line.classifier for one in by_data.values() for line in one.lines})
    found = {name: CriticalDifferenceValues.of_rows(rows, name, metric=metric) for name in classifiers}
    return {name: values for name, values in found.items() if values is not None}


def _said(results: JudgedRun, look: Looks, origin: Origin) -> dict[str, Any]:
    """What the template says of one data set."""
    lines, setting = results.lines, results.setting
    verdict = results.verdict
    wanted = results.recommendation
    told = None if verdict is None or verdict.confusion is None else (verdict.classes, verdict.confusion)
    if not origin.data and setting.data in {one.name for one in catalogue.entries()}:
        origin = replace(origin, data=setting.data)
    return {
        "results": results,
        "headline": verdict and verdict.headline,
        "commands": wanted and commands(wanted, origin),
        "code": wanted and python_code(wanted),
        "rows": list(zip(lines, _tracks(lines), strict=True)),
        "not_listed": dropped_and_joined(lines),
        "metric": METRICS[results.metric],
        "classifiers": _classifiers(results),
        "facts": DataFacts.of(results),
        "collapsed": [fit.line.method for fit in look.refits if fit.margins.collapsed],
        "look": look,
        "confusions": told and Confusions.of(*told),
        "glosses": {name: METHODS[name].gloss for name in {line.method for line in lines} & METHODS.keys()},
    }


def _classifiers(results: JudgedRun) -> list[str]:
    """Return the classifiers that judge a reduction, the recommended one first; all if there is no reduction.

    The others classify raw features only, and have no curve.
    """
    wanted = results.recommendation
    judges = [line.classifier for line in results.lines if line.method != "raw"]
    found = dict.fromkeys(judges or (line.classifier for line in results.lines))
    return sorted(found, key=lambda name: wanted is None or name != wanted.classifier)


def _tracks(lines: Sequence[Line]) -> list[list[float]]:
    """Where low end, high end and mean of each line lie between the lowest and the highest end of all, in percent."""
    ends = [(max(one.low, 0.0), min(one.high, 1.0)) if one.n_splits > 1 else (one.mean, one.mean) for one in lines]
    low, high = min((end[0] for end in ends), default=0.0), max((end[1] for end in ends), default=1.0)
    width = (high - low) or 1.0
    places = [(*end, line.mean) for end, line in zip(ends, lines, strict=True)]
    return [[round(100 * (value - low) / width, 2) for value in place] for place in places]


def _template(name: str, package: str) -> Any:
    jinja2 = template_engine()
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one) for one in dict.fromkeys((package, "discrim.report"))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {"marks": MARKS, "classifiers_view": CLASSIFIERS_VIEW}
    return environment.get_template(name)


def _file(folder: str, name: str) -> str:
    return (files("discrim.report") / folder / name).read_text(encoding="utf-8")


def template_engine() -> Any:
    """jinja2, or an error that says how to get it; asked for before results are waited for, too."""
    try:
        return importlib.import_module("jinja2")
    except ImportError as error:
        raise MissingExtraError(
            "A report needs jinja2, which is not installed. Install it with pip install 'discrim[report]'."
        ) from error
