"""Messy tables: ids, missing cells, rare classes, transposed files, sheets, doubtful headers."""

import gzip
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from discrim import PCA, FisherLDA
from discrim.tables.archive import labels_of
from discrim.tables.read import read_features, read_table
from discrim.tables.table_error import TableError

OPTIONS = {"drop": "--drop", "one_hot": "--one-hot", "impute": "--impute", "header": "--header/--no-header"}


def refusal(path, target="label", **options):
    with pytest.raises(TableError) as caught:
        read_table(path, target, **options)
    return caught.value


# --- header or row --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        "5,x\n6,y\n7,x\n",  # one feature
        "1,2,3,4,x\n2,3,4,5,y\n9,9,9,9,x\n",  # rising numbers
        "5.1,red,x\n4.9,blue,y\n4,red,x\n",  # a text feature
        "red,small,x\nblue,big,y\nred,small,x\nblue,big,y\n",  # nothing but text
        "5,1\n6,2\n7,2\n",  # labels that are numbers
        "5,NA,x\n6,2,y\n7,3,x\n",  # a missing cell on top
        "0,1\n1,2\n3,2\n",
    ],
)
def test_a_first_row_is_never_taken_for_names(file, rows):
    rows = 2 * rows
    error = refusal(file(rows), None, one_hot=True)
    assert "line 1" in str(error)
    assert "This looks like a row, which would be lost." in str(error)
    assert "header=False" in str(error)
    assert "--no-header" in error.on_the_command_line(OPTIONS)
    table = read_table(file(rows), None, one_hot=True, header=False, missing_cells="keep")
    assert table.n_samples == rows.count("\n")
    assert table.target == f"c{rows.split(chr(10))[0].count(',') + 1}"
    assert (
        read_table(file(rows), None, one_hot=True, header=True, missing_cells="keep").n_samples == rows.count("\n") - 1
    )


@pytest.mark.parametrize(
    ("head", "labels", "noted"),
    [
        ("a,b,label", "121", False),
        ("a,2,label", "xyx", False),
        ("400,402.5,405,label", "121", False),
        ("400,402.5,405,label", "xyx", True),
        ("0,1,2,3", "121", True),
        ("1,2,3,4", "xyx", True),
    ],
)
def test_a_header_is_recognised_with_a_note_if_in_doubt(file, head, labels, noted):
    n = head.count(",")
    path = file(f"{head}\n" + "".join(f"{'7,' * n}{label}\n" for label in labels))
    table = read_table(path, None)
    assert (table.n_samples, table.target) == (3, head.split(",")[-1])
    assert ("taken for the names" in " ".join(table.notes)) == noted


def test_a_target_by_its_name_proves_the_names(file):
    assert read_table(file("red,small,kind\nred,big,x\nblue,small,y\nred,big,x\n"), "kind", one_hot=True).n_samples == 3


