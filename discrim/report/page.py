"""Results → one HTML file that holds all it needs: words and tables as text, values as JSON, and what draws them.

Nothing in the page leaves it: its content policy allows the page's own scripts by their hash and no connection at all.
Names come from files, so they are escaped by the templates, and by `payload.as_json` where they are values.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from discrim.data.columnar import MissingExtraError
from discrim.data.writing import whole_file
from discrim.evaluation.compare import Comparison
from discrim.evaluation.methods import METHODS
from discrim.evaluation.summary import METRICS, Line
from discrim.report import payload
from discrim.report.answer import MARKS, answer_of, in_components, p_in_words, points
from discrim.report.critical_difference import CriticalDifferenceValues
from discrim.report.refits import Allotment, Refit, refits
from discrim.report.results import Results

SHORT = 60  # characters of a name in running text


@dataclass(frozen=True)
class Origin:
    """Where results come from, for what to type next: the command that was typed, the data's name and options in it."""

    command: str = ""
    data: str = ""
    reading: tuple[str, ...] = ()


def write_report(
    found: Comparison | Sequence[Results], path: str | os.PathLike[str], origin: Origin | None = None
) -> None:
    """Write the page; the file appears whole or not at all."""
    text = page([Results.of(found)] if isinstance(found, Comparison) else found, origin or Origin())
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def page(results: Sequence[Results], origin: Origin) -> str:
    """The page as text."""
    if not results:
        raise ValueError("There are no results to report. Run discrim compare first.")
    allotment = Allotment.among(len(results))
    looks = [refits(one, allotment) for one in results]
    overall = ranks_by_classifier(results)
    values = {
        "blocks": [payload.block(one, shown) for one, (shown, _) in zip(results, looks, strict=True)],
        "ranks": [payload.ranks(one) for one in overall.values()],
    }
    n_datasets = len({one.setting.data for one in results})
    plotly, script = _plotly(), _own("report.js")
    return _template().render(
        title=results[0].label if len(results) == 1 else f"{n_datasets} data sets",
        n_datasets=n_datasets,
        blocks=[_words(one, *look, origin) for one, look in zip(results, looks, strict=True)],
        overall=overall,
        origin=origin,
        values=payload.as_json(values),
        style=_own("report.css"),
        plotly=plotly,
        script=script,
        policy=content_policy([plotly, script]),
    )


def content_policy(scripts: Sequence[str]) -> str:
    """Nothing but these scripts, the page's own style, and pictures that the page itself makes."""
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def ranks_by_classifier(results: Sequence[Results]) -> dict[str, CriticalDifferenceValues]:
    """Mean ranks over the data sets for every classifier; empty for a single data set.

    A data set that was tried in several ways counts once, by its first.
    """
    by_data: dict[str, Results] = {}
    for one in results:
        by_data.setdefault(one.setting.data, one)
    rows = {name: one.rows for name, one in by_data.items()}
    classifiers = dict.fromkeys(line.classifier for one in results for line in one.lines)
    found = {
        name: CriticalDifferenceValues.of_rows(rows, name, metric=results[0].metric) for name in sorted(classifiers)
    }
    return {name: values for name, values in found.items() if values is not None}


def _words(results: Results, shown: Sequence[Refit], refused: Sequence[str], origin: Origin) -> dict[str, Any]:
    """What the template says of one data set."""
    lines = results.lines
    return {
        "results": results,
        "answer": answer_of(results, origin.data, origin.reading),
        "rows": list(zip(lines, _tracks(lines), strict=True)),
        "metric": METRICS[results.metric],
        "classifiers": list(dict.fromkeys(line.classifier for line in lines)),
        "shown": shown,
        "refused": refused,
        "glosses": {name: METHODS[name].gloss for name in {line.method for line in lines} & METHODS.keys()},
    }


def _tracks(lines: Sequence[Line]) -> list[list[float]]:
    """Where low end, high end and mean of each line lie between the lowest and the highest end of all, in percent."""
    ends = [(max(one.low, 0.0), min(one.high, 1.0)) if one.n_splits > 1 else (one.mean, one.mean) for one in lines]
    low, high = min((end[0] for end in ends), default=0.0), max((end[1] for end in ends), default=1.0)
    width = (high - low) or 1.0
    places = [(*end, line.mean) for end, line in zip(ends, lines, strict=True)]
    return [[round(100 * (value - low) / width, 2) for value in place] for place in places]


def _template() -> Any:
    jinja2 = _needed("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("discrim.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"p": p_in_words, "points": points, "components": in_components, "shortened": shortened}
    environment.globals |= {"marks": MARKS}
    return environment.get_template("report.html")


def require_libraries() -> None:
    """Refuse where a page could not be written for want of a library, before results are waited for."""
    for module in ("jinja2", "plotly"):
        _needed(module)


def shortened(text: str, most: int = SHORT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _plotly() -> str:
    script = str(_needed("plotly.offline").get_plotlyjs())
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _own(name: str) -> str:
    return (files("discrim.report") / "templates" / name).read_text(encoding="utf-8")


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"A report needs {module.partition('.')[0]}, which is not installed. Install it with pip install "
            f"'discrim[report]'."
        ) from error


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
