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
from sklearn.pipeline import make_pipeline

from discrim import model_file
from discrim.cli.exit_codes import require_apart, require_folder
from discrim.cli.options import Data, FileFormat, Reading, Scale, columns_of_data
from discrim.cli.screen import bar, say
from discrim.cli.tables_by_name import (
    comes_in_parts,
    dialect_of,
    features_of,
    files_by_name,
    labelled_in_groups,
    note_unused,
    require_options_of_parts,
)
from discrim.core.moments.gather import Gathering, Statistics
from discrim.engines.table_files import feature_files, gather_files, in_files, transform_files
from discrim.estimators.parts import fit_in_parts
from discrim.estimators.predictor import Predictor, split_steps
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import METHODS, named
from discrim.evaluation.pipelines import fit_pipeline
from discrim.evaluation.recommendation import Recommendation
from discrim.evaluation.results import ITSELF
from discrim.evaluation.wording import rows_times
from discrim.tables.preprocessing import preprocessing
from discrim.tables.read import write_table
from discrim.tables.source import TableSource
from discrim.tables.table_error import plural, quoted
from discrim.tables.warn_once import columns_in_order
from discrim.tables.writing import written_ending

DEFAULT = next(iter(METHODS))
FEATURES_FILE = typer.Option("--out", help="File for the features (.csv, .tsv, .parquet, .feather), or a folder.")


def project(
    data: Data,
    reading: Reading,
    method: Annotated[str, typer.Option("--method", "-m", help="A reduction from `discrim methods`.")] = DEFAULT,
    components: Annotated[int, typer.Option("-k", "--components", help="Number of components.")] = 2,
    classifier: Annotated[
        str,
        typer.Option(
            "--classifier",
            "-c",
            help=f"Classifier on the components, for `discrim apply --predict`: {', '.join(CLASSIFIERS)}; `{ITSELF}` "
            "is the method's own prediction.",
        ),
    ] = "",
    class_weight: Annotated[
        str, typer.Option(help="`balanced`: the classifier weights classes by their frequencies.")
    ] = "",
    scale: Scale = "standard",
    out: Annotated[Path | None, FEATURES_FILE] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="File for the fitted model, for `discrim apply`.")
    ] = None,
    loadings: Annotated[
        Path | None,
        typer.Option("--loadings", help="File for the weight of every column, once scaled, in every component."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column of groups (patients, batches): never a feature, and kept together by cross-validation.",
            autocompletion=columns_of_data,
        ),
    ] = None,
) -> None:
    """Fit a model on all rows; write its features, the model, the loadings, or all of them.

    Examples:

    - `discrim project flowers.csv --target species -k 2 --out features.csv --model flowers.discrim`

    - `discrim project flowers.csv -t species --method pca -k 3 --classifier 5-nn --model flowers.discrim`

    - `discrim project genes.parquet -t tissue --method margin-pca-mean -k 10 --out features.parquet`

    A folder of files (Parquet, Feather, CSV or .npy), a .npy file, or any file with a folder for --out, is read file
    by file in bounded memory, and its features become a folder of Parquet files; a run that was interrupted continues
    with the files that are missing.
    """
    if out is None and model is None and loadings is None:
        raise ValueError(
            "Nothing to write: name a file for the features with --out, for the model with --model, for the weights "
            "of the columns with --loadings."
        )
    require_apart({"the data": data}, {"--out": out, "--model": model, "--loadings": loadings})
    wanted = Recommendation(method, components, classifier, scale, reading.impute, class_weight or None)
    _require_possible(wanted, out, model, loadings)
    in_parts = comes_in_parts(data, out)
    if in_parts and groups is not None:
        raise ValueError(f"--groups must be used with a file that fits into memory; {data} is read in parts.")
    files = {"the features": None if in_parts else out, "the weights": loadings}
    for what, file in (files | {"the model": model}).items():
        require_folder(file, what)
    for file in files.values():
        if file is not None:
            written_ending(file)  # refuses what would only fail after the fit
    if in_parts:
        if classifier:
            raise ValueError(f"{data} must fit into memory with --classifier. Leave out --classifier, or pass a file.")
        fitted, parts = project_parts(data, reading, METHODS[method], components, scale, out)
        features, about = list(parts.features), dict[str, Any](target=parts.target)
    else:
        table, grouping = labelled_in_groups(data, reading, groups)
        fitted = fit_pipeline(wanted, table, grouping)
        features = list(table.feature_names)
        about = {"target": table.target, "impute": reading.impute, "id_column": table.id_column}
    weights = {} if loadings is None else _loadings(fitted, method)
    if model is not None:
        about |= {"feature_names": features, "method": method, "classifier": classifier, "scale": scale}
        model_file.save(fitted, model, about=about)
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