# --- ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet"])
def test_ids_are_kept_and_not_features(tmp_path, name):
    import pandas as pd

    frame = pd.DataFrame(
        {"who": ["u 1", "u,2", "Ä"], "a": [1.5, 2, 3], "flag": [True, False, True], "label": list("xyx")}
    )
    path = tmp_path / name
    {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[name[2:]](path, index=False)
    table = read_table(path, "label", id_column="who")
    assert table.ids.tolist() == ["u 1", "u,2", "Ä"]
    assert (table.id_column, table.feature_names) == ("who", ("a", "flag"))
    np.testing.assert_array_equal(table.X, [[1.5, 1], [2, 0], [3, 1]])
    assert table.y.tolist() == ["x", "y", "x"]
    X, ids = read_features(path, ["flag", "a"], id_column="who")
    np.testing.assert_array_equal(X, table.X[:, ::-1])
    assert ids.tolist() == table.ids.tolist()


def test_rows_left_out_take_their_ids_with_them(file):
    path = file("who,a,label\nu,1,x\nv,,y\nw,3,x\nt,4,\ns,5,y\n")
    table = read_table(path, "label", id_column="who", missing_cells="drop")
    assert table.ids.tolist() == ["u", "w", "s"]
    assert table.X.ravel().tolist() == [1, 3, 5]
    assert table.y.tolist() == ["x", "x", "y"]
    assert "1 row without a label" in table.notes[0]
    assert "1 row with missing cells" in table.notes[1]


def test_columns_like_an_id_or_the_target_are_named(file):
    rows = "".join(f"{9000 + 7 * i},{i + 5},{i % 2 * 3 - 1},{i * i % 11},{'xy'[i % 2]}\n" for i in range(30))
    notes = read_table(file("patient_id,line,code,a,label\n" + rows), "label").notes
    assert len(notes) == 2
    assert notes[0].startswith("'patient_id', 'line' look like row numbers or identifiers")
    assert notes[1].startswith("'code' looks like the target 'label' in other words")


def test_a_text_column_that_is_the_target_is_named_when_it_becomes_indicators(file):
    rows = [(i % 3, f"{'abc'[i % 3]}", "uv"[i % 3 == 0], i * i % 11) for i in range(30)]
    text = "".join(f"{kind},{half},{a},{'xyz'[label]}\n" for label, kind, half, a in rows)
    table = read_table(file("kind,half,a,label\n" + text), "label", one_hot=True)
    assert table.n_features == 6
    (note,) = table.notes  # 'half' separates one class from the others, which a good column may do
    assert note.startswith("'kind' looks like the target 'label' in other words")


def test_labels_in_another_column_than_the_last_are_suggested_as_such(file):
    rows = "".join(f"{'xyz'[i % 3]},{i * i % 11},{i % 7}.5\n" for i in range(30))
    error = refusal(file("kind,a,b\n" + rows), target=None)
    assert "If 'kind' holds the labels, name it with target='kind'; or leave it out" in str(error)
    assert "--target kind" in error.on_the_command_line({"target": "--target", "drop": "--drop"})
    assert "holds the labels" not in str(refusal(file("kind,a,b\n" + rows), target="b"))
    worded = file("kind,a,b,label\n" + rows.replace("\n", ",yes\n"))
    assert "holds the labels" not in str(refusal(worded, target=None))  # the last column has words, and is meant
    names = "".join(f"n{i},{i % 3},{i % 7}.5\n" for i in range(30))
    assert "holds the labels" not in str(refusal(file("who,a,b\n" + names), target=None))  # no word comes again
    commas = "".join(f'"{i % 3},5",{i % 3},{i % 7}.5\n' for i in range(30))
    assert "holds the labels" not in str(refusal(file("c,a,b\n" + commas), target=None))


def test_a_row_of_words_suggests_a_transposed_file(file):
    head = "gene," + ",".join(f"s{i}" for i in range(8)) + "\n"
    numbers = "".join(f"g{i}," + ",".join(str(i * j % 5) for j in range(8)) + "\n" for i in range(4))
    error = refusal(file(head + "label," + ",".join("xy" * 4) + "\n" + numbers), target=None)
    assert "If the file has a row for each feature and a column for each sample, read it with transpose=True" in str(
        error
    )
    assert "transpose" not in str(refusal(file("a,b,c,label\n1,2,x,u\n2,3,4,v\n5,6,7,u\n"), target="label"))


def test_ordinary_columns_raise_no_notes(file):
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{b},{'xyz'[i % 3]}\n" for i, (a, b) in enumerate(rng.integers(0, 50, (60, 2)).tolist()))
    assert read_table(file("a,b,label\n" + rows), "label").notes == ()


# --- cells ----------------------------------------------------------------------------------------------------------


def test_missing_cells_are_kept_for_an_imputer_or_their_rows_dropped(file, tmp_path):
    path = file("a,b,label\n1,2,x\n,3,y\n4,NA,x\n5,6,y\n7,8,y\n")
    kept = read_table(path, "label", missing_cells="keep")
    np.testing.assert_array_equal(kept.X, [[1, 2], [np.nan, 3], [4, np.nan], [5, 6], [7, 8]])
    assert read_table(path, "label", missing_cells="drop").X.tolist() == [[1, 2], [5, 6], [7, 8]]
    X, _ = read_features(path, ["b"], missing_cells="keep")
    np.testing.assert_array_equal(X.ravel(), [2, 3, np.nan, 6, 8])
    np.savez(tmp_path / "t.npz", X=kept.X, y=kept.y)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz", None, missing_cells="keep").X, kept.X)
    assert read_table(tmp_path / "t.npz", None, missing_cells="drop").n_samples == 3
    np.savez(tmp_path / "t.npz", X=np.array([[1.0], [np.inf], [2]]), y=[1, 2, 1])
    assert "infinite" in str(refusal(tmp_path / "t.npz", None, missing_cells="keep"))
    sparse = csr_array(kept.X)
    parts = {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, "shape": np.array(sparse.shape)}
    np.savez(tmp_path / "s.npz", y=kept.y, **parts)
    assert read_table(tmp_path / "s.npz", None, missing_cells="drop").X.toarray().tolist() == [[1, 2], [5, 6], [7, 8]]


def test_a_missing_category_is_missing_in_all_its_indicators(file):
    table = read_table(file("job,label\na,x\n,y\nb,x\na,y\n"), "label", one_hot=True, missing_cells="keep")
    np.testing.assert_array_equal(table.X, [[1, 0], [np.nan, np.nan], [0, 1], [1, 0]])


@pytest.mark.parametrize("words", [("True", "False"), ("true", "FALSE"), ("TRUE", "TRUE")])
def test_booleans_are_numbers(file, words):
    path = file(f"a,flag,label\n1,{words[0]},x\n2,{words[1]},y\n3,{words[0]},x\n")
    expected = [float(word.lower() == "true") for word in (words[0], words[1], words[0])]
    assert read_table(path, "label").X[:, 1].tolist() == expected


def test_advice_never_drops_the_target_and_names_valid_options(file):
    error = refusal(file("a,label\n1,x\n2,\n3,y\n"))
    assert "drop=[" not in str(error)
    assert "missing_cells='drop'" in str(error)
    both = refusal(file("a,b,label\n1,,x\n2,3,y\n3,4,y\n"))
    assert "drop=['b']" in str(both)
    spoken = both.on_the_command_line(OPTIONS)
    assert "--drop b" in spoken
    assert "--impute median" in spoken
    assert "=" not in spoken
    assert "--" not in both.on_the_command_line({})


# --- classes --------------------------------------------------------------------------------------------------------


def test_rare_classes_are_left_out_by_name(file):
    path = file("a,label\n1,x\n2,y\n3,x\n4,rare\n5,y\n")
    table = read_table(path, "label", min_class_size=2)
    assert table.class_counts() == {"x": 2, "y": 2}
    assert table.X.ravel().tolist() == [1, 2, 3, 5]
    assert table.notes == ("Left out, with fewer than 2 rows: 'rare' (1).",)
    assert "no row is left" in str(refusal(path, min_class_size=9))


def test_labels_that_differ_in_case_or_blanks_are_pointed_out(file):
    (note,) = read_table(file("a,label\n1,New York\n2,new  york\n3,Rome\n4,Rome\n"), "label").notes
    assert "'New York', 'new  york'" in note
    assert "case or blanks" in note


@pytest.mark.parametrize("values", [[1, "1"] * 3, [True, "True"] * 3, [0.5, False] * 3])
def test_labels_of_two_types_are_refused(values):
    with pytest.raises(TableError, match="one type"):
        labels_of("t", values)


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "xlsx", "parquet"])
def test_transposed_files(tmp_path, ending):
    import pandas as pd

    frame = pd.DataFrame(
        {
            "gene": ["BRCA1", "TP53", "tissue"],
            "s1": ["1", "2.5", "liver"],
            "s2": ["3", "4", "lung"],
            "s3": [5, "6", "liver"],
        }
    ).astype(str)
    path = tmp_path / f"t.{ending}"
    if ending == "xlsx":
        frame.to_excel(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    table = read_table(path, "tissue", transpose=True)
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4], [5, 6]])
    assert table.feature_names == ("BRCA1", "TP53")
    assert table.y.tolist() == ["liver", "lung", "liver"]
    assert table.ids.tolist() == ["s1", "s2", "s3"]
    X, ids = read_features(path, ["TP53"], transpose=True)
    assert X.ravel().tolist() == [2.5, 4, 6]
    assert ids.tolist() == ["s1", "s2", "s3"]


