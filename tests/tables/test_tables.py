"""Files → labelled rows: a problem in a file is an error with its position, or is documented."""

import gzip
import hashlib
import io
import os
import sys
import time
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import script

from discrim.tables import formats
from discrim.tables.delimited import DelimitedPart
from discrim.tables.formats import MissingExtraError
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.read import read_features, read_table
from discrim.tables.table_error import TableError
from discrim.tables.writing import write_table

PLAIN = "a,b,label\n1,2.5,x\n3,-4e2,y\n5,6,x\n"
MIXED = "job,age,town,label\nnurse,1,B,x\nadmin,2,A,y\nnurse,3,C,x\n"
STRAY = "a,label\n1,x\n2,y\noops,y\n4,x\n"
SPOILT = bytearray(gzip.compress(np.random.default_rng(0).bytes(3000).hex().encode()))
SPOILT[300] ^= 0xFF


def assert_refused(path, *words, target="label", **options):
    """The error of reading `path`; it names the file and all of `words`."""
    with pytest.raises(TableError) as caught:
        read_table(path, target, **options)
    message = str(caught.value)
    for word in (str(path), *words):
        assert word in message, message
    return message


# --- reading ---------------------------------------------------------------------------------------


def test_few_fractions_are_labels(file):
    assert read_table(file("a,dose\n" + "".join(f"{i},{i % 3 / 2}\n" for i in range(60))), "dose").n_samples == 60


def test_target_anywhere_and_last_by_default(file):
    path = file("label,a,b\nx,1,2\ny,3,4\nx,5,6\n")
    np.testing.assert_array_equal(read_table(path, "label").X, [[1, 2], [3, 4], [5, 6]])
    table = read_table(file("a,b,c\n1,2,0\n3,4,1\n5,6,1\n"), None)
    assert table.target == "c"
    assert table.y.tolist() == [0, 1, 1]


def test_columns_in_the_middle_can_be_target_or_dropped(file):
    table = read_table(file("id,a,label,b\nu1,1,x,2\nu2,3,y,4\nu3,5,x,6\n"), "label", drop=["id"])
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 6]])
    assert table.feature_names == ("a", "b")


def test_unicode_names_and_labels_in_either_normal_form(file):
    path = file("größe,名前\n1,日本\n2,cafe\u0301\n3,caf\u00e9\n")
    table = read_table(path, "名前")
    assert table.feature_names == ("größe",)
    assert table.y.tolist() == ["日本", "café", "café"]
    decomposed = read_table(file("a,gro\u0308\n1,x\n2,x\n3,y\n"), "gr\u00f6")
    assert decomposed.target == "gr\u00f6"


def test_quoted_fields_may_hold_delimiters_quotes_and_newlines_and_lines_still_count(file):
    head = 'a,"first, ""second""\nline",l\n1,2,"x\ny"\n3,4,"x\ny"\n5,6,z\n'
    table = read_table(file(head), "l")
    assert table.feature_names == ("a", 'first, "second"\nline')
    assert table.y.tolist() == ["x\ny", "x\ny", "z"]
    assert_refused(file(head + "7,oops,z\n"), "line 8", "'oops'", target="l")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("size", [40, 700, 4096])
def test_blocks_of_any_size_give_the_same_rows(file, name, size, monkeypatch):
    words = [f"{'w' * (at % 5)}{at}" + "\n" * (at % 7 == 0) + '""' * (at % 11 == 0) for at in range(300)]
    content = "".join(["a,word,l\r\n", *(f'{at},"{word}",{at % 2}\r\n' for at, word in enumerate(words))]).encode()
    path = file(content if name == "t.csv" else gzip.compress(content), name)
    monkeypatch.setattr(DelimitedPart._blocks, "__defaults__", (size,))
    table = read_table(path, "l", id_column="word")
    np.testing.assert_array_equal(table.X.ravel(), np.arange(300))
    assert table.ids.tolist() == [word.replace('""', '"').strip() for word in words]


def test_decimal_commas_and_thousands_are_read_when_named(file):
    path = file("a;b;l\n1,5;1.234,5;x\n-2,25;1.234.567;y\n,5;12e3;y\n")
    table = read_table(path, "l", decimal=",", thousands=".")
    np.testing.assert_array_equal(table.X, [[1.5, 1234.5], [-2.25, 1234567], [0.5, 12000]])
    path = file('a,l\n"1,234",x\n"12",y\n"-1,234,567.5",y\n')
    np.testing.assert_array_equal(read_table(path, "l", thousands=",").X.ravel(), [1234, 12, -1234567.5])


