"""discrim project, discrim apply"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import TimeElapsedColumn
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline

from discrim import model_file
from discrim.cli.exit_codes import require_apart, require_folder
from discrim.cli.options import Data, FileFormat, Reading, Scale
from discrim.cli.screen import bar, say
from discrim.cli.tables_by_name import comes_in_parts, features_of, files_by_name, labelled
from discrim.core.moments.gather import Gathering, Statistics
from discrim.engines.table_files import FileTable, feature_files, gather_files, in_files, transform_files
from discrim.estimators.linear_map import LinearMap
from discrim.estimators.parts import fit_in_parts
from discrim.evaluation.methods import METHODS, Method, Sizes, named
from discrim.evaluation.printed import rows_times
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.preprocessing import preprocessing
from discrim.tables.read import write_table
from discrim.tables.table_error import plural, quoted
from discrim.tables.warn_once import columns_in_order
from discrim.tables.writing import written_ending

REDUCTIONS = {name: method for name, method in METHODS.items() if method.build is not None}
DEFAULT = next(iter(REDUCTIONS))
FEATURES_FILE = typer.Option("--out", help="File for the features (.csv, .tsv, .parquet, .feather), or a folder.")


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

    A folder of files (Parquet, Feather, CSV or .npy), a .npy file, or any file with a folder for --out, is worked
    through file by file, in memory that does not grow, and its features become a folder of Parquet files; a run that
    was broken off goes on with the files that are missing.
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
    in_parts = comes_in_parts(data, out)
    files = {"the features": None if in_parts else out, "the weights": loadings}
    for what, file in (files | {"the model": model}).items():
        require_folder(file, what)
    for file in files.values():
        if file is not None:
            written_ending(file)  # refuses what would only fail after the fit
    if in_parts:
        fitted, parts = project_parts(data, reading, reduction, components, scale, out)
        features, about = list(parts.features), {"target": parts.target}
    else:
        table = labelled(data, reading)
        fitted = _fitted(table, reduction, components, scale, reading.impute)
        features = list(table.feature_names)
        about = {"target": table.target, "impute": reading.impute, "id_column": table.id_column}
    weights = {} if loadings is None else _loadings(fitted, method)
    if model is not None:
        model_file.save(fitted, model, about={"feature_names": features, "method": method, "scale": scale, **about})
        say(f"The model is in {model}.")
    if out is not None and in_parts:
        features_in_parts(fitted, parts, out)
    elif out is not None:
        ids: dict[str, Any] = {} if table.ids is None or table.id_column is None else {table.id_column: table.ids}
        columns = _columns(fitted, table.X)
        _require_own_names(*ids, *columns, table.target)
        write_table(out, ids | columns | {table.target: table.y})
        say(f"{rows_times(table.n_samples, components, 'component')}, and the labels, are in {out}.")
    if loadings is not None:
        write_table(loadings, {"feature": np.array(features, dtype=object)} | weights)
        weighted = f"{plural(len(features), 'feature')} in {plural(components, 'component')}"
        say(f"The weights of {weighted} are in {loadings}.")


def _fitted(table: LabelledTable, reduction: Method, components: int, scale: str, impute: str | None) -> Any:
    """The reduction with what goes before it, fitted on all rows."""
    most = reduction.most_components(Sizes(table.n_samples, table.n_features, len(table.class_counts())))
    if not 1 <= components <= most:
        raise ValueError(f"-k {components} came, but {reduction.name} gives from 1 to {most} components on this table.")
    steps = preprocessing(scale, impute, sparse=issparse(table.X))
    model = make_pipeline(*steps, reduction.estimator(components, 0)).fit(table.X, table.y)
    if reduction.ours:
        return model
    # all others are linear, and kept as such
    return make_pipeline(*model[:-1], LinearMap.of(model[-1], table.n_features, reduction.name.replace("-", "")))


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
        if others := replace(written, delimiter=None).words:
            raise ValueError(
                f"{data} is read in parts, with --delimiter only. Leave out {' '.join(others)}, or pass a file that "
                "fits into memory and a file for --out."
            )
        table = FileTable.open(Path(data), None, features=names, delimiter=written.delimiter or ",")
        features_in_parts(fitted, table, out)
        return
    require_folder(out, "the features")
    X, ids = features_of(data, names, written, fills=kept.get("impute") is not None)
    columns = _columns(fitted, X)
    named_ids = {} if ids is None else {written.id_column or kept.get("id_column") or "sample": ids}
    _require_own_names(*named_ids, *columns)
    write_table(out, named_ids | columns)
    say(f"{rows_times(X.shape[0], len(columns), 'component')} are in {out}.")


def _loadings(fitted: Any, method: str) -> dict[str, np.ndarray]:
    """The weight of each column in each component, by the components' names."""
    directions = getattr(fitted[-1], "components_", None)
    if directions is None:
        raise ValueError(f"-m {method} is not linear: its columns have no weights. Leave out --loadings.")
    return dict(zip(map(str, fitted.get_feature_names_out()), np.asarray(directions), strict=True))


def _require_own_names(*names: str) -> None:
    """Refuse where ids or labels would be written over a component."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{quoted(twice)} is a component and a column beside it. Rename the column in the table.")


def _columns(fitted: Any, X: Any) -> dict[str, np.ndarray]:
    """The features by name."""
    names = fitted.get_feature_names_out()
    with columns_in_order():
        return dict(zip(map(str, names), np.asarray(fitted.transform(X)).T, strict=True))


def project_parts(
    data: str, reading: Reading, reduction: Any, components: int, scale: str, out: Path | None
) -> tuple[Any, FileTable]:
    """The model, fitted in one pass over all files (more where there are very many columns), and the table."""
    if not reduction.ours:
        raise ValueError(
            f"{data} is read in parts, by a reduction of discrim. Choose one of those, or pass a file that fits into "
            "memory and a file for --out."
        )
    model = make_pipeline(*preprocessing(scale), reduction.estimator(components, 0))
    table = files_by_name(data, reading)
    if out is not None:
        feature_files(table, out)  # refuses what would only fail after the fit

    def gathered(gathering: Gathering) -> Statistics:
        with _bar("Gathering", table) as moved:
            total = gather_files(gathering, table, moved)
        size = rows_times(total.n_rows, total.n_features, "column")
        say(f"{size} in {plural(len(total.parts), 'file')} were gathered.")
        return total

    return fit_in_parts(model, replace(in_files(table), gather=gathered), reading.max_bytes), table


def features_in_parts(model: Any, table: FileTable, out: Path) -> None:
    """Write a file of features for each file of the table; those that an earlier run wrote stay."""
    names = [str(name) for name in model.get_feature_names_out()]
    _require_own_names(*names, *filter(None, [table.target]))
    seal = hashlib.sha256(model_file.FORMAT.to_bytes(model)).digest()
    with _bar("Writing", table) as moved, columns_in_order():
        n_rows = transform_files(model.transform, names, table, out, seal, moved)
    say(f"{rows_times(n_rows, len(names), 'component')} are in {out}, in {plural(len(table.parts()), 'file')}.")


@contextmanager
def _bar(verb: str, table: FileTable) -> Iterator[Any]:
    """A bar in rows, with the bytes so far; nothing where nobody looks."""
    with bar(verb, table.n_rows_if_known(), TimeElapsedColumn()) as update:
        seen = 0

        def moved(part: str, rows: int, n_bytes: int) -> None:
            nonlocal seen
            seen += n_bytes
            update(advance=rows, description=f"{verb} {part} ({seen / 2**20:.0f} MiB)")

        yield moved
