"""One list of messy layouts, read on every path: the same classes, rows and numbers, or the same error."""

import gzip
import json
import os
import shlex
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from commands import refuse, run, succeed
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_tables import FRAMES, ONLY_FILES_CHANGE, ONLY_FILES_TAKE, REFUSED, TYPED, A, outcome_of

from discrim import MaximumMarginCriterion, fit_parts, load
from discrim.tables.cells import Dialect
from discrim.tables.facts import TableFacts
from discrim.tables.read import read_table
from discrim.tables.source import TableSource, repeat_with_text_labels
from torture import layouts


def in_memory(data, target, header=None):
    """Return names, rows and labels of a table as `read_table` gives them, or that it is refused."""
    try:
        table = read_table(data, target, header=header)
    except (ValueError, OSError):
        return REFUSED
    return table.feature_names, table.X.tolist(), [(type(label), label) for label in table.y.tolist()]


def in_batches(data, target, header=None):
    """Return the same from the batches of a source, as `fit(path)` reads them."""

    @repeat_with_text_labels
    def joined(source):
        batches = [(X.tolist(), y.tolist()) for part in source.parts for X, y in source.batches(part)]
        labels = [label for _, y in batches for label in y]
        return source.features, [row for X, _ in batches for row in X], [(type(label), label) for label in labels]

    try:
        found = joined(TableSource.open(data, target, dialect=Dialect(header=header)))
    except (ValueError, OSError):
        return REFUSED
    return found if len({label for _, label in found[2]}) > 1 else REFUSED


def in_both_ways(sources, target, header=None):
    """Return both ways of reading each source, by name."""
    given = [(name, path, read) for name, path in sources.items() for read in (in_memory, in_batches)]
    return {f"{name}, {read.__name__}": partial(read, path, target, header) for name, path, read in given}


def model_of(fit):
    """Return classes and directions of a fit, or that it is refused."""
    try:
        model = fit(MaximumMarginCriterion(1))
    except (ValueError, OSError):
        return REFUSED
    return model.classes_.dtype.kind, model.classes_.tolist(), model.components_.round(9).tolist()


def same(ways, expected=None):
    """Assert that all ways give one outcome, and the expected one."""
    outcomes = {name: way() for name, way in ways.items()}
    first = next(iter(outcomes.values()))
    assert all(one == first for one in outcomes.values()), outcomes
    if expected is not None:
        assert (first == REFUSED) == (expected == REFUSED), first
        if expected != REFUSED:
            assert [label for _, label in first[2]] == expected
            assert {type(label) for label in expected} == {kind for kind, _ in first[2]}
    return first


# --- delimited text -------------------------------------------------------------------------------------------------

NUMBERS = ["0.5,1", "2,-3.25", "1e3,7", "4,0.125", "-1,2", "8,9"]


def lines(*, labels=("x", "y"), cells=(), names="a,b,t", everywhere=False):
    """Return the header and the rows of a CSV file; `cells` stand in column b, in row 2, or in all rows in turn."""
    rows = []
    for at, row in enumerate(NUMBERS):
        a, b = row.split(",")
        if cells and (everywhere or at == 2):
            b = cells[at % len(cells)]
        rows.append(f"{a},{b},{labels[at % len(labels)]}")
    return names, rows