@pytest.mark.parametrize("options", [{"decimal": ",", "thousands": ","}, {"decimal": ""}, {"thousands": "00"}])
def test_impossible_marks_are_refused(file, options):
    with pytest.raises(ValueError, match="single characters"):
        read_table(file(PLAIN), "label", **options)


def test_another_encoding_is_read_when_named(file):
    path = file("größe,l\n1,ä\n2,ä\n3,b\n".encode("latin-1"))
    assert read_table(path, "l", encoding="latin-1").y.tolist() == ["ä", "ä", "b"]


def test_integers_are_rounded_to_the_nearest_double_and_no_more(file):
    table = read_table(file(f"a,l\n{2**62},x\n{2**53 + 1},x\n-9007199254740991,y\n"), "l")
    assert table.X.ravel().tolist() == [2.0**62, 2.0**53, -9007199254740991.0]


def test_twenty_thousand_columns_are_quick(file):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20_000))
    text = io.StringIO()
    text.write(",".join(f"f{i}" for i in range(20_000)) + ",l\n")
    for i, row in enumerate(X):
        text.write(",".join(map(repr, row.tolist())) + f",{'ab'[i % 2]}\n")
    path = file(text.getvalue())
    start = time.process_time()
    table = read_table(path, "l")
    seconds = time.process_time() - start
    np.testing.assert_array_equal(table.X, X)
    assert seconds < 10  # about one second; a step quadratic in the columns would take minutes
    start = time.process_time()
    assert_refused(path, "'l'", target="L1")
    assert time.process_time() - start < 10


@settings(max_examples=60, deadline=None)
@given(
    X=st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=3,
        max_size=8,
    ),
    delimiter=st.sampled_from(",;\t|"),
)
def test_every_double_reads_back_exactly(tmp_path_factory, X, delimiter):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    lines = [delimiter.join(("a", "b", "l"))]
    lines += [delimiter.join((repr(a), repr(b), "xy"[i % 2])) for i, (a, b) in enumerate(X)]
    path.write_text("\n".join(lines) + "\n")
    np.testing.assert_array_equal(read_table(path, "l").X, np.array(X))


# --- errors and their positions --------------------------------------------------------------------


