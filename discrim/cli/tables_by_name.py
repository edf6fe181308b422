"""DATA on the command line: a file, or the name of a data set in the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discrim.cli.options import FileFormat, Reading
from discrim.cli.screen import say
from discrim.data import catalogue
from discrim.data.labelled_table import LabelledTable
from discrim.data.tables import read_features, read_table


def is_file(data: str) -> bool:
    """A name with an ending or a folder in it, or one that is there, is a file; any other a name of the catalogue."""
    return bool(Path(data).suffix) or Path(data).name != data or Path(data).exists()


def name_of(data: str) -> str:
    """What results call the data: the file's name without its endings."""
    return Path(data).name.split(".")[0] or data if is_file(data) else data


def labelled(data: str, reading: Reading) -> LabelledTable:
    """The labelled table that DATA stands for."""
    if is_file(data):
        return read_table(data, reading.target, one_hot=reading.one_hot, drop=reading.drop or (), **_format(reading))
    if reading.target is not None:
        raise ValueError(f"{data!r} is a data set of the catalogue and has its labels. Leave out --target.")
    return catalogue.load(data)


def say_where_labels_are(table: LabelledTable, reading: Reading, data: str) -> None:
    """A column that was not named but taken for the labels is named."""
    if reading.target is None and is_file(data):
        say(f"Labels: {table.target!r}, the last column. Name another with --target.")


def features(data: str, feature_names: list[str], written: FileFormat) -> Any:
    """The named features of new rows."""
    if is_file(data):
        return read_features(data, feature_names, **_format(written))
    table = catalogue.load(data)
    place = {name: at for at, name in enumerate(table.feature_names)}
    lacking = [name for name in feature_names if name not in place]
    if lacking:
        raise ValueError(f"{data} lacks {len(lacking)} of the model's columns, such as {lacking[0]!r}.")
    return table.X[:, [place[name] for name in feature_names]]


def _format(written: FileFormat) -> dict[str, Any]:
    return {"delimiter": written.delimiter, "decimal": written.decimal, "encoding": written.encoding}
