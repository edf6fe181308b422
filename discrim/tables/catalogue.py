"""Data sets by name: those of the papers and those built into scikit-learn.

Where a data set is looked for, in this order:
1. scikit-learn, if it is built in
2. the folder named by the environment variable DISCRIM_DATA: <name>.csv.gz, <name>.csv or <name>.npz, labels
   in the last column (.npz: in the array target)
3. the cache folder
4. OpenML, if it is there in the form needed; the download is checked and kept in the cache folder

Whatever the place, a table that is not the catalogue's (size, class counts, content) is refused. A download whose
content is not known (no sha256 in the catalogue) takes DISCRIM_UNVERIFIED=1 in the environment.
"""

from __future__ import annotations

import os
import sys
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import datasets

from discrim.tables.archive import write_archive
from discrim.tables.labelled_table import LabelledTable, coded, label_array
from discrim.tables.read import read_table
from discrim.tables.table_error import meant, plural, quoted
from discrim.tables.writing import whole_file

_ENDINGS = (".csv.gz", ".csv", ".npz")


class CatalogueError(ValueError):
    """A name that is not in the catalogue, or a data set that is nowhere or not what it should be."""


@dataclass(frozen=True)
class DataSet:
    """Facts about a data set. Sizes and counts are empty if versions differ, sha256 if it is unknown."""

    name: str
    title: str
    origin: str
    n_samples: int | None = None
    n_features: int | None = None
    classes: Mapping[str, int] = field(default_factory=dict)
    openml: int | None = None
    prepare: str = ""
    sklearn: str = ""
    sha256: str = ""
    note: str = ""
    papers: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def downloadable(self) -> bool:
        """True if OpenML has it in the form needed, without preparation."""
        return self.openml is not None and not self.prepare


@dataclass(frozen=True)
class Location:
    """Place of a data set, or what to do if it is missing."""

    kind: Literal["scikit-learn", "folder", "cache", "openml", "absent"]
    place: str

    @property
    def here(self) -> bool:
        """True if it is on this machine."""
        return self.kind in ("scikit-learn", "folder", "cache")


@cache
def entries() -> tuple[DataSet, ...]:
    """Return all data sets, by name."""
    listed = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    for facts in listed.values():
        facts |= {key: tuple(facts[key]) for key in ("papers", "aliases") if key in facts}
    return tuple(DataSet(name, **facts) for name, facts in sorted(listed.items()))


def entry(name: str) -> DataSet:
    """Return the data set of this name or alias."""
    known = {alias: listed for listed in entries() for alias in (listed.name, *listed.aliases)}
    if name in known:
        return known[name]
    near = meant(name, sorted(known), "Known are", most=len(known))
    raise CatalogueError(f"No data set is called {name!r}. {near} A file is read by its path, such as {name}.csv.")


def where(name: str) -> Location:
    """Return the place from which `load` would take the data set."""
    wanted = entry(name)
    if wanted.sklearn:
        return Location("scikit-learn", f"sklearn.datasets.{wanted.sklearn}")
    if (folder := data_folder()) is not None and (found := _file_in(folder, wanted)):
        return Location("folder", str(found))
    if found := _file_in(cache_folder(), wanted):
        return Location("cache", str(found))
    if wanted.downloadable:
        return Location("openml", f"OpenML data set {wanted.openml}")
    return Location("absent", _advice(wanted))


def load(name: str, *, download: bool = True) -> LabelledTable:
    """Load and check the data set of this name; with `download=False`, only if it is on this machine."""
    wanted, place = entry(name), where(name)
    if place.kind == "scikit-learn":
        table = _bundled(wanted)
    elif place.kind in ("folder", "cache"):
        table = read_table(place.place, None)
    elif place.kind == "openml" and download:
        if not wanted.sha256 and os.environ.get("DISCRIM_UNVERIFIED") != "1":
            raise CatalogueError(
                f"The data set {wanted.name!r} is not on this machine, and no checksum is known to tell whether a "
                f"download is the right one. Set DISCRIM_UNVERIFIED=1 to download it all the same. {_advice(wanted)}"
            )
        table = _downloaded(wanted)
    else:
        raise CatalogueError(f"The data set {wanted.name!r} is not on this machine. {_advice(wanted)}")
    _require_same(wanted, table, place)
    if place.kind == "openml":
        _keep(wanted, table)
    return table