REFUSED = {  # content, options, words of the message
    "blank lines": ("\n \n", {}, ["empty"]),
    "a byte order mark": (b"\xef\xbb\xbf", {}, ["empty"]),
    "an empty zip": (gzip.compress(b""), {}, ["empty"]),
    "names only": ("a,b,label\n", {}, ["no rows"]),
    "a long line": ("a,b,label\n1,2,x\n\n3,4,5,y\n", {}, ["line 4", "4 fields", "comma"]),
    "a long first line": ("a,b,label\n1,5,2,x\n", {}, ["line 2", "4 fields", "decimal comma"]),
    "a quote after a quoted field": ('a,b,label\n1,2,x\n3,"4"5,y\n', {}, ["line 3", "quote"]),
    "latin-1": (
        b"a,b,label\n1,2,x\n3,4,caf\xe9\n5,6,x\n",
        {},
        ["line 3", "byte 8", "0xe9", "UTF-8", "encoding='latin-1'"],
    ),
    "a late byte": (b"a,b,label\n" + b"1,2,x\n" * 50_000 + b"3,4,\xff\n", {}, ["line 50002"]),
    "a byte on the first line": (b"a,b\xff", {}, ["line 1"]),
    "a byte of a zip": (gzip.compress(b"gr\xf6\xdfe,l\n1,x\n"), {}, ["line 1"]),
    "another encoding": ("ä,l\n1,x\n", {"target": "l", "encoding": "ascii"}, ["ascii"]),
    "a zip archive": (b"PK\x03\x04rest", {}, ["not delimited text"]),
    "Feather": (b"ARROW1rest", {}, ["not delimited text"]),
    "an old workbook": (b"\xd0\xcf\x11\xe0rest", {}, ["not delimited text"]),
    "the head of a zip": (gzip.compress(PLAIN.encode() * 10)[:5], {}, ["gzip"]),
    "a spoilt zip": (bytes(SPOILT), {}, ["gzip"]),
    "a decimal comma": ("a;b;label\n1;2;x\n1,5;2;y\n", {}, ["line 3", "'a'", "'1,5'", "decimal=','", "thousands=','"]),
    "both marks": ('a,b,label\n1,2,x\n"1.234,5",2,y\n', {}, ["line 3", "'1.234,5'", "decimal=',', thousands='.'"]),
    "a separator that is none": ('a,l\n"1,5",x\n"2",y\n', {"target": "l", "thousands": ","}, ["line 2", "'1,5'"]),
    "a point that is none": ("a;l\n1.5;x\n2;y\n3;y\n", {"target": "l", "decimal": ","}, ["line 2", "'1.5'"]),
    "a name misspelt": (PLAIN, {"target": "lable"}, ["'lable'", "target", "Did you mean 'label'"]),
    "a name in capitals": (PLAIN, {"target": "LABEL"}, ["Did you mean 'label'"]),
    "another name": (PLAIN, {"target": "zzz"}, ["'zzz'", "among its 3", "Its columns are 'a', 'b', 'label'."]),
    "labels that differ": ("a,id\n1,u\n2,v\n3,w\n", {"target": "id"}, ["'id'", "3 different labels", "identifier"]),
    "labels that do not": ("a,label\n1,x\n2,x\n3,x\n", {}, ["'label'", "3 rows", "'x'", "at least two"]),
    "one row": ("a,label\n1,x\n", {}, ["'label'", "at least two"]),
    "text": (
        "job,age,town,label\nadmin,1,A,x\nnurse,2,B,y\nnurse,3,A,x\n",
        {},
        ["line 2", "'job'", "'admin'", "3 of 3 cells", "'town'", "one_hot=True", "drop=['job']"],
    ),
    "a stray word": (STRAY, {}, ["line 4", "'a'", "'oops'", "1 of 4 cells", "one_hot=['a']"]),
    "a stray word is no category": (STRAY, {"one_hot": True}, ["line 4", "'a'", "'oops'", "1 of 4 cells"]),
    "dates": (
        "when,a,label\n2024-01-03,1,x\n2024-02-04,2,y\n2024-02-05,3,x\n",
        {},
        ["look like dates", "drop=['when']"],
    ),
    "an infinite cell": ("a,label\n1,x\ninf,y\n3,x\n", {"missing_cells": "keep"}, ["infinite"]),
    "a word in a transposed file": (
        "gene,s1,s2,s3\nA,1,x,3\nB,1,2,3\nlabel,p,q,p\n",
        {"transpose": True},
        ["column 3 of the file", "'A'"],
    ),
    "a zero character": ("a,label\n1,x\n2,x\0\n3,x\n", {}, ["zero character"]),
    "a measurement": (
        "a,price\n" + "".join(f"{i},{i % 45 / 7:.3f}\n" for i in range(60)),
        {"target": "price"},
        ["measurement", "pandas.cut"],
    ),
    "a name twice": ("a,b,a,label\n1,2,3,x\n4,5,6,y\n7,8,9,x\n", {}, ["columns 1 and 3", "'a'"]),
    "a target twice": ("label,a,label\nx,1,x\ny,2,y\nx,3,x\n", {}, ["columns 1 and 3", "'label'"]),
    "no name": (",a,label\n0,1,x\n1,2,x\n2,3,y\n", {}, ["column 1", "no name", "drop=['column 1']"]),
    "no names": ("5.1,3.5,1.4,0\n4.9,3.0,1.4,0\n7,3.2,4.7,1\n", {"target": "0"}, ["line 1", "column"]),
    "labels only": ("label\nx\ny\nx\n", {}, ["only one column", "delimiter"]),
    "one column": ("a b label\n1 2 x\n", {}, ["only one column"]),
    "no features": ("a,label\n1,x\n2,y\n3,y\n", {"drop": ["a"]}, ["no feature columns"]),
    "text that is not named": (MIXED, {"one_hot": ["job"]}, ["'town'"]),
    "no such text": (MIXED, {"one_hot": ["jib"]}, ["Did you mean 'job'", "one_hot"]),
    "no text": ("job,age,label\nnurse,1,x\n,2,y\nnurse,3,x\n", {"one_hot": True}, ["line 3", "'job': 1"]),
    "free text": (
        "who,a,label\n" + "".join(f"name {i},{i},{'xy'[i % 2]}\n" for i in range(50)),
        {"one_hot": True},
        ["'who'", "50 different texts", "drop=['who']"],
    ),
    "an indicator of the same name": ("job=A,job,label\n1,A,x\n2,B,y\n3,A,x\n", {"one_hot": True}, ["'job=A'"]),
}


