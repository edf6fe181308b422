"""Report: one self-contained HTML file with text, tables, charts as JSON, and the scripts that draw them.

The page makes no connection: its content policy allows only its own scripts, by their hash. Names are read from files,
so the templates escape them, and `chart.as_json` escapes values. The charts are drawn by plotly.js; its part for
points, lines and bars is in `vendor`, in the version that the page was tested with.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from discrim.engines.table_files import is_large
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.methods import METHODS, Recommendation, build_pipeline
from discrim.evaluation.resampling import PermutationTest
from discrim.evaluation.summary import METRICS, Line
from discrim.evaluation.trial import numbers_of_folds
from discrim.evaluation.wording import (
    BETTER,
    WORSE,
    between,
    dropped_and_joined,
    hundred,
    in_components,
    in_p,
    percent,
    signed,
)
from discrim.report.chart import NAME, Axis, Chart, Charts, Mark, Words, as_json, figure_json, short_numbers, shortened
from discrim.report.features import LoadingsValues
from discrim.report.first_split import CLASSIFIERS_VIEW, Confusions, Looks, MapView, looks_of
from discrim.report.fitted import natural
from discrim.report.scores import AccuracyCurveValues, CriticalDifferenceValues
from discrim.tables import catalogue
from discrim.tables.facts import TableFacts
from discrim.tables.formats import MissingExtraError
from discrim.tables.writing import whole_file

MOST_CLASSES = 24  # that are drawn by name
COLUMNS = 24  # of the histogram of permuted scores
MOST_NUMBERS = 60_000  # of all methods' features by components, for the search
MOST_FEATURES = 20_000
MOST_CURVES = 8  # that are shown from the start
ARROWS = 8
MARKS = {"better": BETTER, "worse": WORSE}
FILTERS: dict[str, Callable[..., Any]] = {
    "components": in_components,
    "shortened": shortened,
    "hundred": hundred,
    "share": lambda share: "–" if share is None else percent(share),
    "p": lambda p_value: in_p(p_value).replace(" ", "\u00a0"),  # spaces that do not break
    "points": signed,
    "naturally": lambda pairs: sorted(pairs, key=lambda pair: natural(pair[0])),
}
FIGURES = ("curves", "map", "features", "circle", "margins", "spectrum", "permutations")
MODEL = "model.discrim"


@dataclass(frozen=True)
class Origin:
    """Command that was typed, the data in it, and the options for reading that file and files of new rows.

    table, groups, features : arguments of `read_table` for the rows, of `read_table` for the groups of the rows (None
    if there are none) and of `read_features` for new rows
    """

    command: str = ""
    data: str = ""
    reading: tuple[str, ...] = ()
    new_rows: tuple[str, ...] = ()
    table: Mapping[str, Any] | None = None
    groups: Mapping[str, Any] | None = None
    features: Mapping[str, Any] = field(default_factory=dict)


def commands(best: Recommendation, origin: Origin) -> list[str]:
    """Return the commands that fit the pipeline and predict new rows with it; none if they cannot be typed.

    A method that the caller passed has no name, and data that are not in a file cannot be read. A table that does not
    fit into memory can be reduced by methods of discrim only.
    """
    if not origin.data or best.method not in METHODS:
        return []
    words = ["discrim", "project", origin.data, *origin.reading, "--method", best.method]
    words += ["-k", str(best.n_components)] if best.reduces else []
    words += ["--classifier", best.classifier, *(["--class-weight", best.class_weight] if best.class_weight else [])]
    words += ["--scale", best.scale] if best.scale != "standard" else []
    in_parts = is_large(Path(origin.data))
    if in_parts and not (best.reduces and METHODS[best.method].ours):
        return []
    features = ["--out", "features" if in_parts else "features.csv"] if best.reduces else []
    predict = ["discrim", "apply", MODEL, "new.csv", *origin.new_rows, "--predict", "--out", "predicted.csv"]
    return [shlex.join([*words, *features, "--model", MODEL]), shlex.join(predict)]


def python_code(best: Recommendation, origin: Origin | None = None) -> str:
    """Return the same in Python; empty if the method was passed by the caller.

    X, y and X_new are read from the files if they are known to be read in this way, else they are the caller's.
    """
    if best.method not in METHODS:
        return ""
    origin = origin or Origin()
    steps = _flat(build_pipeline(best))
    imports = {"from sklearn.pipeline import make_pipeline"}
    for step in [one for outer in steps for one in (outer, *outer.get_params().values()) if hasattr(one, "fit")]:
        module = type(step).__module__
        ours = module.startswith("discrim.estimators")
        place = "discrim" if ours else module if "discrim." in module else ".".join(module.split(".")[:2])
        imports.add(f"from {place} import {type(step).__name__}")
    pipeline, lines, last = f"make_pipeline({', '.join(' '.join(repr(step).split()) for step in steps)})", [], []
    if origin.table is not None:
        imports.add("from discrim.tables.read import read_features, read_table")
        lines = [f"table = read_table({_arguments(origin.data, origin.table)})", "X, y = table.X, table.y"]
        last = [f"X_new, ids = read_features({_arguments('new.csv', origin.features, 'table.feature_names')})"]
    if origin.groups is not None and any(numbers_of_folds(step) for step in steps):
        imports.add("from discrim.evaluation.trial import keep_groups")
        lines.append(f"groups = read_table({_arguments(origin.data, origin.groups)}).ids")
        pipeline = f"keep_groups({pipeline}, y, groups)"
    lines += [f"model = {pipeline}.fit(X, y)", *last, "labels = model.predict(X_new)"]
    return "\n".join([*sorted(imports), "", *lines])


def _arguments(path: str, named: Mapping[str, Any], *others: str) -> str:
    """Return the arguments of a call as code."""
    return ", ".join([repr(path), *others, *(f"{name}={value!r}" for name, value in named.items())])


def _flat(model: Any) -> list[Any]:
    """Return the steps of a pipeline, and of pipelines in it."""
    return [one for _, step in model.steps for one in _flat(step)] if isinstance(model, Pipeline) else [model]


def write_report(
    found: Comparison | Sequence[Comparison], path: str | os.PathLike[str], origin: Origin | None = None
) -> None:
    """Write the report as one HTML page; the file appears whole or not at all.

    Parameters
    ----------
    found : Comparison or sequence of Comparison
        Result of `compare`, or the results of several data sets.
    path : str or path
        The file.
    origin : Origin, default=None
        Source of the table, for the commands that the page offers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import compare, write_report
    >>> answer = compare(*load_wine(return_X_y=True), n_splits=2)  # doctest: +SKIP
    >>> write_report(answer, "wine.html")  # doctest: +SKIP
    """
    text = page([found] if isinstance(found, Comparison) else found, origin or Origin())
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def page(results: Sequence[Comparison], origin: Origin) -> str:
    """Return the page as text."""
    if not results:
        raise ValueError("There are no results to report. Run discrim compare first.")
    by_data: dict[str, Comparison] = {}
    for one in results:
        by_data.setdefault(one.setting["data"], one)  # data that were tried in several ways count by the first
    rows, metric = ({name: getattr(one, what) for name, one in by_data.items()} for what in ("rows", "metric"))
    classifiers = sorted({line.classifier for one in by_data.values() for line in one.lines})
    ranks = {name: CriticalDifferenceValues.from_rows(rows, name, metric=metric) for name in classifiers}
    overall = {name: values for name, values in ranks.items() if values is not None}  # none for one data set
    words, charts, blocks = Words(), [], []
    for one in results:
        look = looks_of(one, len(results))
        figures = {name: figure_json(drawn, words) for name, drawn in _figures(one, look).items()}
        charts.append({"figures": figures, "features": features_json([fit.loadings for fit in look.methods])})
        blocks.append(_block(one, look, origin))
    drawn_ranks = figure_json({(at,): one.chart() for at, one in enumerate(overall.values())}, words)
    return framed(
        "report.html",
        {"blocks": charts, "ranks": drawn_ranks, "words": list(words)},
        title=results[0].label if len(results) == 1 else f"{len(by_data)} data sets",
        n_datasets=len(by_data),
        decides={name: METRICS[one] for name, one in metric.items()},
        blocks=blocks,
        overall=overall,
        origin=origin,
    )


def framed(template: str, charts: dict[str, Any], *, package: str = "discrim.report", **values: Any) -> str:
    """Render a package's template as one self-contained page with its charts, style and script."""
    jinja2, folder = template_engine(), files("discrim.report")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(one) for one in dict.fromkeys((package, "discrim.report"))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {"marks": MARKS, "classifiers_view": CLASSIFIERS_VIEW, "between": between}
    names = ("vendor/plotly-basic.min.js", "templates/report.js", "templates/report.css")
    plotly, script, style = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    own = {"style": style, "plotly": plotly, "script": script, "policy": content_policy([plotly, script])}
    return environment.get_template(template).render(**values, values=as_json(charts), **own)


