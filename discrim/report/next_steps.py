"""What to type to get the recommended features, in a terminal or in Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from discrim.engines.table_files import is_read_in_parts
from discrim.evaluation.methods import METHODS
from discrim.evaluation.result import Cell
from discrim.tables.preprocessing import preprocessing


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
    written = ", ".join(map(_written, steps))
    if len(steps) > 1:
        imports.add("from sklearn.pipeline import make_pipeline")
        written = f"make_pipeline({written})"
    lines = [*sorted(imports), f"from {place} import {', '.join(names)}", ""]
    return "\n".join([*lines, f"model = {written}", "features = model.fit(X, y).transform(X)"])


def _written(estimator: Any) -> str:
    """The estimator as code, on one line, with the parameters that are not its defaults."""
    return " ".join(repr(estimator).split())
