"""discrim project, discrim apply"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline

from discrim.cli.exit_codes import ending_cleanly
from discrim.cli.options import Data, FileFormat, Reading, Scale, with_options
from discrim.cli.output_files import require_apart
from discrim.cli.projecting_parts import apply_parts, comes_in_parts, features_in_parts, project_parts
from discrim.cli.screen import say
from discrim.cli.tables_by_name import features, labelled, say_where_labels_are
from discrim.data.preprocessing import preprocessing
from discrim.data.tables import write_table
from discrim.evaluation.methods import METHODS, Sizes, named
from discrim.reducers import model_file
from discrim.reducers.linear_map import LinearMap

REDUCTIONS = {name: method for name, method in METHODS.items() if method.build is not None}
DEFAULT = next(iter(REDUCTIONS))
FEATURES_FILE = typer.Option("--out", help="File for the features (.csv, .tsv, .parquet, .feather), or a folder.")


@ending_cleanly
@with_options
def project(
    data: Data,
    reading: Reading,
    method: Annotated[str, typer.Option("--method", "-m", help="A reduction from `discrim methods`.")] = DEFAULT,
    components: Annotated[int, typer.Option("-k", "--components", help="How many components.")] = 2,
    scale: Scale = "standard",
    out: Annotated[Path | None, FEATURES_FILE] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="File for the fitted model, for `discrim apply`.")
    ] = None,
    loadings: Annotated[
        Path | None,
        typer.Option("--loadings", help="File for the weight of every column, once scaled, in every component."),
    ] = None,
) -> None:
    """Fit one reduction on all rows; write the features, the model, the loadings, or all of them.

    Examples:

    - `discrim project flowers.csv --target species -k 2 --out features.csv --model flowers.discrim`

    - `discrim project genes.parquet -t tissue --method margin-pca-mean -k 10 --out features.parquet`

    A folder of files (Parquet, Feather or CSV), or a folder for --out, is worked through file by file, in memory that
    does not grow; a run that was broken off goes on with the files that are missing.
    """
    if out is None and model is None and loadings is None:
        raise ValueError(
            "Nothing to write: name a file for the features with --out, for the model with --model, for the weights "
            "of the columns with --loadings."
        )
    require_apart({"the data": data}, {"--out": out, "--model": model, "--loadings": loadings})
    if method == "raw":
        raise ValueError("-m raw are the columns of the table as they are: there is nothing to fit or to write.")
    reduction = named(method, REDUCTIONS, "reduction")
    if comes_in_parts(data, out):
        found, parts = project_parts(data, reading, reduction, components, scale)
        if model is not None:
            about = {"feature_names": list(parts.features), "target": parts.target, "method": method, "scale": scale}
            model_file.save(found, model, about=about)
            say(f"The model is in {model}.")
        if out is not None:
            features_in_parts(found, [str(name) for name in found.get_feature_names_out()], parts, out)
        if loadings is not None:
            weights = {"feature": np.array(parts.features, dtype=object)} | _loadings(found, method)
            write_table(loadings, weights)
        return
    table = labelled(data, reading)
    say_where_labels_are(table, reading, data)
    most = reduction.most_components(Sizes(table.n_samples, table.n_features, len(table.class_counts())))
    if not 1 <= components <= most:
        raise ValueError(f"-k {components} came, but {method} gives from 1 to {most} components on this table.")
    steps = preprocessing(scale, reading.impute, sparse=issparse(table.X))
    fitted = make_pipeline(*steps, reduction.estimator(components, 0)).fit(table.X, table.y)
    if not reduction.ours:  # all of them are linear, and kept as such
        fitted = make_pipeline(*fitted[:-1], LinearMap.of(fitted[-1], table.n_features, method.replace("-", "")))
    weights = {} if loadings is None else _loadings(fitted, method)
    if model is not None:
        kept = {
            "feature_names": list(table.feature_names),
            "target": table.target,
            "method": method,
            "scale": scale,
            "impute": reading.impute,
            "id_column": table.id_column,
        }
        model_file.save(fitted, model, about=kept)
        say(f"The model is in {model}.")
    if out is not None:
        named_ids: dict[str, Any] = {} if table.ids is None or table.id_column is None else {table.id_column: table.ids}
        write_table(out, named_ids | _columns(fitted, table.X) | {table.target: table.y})
        say(f"{table.n_samples} rows × {components} components, and the labels, are in {out}.")
    if loadings is not None:
        write_table(loadings, {"feature": np.array(table.feature_names, dtype=object)} | weights)
        say(f"The weights of {table.n_features} features in {components} components are in {loadings}.")


@ending_cleanly
@with_options
def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `discrim project` wrote.")],
    data: Data,
    out: Annotated[Path, FEATURES_FILE],
    written: FileFormat,
) -> None:
    """Features of new rows by a saved model; columns are found by name, in any order, labels or not.

    Example:

    - `discrim apply flowers.discrim new_flowers.csv --out new_features.csv`
    """
    require_apart({"the data": data, "the model": model}, {"--out": out})
    fitted, kept = model_file.load(model), model_file.about(model)
    names = kept.get("feature_names") or list(getattr(fitted, "feature_names_in_", []))
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{model} does not say which columns it was fitted on. Use discrim.load(path) from Python.")
    if comes_in_parts(data, out):
        apply_parts(fitted, names, data, out, written)
        return
    X, ids = features(data, names, written, fills=kept.get("impute") is not None)
    columns = _columns(fitted, X)
    named_ids = {} if ids is None else {written.id_column or kept.get("id_column") or "sample": ids}
    write_table(out, named_ids | columns)
    say(f"{X.shape[0]} rows × {len(columns)} components are in {out}.")


def _loadings(fitted: Any, method: str) -> dict[str, np.ndarray]:
    """The weight of each column in each component, by the components' names."""
    directions = getattr(fitted[-1], "components_", None)
    if directions is None:
        raise ValueError(f"-m {method} is not linear: its columns have no weights. Leave out --loadings.")
    return dict(zip(map(str, fitted.get_feature_names_out()), np.asarray(directions), strict=True))


def _columns(fitted: Any, X: Any) -> dict[str, np.ndarray]:
    """The features by name."""
    names = fitted.get_feature_names_out()
    return dict(zip(map(str, names), np.asarray(fitted.transform(X)).T, strict=True))