@pytest.mark.parametrize(("content", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_errors_name_the_place_and_what_to_do(file, content, options, words):
    assert_refused(file(content), *words, **options)


@pytest.mark.parametrize(
    ("cell", "mark"), [("1 234", " "), ("1'234'567", "'"), ("1_000", "_"), ("12\u00a0500", "\u00a0")]
)
def test_thousands_separators_are_never_guessed(file, cell, mark):
    assert_refused(file(f"a,b,label\n1,2,x\n{cell},4,y\n"), "line 3", "'a'", f"thousands={mark!r}")
    value = float(cell.replace(mark, ""))
    table = read_table(file(f"a,label\n1,x\n{cell},y\n2,y\n"), "label", thousands=mark)
    assert table.X.ravel().tolist() == [1, value, 2]


@pytest.mark.parametrize("nothing", ["", " ", "NA", "nan", "NaN", "N/A", "?", "null", "NULL", "#N/A"])
def test_missing_cells_are_counted_and_placed(file, nothing):
    text = f"a,b,label\n1,2,x\n3,{nothing},y\n{nothing},{nothing},x\n7,8,y\n"
    assert_refused(
        file(text), "line 3", "3 missing cells in 2 columns", "'a': 1, first on line 4", "'b': 2, first on line 3"
    )
    assert_refused(file(f"a,label\n1,x\n2,y\n3,{nothing}\n"), "line 4", "1 missing cell in 1 column", "'label'")


def test_what_counts_as_missing_can_be_named(file):
    path = file("a,land\n1,NA\n2,DE\n3,DE\n")
    assert_refused(path, "line 2", target="land")
    assert read_table(path, "land", missing=[""]).y.tolist() == ["NA", "DE", "DE"]
    coded = file("a,l\n1,x\n-9,y\n3,y\n-9.0,y\n")
    assert_refused(coded, "line 3", "2 missing cells", target="l", missing=["", "-9"])


def test_many_columns_with_missing_cells_make_a_short_message(file):
    names = [f"f{i}" for i in range(300)]
    path = file(",".join([*names, "label"]) + "\n" + "," * 300 + "x\n" + "1," * 300 + "y\n")
    message = assert_refused(path, "300 missing cells in 300 columns", "295 more")
    assert len(message) < 900


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "9" * 400])
def test_infinite_and_too_large_numbers(file, cell):
    assert_refused(file(f"a,b,label\n1,2,x\n3,{cell},y\n5,6,x\n"), "line 3", "'b'", "1 such cell", cell[:30])


def test_unknown_suffixes_and_missing_files(file, tmp_path):
    assert_refused(file(PLAIN, "t.docx"), ".docx", ".parquet")
    assert_refused(file(PLAIN, "data"), ".csv")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_table(tmp_path / "nowhere.csv", "label")
    (tmp_path / "folder.csv").mkdir()
    assert_refused(tmp_path / "folder.csv", "holds no files")


# --- indicators ------------------------------------------------------------------------------------


def test_one_hot_keeps_every_level_in_place(file):
    table = read_table(file(MIXED), "label", one_hot=True)
    assert table.feature_names == ("job=admin", "job=nurse", "age", "town=A", "town=B", "town=C")
    np.testing.assert_array_equal(table.X, [[0, 1, 1, 0, 1, 0], [1, 0, 2, 1, 0, 0], [0, 1, 3, 0, 0, 1]])
    assert table.X.dtype == np.float64


def test_one_hot_by_name_takes_columns_of_numbers_too(file):
    path = file("children,age,label\n0,1,x\n3+,2,y\n0,3,x\n1,4,y\n")
    table = read_table(path, "label", one_hot=["children"])
    assert table.feature_names == ("children=0", "children=1", "children=3+", "age")
    assert read_table(file(MIXED), "label", one_hot=["job", "town"]).feature_names[-1] == "town=C"