def test_a_target_that_is_the_name_of_a_row_suggests_a_transposed_file(file):
    path = file("gene,s1,s2,s3\nA,1,2,3\nB,1,2,3\nkind,p,q,p\n")
    message = str(refusal(path, "kind"))
    assert "If rows are features and columns are samples, read it with transpose=True." in message
    assert read_table(path, "kind", transpose=True).y.tolist() == ["p", "q", "p"]
    assert "transpose" not in str(refusal(path, "sort"))


def test_sheets(tmp_path):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    for row in [["a", "when", "label"], [1, datetime.date(2024, 1, 2), "x"], [], [2.5, None, "y"], [3, "later", "x"]]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx", "label", drop=["when"]).X.ravel().tolist() == [1, 2.5, 3]
    message = str(refusal(tmp_path / "t.xlsx"))
    assert "row 2, column 'when': '2024-01-02T" in message
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    assert "not a readable .xlsx" in str(refusal(tmp_path / "t.xlsx"))


def test_whole_numbers_of_a_sheet_are_those_of_other_files(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"who": [7, 8, 123_456_789_012_345, 10], "a": [1, None, 3, 4.5], "b": [1, 2, 3, 2**40]})
    frame["label"] = [1, 10, 1, 10]
    tables = []
    for name, write in (("t.xlsx", frame.to_excel), ("t.csv", frame.to_csv), ("t.parquet", frame.to_parquet)):
        write(tmp_path / name, index=False)
        tables.append(read_table(tmp_path / name, "label", id_column="who", missing_cells="keep"))
    for table in tables:
        assert table.ids.tolist() == ["7", "8", "123456789012345", "10"]
        assert table.y.tolist() == frame["label"].tolist()
        np.testing.assert_array_equal(table.X, frame[["a", "b"]].astype(float))