def data_folder() -> Path | None:
    """Return the folder of the user's own data sets, if DISCRIM_DATA names one."""
    named = os.environ.get("DISCRIM_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Return the folder for downloads: XDG_CACHE_HOME or the platform's own folder for caches."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "discrim"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "discrim" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "discrim"
    return Path.home() / ".cache" / "discrim"


def _file_in(folder: Path, wanted: DataSet) -> Path | None:
    names = (wanted.name, *wanted.aliases)
    candidates = (folder / f"{name}{ending}" for name in names for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def _advice(wanted: DataSet) -> str:
    """Return how to get a data set that is not there."""
    folder = data_folder()
    if folder is None:
        do = f"Save it as {wanted.name}.csv.gz, labels in the last column, in a folder named by DISCRIM_DATA"
    elif not folder.is_dir():
        do = f"DISCRIM_DATA names {folder}, which is no folder. Make it, and save {wanted.name}.csv.gz in it"
    else:
        do = f"Save it as {wanted.name}.csv.gz, labels in the last column, in {folder}"
    source = f"Source: {wanted.origin}."
    if wanted.openml is not None and wanted.prepare:
        source = f"Source: {wanted.origin}; OpenML data set {wanted.openml}, but {wanted.prepare}."
    return f"{do}. {source}"


def _bundled(wanted: DataSet) -> LabelledTable:
    bunch = getattr(datasets, wanted.sklearn)()
    names = [str(name) for name in bunch.target_names]
    return LabelledTable(
        np.ascontiguousarray(bunch.data, dtype=np.float64),
        np.array([names[code] for code in bunch.target]),
        tuple(str(name) for name in bunch.feature_names),
        "target",
        f"sklearn.datasets.{wanted.sklearn}",
    )


def _downloaded(wanted: DataSet) -> LabelledTable:
    source = f"OpenML data set {wanted.openml}"
    try:
        bunch = datasets.fetch_openml(data_id=wanted.openml, as_frame=False, parser="liac-arff", cache=False)
    except (OSError, ValueError) as error:
        raise CatalogueError(f"{source} ({wanted.name}) could not be downloaded: {error}. {_advice(wanted)}") from error
    worded = [name for name in bunch.feature_names if name in (bunch.categories or {})]
    if worded:
        raise CatalogueError(f"{source} is not the {wanted.name} expected: {quoted(worded)} hold text, not numbers.")
    X: Any = csr_array(bunch.data) if issparse(bunch.data) else np.asarray(bunch.data)
    X = X.astype(np.float64)
    if not np.isfinite(X.data if issparse(X) else X).all():
        raise CatalogueError(f"{source} is not the {wanted.name} expected: some of its values are missing.")
    y = label_array(*coded([str(label) for label in bunch.target]), "target", Path(source))
    return LabelledTable(X, y, tuple(str(name) for name in bunch.feature_names), "target", source)


def _require_same(wanted: DataSet, table: LabelledTable, place: Location) -> None:
    """Raise if a table is not the one of the catalogue. Class names may differ, counts may not."""
    differences = []
    for size, known, noun in (
        (table.n_samples, wanted.n_samples, "row"),
        (table.n_features, wanted.n_features, "feature"),
    ):
        if known is not None and size != known:
            differences.append(f"{plural(size, noun)} instead of {known}")
    counts, known_counts = sorted(table.class_counts().values()), sorted(wanted.classes.values())
    if known_counts and counts != known_counts:
        differences.append(f"class counts {counts} instead of {known_counts}")
    if not differences and wanted.sha256 and table.fingerprint() != wanted.sha256:
        differences.append(f"other values (content {table.fingerprint()[:12]}… instead of {wanted.sha256[:12]}…)")
    if differences:
        again = " Delete the file to have it downloaded again." if place.kind == "cache" else ""
        raise CatalogueError(
            f"{place.place} is not the catalogue's {wanted.name!r}: {'; '.join(differences)}.{again} To use "
            f"another version of the data, give the path of a file instead of the name."
        )


def _keep(wanted: DataSet, table: LabelledTable) -> None:
    """Save a download for the next time. Without a place for it the data are still there to be used."""
    path = cache_folder() / f"{wanted.name}.npz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as handle:
            write_archive(handle, table)
    except OSError as error:
        warnings.warn(f"{wanted.name} was downloaded but could not be kept for next time: {error}", stacklevel=3)
