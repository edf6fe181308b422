"""Commands and code that fit the recommended pipeline and predict new rows with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from discrim.engines.table_files import is_large
from discrim.evaluation.methods import METHODS
from discrim.evaluation.pipelines import Recommendation, build_pipeline
from discrim.evaluation.trial import numbers_of_folds

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
    pipeline, lines, last = f"make_pipeline({', '.join(map(_written, steps))})", [], []
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


def _written(estimator: Any) -> str:
    """Return the estimator as code, on one line, with the parameters that are not its defaults."""
    return " ".join(repr(estimator).split())