def template_engine() -> Any:
    """Return jinja2; raise an error that explains how to install it."""
    try:
        return importlib.import_module("jinja2")
    except ImportError as error:
        raise MissingExtraError(
            "A report requires jinja2, which is not installed. Install it with pip install 'discrim[report]'."
        ) from error


# ---------------------------------------------------------------------- charts


def _figures(results: Comparison, look: Looks) -> dict[str, Charts]:
    """Return the charts of one data set by figure."""
    found: dict[str, Charts] = {name: {} for name in FIGURES}
    curves, methods = AccuracyCurveValues.from_results(results), dict.fromkeys(line.method for line in results.lines)
    for at, classifier in enumerate(_classifiers(results)):
        found["curves"][at,] = curves.chart(classifier, methods, most_shown=MOST_CURVES)
    for at, one in enumerate(look.maps):
        for view, shown in enumerate(one.views):
            found["map"][at, view] = _map_chart(shown, look)
    for at, fit in enumerate(look.methods):
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


def permutation_chart(tested: PermutationTest) -> Chart:
    """Return a histogram of the permuted scores with a line at the score itself."""
    scores = 100 * tested.permuted[np.isfinite(tested.permuted)]
    ends = np.append(scores, 100 * tested.score) if np.isfinite(tested.score) else scores
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 100.0)
    span = max(high - low, 1.0)
    counts, edges = np.histogram(scores, COLUMNS, (low - 0.02 * span, low + 1.02 * span))
    width = float(edges[1] - edges[0])
    places, drawn = (edges[:-1] + edges[1:]) / 2, counts > 0
    look: dict[str, Any] = {"colour": 5, "size": 0.9 * width, "opacity": 0.7, "tip": "about {x:.1f} %: {y} times"}
    legend = f"permuted {tested.exchanged}"
    marks = [Mark("columns", "permuted", places[drawn], counts[drawn], legend=legend, **look)]
    if np.isfinite(tested.score):
        legend = f"labels as they are: {100 * tested.score:.1f} %, {in_p(tested.p_value)}"
        marks.append(Mark("upright", "score", [100 * tested.score], legend=legend, colour=1))
    across = Axis(f"{METRICS[tested.metric]} %", limits=(low - 0.05 * span, low + 1.05 * span))
    return Chart(tuple(marks), across, Axis("permutations", limits=(0, 1.08 * max(counts.max(initial=0), 1))))


