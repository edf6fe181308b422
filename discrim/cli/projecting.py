"""Commands `discrim project` and `discrim apply`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import TimeElapsedColumn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from discrim import model_file
from discrim.cli.options import (
    Data,
    FileFormat,
    Groups,
    Reading,
    Scale,
    comes_in_parts,
    dialect_of,
    features_of,
    files_by_name,
    labelled_in_groups,
    note_unused,
    options_of_rows,
    require_options_of_parts,
)
from discrim.cli.screen import bar, require_apart, require_folder, say
from discrim.core.moments.gather import Gathering, Statistics
from discrim.engines.table_files import (
    feature_files,
    gather_files,
    in_files,
    reduced_rows,
    sampled_rows,
    transform_files,
)
from discrim.estimators.parts import fit_in_parts, gathering_of
from discrim.estimators.pipeline import folded_transform
from discrim.estimators.predictor import Predictor, split_steps
from discrim.evaluation.classifiers import CLASSIFIERS, named, preprocessing
from discrim.evaluation.methods import METHODS, Recommendation, build_pipeline, fit_pipeline
from discrim.evaluation.results import ITSELF
from discrim.evaluation.wording import rows_times
from discrim.tables.source import TableSource
from discrim.tables.table_error import are, plural, quoted
from discrim.tables.writing import write_table, written_ending
from discrim.warn_once import columns_in_order

DEFAULT = next(iter(METHODS))
CALIBRATED = 20_000  # rows of a table in parts, with which probabilities and limits are estimated
FEATURES_FILE = typer.Option("--out", help="File for the features (.csv, .tsv, .parquet, .feather), or a folder.")


@dataclass(frozen=True)
class Pipeline:
    """Options of a model: the reduction, the classifier on its components, and the scaling."""

    method: Annotated[str, typer.Option("--method", "-m", help="A reduction from `discrim methods`.")] = DEFAULT
    components: Annotated[int, typer.Option("-k", "--components", help="Number of components.")] = 2
    classifier: Annotated[
        str,
        typer.Option(
            "--classifier",
            "-c",
            help=f"Classifier on the components, for `discrim apply --predict`: {', '.join(CLASSIFIERS)}; `{ITSELF}` "
            "is the method's own prediction.",
        ),
    ] = ""
    class_weight: Annotated[
        str, typer.Option(help="`balanced`: the classifier weights classes by their frequencies.")
    ] = ""
    scale: Scale = "standard"

    def recommendation(self, impute: str | None) -> Recommendation:
        """Return the pipeline with these options."""
        class_weight = self.class_weight or None
        return Recommendation(self.method, self.components, self.classifier, self.scale, impute, class_weight)


def project(
    data: Data,
    reading: Reading,
    pipeline: Pipeline,
    out: Annotated[Path | None, FEATURES_FILE] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="File for the fitted model, for `discrim apply`.")
    ] = None,
    loadings: Annotated[
        Path | None,
        typer.Option("--loadings", help="File for the loadings: the weight of each (scaled) column in each component."),
    ] = None,
    groups: Groups = None,
) -> None:
    """Fit a model on all rows, and write its features, the model or the loadings.

    Examples:

    - `discrim project flowers.csv --target species -k 2 --out features.csv --model flowers.discrim`

    - `discrim project flowers.csv -t species --method pca -k 3 --classifier 5-nn --model flowers.discrim`

    - `discrim project genes.parquet -t tissue --method margin-pca-mean -k 10 --out features.parquet`

    With a folder for --out, or for a table above 1 GiB, files are read one after the other in bounded memory, and the
    features become a folder of Parquet files; a run that was interrupted continues with the files that are missing.
    """
    if out is None and model is None and loadings is None:
        raise ValueError(
            "Nothing to write: name a file for the features with --out, for the model with --model, for the weights "
            "of the columns with --loadings."
        )
    require_apart({"the data": data}, {"--out": out, "--model": model, "--loadings": loadings})
    wanted = pipeline.recommendation(reading.impute)
    _require_possible(wanted, out, model, loadings)
    needs_rows = groups is not None or bool(options_of_rows(reading)) or not METHODS[wanted.method].ours
    in_parts = comes_in_parts(data, out, needs_rows=needs_rows)
    if in_parts and groups is not None:
        raise ValueError(f"--groups must be used with a table that fits into memory; {data} is read in parts.")
    files = {"the features": None if in_parts else out, "the weights": loadings}
    for what, file in (files | {"the model": model}).items():
        require_folder(file, what)
    for file in files.values():
        if file is not None:
            written_ending(file)  # raises before the fit
    if in_parts:
        fitted, parts = project_parts(data, reading, wanted, out)
        features, about = list(parts.features), dict[str, Any](target=parts.target, id_column=parts.id_column)
    else:
        table, grouping = labelled_in_groups(data, reading, groups)
        fitted = fit_pipeline(wanted, table, grouping)
        features = list(table.feature_names)
        about = {"target": table.target, "impute": reading.impute, "id_column": table.id_column}
    weights = {} if loadings is None else _loadings(fitted, wanted.method)
    if model is not None:
        about |= {"feature_names": features, "method": wanted.method}
        about |= {"classifier": wanted.classifier, "scale": wanted.scale}
        model_file.save(fitted, model, about=about)
        say(f"The model is in {model}.")
    if out is not None and in_parts:
        features_in_parts(fitted, parts, out)
    elif out is not None:
        ids: dict[str, Any] = {} if table.ids is None or table.id_column is None else {table.id_column: table.ids}
        columns = _types_of_columns(fitted, predict=False)
        _require_own_names(*ids, *columns, table.target)
        found = dict(zip(columns, _columns(fitted, table.X, columns), strict=True))
        write_table(out, ids | found | {table.target: table.y})
        say(f"{rows_times(table.n_samples, wanted.n_components, 'component')}, and the labels, are in {out}.")
    if loadings is not None:
        write_table(loadings, {"feature": np.array(features, dtype=object)} | weights)
        weighted = f"{plural(len(features), 'feature')} in {plural(wanted.n_components, 'component')}"
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
    extra = [option for option, file in (("--out", out), ("--loadings", loadings)) if file]
    if not wanted.reduces and (extra or not wanted.classifier):
        fit = [] if wanted.classifier else ["name a --classifier and a --model"]
        advice = ", and ".join([*fit, *([f"leave out {' and '.join(extra)}"] if extra else [])])
        raise ValueError(
            "--method raw keeps the columns as they are: it has no features or loadings to write. "
            f"{advice[0].upper()}{advice[1:]}."
        )


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `discrim project` wrote.")],
    data: Data,
    out: Annotated[Path, FEATURES_FILE],
    written: FileFormat,
    predict: Annotated[
        bool, typer.Option("--predict", help="Add the predicted class, its probability, and a flag for unusual rows.")
    ] = False,
) -> None:
    """Compute the features of new rows with a saved model, and predict their classes.

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
    columns = _types_of_columns(fitted, predict=predict)
    if not columns:
        raise ValueError(f"{model} keeps the columns as they are, so there are no features to write. Add --predict.")
    fills = kept.get("impute") is not None
    if comes_in_parts(data, out):
        require_options_of_parts(data, written)
        opened: dict[str, Any] = {"id_column": written.id_column, "keeps_missing": fills}
        table = TableSource.open(data, features=names, dialect=dialect_of(written), **opened)
        features_in_parts(fitted, table, out, columns)
    else:
        require_folder(out, "the features")
        X, ids = features_of(data, names, written, fills=fills)
        named_ids = {} if ids is None else {written.id_column or kept.get("id_column") or "sample": ids}
        _require_own_names(*named_ids, *columns)
        found = dict(zip(columns, _columns(fitted, X, columns), strict=True))
        write_table(out, named_ids | found)
        n_components = len(fitted.get_feature_names_out())
        size = rows_times(X.shape[0], n_components, "component") if n_components else plural(X.shape[0], "row")
        say(f"{size}{' with predictions' if predict else ''} are in {out}.")
        _note_unusual(found.get("unusual", np.array([])))
    note_unused(data, names, written)