def _require_possible(wanted: Recommendation, out: Path | None, model: Path | None, loadings: Path | None) -> None:
    """Raise if the options do not fit together."""
    named(wanted.method, METHODS, "method")
    if wanted.classifier and not wanted.predicts_itself:
        named(wanted.classifier, CLASSIFIERS, "classifier")
    if wanted.class_weight not in (None, "balanced"):
        raise ValueError(f"--class-weight must be balanced; got {wanted.class_weight}.")
    if wanted.classifier and model is None:
        raise ValueError("--model must name a file with --classifier: the classifier is written to it.")
    if not wanted.reduces and (out or loadings or not wanted.classifier):
        raise ValueError(
            "-m raw keeps the columns as they are: it has no features or loadings to write. Name a --classifier and a "
            "--model, and leave out --out and --loadings."
        )


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `discrim project` wrote.")],
    data: Data,
    out: Annotated[Path, FEATURES_FILE],
    written: FileFormat,
    predict: Annotated[
        bool, typer.Option("--predict", help="Add the class, its probability, and which rows are unusual.")
    ] = False,
) -> None:
    """Compute features of new rows by a saved model, and predict their classes.

    Columns are found by name, in any order; a column of labels is not needed.

    Examples:

    - `discrim apply flowers.discrim new_flowers.csv --out new_features.csv`

    - `discrim apply flowers.discrim new_flowers.csv --predict --out predicted.csv`
    """
    require_apart({"the data": data, "the model": model}, {"--out": out})
    fitted, kept = model_file.load(model), model_file.about(model)
    names = kept.get("feature_names") or list(getattr(fitted, "feature_names_in_", []))
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{model} does not say which columns it was fitted on. Use discrim.load(path) from Python.")
    if comes_in_parts(data, out):
        if predict:
            raise ValueError(f"{data} must fit into memory with --predict. Leave out --predict, or pass a file.")
        require_options_of_parts(data, written)
        table = TableSource.open(data, features=names, dialect=dialect_of(written))
        features_in_parts(fitted, table, out)
        note_unused(data, names, written)
        return
    require_folder(out, "the features")
    X, ids = features_of(data, names, written, fills=kept.get("impute") is not None)
    columns = _columns(fitted, X)
    if not columns and not predict:
        raise ValueError(f"{model} keeps the columns as they are, so there are no features to write. Add --predict.")
    predictions = _predictions(fitted, X) if predict else {}
    named_ids = {} if ids is None else {written.id_column or kept.get("id_column") or "sample": ids}
    _require_own_names(*named_ids, *columns, *predictions)
    write_table(out, named_ids | columns | predictions)
    written_columns = rows_times(X.shape[0], len(columns), "component") if columns else plural(X.shape[0], "row")
    say(f"{written_columns}{' with predictions' if predict else ''} are in {out}.")
    note_unused(data, names, written)


def _predictions(fitted: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the predicted class of each row, its probability, and whether the row is unusual, as far as known."""
    if not hasattr(fitted, "predict"):
        raise ValueError("--predict needs a model that predicts. Fit it with `discrim project … --classifier 5-nn`.")
    with columns_in_order():
        labels = np.asarray(fitted.predict(X))
        found = {"predicted": labels}
        if hasattr(fitted, "predict_proba"):
            places = np.searchsorted(fitted.classes_, labels)
            found["probability"] = np.asarray(fitted.predict_proba(X))[np.arange(len(labels)), places]
        else:
            say("No column of probabilities: the classifier has none, and there were too few rows to estimate them.")
        if hasattr(fitted, "unusual"):
            found["unusual"] = fitted.unusual(X)
        else:
            say("No column of unusual rows: the model has no limits. Fit it with `discrim project … --classifier`.")
    if n_unusual := int(np.sum(found.get("unusual", np.array(["no"])) != "no")):
        say(f"{plural(n_unusual, 'row')} of {len(labels)} are unlike the training rows: see the column unusual.")
    return found


def _loadings(fitted: Any, method: str) -> dict[str, np.ndarray]:
    """Return the weight of each column in each component, by the components' names."""
    steps = split_steps(fitted.pipeline_)[1] if isinstance(fitted, Predictor) else [fitted[-1]]
    directions = getattr(steps[-1], "components_", None)
    if directions is None:
        raise ValueError(f"-m {method} is not linear: its columns have no weights. Leave out --loadings.")
    return dict(zip(map(str, fitted.get_feature_names_out()), np.asarray(directions), strict=True))


def _require_own_names(*names: str) -> None:
    """Refuse where ids or labels would be written over a component."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{quoted(twice)} is a component and a column beside it. Rename the column in the table.")


def _columns(fitted: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the features by name."""
    names = fitted.get_feature_names_out()
    if not len(names):
        return {}
    with columns_in_order():
        return dict(zip(map(str, names), np.asarray(fitted.transform(X)).T, strict=True))


def project_parts(
    data: str, reading: Reading, reduction: Any, components: int, scale: str, out: Path | None
) -> tuple[Any, TableSource]:
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


def features_in_parts(model: Any, table: TableSource, out: Path) -> None:
    """Write a file of features for each file of the table; those that an earlier run wrote stay."""
    names = [str(name) for name in model.get_feature_names_out()]
    _require_own_names(*names, *filter(None, [table.target]))
    seal = hashlib.sha256(model_file.FORMAT.to_bytes(model)).digest()
    with _bar("Writing", table) as moved, columns_in_order():
        n_rows = transform_files(model.transform, names, table, out, seal, moved)
    say(f"{rows_times(n_rows, len(names), 'component')} are in {out}, in {plural(len(table.parts), 'file')}.")


@contextmanager
def _bar(verb: str, table: TableSource) -> Iterator[Any]:
    """A bar in rows, with the bytes so far; nothing where nobody looks."""
    with bar(verb, table.n_rows, TimeElapsedColumn()) as update:
        seen = 0

        def moved(part: str, rows: int, n_bytes: int) -> None:
            nonlocal seen
            seen += n_bytes
            update(advance=rows, description=f"{verb} {part} ({seen / 2**20:.0f} MiB)")

        yield moved