def test_new_rows_get_the_features_of_the_old_ones(file):
    table = read_table(file(MIXED), "label", one_hot=True)
    new = file("town,extra,job,age\nC,?,admin,9\nA,?,admin,8\n", "new.csv")
    X, _ = read_features(new, table.feature_names)
    np.testing.assert_array_equal(X, [[1, 0, 9, 0, 0, 1], [1, 0, 8, 1, 0, 0]])
    for text, word in [
        ("town,job,age\nX,admin,9\n", "'X'"),
        ("town,job,age\n,admin,9\n", "missing"),
        ("town,job,age\nA,admin,?\n", "missing"),
        ("town,job\nA,admin\n", "'age'"),
        ("job,age\nadmin,1\n", "'town=A'"),
    ]:
        with pytest.raises(TableError, match=r"new\.csv") as caught:
            read_features(file(text, "new.csv"), table.feature_names)
        assert word in str(caught.value)


# --- .npz ------------------------------------------------------------------------------------------

ROWS = sp.csr_array(np.array([[0.0, 2, 0], [1, 0, 0], [0, 0, 3]]))


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        path = tmp_path / "t.npz"
        np.savez_compressed(path, **arrays)
        return path

    return write


def csr_parts(**changed):
    parts = {"data": ROWS.data, "indices": ROWS.indices, "indptr": ROWS.indptr, "shape": np.array(ROWS.shape)}
    return {**parts, "target": np.array(["a", "b", "a"]), **changed}


def test_npz_sparse_and_dense_agree(npz):
    sparse = read_table(npz(**csr_parts()), None)
    assert sp.issparse(sparse.X)
    assert sparse.X.format == "csr"
    np.testing.assert_array_equal(sparse.X.toarray(), ROWS.toarray())
    assert sparse.feature_names == ("f0", "f1", "f2")
    for order in "CF":
        dense = read_table(
            npz(X=np.asarray(ROWS.toarray(), dtype="i4", order=order), y=np.array(["a", "b", "a"])), None
        )
        np.testing.assert_array_equal(dense.X, ROWS.toarray())
        assert dense.X.dtype == np.float64
        assert dense.target == "y"
        assert dense.digest() == sparse.digest()
        assert dense.fingerprint() == sparse.fingerprint()


def test_npz_target_and_names(npz):
    path = npz(X=np.eye(3), kind=np.array([1, 2, 1]), feature_names=np.array(["ä", "b", "c"]))
    table = read_table(path, "kind")
    assert table.y.tolist() == [1, 2, 1]
    assert table.feature_names == ("ä", "b", "c")
    np.testing.assert_array_equal(read_features(path, ["c", "ä"])[0], np.eye(3)[:, [2, 0]])
    assert_refused(path, "'kinds'", "Did you mean 'kind'", target="kinds")
    assert_refused(path, "no labels", target=None)
    with pytest.raises(TableError, match="'zz'"):
        read_features(path, ["zz"])
    with pytest.raises(TableError, match="3 columns, but 2"):
        read_features(npz(X=np.eye(3)), ["a", "b"])


@pytest.mark.parametrize("arrays", [{"X": np.eye(3)}, csr_parts()], ids=["dense", "sparse"])
def test_columns_of_an_npz_without_names_are_not_taken_for_named_ones(npz, arrays):
    path = npz(**arrays)
    for names in (["width", "length", "height"], ["f1", "f0", "f2"], ["c1", "c3", "c2"]):
        with pytest.raises(TableError, match=f"'{names[0]}'.*feature_names"):
            read_features(path, names)
    for names in (["f0", "f1", "f2"], ["c1", "c2", "c3"]):  # of files that had none either
        assert read_features(path, names)[0].shape == (3, 3)