def _types_of_columns(fitted: Any, *, predict: bool) -> dict[str, str]:
    """Return the Arrow type of each column that is written: components, and what the model predicts."""
    types = dict.fromkeys(map(str, fitted.get_feature_names_out()), "float64")
    if not predict:
        return types
    if not hasattr(fitted, "predict"):
        raise ValueError("--predict needs a model that predicts. Fit it with `discrim project … --classifier 5-nn`.")
    types["predicted"] = {"b": "bool_", "i": "int64", "u": "int64", "f": "float64"}.get(
        fitted.classes_.dtype.kind, "string"
    )
    if hasattr(fitted, "predict_proba"):
        types["probability"] = "float64"
    else:
        say(
            "The column probability is left out: the classifier has no probabilities, and there were too few rows to "
            "estimate them."
        )
    if hasattr(fitted, "unusual"):
        types["unusual"] = "string"
    else:
        say("The column unusual is left out: only models fitted with `discrim project … --classifier` have its limits.")
    return types


def _columns(
    fitted: Any, X: Any, types: Mapping[str, str], transform: Callable[[Any], Any] | None = None
) -> list[np.ndarray]:
    """Return components of rows, their predicted class, its probability, and whether they are unusual."""
    with columns_in_order():
        reduces = len(fitted.get_feature_names_out())
        found = list(np.asarray((transform or fitted.transform)(X)).T) if reduces else []
        if "predicted" in types:
            found.append(np.asarray(fitted.predict(X)))
        if "probability" in types:
            places = np.searchsorted(fitted.classes_, found[-1])
            found.append(np.asarray(fitted.predict_proba(X))[np.arange(len(places)), places])
        if "unusual" in types:
            found.append(fitted.unusual(X))
    return found