def _map_chart(shown: MapView, look: Looks) -> Chart:
    """Return the chart of a map with a text that explains its unit, its ellipses and the accuracy on it."""
    k, (fitted, new) = len(shown.projection.component_names), look.rows
    hover = {"fitted row": fitted}, {"row": new, "predicted": shown.predicted}
    chart = shown.projection.chart(range(k), hover=hover, most_classes=MOST_CLASSES)
    sentences = ["Rows of a class are spread upwards only to be visible: their height has no meaning."]
    if chart.equal:
        sentences = ["One unit is as long in all directions."]
    if any(chart.of("outlines")):
        sentences.append(
            "Each ellipse holds 95 % of a normally distributed class, estimated on the training rows: if many more "
            "new rows lie outside, the map overfits."
        )
    right = percent(shown.confusions.accuracy)
    seen = f"Five neighbours on {in_components(k)} are right on {right} of the new rows"
    return replace(chart, caption=" ".join([*sentences, "; ".join(filter(None, [seen, chart.caption]))]))


def features_json(loadings: Sequence[LoadingsValues]) -> dict[str, Any]:
    """Return all features of each method for the search, up to a limit; a method beyond it has None."""
    if not loadings:
        return {"names": [], "methods": []}
    names, space = loadings[0].feature_names, MOST_NUMBERS
    largest = np.argsort(-np.abs(loadings[0].structure).max(axis=0), kind="stable")[:MOST_FEATURES]
    kept = sorted(largest.tolist())  # all, if there are not too many
    methods: list[dict[str, Any] | None] = []
    for at, values in enumerate(loadings):
        tables = {kind: values.table(kind)[:, kept] for kind in values.kinds}
        size = sum(table.size for table in tables.values())
        fits = values.feature_names == names and (size <= space or at == 0)
        space -= size if fits else 0
        rows = {kind: [short_numbers(row, 3) for row in table] for kind, table in tables.items()}
        methods.append({"components": values.component_names, **rows} if fits else None)
    return {"names": [names[at][:NAME] for at in kept], "left": len(names) - len(kept), "methods": methods}