def test_other_columns_of_an_npz_may_lack_cells(npz):
    path = npz(X=np.where([False, True, False], np.nan, np.eye(3)), feature_names=np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(read_features(path, ["c", "a"])[0], np.eye(3)[:, [2, 0]])
    with pytest.raises(TableError, match=r"row 1, column 2: 3 cells.*1 column"):
        read_features(path, ["c", "b"])


def test_npz_repeated_entries_are_added(npz):
    parts = csr_parts(data=np.ones(4), indices=np.array([1, 1, 0, 2]), indptr=np.array([0, 2, 3, 4]))
    np.testing.assert_array_equal(read_table(npz(**parts), None).X.toarray(), [[0, 2, 0], [1, 0, 0], [0, 0, 1]])


SPARSE = [  # parts that do not fit together
    ({"indices": np.array([1, 0, 7])}, "CSR"),
    ({"indices": np.array([1, 0, -1])}, "CSR"),
    ({"indptr": np.array([0, 2, 1, 3])}, "CSR"),
    ({"indptr": np.array([0, 1, 2, 9])}, "CSR"),
    ({"indices": np.array([1.0, 0.0, 2.0])}, "integers"),
    ({"shape": np.array([3, 3, 3])}, "shape"),
    ({"shape": np.array([4, 3])}, "CSR"),
    ({"data": np.array([1, np.nan, np.inf])}, "row 2, column 1: 2 cells"),
    ({"data": np.array(["1", "2", "3"])}, "real numbers"),
    ({"target": np.array(["a", "b"])}, "3 rows"),
    ({"target": np.array([1.0, np.nan, 2.0])}, "row 2"),
    ({"target": np.array(["a", "b", "c"])}, "different labels"),
    ({"format": np.array(b"csc")}, "CSR"),
]


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"X": np.arange(3.0), "y": np.array([1, 2, 1])}, "shape (3,)"),
        ({"X": np.zeros((0, 3)), "y": np.array([])}, "empty"),
        ({"X": np.zeros((3, 0)), "y": np.array([1, 2, 1])}, "empty"),
        (
            {"X": np.array([[1, np.nan], [np.nan, np.inf], [1, 2]]), "y": np.array([1, 2, 1])},
            "row 1, column 2: 3 cells",
        ),
        ({"X": np.eye(3, dtype=complex), "y": np.array([1, 2, 1])}, "complex"),
        ({"rows": np.eye(3), "y": np.array([1, 2, 1])}, "'rows', 'y'"),
        ({"X": np.eye(3), "y": np.array([1, 2, 1]), "feature_names": np.array(["a"])}, "1 feature_names"),
        ({"X": np.eye(3), "y": np.array([1, 2, 1]), "feature_names": np.array(["a", "b", "a"])}, "columns 1 and 3"),
        *((csr_parts(**changed), word) for changed, word in SPARSE),
    ],
)
def test_npz_arrays_that_do_not_fit(npz, arrays, word):
    assert_refused(npz(**arrays), word, target=None)


def test_npz_never_unpickles(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    np.savez(tmp_path / "t.npz", X=np.eye(3), y=np.array([Bomb(), 1, 2], dtype=object))
    assert_refused(tmp_path / "t.npz", "'y'", "never unpickled", target=None)
    assert not (tmp_path / "exploded").exists()


def test_npz_headers_that_lie_about_sizes(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)})
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("X.npy", content.getvalue() + b"\0" * 64)
    assert_refused(path, "'X'", "claims shape (1000000000, 1000000000)", "64 bytes", target=None)


def test_npz_damage_at_every_kind_of_place(npz):
    path = npz(X=np.random.default_rng(0).normal(size=(20, 5)), y=np.arange(20) % 2)
    whole, known = path.read_bytes(), read_table(path, None).digest()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        assert_refused(path, "npz", target=None)
    rng = np.random.default_rng(1)
    for _ in range(100):
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(spoiled))
        try:
            table = read_table(path, None)
        except TableError:
            continue
        # Bits that carry no content (times, flags) may flip unseen; the content may not.
        assert table.X.shape == (20, 5)
        assert table.digest() == known


# --- Parquet and Feather ---------------------------------------------------------------------------