LABELS = {
    "text": (("x", "y"), ["x", "y"]),
    "whole": (("1", "2"), [1, 2]),
    "many digits": (("10", "9"), [10, 9]),
    "negative": (("-1", "1"), [-1, 1]),
    "zero": (("0", "1"), [0, 1]),
    "leading zero": (("01", "1"), ["01", "1"]),
    "plus": (("-1", "+1"), ["-1", "+1"]),
    "minus zero": (("-0", "0"), ["-0", "0"]),
    "fraction": (("1", "1.0"), ["1", "1.0"]),
    "dose": (("0.5", "1.5"), ["0.5", "1.5"]),
    "exponent": (("1e3", "2"), ["1e3", "2"]),
    "underscore": (("1_000", "2"), ["1_000", "2"]),
    "hexadecimal": (("0x1", "2"), ["0x1", "2"]),
    "beyond 64 bits": ((str(2**63), "1"), [str(2**63), "1"]),
    "truth values": (("True", "False"), ["True", "False"]),
    "truth and number": (("true", "1"), ["true", "1"]),
    "blank before": ((" x", "y"), ["x", "y"]),
    "blank after": (("x ", "y"), ["x", "y"]),
    "blank before a number": ((" 1", "2"), [1, 2]),
    "quoted": (('"x"', "y"), ["x", "y"]),
    "quoted number": (('"1"', "2"), [1, 2]),
    "blank before a quote": ((' "x"', "y"), ["x", "y"]),
    "quote within": (('"x ""q"""', "y"), ['x "q"', "y"]),
    "delimiter within": (('"x,1"', "y"), ["x,1", "y"]),
    "line break within": (('"x\n1"', "y"), ["x\n1", "y"]),
    "neutralised formula": (("'=a", "b"), ["=a", "b"]),
    "formula": (("=a", "b"), ["=a", "b"]),
    "apostrophe": (("'a", "b"), ["'a", "b"]),
    "composed": (("caf\u00e9", "b"), ["caf\u00e9", "b"]),
    "decomposed": (("cafe\u0301", "b"), ["caf\u00e9", "b"]),
    "other script": (("日本", "b"), ["日本", "b"]),
    "case": (("X", "x"), ["X", "x"]),
    "infinite text": (("inf", "b"), ["inf", "b"]),
    "None": (("None", "b"), ["None", "b"]),
    "zero character": (("a\0", "a"), REFUSED),
    "missing": (("", "b"), REFUSED),
    "blank": (("  ", "b"), REFUSED),
    "NA": (("NA", "b"), REFUSED),
    "nan": (("nan", "b"), REFUSED),
    "null": (("NULL", "b"), REFUSED),
    "question mark": (("?", "b"), REFUSED),
    "one class": (("x", "x"), REFUSED),
}
FINE, NOT = None, REFUSED
CELLS = {
    **dict.fromkeys(
        ("7", "-2.5", ".5", "5.", "1e5", "1E+5", "+1", " 1", "1 ", "-0", "1e-400", '"3"', ' "3"', "0012"), FINE
    ),
    "\u0661": FINE,
    **dict.fromkeys(("1e999", "inf", "-Infinity", "9" * 400, "nan", "NA", "", " ", "?", "#N/A", "-nan", "NULL"), NOT),
    **dict.fromkeys(("oops", "1 234", "1_000", "0x10", '"1,5"', "2024-01-01", "true", "1d5", "--1", "1e", "'=1"), NOT),
}
COLUMNS = {
    "true,false": FINE,
    "TRUE,False": FINE,
    "true,": NOT,
    "true,1": NOT,
    "red,blue": NOT,
    "1,red": NOT,
    "2024-01-01,2024-01-02": NOT,
}
HEADERS = {
    "a,b,t": FINE,
    " a,b ,t": FINE,
    '"a","b","t"': FINE,
    "'=a,b,t": FINE,
    "e\u0301,b,t": FINE,
    "t1,b,t": FINE,
    "A,a,t": FINE,
    '"a,1",b,t': FINE,
    '"a\n1",b,t': FINE,
    "1,2,t": FINE,
    "a,a,t": NOT,
    "a, a,t": NOT,
    ",b,t": NOT,
    "Unnamed: 0,b,t": NOT,
    "__index_level_0__,b,t": NOT,
    "a,b": NOT,
    "a,b,c,t": NOT,
    "a,b,s": NOT,
    "a;b;t": NOT,
}
MESSY = {f"label: {name}": (lines(labels=labels), found) for name, (labels, found) in LABELS.items()}
MESSY |= {f"cell: {cell[:12]!r}": (lines(cells=[cell]), found) for cell, found in CELLS.items()}
MESSY |= {f"column: {some}": (lines(cells=some.split(","), everywhere=True), found) for some, found in COLUMNS.items()}
MESSY |= {f"names: {names!r}": (lines(names=names), found) for names, found in HEADERS.items()}


def folder_of(path, *contents, ending="csv"):
    path.mkdir()
    for number, content in enumerate(contents):
        (path / f"p{number}.{ending}").write_bytes(content)
    return path


@pytest.mark.parametrize(("written", "expected"), MESSY.values(), ids=MESSY)
def test_delimited_text_is_one_table_as_a_file_and_in_parts(tmp_path, written, expected):
    names, rows = written
    whole = "\n".join([names, *rows, ""]).encode()
    cut = ["\n".join([names, *some, ""]).encode() for some in (rows[:2], rows[2:4], rows[4:])]
    (tmp_path / "t.csv").write_bytes(whole)
    sources = {
        "file": tmp_path / "t.csv",
        "one file": folder_of(tmp_path / "one", whole),
        "parts": folder_of(tmp_path / "parts", *cut),
        "zipped": folder_of(tmp_path / "zipped", gzip.compress(whole), ending="csv.gz"),
    }
    ways = in_both_ways(sources, "t")
    labels = [expected[at % len(expected)] for at in range(6)] if isinstance(expected, list) else expected
    found = same(ways, labels)
    if found == REFUSED:
        assert expected == REFUSED or expected is FINE
        assert expected == REFUSED
        return
    X, y = np.array(found[1]), np.array([label for _, label in found[2]])
    fits = {name: lambda path=path: model_of(lambda m: m.fit(path, "t")) for name, path in sources.items()}
    fits["numpy"] = lambda: model_of(lambda m: fit_parts(m, [(X[:2], y[:2]), (X[2:4], y[2:4]), (X[4:], y[4:])]))
    same({"parts of arrays": fits.pop("numpy"), **fits})


PLAIN = "\n".join([*["a,b,t"], *lines()[1], ""])
PLAIN_X = [[float(cell) for cell in row.split(",")] for row in NUMBERS]
LAYOUTS = {
    "line ends of Windows": (PLAIN.replace("\n", "\r\n"), 6),
    "old line ends": (PLAIN.replace("\n", "\r"), 6),
    "no last line end": (PLAIN[:-1], 6),
    "blank lines": (PLAIN.replace("\n", "\n\n") + " \n", 6),
    "blank lines first": ("\n\n" + PLAIN, 6),
    "quotes": (PLAIN.replace("a,b,t", '"a","b","t"').replace("0.5,1,x", '"0.5","1","x"').replace(",y", ',"y"'), 6),
    "semicolons": (PLAIN.replace(",", ";"), 6),
    "tabs": (PLAIN.replace(",", "\t"), 6),
    "bars": (PLAIN.replace(",", "|"), 6),
    "blanks after commas": (PLAIN.replace(",", ", "), 6),
    "byte order mark": (b"\xef\xbb\xbf" + PLAIN.encode(), 6),
    "UTF-16": (PLAIN.encode("utf-16"), 6),
    "zipped under another name": (gzip.compress(PLAIN.encode()), 6),
    "latin-1": (PLAIN.replace("x", "é").encode("latin-1"), REFUSED),
    "UTF-16 without a mark": (PLAIN.encode("utf-16-le"), REFUSED),
    "cut zip": (gzip.compress(PLAIN.encode())[:-9], REFUSED),
    "Parquet under another name": (b"PAR1" + bytes(50), REFUSED),
    "nothing": ("", REFUSED),
    "names only": ("a,b,t\n", REFUSED),
    "a short line": (PLAIN + "1,2\n", REFUSED),
    "a long line": (PLAIN + "1,2,x,3\n", REFUSED),
    "a quote without another": (PLAIN + '1,"2,x\n3,4,y\n', REFUSED),
    "a quote after a quoted field": (PLAIN + '1,"2"2,x\n', REFUSED),
    "an inch": (PLAIN + '1,2,5"\n3,4,5"\n', 8),
    "one column": ("t\nx\ny\nx\n", REFUSED),
    "labels only": (PLAIN.replace("0.5,1,", ",,"), REFUSED),
}