@pytest.mark.parametrize("quoted", [False, True])
def test_a_header_of_any_width(file, quoted):
    names = [f"ENSG{at:017d}" for at in range(9_000)]
    head = ",".join(f'"{name}"' if quoted else name for name in names)
    assert len(head) > 131_072
    path = file(f"{head},label\n" + "".join("1.5," * 9_000 + f"{label}\n" for label in "xyx"))
    table = read_table(path, "label")
    assert table.feature_names == tuple(names)
    assert (table.X == 1.5).all()
    assert read_table(file(f"a,label\n1,x\n2,y\n3,{'z' * 200_000}\n4,x\n"), "label").n_samples == 4


def test_several_columns_are_dropped_by_one_argument(file):
    path = file('a,"b,c",b,c,label\n1,2,3,4,x\n5,6,7,8,y\n9,9,9,9,x\n')
    assert read_table(path, "label", drop=["b,c"]).feature_names == ("a", "b", "c")
    assert read_table(path, "label", drop=["a,b"]).feature_names == ("b,c", "c")
    assert "'d' (drop)" in str(refusal(path, drop=["a,d"]))


# --- both parsers agree ---------------------------------------------------------------------------------------------


def test_both_parsers_read_the_same(file):
    rng = np.random.default_rng(3)
    cells = [
        repr(float(value)) for value in np.concatenate([rng.normal(size=300) * 10.0 ** rng.integers(-300, 300, 300)])
    ]
    rows = [f"{cells[3 * i]},{cells[3 * i + 1]},{cells[3 * i + 2]},{'xy'[i % 2]}" for i in range(100)]
    fast = read_table(file("a,b,c,label\n" + "\n".join(rows) + "\n"), "label")
    rows[50] = " " + rows[50].replace(",x", ', "x"')  # a quote after a blank: Python's csv module takes over
    slow = read_table(file("a,b,c,label\n" + "\n".join(rows) + "\n"), "label")
    assert fast.digest() == slow.digest()
    assert fast.X.tolist() == [[float(cell) for cell in row.strip().split(",")[:3]] for row in rows]