@pytest.fixture(params=["parquet", "feather"])
def arrow_file(request, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    def write(columns):
        path = tmp_path / f"t.{request.param}"
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        if request.param == "parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, str(path))
        return path

    return write


def test_columnar_types(arrow_file):
    import decimal

    import pyarrow as pa

    path = arrow_file(
        {
            "u8": np.array([1, 2, 255], dtype="u1"),
            "i64": np.array([2**62, -5, 0]),
            "f4": np.array([0.5, 1.5, -2], dtype="f4"),
            "flag": [True, False, True],
            "money": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-3.5"), decimal.Decimal("0")]),
            "label": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    table = read_table(path, "label")
    np.testing.assert_array_equal(table.X, [[1, 2.0**62, 0.5, 1, 1.25], [2, -5, 1.5, 0, -3.5], [255, 0, -2, 1, 0]])
    assert table.y.tolist() == ["x", "y", "x"]
    assert read_table(path, "flag", one_hot=True).y.tolist() == [True, False, True]


def test_columnar_and_csv_give_the_same_table(arrow_file, file):
    columns = {"a": [1.5, 2.5, 1e-300], "town": ["A", "ß", "A"], "label": [1, 2, 1]}
    from_arrow = read_table(arrow_file(columns), "label", one_hot=True)
    from_csv = read_table(file("a,town,label\n1.5,A,1\n2.5,ß,2\n1e-300,A,1\n"), "label", one_hot=True)
    assert from_arrow.digest() == from_csv.digest()
    assert from_arrow.feature_names == from_csv.feature_names == ("a", "town=A", "town=ß")


def test_columnar_hazards(arrow_file):
    import pyarrow as pa

    assert_refused(arrow_file({"a": [1, None, None], "label": ["x", "y", "x"]}), "row 2", "2 missing cells", "'a': 2")
    assert_refused(arrow_file({"a": [1.0, np.nan, np.inf], "label": ["x", "y", "x"]}), "row 2", "1 missing cell")
    assert_refused(arrow_file({"a": [1.0, 2.0, np.inf], "label": ["x", "y", "x"]}), "row 3", "'a'", "1 such cell")
    assert_refused(arrow_file({"a": [1, 2, 3], "label": ["x", None, "x"]}), "row 2", "'label'")
    assert_refused(arrow_file({"a": ["p", "q", "p"], "label": ["x", "y", "x"]}), "row 1", "'a'", "'p'", "one_hot=True")
    assert_refused(arrow_file({"a": [1, 2, 3], "label": ["x", "y", "z"]}), "3 different labels")
    assert_refused(arrow_file({"a": [1, 2, 3], "label": ["x", "y", "x"]}), "Did you mean 'label'", target="labl")
    assert_refused(arrow_file({"__index_level_0__": [1, 2, 3], "label": ["x", "y", "x"]}), "row number")
    assert_refused(arrow_file({"a": pa.array([], pa.float64()), "label": pa.array([], pa.string())}), "no rows")


def test_columnar_damage(arrow_file):
    path = arrow_file({"a": np.arange(100.0), "label": ["x", "y"] * 50})
    whole = path.read_bytes()
    for content in (b"", b"PAR1", b"nonsense" * 20, whole[: len(whole) // 2]):
        path.write_bytes(content)
        assert_refused(path, "not a readable")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=path.name):
        read_table(path, "label")


def test_the_extra_is_named_when_pyarrow_is_absent(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(formats.importlib, "import_module", absent)
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"discrim\[tables\]"):
        read_table(path, "label")
    with pytest.raises(MissingExtraError, match=r"discrim\[tables\]"):
        write_table(path, {"a": [1.0]})
    assert path.read_bytes() == b"PAR1"


def test_reading_npz_imports_no_optional_dependency(npz):
    path = npz(X=np.eye(3), y=np.array([1, 2, 1]))
    code = f"""
        import sys
        from discrim.tables.read import read_table
        read_table({str(path)!r}, None)
        print({{"pandas", "pyarrow", "sqlite3", "polars"}} & set(sys.modules))
    """
    out, err = script(code).communicate()
    assert out.strip() == "set()", err


# --- content hashes --------------------------------------------------------------------------------


def table_of(X, y):
    return LabelledTable(np.asarray(X, dtype=float), np.array(y), ("a", "b"), "l", "memory")


def test_fingerprint_equals_its_definition():
    X, y = [[1.0, -0.0], [2.5, 3.0], [1.0, 0.0]], ["p", "q", "p"]
    row = [hashlib.sha256(np.array(r, dtype="<f8").tobytes()).digest() for r in [[1, 0], [2.5, 3], [1, 0]]]
    classes = sorted([hashlib.sha256(b"".join(sorted([row[0], row[2]]))).digest(), hashlib.sha256(row[1]).digest()])
    expected = hashlib.sha256(b"discrim content\n3 2\n" + b"".join(classes)).hexdigest()
    assert table_of(X, y).fingerprint() == expected


def test_fingerprint_sees_content_and_only_content():
    X, y = [[1, 2], [3, 4], [5, 6], [5, 6]], ["p", "q", "p", "q"]
    known = table_of(X, y).fingerprint()
    assert table_of(X[::-1], y[::-1]).fingerprint() == known
    assert table_of(X, ["1", "0", "1", "0"]).fingerprint() == known
    assert table_of([[1, 2], [3, 4], [5, 6], [5, 6.0000000001]], y).fingerprint() != known
    assert table_of(X, ["p", "q", "q", "q"]).fingerprint() != known
    assert table_of(np.array(X)[:, ::-1], y).fingerprint() != known
    assert table_of(X + X, y + y).fingerprint() != known


def test_digest_sees_order_and_names():
    X, y = [[1, 2], [3, 4], [5, 6]], ["p", "q", "p"]
    known = table_of(X, y).digest()
    assert table_of(X, y).digest() == known
    assert table_of(X[::-1], y[::-1]).digest() != known
    assert table_of(X, ["1", "0", "1"]).digest() != known


@pytest.mark.parametrize("sign", ["", "\n", "\0", ","])
def test_digest_depends_on_the_ends_of_labels(sign):
    X = [[1, 2], [3, 4]]
    known = table_of(X, [f"p{sign}q", "r"]).digest()
    assert table_of(X, ["p", f"q{sign}r"]).digest() != known


# --- writing ---------------------------------------------------------------------------------------

COLUMNS = {
    "x,1": np.array([0.1, -1e-300, 3.0]),
    "n": np.array([2**62, -1, 0]),
    "ß": np.array(["plain", 'with "quotes"', "line\nbreak"]),
    "label": np.array(["-1", "+1", "-1"]),
}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.feather"])
def test_written_tables_read_back(tmp_path, name):
    write_table(tmp_path / name, COLUMNS)
    table = read_table(tmp_path / name, "label", one_hot=True)
    np.testing.assert_array_equal(table.X[:, 0], COLUMNS["x,1"])
    np.testing.assert_array_equal(table.X[:, 1], COLUMNS["n"].astype(float))
    assert table.feature_names[:2] == ("x,1", "n")
    assert set(table.feature_names[2:]) == {f"ß={level}" for level in COLUMNS["ß"]}
    assert table.y.tolist() == ["-1", "+1", "-1"]
    assert os.listdir(tmp_path) == [name]


def test_frames_can_be_written(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)):
        write_table(tmp_path / "t.csv", frame)
        assert read_table(tmp_path / "t.csv", "label", one_hot=True).feature_names[:2] == ("x,1", "n")


def test_the_same_table_makes_the_same_bytes(tmp_path):
    write_table(tmp_path / "a.csv.gz", COLUMNS)
    write_table(tmp_path / "b.csv.gz", COLUMNS)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_columns_that_make_no_table(tmp_path):
    for columns in ({}, {"a": [1, 2], "b": [1]}, {"a": [[1, 2], [3, 4]]}):
        with pytest.raises(ValueError, match="one length"):
            write_table(tmp_path / "t.csv", columns)
    with pytest.raises(ValueError, match=r"\.xlsx"):
        write_table(tmp_path / "t.xlsx", {"a": [1]})
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, {"a": [1.0]})
    old = path.read_bytes()

    class Unprintable:
        def __str__(self):
            raise RuntimeError("no text")

    with pytest.raises(RuntimeError, match="no text"):
        write_table(path, {"a": np.array([Unprintable()], dtype=object)})
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "nowhere" / "t.csv"
    with pytest.raises(FileNotFoundError) as caught:
        write_table(path, {"a": [1.0]})
    assert caught.value.filename == str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather"])
def test_a_full_disk_is_an_oserror_that_names_the_path(tmp_path, name):
    path = tmp_path / name
    code = f"""
        import resource, numpy as np
        from discrim.tables.writing import write_table
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            write_table({str(path)!r}, {{"a": np.random.default_rng(0).normal(size=50_000)}})
        except OSError as error:
            assert error.filename == {str(path)!r}, repr(error)
            print("refused")
    """
    out, err = script(code).communicate()
    assert out.strip() == "refused", err
    assert os.listdir(tmp_path) == []
