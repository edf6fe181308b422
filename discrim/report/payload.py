"""The values of a page's charts as JSON: short numbers, and no sign in it that could end the script it stands in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from discrim.report.accuracy_curves import AccuracyCurveValues
from discrim.report.critical_difference import CriticalDifferenceValues
from discrim.report.loadings import LoadingsValues
from discrim.report.margin_distribution import MarginValues
from discrim.report.projection import ProjectedRows, ProjectionValues
from discrim.report.refits import Refit
from discrim.report.results import Results
from discrim.report.spectrum import SpectrumValues

MOST_CLASSES = 24
TOP, ARROWS = 12, 8
NAME = 80  # characters of a name that reach a chart
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def as_json(value: Any) -> str:
    """JSON that may stand in a script element: <, >, & and the line separators are written as escapes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def block(results: Results, shown: Iterable[Refit]) -> dict[str, Any]:
    """The charts of one data set."""
    return {
        "curves": curves(AccuracyCurveValues.of(results)),
        "metric": results.metric,
        "classifiers": list(dict.fromkeys(line.classifier for line in results.lines)),
        "order": list(dict.fromkeys(line.method for line in results.lines)),
        "views": [view(one) for one in shown],
    }


def curves(values: AccuracyCurveValues) -> list[dict[str, Any]]:
    return [
        {
            "method": curve.method,
            "classifier": curve.classifier,
            "k": curve.k.tolist(),
            **{name: numbers(100 * getattr(curve, name)) for name in ("mean", "low", "high")},
        }
        for curve in values.curves
    ]


def view(shown: Refit) -> dict[str, Any]:
    line = shown.line
    return {
        "method": line.method,
        "classifier": line.classifier,
        "k": line.k,
        "projection": projection(shown.projection),
        "margins": margins(shown.margins),
        "loadings": loadings(shown.loadings),
        "spectrum": spectrum(shown.spectrum),
    }


def projection(values: ProjectionValues) -> dict[str, Any]:
    assert values.test is not None
    place = places(np.bincount(values.train.codes, minlength=len(values.classes)))
    return {
        "classes": shown_classes(values.classes, place),
        "shares": None if values.shares is None else numbers(values.shares),
        "train": rows(values.train, place) | ellipses(values.train, place),
        "test": rows(values.test, place),
    }


def rows(part: ProjectedRows, place: Mapping[int, int]) -> dict[str, Any]:
    """Points by component, and their classes by their place among those shown."""
    return {
        "n": part.n_rows,
        "scores": [numbers(column) for column in part.scores.T],
        "codes": [place.get(code, len(place)) for code in part.codes.tolist()],
    }


def ellipses(part: ProjectedRows, place: Mapping[int, int]) -> dict[str, Any]:
    return {
        "means": [numbers(part.means[code]) for code in place],
        "covariances": [[numbers(row) for row in part.covariances[code]] for code in place],
    }


def margins(values: MarginValues) -> dict[str, Any]:
    place = places(np.bincount(values.codes, minlength=len(values.classes)))
    by_class = [values.of_class(code) for code in place]
    right = [float((part > 0).mean()) if len(part) else math.nan for part in (values.before, values.after)]
    return {
        "classes": shown_classes(values.classes, place)[: len(place)],
        "before": [numbers(before, 3) for before, _ in by_class],
        "after": [numbers(after, 3) for _, after in by_class],
        "right": numbers(100 * np.array(right)),
        "n": [len(values.codes), values.n_rows],
    }


def loadings(values: LoadingsValues) -> dict[str, Any]:
    """The top features of every component, and the arrows of every pair of components."""
    tables = {"structure": values.structure} | ({} if values.loadings is None else {"loadings": values.loadings})
    count = len(values.component_names)
    tops = {name: [_top(values, table, at, name) for at in range(count)] for name, table in tables.items()}
    pairs = {f"{a},{b}": _arrows(values, a, b) for a in range(count) for b in range(count) if a != b}
    return {"tops": tops, "arrows": pairs}


def _top(values: LoadingsValues, table: Any, component: int, by: str) -> list[Any]:
    top = values.top(component, TOP, by=by)
    return [_named(values, top), numbers(table[component][top])]


def _arrows(values: LoadingsValues, first: int, second: int) -> list[Any]:
    features, ends = values.arrows(first, second, ARROWS)
    return [_named(values, features), numbers(ends[:, 0], 3), numbers(ends[:, 1], 3)]


def _named(values: LoadingsValues, features: Any) -> list[str]:
    return [values.feature_names[at][:NAME] for at in features]


def spectrum(values: SpectrumValues) -> dict[str, Any]:
    worth = values.shares if values.shares is not None else values.eigenvalues
    return {
        "worth": None if worth is None else numbers(worth),
        "is_share": values.shares is not None,
        "scores": numbers(values.scores),
        "error": numbers(100 * values.predicted_error),
        "chosen": values.chosen,
    }


def ranks(values: CriticalDifferenceValues) -> dict[str, Any]:
    return {
        "methods": [name[:NAME] for name in values.methods],
        "ranks": numbers(values.mean_ranks),
        "critical": values.critical_difference,
        "groups": [list(group) for group in values.groups],
    }


def places(counts: Any) -> dict[int, int]:
    """Class number → its place among the classes that are drawn by name: all, or the 24 with most rows."""
    largest = np.argsort(-np.asarray(counts), kind="stable")[:MOST_CLASSES]
    return {int(code): at for at, code in enumerate(sorted(largest.tolist()))}


def shown_classes(classes: tuple[str, ...], place: Mapping[int, int]) -> list[str]:
    """Names of the classes drawn, and one for all the rest where there is a rest."""
    names = [classes[code][:NAME] for code in place]
    rest = len(classes) - len(place)
    return [*names, f"{rest} other classes"] if rest else names


def numbers(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers of a few digits; None for what is not finite."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in np.asarray(values).tolist()]