def _note_unusual(unusual: np.ndarray) -> None:
    if n_unusual := int(np.sum(unusual != "no")):
        say(
            f"{n_unusual} of {plural(len(unusual), 'row')} {are(n_unusual)} unlike the training rows: see the column "
            "unusual."
        )


def _loadings(fitted: Any, method: str) -> dict[str, np.ndarray]:
    """Return the weight of each column in each component, by the components' names."""
    steps = split_steps(fitted.pipeline_)[1] if isinstance(fitted, Predictor) else [fitted[-1]]
    directions = getattr(steps[-1], "components_", None)
    if directions is None:
        raise ValueError(f"--method {method} is not linear: its columns have no weights. Leave out --loadings.")
    return dict(zip(map(str, fitted.get_feature_names_out()), np.asarray(directions), strict=True))


def _require_own_names(*names: str) -> None:
    """Raise if ids or labels have the name of a component."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"Output columns must have different names; got {quoted(twice)} twice. Rename the column.")


def project_parts(data: str, reading: Reading, wanted: Recommendation, out: Path | None) -> tuple[Any, TableSource]:
    """Return the model, fitted in one pass over all files (more if there are very many columns), and the table."""
    reduction = METHODS[wanted.method]
    if not reduction.ours:
        raise ValueError(
            f"--method must be a reduction of discrim, because {data} is read in parts; got {wanted.method}. Choose "
            "another, or name a file for --out if the table fits into memory."
        )
    pipeline = build_pipeline(wanted)  # refuses what would only fail after the fit
    reducing = make_pipeline(*preprocessing(wanted.scale), reduction.estimator(wanted.n_components, 0))
    try:
        gathering_of(reducing)
    except TypeError:  # a method that needs all rows
        raise ValueError(
            f"--method must be one that can be fitted in parts, because {data} is read in parts; got {wanted.method}. "
            "Choose another, or name a file for --out if the table fits into memory."
        ) from None
    table = files_by_name(data, reading)
    if out is not None:
        feature_files(table, out)  # refuses what would only fail after the fit

    def gathered(gathering: Gathering) -> Statistics:
        with _bar("Gathering", table) as moved:
            total = gather_files(table, gathering, moved)
        size = rows_times(total.n_rows, total.n_features, "column")
        say(f"{size} in {plural(len(total.parts), 'file')} were gathered.")
        return total

    fitted = fit_in_parts(reducing, replace(in_files(table), gather=gathered), reading.max_bytes)
    if not wanted.classifier:
        return fitted, table
    if len(pipeline) > len(fitted):
        with columns_in_order():
            Z, y = reduced_rows(table, fitted.transform, reading.max_bytes)
        name, classifier = pipeline.steps[-1]
        fitted.steps.append((name, classifier.fit(Z, y)))
    X, y, n_rows = sampled_rows(table, CALIBRATED, reading.max_bytes)
    if len(y) < n_rows:
        say(f"Probabilities and limits are estimated with {len(y):,} of the {n_rows:,} rows.")
    with columns_in_order():
        return Predictor(clone(pipeline)).set_fitted(fitted, X, y), table


def features_in_parts(model: Any, table: TableSource, out: Path, columns: Mapping[str, str] | None = None) -> None:
    """Write features and predictions of each file of the table to a file; those that an earlier run wrote stay."""
    types = _types_of_columns(model, predict=False) if columns is None else columns
    _require_own_names(*types, *filter(None, [table.id_column, table.target]))
    seal = hashlib.sha256(model_file.FORMAT.to_bytes(model)).digest()
    transform = None if isinstance(model, Predictor) or table.keeps_missing else folded_transform(model)
    with _bar("Writing", table) as moved:
        n_rows = transform_files(table, lambda X: _columns(model, X, types, transform), types, out, seal, moved)
    size = rows_times(n_rows, len(model.get_feature_names_out()), "component")
    also = " with predictions" if "predicted" in types else ""
    say(f"{size}{also} are in {out}, in {plural(len(table.parts), 'file')}.")


@contextmanager
def _bar(verb: str, table: TableSource) -> Iterator[Any]:
    """Show a bar in rows with the bytes read, if stderr is a terminal."""
    with bar(verb, table.n_rows, TimeElapsedColumn()) as update:
        seen = 0

        def moved(part: str, rows: int, n_bytes: int) -> None:
            nonlocal seen
            seen += n_bytes
            update(advance=rows, description=f"{verb} {part} ({seen / 2**20:.0f} MiB)")

        yield moved