@pytest.mark.parametrize(("content", "n_rows"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_layout_is_read_alike_from_a_file_and_a_folder(tmp_path, content, n_rows):
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "t.csv").write_bytes(content)
    sources = {"file": tmp_path / "t.csv", "folder": folder_of(tmp_path / "one", content)}
    ways = in_both_ways(sources, "t")
    found = same(ways)
    assert (REFUSED if found == REFUSED else len(found[1])) == n_rows
    if n_rows == 6:
        assert found == (("a", "b"), PLAIN_X, [(str, label) for label in "xyxyxy"])


TABS = PLAIN.replace(",", "\t")
ENDINGS = {"CSV": PLAIN, "txt": PLAIN, "tsv": TABS, "csv.gz": PLAIN, "tsv.gz": gzip.compress(TABS.encode(), mtime=0)}


@pytest.mark.parametrize(("ending", "content"), ENDINGS.items())
def test_a_delimited_file_may_end_otherwise(tmp_path, ending, content):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_table(path, "t")
    assert (table.X.tolist(), table.X.dtype, table.y.tolist()) == (PLAIN_X, np.float64, list("xyxyxy"))
    assert (table.feature_names, table.target, table.source) == (("a", "b"), "t", str(path))


HEADERLESS = {
    "numbers": ["0.126,0.5,b", "0.3,0.4,c", "0.7,0.1,b"],
    "truth values": ["true,0.126,b", "false,0.3,c", "true,0.7,b"],
    "infinite": ["inf,0.126,b", "0.1,0.3,c", "2,0.7,b"],
    "missing": ["NA,0.126,b", "0.1,0.3,c", "2,0.7,b"],
    "rising numbers over whole labels": ["0.1,0.2,0.3,7", "0.3,0.1,0.2,0", "1,2,0.5,1", "3,0.2,0.4,0", "2,1,1,1"],
    "a blank before a label": ["0.1,0.9,0.3, b", "0.3,0.1,0.2,c", "1,2,0.5,b", "3,1,0.7,c"],
    "rising, label again": ["1,2,3,b", "4,5,6,c", "7,8,9,b"],
    "text that stands again": ["red,small,x", "blue,big,y", "red,small,x"],
}


@pytest.mark.parametrize("rows", HEADERLESS.values(), ids=HEADERLESS)
@pytest.mark.parametrize("header", [None, False])
def test_a_row_is_never_lost_if_names_are_missing(tmp_path, rows, header):
    rows = [*rows, *rows[1:], *rows[1:]]
    whole = "\n".join([*rows, ""]).encode()
    (tmp_path / "t.csv").write_bytes(whole)
    parts = folder_of(tmp_path / "parts", "\n".join(rows[:3]).encode(), "\n".join(rows[3:]).encode())
    sources = {"file": tmp_path / "t.csv", "one": folder_of(tmp_path / "one", whole), "parts": parts}
    found = same(in_both_ways(sources, None, header))
    text_or_gap = any(word in whole for word in (b"inf", b"NA", b"red"))
    assert (found == REFUSED) == (header is None or text_or_gap)
    if found != REFUSED:
        assert len(found[1]) == len(rows)


# --- typed columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "expected"), TYPED.values(), ids=TYPED)
def test_typed_columns_are_one_table_in_every_file_and_frame(tmp_path, table, expected):
    sources = {}
    for ending, write in (("parquet", pq.write_table), ("feather", feather.write_feather)):
        sources[ending] = tmp_path / f"t.{ending}"
        write(table, os.fspath(sources[ending]))
        parts = tmp_path / f"of {ending}"
        parts.mkdir()
        for number in range(3):
            write(table.slice(2 * number, 2), os.fspath(parts / f"p{number}.{ending}"))
        sources[f"parts of {ending}"] = parts
    ways = in_both_ways(sources, "t")
    frame = table.to_pandas(types_mapper=pd.ArrowDtype) if len(set(table.column_names)) == 3 else table.to_pandas()
    ways |= in_both_ways({"frame": frame}, "t")
    found = same(ways, expected)
    if found != REFUSED:
        X, y = np.array(found[1]), np.array([label for _, label in found[2]])
        arrays = model_of(lambda m: fit_parts(m, [(X[:2], y[:2]), (X[2:], y[2:])]))
        fits = {name: lambda path=path: model_of(lambda m: m.fit(path, "t")) for name, path in sources.items()}
        for name, fit in fits.items():
            classes, directions = fit()[:2], np.array(fit()[2])
            assert classes == arrays[:2], name
            np.testing.assert_allclose(directions, arrays[2], atol=2e-6)  # single precision stays single


@pytest.mark.parametrize("name", FRAMES)
def test_typed_columns_are_one_table_in_memory_and_on_dask(tmp_path, name):
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    table, expected = FRAMES[name]
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    *features, target = table.column_names
    typed, plain = table.to_pandas(types_mapper=pd.ArrowDtype), table.to_pandas()
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        lazy = {"of a frame": dd.from_pandas(plain, npartitions=3, sort=False)}
        lazy["of typed columns"] = dd.from_pandas(typed, npartitions=3, sort=False)
        lazy["of a file"] = dd.read_parquet(tmp_path / "t.parquet", split_row_groups=True)
        frames = {"frame": plain, "typed frame": typed, **lazy}
        found = {
            way: outcome_of(lambda m, frame=frame: m.fit(frame[features], frame[target]))
            for way, frame in frames.items()
        }
    first = found["frame"]
    assert all(one == first for one in found.values()), found
    if name in ONLY_FILES_TAKE:
        assert first == REFUSED
    elif name in ONLY_FILES_CHANGE:
        assert first[0] == ONLY_FILES_CHANGE[name]
    else:
        file = outcome_of(lambda m: m.fit(tmp_path / "t.parquet", target.strip()))
        assert file == first
        assert (file == REFUSED) == (expected == REFUSED)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0.0, 1.0], [0, 1]),
        ([0.5, 1.5], ["0.5", "1.5"]),
        ([np.nan, 1], REFUSED),
        ([np.inf, 1], REFUSED),
        ([-0.0, 1], [0, 1]),
    ],
)
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "i4", "?"])
def test_arrays_are_one_table_as_a_file_and_in_parts(tmp_path, labels, expected, dtype):
    if not (np.isfinite(labels).all() and (np.array(labels) % 1 == 0).all()) and dtype in ("i4", "?"):
        pytest.skip("no such array")
    rows = np.column_stack([A, [1, 0, 1, 1, 0, 1], labels * 3]).astype(dtype)
    np.save(tmp_path / "t.npy", rows)
    parts = tmp_path / "parts"
    parts.mkdir()
    np.save(parts / "p0.npy", rows[:2])
    np.save(parts / "p1.npy", np.asfortranarray(rows[2:]))
    ways = in_both_ways({"file": tmp_path / "t.npy", "parts": parts}, "c3")
    expected = [bool(one) for one in expected] if dtype == "?" else expected
    same(ways, expected if expected == REFUSED else expected * 3)