# --- the limit ------------------------------------------------------------------------------------------------------


def test_every_format_is_held_to_the_limit_before_it_is_unpacked(tmp_path):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    n = 400_000
    table = pa.table({"a": np.zeros(n), "label": pa.array(["x", "y"] * (n // 2)).dictionary_encode()})
    long = pa.table({"a": np.zeros(n), "label": pa.array(["x" * 5_000, "y"] * (n // 2)).dictionary_encode()})
    pyarrow.feather.write_feather(table, str(tmp_path / "zeros.feather"), compression="zstd")
    pyarrow.parquet.write_table(table, tmp_path / "zeros.parquet")
    pyarrow.parquet.write_table(long, tmp_path / "long.parquet")
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((n, 1)), y=np.arange(n) % 2)
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}
    np.savez_compressed(tmp_path / "wide.npz", shape=np.array([2, 10**9]), y=np.array([1, 2]), **parts)
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(b"a,label\n" + b"0" * 8 * n))
    for path in sorted(tmp_path.iterdir()):
        assert path.stat().st_size < 100_000
        error = refusal(path, None if path.suffix == ".npz" else "label", max_bytes=2_000_000)
        assert re.search(r"2,000,000 bytes of memory", str(error)), path
        assert "max_bytes" in str(error)
    claimed = f"zeros.feather would take {8 * 2 * n:,} bytes, more"  # known by its rows and columns, nothing unpacked
    assert claimed in str(refusal(tmp_path / "zeros.feather", max_bytes=2_000_000))


LIMITED = """
import resource, sys
from discrim.tables.read import read_table
from discrim.tables.table_error import TableError
read_table(sys.argv[1], "label")
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 60_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    read_table(sys.argv[2], "label")
except TableError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_with_little_memory_refuses_by_name_what_would_fill_it(file):
    small = file("a,label\n" + "1,x\n2,y\n" * 4)
    much = file(gzip.compress(b"a,label\n" + b"1.5,x\n2,y\n" * 3_000_000), "t.csv.gz")
    done = subprocess.run([sys.executable, "-c", LIMITED, small, much], capture_output=True, text=True, check=True)
    assert re.search(r"t.csv.gz would take more than a quarter of the [\d,]+ bytes of memory", done.stdout)


@pytest.mark.parametrize("read", [lambda path: read_table(path, "label"), lambda path: read_features(path, ["a"])])
@pytest.mark.parametrize(
    ("words", "expected"),
    [(["Unable to allocate 3.00 GiB"], r"free memory \(Unable to allocate 3.00 GiB\)\."), ([], r"free memory\.")],
)
def test_running_out_of_memory_is_reported(read, file, monkeypatch, words, expected):
    def fails(*given):
        raise MemoryError(*words)

    monkeypatch.setattr("discrim.tables.source.numbers", fails)
    with pytest.raises(TableError, match=rf"t.csv.*{expected}"):
        read(file("a,label\n1,x\n2,y\n"))


def test_what_fits_is_read(tmp_path):
    import pyarrow as pa
    import pyarrow.feather

    table = pa.table({"a": np.arange(1000.0), "label": ["x", "y"] * 500})
    for compression in ("zstd", "lz4", "uncompressed"):
        pyarrow.feather.write_feather(table, str(tmp_path / "t.feather"), compression=compression)
        assert read_table(tmp_path / "t.feather", "label", max_bytes=20_000).n_samples == 1000
        assert "bytes of memory" in str(refusal(tmp_path / "t.feather", max_bytes=10_000))


def test_feather_is_held_to_the_limit_by_its_texts_too_and_read_in_its_first_version(tmp_path):
    import pyarrow as pa
    import pyarrow.feather

    path, notes = tmp_path / "t.feather", ["x" * 5_000, "y" * 5_000] * 1_000
    table = pa.table({"a": np.zeros(2_000), "note": notes, "label": ["x", "y"] * 1_000})
    pyarrow.feather.write_feather(table, str(path), compression="zstd")
    assert path.stat().st_size < 100_000
    assert read_table(path, "label", drop=["note"], max_bytes=2_000_000).n_samples == 2_000
    message = str(refusal(path, id_column="note", max_bytes=2_000_000))
    assert "t.feather would take more than the allowed 2,000,000 bytes of memory." in message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pyarrow.feather.write_feather(pa.table({"a": [1.0, 2.0, 3.0], "label": ["x", "y", "x"]}), str(path), version=1)
        table = read_table(path, "label")
        assert "bytes of memory" in str(refusal(path, max_bytes=50))
    assert (table.X.ravel().tolist(), table.y.tolist()) == ([1.0, 2.0, 3.0], ["x", "y", "x"])


def test_a_missing_text_of_new_rows_is_named_by_its_line(file):
    path = file("town,a\nRome,1\n,2\nOslo,3\n")
    names = ["town=Rome", "town=Oslo", "a"]
    with pytest.raises(TableError, match=r"t.csv, line 3: 1 missing.*'town'"):
        read_features(path, names)
    X, _ = read_features(path, names, missing_cells="keep")
    np.testing.assert_array_equal(X, [[1, 0, 1], [np.nan, np.nan, 2], [0, 1, 3]])


def test_numbers_that_repeat_after_many_rows_are_not_an_identifier(file):
    rows = "".join(f"{at % 250},{at * 37 % 11},{'xy'[at * 7 % 13 > 5]}\n" for at in range(300))
    assert read_table(file("visit_id,a,label\n" + rows), "label").notes == ()
    once = "".join(f"{7 * at},{at * 37 % 11},{'xy'[at * 7 % 13 > 5]}\n" for at in range(300))
    (note,) = read_table(file("visit_id,a,label\n" + once), "label").notes
    assert note == "'visit_id' looks like row numbers or identifiers, and is used as features."


LOOK_LIKE_NUMBERS = {  # column b of a frame, made of texts and dates
    "polars categories": lambda pl, pa, texts, dates: pl.Series(texts).cast(pl.Categorical),
    "polars enums": lambda pl, pa, texts, dates: pl.Series(texts).cast(pl.Enum(["1", "7"])),
    "polars dates": lambda pl, pa, texts, dates: pl.Series(dates).cast(pl.Date),
    "polars times": lambda pl, pa, texts, dates: dates,
    "Arrow categories": lambda pl, pa, texts, dates: pa.array(texts).dictionary_encode(),
    "Arrow dates": lambda pl, pa, texts, dates: pa.array(dates.astype("M8[D]")),
    "Arrow durations": lambda pl, pa, texts, dates: pa.array(dates - dates[0]),
}


@pytest.mark.parametrize("name", LOOK_LIKE_NUMBERS)
def test_frames_of_other_libraries_with_categories_or_dates_are_refused(name):
    import pyarrow as pa

    pl = pytest.importorskip("polars")
    b = LOOK_LIKE_NUMBERS[name](pl, pa, ["1", "7"] * 10, np.arange(20).astype("M8[ms]"))
    frame = (pl.DataFrame if name.startswith("polars") else pa.table)({"a": np.arange(20.0), "b": b})
    held = "categories of text" if name.endswith(("categories", "enums")) else "dates or times"
    for fit in (lambda: PCA(1).fit(frame), lambda: FisherLDA(1).fit(frame, ["u", "v"] * 10)):
        with pytest.raises(ValueError, match=rf"{held} in 'b' \(1 of 2 columns\)"):
            fit()


def test_equal_columns_of_an_arrow_table_are_two_columns_and_equal_names_are_refused():
    import pyarrow as pa

    a = np.arange(20.0)
    assert PCA(1).fit(pa.table({"a": a, "b": a})).feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"Column names must be unique; got 'a' more than once"):
        PCA(1).fit(pa.table([pa.array(a), pa.array(a**2)], names=["a", "a"]))