# ---------------------------------------------------------------------- text


def content_policy(scripts: Sequence[str]) -> str:
    """Return a content policy that allows these scripts, the style of the page, and its own pictures only."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _block(results: Comparison, look: Looks, origin: Origin) -> dict[str, Any]:
    """Return the values for the template of one data set."""
    lines, name, verdict, wanted = results.lines, results.setting["data"], results.verdict, results.recommendation
    table = None if results.data is None else TableFacts.from_table(results.data)
    sizes, counts = results.sizes, results.class_counts
    if table is not None:
        sizes = sizes | {"rows": table.n_rows, "features": table.n_features}
        counts = {str(label): int(count) for label, count in table.classes.items()}
    confusions = None
    if verdict is not None and verdict.confusion is not None:
        confusions = Confusions.of(verdict.classes, verdict.confusion)
    if not origin.data and name in {one.name for one in catalogue.entries()}:
        origin = replace(origin, data=name)
    return {
        "results": results,
        "commands": wanted and commands(wanted, origin),
        "code": wanted and python_code(wanted, origin),
        "rows": list(zip(lines, _tracks(lines), strict=True)),
        "not_listed": dropped_and_joined(lines),
        "metric": METRICS[results.metric],
        "classifiers": _classifiers(results),
        "table": table,
        "sizes": sizes,
        "counts": counts,
        "collapsed": [fit.line.method for fit in look.methods if fit.margins.collapsed],
        "look": look,
        "maps": [f"{one.method}: {100 * one.accuracy:.1f} %" for one in look.maps],
        "confusions": confusions,
        "glosses": {name: METHODS[name].gloss for name in {line.method for line in lines} & METHODS.keys()},
    }


def _classifiers(results: Comparison) -> list[str]:
    """Return the classifiers that judge a reduction, the recommended one first; all if there is no reduction.

    The others classify raw features only, and have no curve.
    """
    wanted = results.recommendation
    judges = [line.classifier for line in results.lines if line.method != "raw"]
    found = dict.fromkeys(judges or (line.classifier for line in results.lines))
    return sorted(found, key=lambda name: wanted is None or name != wanted.classifier)


def _tracks(lines: Sequence[Line]) -> list[list[float]]:
    """Return low end, high end and mean of each line in percent of the range of all intervals."""
    ends = [(one.low, one.high) if one.n_splits > 1 else (one.mean, one.mean) for one in lines]
    low, high = min((end[0] for end in ends), default=0.0), max((end[1] for end in ends), default=1.0)
    width = (high - low) or 1.0
    places = [(*end, line.mean) for end, line in zip(ends, lines, strict=True)]
    return [[round(100 * (value - low) / width, 2) for value in place] for place in places]