# --- many parts -----------------------------------------------------------------------------------------------------


def parquet_parts(folder, *tables):
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"p{number}.parquet")
    return folder


def first(**columns):
    return pa.table({"a": pa.array([0.5, 2.0, 1.0]), "t": pa.array(["x", "y", "x"])} | columns)


def both(a, b):
    """Return two parts whose column a is of two types."""
    return first(a=a), first(a=b)


TWO_TYPES = {
    "bool then double": both(pa.array([True, False, True]), pa.array([4.5, 7.25, 0.5])),
    "bool then int": both(pa.array([True, False, True]), pa.array([7, 2, 0])),
    "decimal then double": both(pa.array(list(map(Decimal, ["0.25", "1", "2"]))), pa.array([1.23456789, 123.0, 5.0])),
    "single then double": both(pa.array([0.5, 1, 2], pa.float32()), pa.array([0.1, 1 / 3, 2])),
    "int8 then int64": both(pa.array([1, 2, 3], pa.int8()), pa.array([1000, 2**40, 7])),
    "int then double": both(pa.array([1, 2, 3]), pa.array([0.5, 1.5, 2.5])),
    "double then int": both(pa.array([0.5, 1.5, 2.5]), pa.array([1, 2, 3])),
    "half then single": both(pa.array(np.array([1, 2, 3], np.float16)), pa.array([0.1, 0.2, 0.3], pa.float32())),
    "numbers as text then double": both(pa.array(["1", "2.5", "3"]), pa.array([0.5, 1.5, 2.5])),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("tables", TWO_TYPES.values(), ids=TWO_TYPES)
def test_features_of_two_types_are_joined_as_doubles(tmp_path, tables, order):
    tables = tables[::order]
    wanted = np.concatenate(
        [
            [float(str(one).replace("True", "1").replace("False", "0")) for one in table["a"].to_pylist()]
            for table in tables
        ]
    )
    parts = parquet_parts(tmp_path / "parts", *tables)
    for found in (in_memory(parts, "t"), in_batches(parts, "t")):
        np.testing.assert_array_equal(np.ravel(found[1]), wanted)
    mean = model_of(lambda m: m.fit(parts, "t"))
    assert mean == model_of(
        lambda m: fit_parts(m, [(wanted[:3, None], ["x", "y", "x"]), (wanted[3:, None], ["x", "y", "x"])])
    )


LABELS_IN_PARTS = {
    "integers": ([1, 2, 1], [2, 10, 1], [1, 2, 1, 2, 10, 1]),
    "small and large integers": (pa.array([1, 2, 1], pa.int8()), [300, 2, 1], [1, 2, 1, 300, 2, 1]),
    "integers and whole doubles": ([0, 1, 0], [0.0, 1.0, 1.0], [0, 1, 0, 0, 1, 1]),
    "integers and fractions": ([0, 1, 0], [0.5, 1.0, 1.0], ["0.0", "1.0", "0.0", "0.5", "1.0", "1.0"]),
    "truth values": ([True, False, True], [False, True, True], [True, False, True, False, True, True]),
    "texts": (["x", "y", "x"], ["z", "1", "x"], ["x", "y", "x", "z", "1", "x"]),
    "categories and texts": (
        pa.array(["x", "y", "x"]).dictionary_encode(),
        ["z", "y", "x"],
        ["x", "y", "x", "z", "y", "x"],
    ),
    "truth values and integers": ([True, False, True], [0, 1, 2], REFUSED),
    "integers and texts": ([1, 2, 1], ["01", "2", "1"], REFUSED),
    "truth values and texts": ([True, False, True], ["True", "x", "x"], REFUSED),
    "doubles and texts": ([1.5, 2.5, 1.5], ["1.5", "x", "x"], REFUSED),
    "a missing one in the second part": (["x", "y", "x"], ["x", None, "y"], REFUSED),
    "nothing but nulls in the second part": (["x", "y", "x"], pa.nulls(3), REFUSED),
}


@pytest.mark.parametrize(("one", "other", "expected"), LABELS_IN_PARTS.values(), ids=LABELS_IN_PARTS)
def test_labels_of_parts_are_of_one_type(tmp_path, one, other, expected):
    parts = parquet_parts(tmp_path / "parts", first(t=pa.array(one) if isinstance(one, list) else one), first(t=other))
    same(in_both_ways({"parts": parts}, "t"), expected)
    if expected == REFUSED and None not in (other if isinstance(other, list) else [None]):
        with pytest.raises(ValueError, match=r"(?s)p0\.parquet.*p1\.parquet"):
            read_table(parts, "t")


CSV_LABELS = {
    "whole": (["1", "2"], ["10", "2"], [1, 2, 10, 2]),
    "late text": (["1", "2"], ["a", "2"], ["1", "2", "a", "2"]),
    "late zero": (["1", "2"], ["01", "2"], ["1", "2", "01", "2"]),
    "late fraction": (["1", "2"], ["1.0", "2"], ["1", "2", "1.0", "2"]),
    "early text": (["a", "2"], ["1", "2"], ["a", "2", "1", "2"]),
    "blank and quote": ([" 1", '"2"'], ["1", "2"], [1, 2, 1, 2]),
}


@pytest.mark.parametrize(("one", "other", "expected"), CSV_LABELS.values(), ids=CSV_LABELS)
def test_a_late_text_makes_all_labels_text(tmp_path, one, other, expected):
    contents = ["a,t\n" + "".join(f"{at},{label}\n" for at, label in enumerate(some)) for some in (one, other)]
    parts = folder_of(tmp_path / "parts", *(content.encode() for content in contents))
    whole = tmp_path / "t.csv"
    whole.write_text(contents[0] + contents[1].partition("\n")[2])
    same(in_both_ways({"parts": parts, "file": whole}, "t"), expected)
    assert model_of(lambda m: m.fit(parts, "t"))[1] == sorted(set(expected))


def seen(folder, target="t"):
    found = same(in_both_ways({"folder": folder}, target))
    return found if found == REFUSED else (found[0], len(found[1]), sorted({label for _, label in found[2]}))


HIDDEN = [".ipynb_checkpoints/p-checkpoint", "_temporary/0/p", ".snap/p", ".p", "_p", "sub/.git/p", "sub/_x/p"]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_files_in_hidden_folders_are_ignored(tmp_path, hidden):
    parts = parquet_parts(tmp_path / "ck", first())
    (parts / f"{hidden}.parquet").parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(first(a=[7.0, 8.0, 9.0]), parts / f"{hidden}.parquet")
    assert seen(parts) == (("a",), 3, ["x", "y"])


def test_a_link_to_a_part_does_not_double_it(tmp_path):
    parts = parquet_parts(tmp_path / "parts", first(), first(a=[7.0, 8.0, 9.0]))
    (parts / "latest.parquet").symlink_to(parts / "p1.parquet")
    outside = tmp_path / "outside.parquet"
    pq.write_table(first(a=[4.0, 5.0, 6.0]), outside)
    for name in ("p2.parquet", "p3.parquet"):
        (parts / name).symlink_to(outside)
    assert seen(parts) == (("a",), 9, ["x", "y"])


@pytest.mark.parametrize("above", ["run=5", "a=5", "t=q", "x=1/y=2"])
def test_partition_keys_above_the_folder_are_not_columns(tmp_path, above):
    (tmp_path / above).mkdir(parents=True)
    assert seen(parquet_parts(tmp_path / above / "tab", first())) == (("a",), 3, ["x", "y"])


def test_partition_keys_below_the_folder_are_columns(tmp_path):
    for key in ("t=01", "t=1", "t=a%2Fb"):
        (tmp_path / "text").mkdir(exist_ok=True)
        parquet_parts(tmp_path / "text" / key, first().drop_columns("t"))
    assert seen(tmp_path / "text") == (("a",), 9, ["01", "1", "a/b"])
    for key in ("t=1", "t=2", "t=10"):
        (tmp_path / "whole").mkdir(exist_ok=True)
        parquet_parts(tmp_path / "whole" / key, first().drop_columns("t"))
    assert seen(tmp_path / "whole") == (("a",), 9, [1, 2, 10])
    for key in ("year=2020", "year=2021"):
        (tmp_path / "year").mkdir(exist_ok=True)
        parquet_parts(tmp_path / "year" / key, first())
    assert seen(tmp_path / "year") == (("a", "year"), 6, ["x", "y"])
    (tmp_path / "twice").mkdir()
    parquet_parts(tmp_path / "twice" / "a=5", first())  # a column and a key of one name
    assert seen(tmp_path / "twice") == REFUSED


COLUMNS_OF_PARTS = {
    "another order": (first().select(["t", "a"]), 6),
    "a column more": (first(b=[1.0, 2.0, 3.0]), REFUSED),
    "a column less": (first().drop_columns("a"), REFUSED),
    "other names": (first().rename_columns(["A", "t"]), REFUSED),
    "blanks around names": (first().rename_columns([" a", "t "]), 6),
    "no rows": (first().slice(0, 0), 3),
    "text": (first(a=["1", "oops", "2"]), REFUSED),
    "a missing cell": (first(a=[1.0, None, 2.0]), REFUSED),
    "an infinite cell": (first(a=[1.0, np.inf, 2.0]), REFUSED),
}


@pytest.mark.parametrize(("second", "n_rows"), COLUMNS_OF_PARTS.values(), ids=COLUMNS_OF_PARTS)
def test_parts_have_the_same_columns_in_any_order(tmp_path, second, n_rows):
    found = seen(parquet_parts(tmp_path / "parts", first(), second))
    assert (found if found == REFUSED else found[1]) == n_rows


def test_booleans_and_numbers_in_a_column_are_rejected(tmp_path):
    names, rows = lines(cells=["true", "false"], everywhere=True)
    words = "\n".join([names, *rows, ""]).encode()
    numbers = "\n".join([names, *lines()[1], ""]).encode()
    assert seen(folder_of(tmp_path / "parts", words, numbers)) == REFUSED
    assert seen(folder_of(tmp_path / "swapped", numbers, words)) == REFUSED
    assert seen(folder_of(tmp_path / "words", words, words.replace(b"8,", b"9,")))[1] == 12


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_layout_of_a_table_is_one_model(tmp_path_factory, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("t")
    table = layouts.drawn_table(rng)
    one, other = (layouts.fitted(layouts.written(rng, folder / f"{at}", table)) for at in range(2))
    assert layouts.same(one, other)


# --- command line ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_does_not_change_a_comparison(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("uvwxyz"))
    frame["t"] = np.array(list("abc"))[np.arange(300) % 3]
    frame.loc[frame["t"] == "a", "u"] += 1
    (tmp_path / "ck" / ".ipynb_checkpoints").mkdir(parents=True)
    for name in ("t.csv", "ck/d.csv", "ck/.ipynb_checkpoints/d-checkpoint.csv"):
        frame.to_csv(tmp_path / name, index=False)
    options = ["-t", "t", "-m", "pca", "-c", "1-nn", "-k", "2", "--splits", "3", "-j", "1", "--json"]
    found = [json.loads(run("compare", tmp_path / name, *options)[1]) for name in ("t.csv", "ck")]
    for one in found:
        one["lines"] = [{k: v for k, v in line.items() if k != "seconds"} for line in one["lines"]]
    assert found[0]["lines"] == found[1]["lines"]
    assert found[0]["rows"] == found[1]["rows"] == 300


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize("method", ["pca", "regularized-lda", "lda"])
def test_a_model_of_the_command_line_knows_its_columns(tmp_path, scale, method):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd")).assign(t=[1, 2, 10] * 20)
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.discrim", tmp_path / "f.csv"
    given = ["project", tmp_path / "t.csv", "-t", "t", "-m", method, "-k", "1", "--scale", scale]
    succeed(*given, "--model", model, "--out", out)
    loaded = load(model)
    assert loaded.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(loaded.transform(frame[list("abcd")]).ravel(), pd.read_csv(out).iloc[:, 0], atol=1e-10)
    for wrong in (frame[list("dcba")], frame[list("abc")], frame[[*"abcd", "t"]]):
        with pytest.raises(ValueError, match="feature names"):
            loaded.transform(wrong)
    assert pd.read_csv(out)["t"].tolist() == frame["t"].tolist()
    frame[["t", *"dbca"]].to_csv(tmp_path / "new.csv", index=False)
    _, err = succeed("apply", model, tmp_path / "new.csv", "--out", tmp_path / "again.csv")
    assert "'t'" in err  # the column that the model does not use
    np.testing.assert_allclose(pd.read_csv(tmp_path / "again.csv").iloc[:, 0], pd.read_csv(out).iloc[:, 0], atol=1e-10)


def test_features_of_a_part_that_changed_at_the_same_size_and_time_are_written_again(tmp_path):
    parts = parquet_parts(tmp_path / "parts", first(), first(a=[7.0, 8.0, 9.0]))
    model, out = tmp_path / "m.discrim", tmp_path / "out"
    succeed("project", parts, "-t", "t", "-m", "pca", "-k", "1", "--model", model)
    apply = ["apply", model, parts, "--out", out]
    succeed(*apply)
    before, stamp = pd.read_parquet(out / "p1.parquet"), (parts / "p1.parquet").stat()
    pq.write_table(first(a=[9.0, 8.0, 7.0]), parts / "p1.parquet")
    assert (parts / "p1.parquet").stat().st_size == stamp.st_size
    os.utime(parts / "p1.parquet", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    succeed(*apply)
    np.testing.assert_allclose(pd.read_parquet(out / "p1.parquet").to_numpy(), before.to_numpy()[::-1], atol=1e-12)


def messy_file(path):
    rng = np.random.default_rng(0)
    rows = [",patient_id,age,town,batch,free,weight,y"]
    for i in range(60):
        age = "" if i % 17 == 0 else f"{rng.normal(40, 9):.2f}"
        weight = "oops" if i == 7 else f"{rng.normal():.3f}"
        rows.append(f"{i},{9000 + 7 * i},{age},{'ABC'[i % 3]},5,n{i}x,{weight},{'rare' if i == 3 else 'uv'[i % 2]}")
    path.write_text("\n".join([*rows, ""]))
    return path


def check(path, *given):
    """Return what check prints, as it stands."""
    code, out, err = run("check", path, *given)
    assert code == 0, err
    return out


def compared(words):
    """Run the command that check prints, on one method and classifier."""
    return succeed(*words[1:], "-m", "pca", "-c", "1-nn", "-k", "1", "--splits", "2", "-j", "1")[0]


def suggested(out):
    """Return the words of the command that check prints; it is broken into lines as a shell reads them."""
    return shlex.split(out.split("This command works:\n")[1].replace("\\\n", " "))


def test_check_names_everything_and_its_command_goes_through(tmp_path):
    path = messy_file(tmp_path / "messy.csv")
    before = path.read_bytes()
    out = check(path, "--target", "y")
    for word in ("column 1", "patient_id", "age (4)", "town (3", "batch", "free", "weight (1)", "rare (1)"):
        assert word in out
    words = suggested(out)
    assert words[:2] == ["discrim", "compare"]
    assert "59 rows × 4 columns" in compared(words)
    assert path.read_bytes() == before
    facts = TableFacts.from_source(TableSource.open(path, "y", drop=["column 1"]))
    assert (facts.n_rows, facts.classes, facts.missing) == (60, {"rare": 1, "u": 30, "v": 29}, {"age": 4})
    path.write_text("a,b,y\n1,2,u\n1,2,v\n1,3,u\n1,2.0,u\n-0,0,v\n0,0,v\n")
    assert TableFacts.from_source(TableSource.open(path, "y")).equal_rows == 3


def test_check_of_a_plain_table_needs_no_options(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(y=[1, 2] * 20).to_parquet(tmp_path / "t.parquet")
    out = check(tmp_path / "t.parquet")
    assert suggested(out) == ["discrim", "compare", str(tmp_path / "t.parquet"), "--target", "y"]
    check("iris")


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        ([f"{at},5" for at in range(20)], ["--decimal", ","]),
        ([f"{at},5" if at % 3 == 0 else f"{at}" for at in range(20)], ["--decimal", ","]),  # most are whole numbers
        ([f"1.{at + 100},5" for at in range(19)] + [""], ["--decimal", ",", "--thousands", "."]),
    ],
    ids=["all", "some", "with thousands"],
)
def test_check_recommends_the_decimal_comma(cells, options, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{cell};{at % 7},25;{'uv'[at % 2]}" for at, cell in enumerate(cells)]
    path.write_text("\n".join(["a;b;y", *rows, ""]))
    out = check(path)
    (line,) = (line for line in out.splitlines() if line.startswith("decimal commas"))
    assert "a, b" in line
    words = suggested(out)
    impute = ["--impute", "median"] if "" in cells else []
    assert words == ["discrim", "compare", str(path), *options, "--target", "y", *impute]
    assert "20 rows × 2 columns" in compared(words)


def test_check_keeps_the_decimal_point_where_other_columns_have_it_or_the_mark_is_given(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{at % 5},5;{at}.5;{'uv'[at % 2]}" for at in range(20)]
    path.write_text("\n".join(["a;b;y", *rows, ""]))
    out = check(path)
    assert suggested(out)[-1] == "--one-hot"
    assert "--decimal" not in out
    path.write_text("\n".join(["a;b;y", *(row.replace(".", ",") for row in rows), ""]))
    out = check(path, "--decimal", ",")
    assert ("decimal commas" in out, out.count("--decimal ,")) == (False, 1)


@pytest.mark.parametrize(
    ("labels", "noted"),
    [
        (["1", "1.0", "2"], "The labels '1', '1.0' in 'y' are equal as numbers, and are taken for different classes."),
        (["01", "1", "x"], "The labels '01', '1' in 'y' are equal as numbers, and are taken for different classes."),
        (["u", "U"], "The labels 'U', 'u' in 'y' differ only in case or blanks, and are taken for different classes."),
        (["9007199254740992.5", "9007199254740993.5"], ""),  # equal as doubles
        (["1_0", "10", "inf", "Infinity", "snan", "x"], ""),
        (["1", "2"], ""),
    ],
)
def test_labels_that_are_equal_as_numbers_are_noted(labels, noted, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{at}.5,{at % 3},{labels[at % len(labels)]}\n" for at in range(24)))
    found = [note for note in read_table(path, "y").notes if note.startswith("The labels")]
    assert found == ([noted] if noted else [])
    _, err = succeed("check", path, "-t", "y")
    assert noted in err
    assert ("The labels" in err) == bool(noted)


def with_gaps(labels, lacking, n=24):
    """Return CSV with columns a and b, where b is empty in the rows for which `lacking` holds."""
    rows = [f"{at * 7 % 24}.5,{'' if lacking(at) else at * 5 % 24 + 0.25},{labels(at)}" for at in range(n)]
    return "\n".join(["a,b,y", *rows, ""])


GIVEN = {  # what the file holds, the options of check, and those that it adds
    "rows without a label": (with_gaps(lambda at: "uv "[at % 3], lambda at: at == 3), [], ["--drop-missing"]),
    "a class that missing cells make rare": (
        with_gaps(lambda at: "w" if at in (6, 7) else "" if at == 8 else "uv"[at % 2], lambda at: at == 7),
        [],
        ["--drop-missing", "--min-class-size", "2"],
    ),
    "a class that has missing cells only": (
        with_gaps(lambda at: "" if at == 8 else "uv"[at % 2], lambda at: at % 2 == 1),
        [],
        ["--drop", "b", "--drop-missing"],
    ),
    "--drop-missing": (with_gaps(lambda at: "uv"[at % 2], lambda at: at == 3), ["--drop-missing"], []),
    "--impute": (with_gaps(lambda at: "uv"[at % 2], lambda at: at == 3), ["--impute", "mean"], []),
    "--min-class-size": (
        with_gaps(lambda at: "w" if at == 5 else "uv"[at % 2], lambda at: False),
        ["--min-class-size", "4"],
        [],
    ),
    "no way": (
        with_gaps(lambda at: "uv "[at % 3], lambda at: at == 3),
        ["--impute", "mean"],
        "rows without a label must be left out with --drop-missing; leave out --impute",
    ),
    "measurements": (
        with_gaps(lambda at: f"{at if at else 1}.5", lambda at: False),
        [],
        "'y' must have at least two classes with 2 rows each",
    ),
    "measurements of which some are equal": (
        with_gaps(lambda at: f"{max(at, 1) if at != 5 else 3}.5", lambda at: False),
        [],
        "This looks like an identifier or a measurement",
    ),
}


@pytest.mark.parametrize(("text", "given", "added"), GIVEN.values(), ids=GIVEN)
def test_the_command_of_check_works_with_the_options_that_were_given(text, given, added, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    out = check(path, "-t", "y", *given)
    if isinstance(added, str):
        assert "No compare command is possible" in out
        assert added in " ".join(out.split())
        refuse("compare", path, "-t", "y", "--splits", "2", "-m", "pca", "-c", "1-nn", *given)
        return
    words = suggested(out)
    assert sorted(words[3:]) == sorted(["--target", "y", *given, *added])
    compared(words)


def patients(label, n=48):
    """Return CSV with two rows of each patient, and labels by row number."""
    rows = [f"P{at // 2},{at * 7 % n}.5,{at % 5}.25,{label(at)}" for at in range(n)]
    return "\n".join(["patient,a,b,y", *rows, ""])


@pytest.mark.parametrize(
    ("label", "added"),
    [
        (lambda at: "uv"[at % 2], ["--groups", "patient"]),
        (lambda at: "w" if at < 2 else "uv"[at % 2], ["--one-hot"]),  # all rows of w are of one patient
    ],
    ids=["every class has several", "a class has one"],
)
def test_check_keeps_rows_of_a_patient_together_if_every_class_has_several(label, added, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(patients(label))
    out = check(path)
    assert ("--groups" in out) == (added != ["--one-hot"])
    words = suggested(out)
    assert words == ["discrim", "compare", str(path), "--target", "y", *added]
    compared(words)


def test_check_counts_the_rows_that_drop_missing_leaves(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(with_gaps(lambda at: "uv"[at % 2], lambda at: at % 4 == 1))
    out = check(path, "--drop-missing")
    assert "24 rows × 2 features, 2 classes in 'y': u (12), v (12)." in " ".join(out.split())
    assert "--drop-missing leaves 18 rows: u (12), v (6)." in " ".join(out.split())
    assert "v (6)" in next(line for line in out.splitlines() if line.startswith("rare classes"))
    assert "rare classes" not in check(path)


def test_check_prints_lines_of_at_most_80_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{at}.5,{at % 3}.25,a class with a long name {at % 4}\n" for at in range(24)))
    for options in ((), ("--min-class-size", "20")):
        out = check(path, *options)
        assert [line for line in out.splitlines() if len(line) > 80 and str(path) not in line] == []


FEW_ROWS = "'y' must have at least two classes with 2 rows each"


@pytest.mark.parametrize(
    ("text", "size", "reason"),
    [
        ("x,y\n1,2\n", "1 row × 1 feature, 1 class", FEW_ROWS),
        ("x,y\n1,01\n2,1\n", "2 rows × 1 feature, 2 classes", FEW_ROWS),
        ("x,y\n1,u\n2,u\n4,u\n9,v\n", "4 rows × 1 feature, 2 classes", FEW_ROWS),
        ("x,z,y\n5,1,u\n5,2,u\n5,3,v\n5,4,v\n", "2 features", "no feature column is left without z, x"),
    ],
)
def test_check_says_why_no_command_works(text, size, reason, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    out = check(path, "--header", "-t", "y")
    assert size in " ".join(out.split())
    assert " ".join(out.split()).endswith(f"No compare command is possible: {reason}.")
    assert "can be compared as it is" not in out
    settled = TableFacts.from_source(TableSource.open(path, "y")).settled_by
    assert run("compare", path, "--header", "-t", "y", *settled, "--splits", "2")[0] != 0


def test_all_problems_are_reported_at_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,y\n1,,x,inf,u\n2,3,y,4,\n3,4,x,5,v\n4,5,y,6,u\n")
    with pytest.raises(ValueError, match=r"(?s)'c': 'x'.*2 missing.*'d': 'inf'"):
        read_table(path, "y")
    path.write_text(",b,c,y\n1,2,x,u\n2,3,y,v\n3,4,x,v\n4,5,y,u\n")
    with pytest.raises(ValueError, match=r"(?s)name.*'c': 'x'"):
        read_table(path, "y")


def test_a_name_that_is_not_utf_8_is_rejected_with_an_error(tmp_path):
    name = os.fsencode(tmp_path) + b"/t\xfe.csv"
    with open(name, "wb") as file:
        file.write(b"a,y\n1,u\n2,v\n3,u\n")
    with pytest.raises(ValueError, match="UTF-8"):
        read_table(os.fsdecode(name), "y")
