"""Files beyond memory: the model of all rows from every format, features per file, continued runs."""

import gzip
import io
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import refuse, succeed
from samples import labelled

from discrim import PCA, BayesErrorLDA, HashKFold, load
from discrim.engines.table_files import gather_files, in_files, sampled_rows, transform_files
from discrim.estimators.parts import MAX_MEMORY, fit_in_parts, gathering_of
from discrim.tables.cells import Dialect
from discrim.tables.source import TableSource
from discrim.tables.table_error import TableError

X, Y = labelled(300, 6)
TWO = {"one": "float64", "two": "float64"}
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.array(["x", "y", "z"])[Y])
WANTED = BayesErrorLDA(cv=HashKFold(5)).fit(X, FRAME["kind"]).transform(X)


def in_parts(folder, write="to_parquet"):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(300), 3)):
        getattr(FRAME.iloc[rows].reset_index(drop=True), write)(folder / f"p{number}.{write[3:]}")
    return folder


def test_every_kind_of_files_gives_the_same_model(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv.gz", index=False)
    FRAME.to_feather(tmp_path / "rows.feather")
    FRAME.to_parquet(tmp_path / "hive", partition_cols=["kind"])
    sources = [tmp_path / "rows.csv.gz", tmp_path / "rows.feather", tmp_path / "hive", in_parts(tmp_path / "parts")]
    for source in sources:
        table = TableSource.open(source, "kind")
        model = BayesErrorLDA()
        fit_in_parts(model, in_files(table), MAX_MEMORY)
        np.testing.assert_allclose(model.transform(FRAME[list("abcdef")]), WANTED, atol=1e-10)


def test_batches_of_any_length_are_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("discrim.tables.source.BATCH_ROWS", 64)
    monkeypatch.setattr("discrim.tables.cells.TURNED", 10)
    uneven = pq.ParquetWriter(tmp_path / "rows.parquet", pa.Table.from_pandas(FRAME).schema)
    for start, end in ((0, 20), (20, 220), (220, 300)):
        uneven.write_table(pa.Table.from_pandas(FRAME.iloc[start:end]))
    uneven.close()
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    FRAME.to_feather(tmp_path / "rows.feather")
    np.save(tmp_path / "rows.npy", X)
    (alone,) = TableSource.open(tmp_path / "rows.npy", None, labelled=False).parts
    batches = [rows.copy() for rows, _ in TableSource.open(tmp_path / "rows.npy", None, labelled=False).batches(alone)]
    np.testing.assert_array_equal(np.concatenate(batches), X)
    assert [len(rows) for rows in batches] == [64, 64, 64, 64, 44]
    for name in ("rows.parquet", "rows.csv", "rows.feather"):
        table = TableSource.open(tmp_path / name, "kind")
        (part,) = table.parts
        batches = [(rows.copy(), labels) for rows, labels in table.batches(part)]
        assert max(len(rows) for rows, _ in batches) <= (64 if name != "rows.csv" else 300)
        np.testing.assert_array_equal(np.concatenate([rows for rows, _ in batches]), X)
        assert np.concatenate([labels for _, labels in batches]).tolist() == FRAME["kind"].tolist()
    FRAME.assign(kind=FRAME["kind"].where(FRAME.index != 250)).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows.parquet, row 251.*'kind'"):
        gather_files(TableSource.open(tmp_path / "rows.parquet", "kind"), gathering_of(PCA(2)))
    FRAME.assign(c=FRAME["c"].where(FRAME.index != 250)).to_parquet(tmp_path / "rows.parquet")
    table = TableSource.open(tmp_path / "rows.parquet", "kind")
    with pytest.raises(ValueError, match=r"rows.parquet, row 251.*'c'"):
        transform_files(table, lambda rows: PCA(2).fit(X).transform(rows).T, TWO, tmp_path / "out", b"")
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(ValueError, match=r"rows.parquet, row 251.*'c'"):
        gather_files(table, gathering_of(PCA(2)))


def test_whole_numbers_decimals_bools_and_single_precision(tmp_path):
    whole = np.arange(300) - 7
    columns = {"a": pa.array([Decimal(int(n)) / 4 for n in whole]), "b": whole, "c": whole % 2 == 0, "d": X[:, 0]}
    pq.write_table(pa.table(columns | {"kind": FRAME["kind"]}), tmp_path / "rows.parquet")
    table = TableSource.open(tmp_path / "rows.parquet", "kind")
    ((rows, _),) = table.batches(table.parts[0])
    np.testing.assert_array_equal(rows, np.column_stack([whole / 4, whole, whole % 2 == 0, X[:, 0]]))
    FRAME.astype(dict.fromkeys("abcdef", np.float32)).to_parquet(tmp_path / "rows.parquet")
    table = TableSource.open(tmp_path / "rows.parquet", "kind")
    ((rows, _),) = table.batches(table.parts[0])
    assert rows.dtype == np.float32


def test_features_of_a_changed_file_are_written_again(tmp_path):
    parts, out = in_parts(tmp_path / "parts"), tmp_path / "out"

    def written():
        transform_files(TableSource.open(parts, "kind"), lambda rows: rows[:, :1].T, {"one": "float64"}, out, b"model")
        return pq.read_table(out / "p0.parquet").to_pandas()["one"].tolist()

    before = written()
    FRAME.iloc[150:250].to_parquet(parts / "p0.parquet", index=False)
    assert written() == FRAME["a"][150:250].tolist() != before


def test_an_interrupted_run_continues_and_another_model_starts_again(tmp_path):
    table = TableSource.open(in_parts(tmp_path / "parts"), "kind")
    calls = []

    def transform(rows):
        calls.append(len(rows))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return rows[:, :2].T

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        transform_files(table, transform, TWO, out, b"model")
    assert sorted(p.name for p in out.iterdir()) == ["p0.parquet", "p1.parquet"]  # whole or absent
    assert transform_files(table, transform, TWO, out, b"model") == 300
    assert len(calls) == 4
    assert pq.read_table(out).column_names == ["one", "two", "kind"]
    assert transform_files(table, transform, TWO, out, b"another") == 300
    assert len(calls) == 7


ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # one file after the other
KILLED = """
import os, signal, sys
from pathlib import Path
from discrim.engines.table_files import transform_files
from discrim.tables.source import TableSource
calls = []
def transform(rows):
    calls.append(0)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows[:, :2].T
TWO = {"one": "float64", "two": "float64"}
transform_files(TableSource.open(Path(sys.argv[1]), "kind"), transform, TWO, Path(sys.argv[2]), b"model")
"""


def test_the_next_run_removes_leftovers_of_a_killed_one(tmp_path):
    parts, out = in_parts(tmp_path / "parts"), tmp_path / "out"
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(parts), str(out)], env=ONE_THREAD, check=False)
        assert killed.returncode == -9
    assert sorted(p.name for p in out.iterdir()) == [".p2.parquet.part", "p0.parquet", "p1.parquet"]
    table = TableSource.open(parts, "kind")
    assert transform_files(table, lambda rows: rows[:, :2].T, TWO, out, b"model") == 300
    assert sorted(p.name for p in out.iterdir()) == ["p0.parquet", "p1.parquet", "p2.parquet"]
    np.testing.assert_array_equal(pq.read_table(out / "p2.parquet").to_pandas()["one"], FRAME["a"][200:])


def test_every_file_has_features_of_its_own_and_none_is_written_over(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(300), 3)):  # as Dask calls them
        FRAME.iloc[rows].to_parquet(parts / f"part.{number}.parquet", index=False)
    table, out = TableSource.open(parts, "kind"), tmp_path / "out"

    def transform(rows):
        return rows[:, :2].T

    assert transform_files(table, transform, TWO, out, b"model") == 300
    np.testing.assert_array_equal(pq.read_table(out).to_pandas()[["one", "two"]], X[:, :2])
    alone = parts / "part.0.parquet"
    before = alone.read_bytes()
    for source, folder in ((parts, parts), (parts, parts / "features"), (alone, parts)):
        with pytest.raises(TableError, match="Name another folder"):
            transform_files(TableSource.open(source, "kind"), transform, TWO, folder, b"model")
    assert alone.read_bytes() == before
    same = tmp_path / "same"
    same.mkdir()
    FRAME.to_csv(same / "rows.csv", index=False)
    FRAME.to_csv(same / "rows.csv.gz", index=False)
    with pytest.raises(TableError, match=r"rows.csv.*rows.csv.gz.*rows.parquet"):
        transform_files(TableSource.open(same, "kind"), transform, TWO, out, b"model")


def test_features_of_a_removed_part_are_reported(tmp_path):
    parts, out, model = in_parts(tmp_path / "parts"), tmp_path / "out", tmp_path / "m.discrim"
    project = ["project", str(parts), "-t", "kind", "-m", "pca", "--out", str(out), "--model", str(model)]
    apply = ["apply", str(model), str(parts), "--out", str(out)]
    succeed(*project)
    for other in ("notes.txt", ".hidden.parquet", "_temporary/p9.parquet"):  # ignored
        (out / other).parent.mkdir(exist_ok=True)
        (out / other).write_text("")
    before = model.read_bytes()
    (parts / "p2.parquet").unlink()
    FRAME.iloc[:20].to_parquet(parts / "p0.parquet", index=False)
    kept = (out / "p0.parquet").read_bytes()
    for command in (project, apply):
        message = refuse(*command)
        assert f"out holds 'p2.parquet', which is no part of {parts}. Remove it, or name another folder" in message
        assert "gathered" not in message
        assert model.read_bytes() == before
        assert (out / "p0.parquet").read_bytes() == kept
    (out / "p2.parquet").unlink()
    for command in (project, apply):
        succeed(*command)
    (out / "kind=x").mkdir()
    for name in ("p7.parquet", "kind=x/p0.parquet"):
        FRAME.to_parquet(out / name)
    with pytest.raises(TableError, match=r"kind=x/p0.parquet.*p7.parquet"):
        transform_files(TableSource.open(parts, "kind"), lambda rows: rows[:, :2].T, TWO, out, b"model")


def test_project_and_apply_on_the_command_line(tmp_path):
    parts = in_parts(tmp_path / "parts")
    given = ["project", parts, "--target", "kind", "--scale", "none", "--model", tmp_path / "m.discrim"]
    succeed(*given, "--out", tmp_path / "out")
    np.testing.assert_allclose(load(tmp_path / "m.discrim").transform(FRAME[list("abcdef")]), WANTED, atol=1e-10)
    written = pd.concat([pd.read_parquet(tmp_path / "out" / f"p{n}.parquet") for n in range(3)])
    np.testing.assert_allclose(written.iloc[:, :2], WANTED, atol=1e-10)
    assert written["kind"].tolist() == FRAME["kind"].tolist()
    succeed("apply", tmp_path / "m.discrim", parts, "--out", tmp_path / "new")
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "new" / "p1.parquet"), WANTED[100:200], atol=1e-10)


def test_a_stratified_sample_is_the_same_however_the_rows_are_divided(tmp_path):
    rare = FRAME.assign(kind=np.where(np.arange(300) < 4, "rare", FRAME["kind"]))
    rare.to_parquet(tmp_path / "whole.parquet")
    found = []
    for source in (tmp_path / "whole.parquet", tmp_path / "by kind"):
        if not source.exists():
            rare.to_parquet(source, partition_cols=["kind"])
        rows, labels, n_rows = sampled_rows(TableSource.open(source, "kind"), 60)
        assert n_rows == 300
        counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
        assert counts.pop("rare") == 4  # all there are
        for kind, count in counts.items():
            assert count == round(60 * (rare["kind"] == kind).sum() / 300)
        known = {tuple(row): kind for row, kind in zip(X, rare["kind"], strict=True)}
        assert [known[tuple(row)] for row in rows] == labels.tolist()
        found.append({tuple(row) for row in rows})
    assert found[0] == found[1]


def test_a_sample_is_of_rows_equal_ones_too(tmp_path, monkeypatch):
    monkeypatch.setattr("discrim.tables.source.BATCH_ROWS", 64)
    few = np.repeat(np.arange(5.0), 80)  # A: 400 rows, of five kinds; B: 600 rows that all differ
    rows = np.column_stack([np.concatenate([few, np.arange(600) + 0.5]), np.repeat([0, 1], [400, 600])])
    rows = rows[np.random.default_rng(1).permutation(1000)]
    np.save(tmp_path / "rows.npy", rows)
    table = TableSource.open(tmp_path / "rows.npy", "c2")
    for most in (1000, 5000):
        X, y, n_rows = sampled_rows(table, most)
        assert n_rows == 1000
        np.testing.assert_array_equal(np.column_stack([X, y.astype(float)]), rows)  # all, in their order
    X, y, _ = sampled_rows(table, 250)
    assert (y == 0).sum() == 100
    assert len(np.unique(X[y == 1])) == len(X[y == 1]) == 150  # none twice
    counts = [(X[y == 0, 0] == kind).sum() for kind in range(5)]
    assert min(counts) >= 8  # 20 each are expected, with a standard deviation of 3.5
    assert max(counts) <= 32
    assert abs(np.mean(X[y == 1]) - 300) < 3 * 600 / np.sqrt(12 * 150)  # from all of the table


def test_a_sample_that_would_fill_the_memory_is_refused(tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([X, Y]))
    table = TableSource.open(tmp_path / "rows.npy", "c7")
    assert len(sampled_rows(table, 300, 300 * 6 * 8)[0]) == 300
    with pytest.raises(TableError, match=r"rows.npy.*14,400"):
        sampled_rows(table, 300, 300 * 6 * 8 - 1)


def test_a_folder_of_few_different_rows_is_compared_on_all_its_rows(tmp_path):
    twice = pd.concat([FRAME.iloc[:60]] * 2, ignore_index=True)
    (tmp_path / "parts").mkdir()
    twice.to_parquet(tmp_path / "parts" / "p0.parquet")
    given = ["compare", str(tmp_path / "parts"), "-t", "kind", "-m", "pca", "-k", "1", "-c", "1-nn", "--splits", "2"]
    assert "120 rows" in succeed(*given, "-j", "1")[0]


def test_a_large_folder_is_compared_by_a_sample_of_its_rows(tmp_path, monkeypatch):
    parts = in_parts(tmp_path / "parts")
    given = ["compare", str(parts), "-t", "kind", "-m", "pca", "-k", "1", "-c", "1-nn", "--splits", "2", "-j", "1"]
    out, _ = succeed(*given, "--most-rows", "90")
    assert "Compared on 90 of 300 rows, each class in its proportion." in out
    assert "--out features.csv" in out
    monkeypatch.setattr("discrim.engines.table_files.LARGE", 1)
    out, err = succeed(*given, "--most-rows", "90")
    assert "--out features " in out
    assert "300 rows in" in err
    assert "a sample of 90" in err
    assert "Leave out --groups" in refuse(*given, "--groups", "a")


def test_errors_name_column_and_folder(tmp_path):
    FRAME.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(TableError, match="'sort'"):
        TableSource.open(tmp_path / "rows.parquet", "sort")
    with pytest.raises(TableError, match=r"column 'kind': '[xyz]'"):
        gathered(tmp_path / "rows.parquet", "a")
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match="holds no files"):
        TableSource.open(tmp_path / "none", None)


PLAIN = "a,b,kind\n1,2,x\n3,4,y\n5,7,x\n"


def csv_parts(folder, *contents):
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"p{number}.csv").write_text(content)
    return folder


def gathered(folder, target=None):
    return gather_files(TableSource.open(folder, target), gathering_of(PCA(1)))


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("1,2,x\n3,4,y\n", "p1.csv lacks column 'a'"),
        ("a,kind\n1,x\n", "p1.csv lacks column 'b'"),
        ("a,b,c,kind\n1,2,3,x\n", "p1.csv has a column 'c', which others lack"),
        ("a,b,kind\n1,2,\n", "p1.csv, line 2: 1 missing cell .*'kind'"),
        ("a,b,kind\n3,4,x\n1,2,NA\n", "p1.csv, line 3: 1 missing cell .*'kind'"),
        ("a,b,kind\n1,zz,x\n", "p1.csv, line 2, column 'b': 'zz' is not a number"),
    ],
)
def test_a_part_that_is_another_table_is_named(tmp_path, second, words):
    with pytest.raises(ValueError, match=words):
        gathered(csv_parts(tmp_path / "parts", PLAIN, second))


def bytes_of(write):
    with io.BytesIO() as content:
        write(content)
        return content.getvalue()


PARQUET, FEATHER = bytes_of(FRAME.to_parquet), bytes_of(FRAME.to_feather)
TWICE = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([1.0, 3.0]), pa.array(["x", "y"])], ["a", "a", "kind"])
RAGGED = PLAIN + "1,2\n"
UNREADABLE = {
    "names twice": (
        ".csv",
        PLAIN.replace("b", "a").encode(),
        r"columns 1 and 2 are both called 'a'. Rename one of them",
    ),
    "empty": (".csv", b"", "is empty: it needs a line of column names"),
    "ragged": (".csv", RAGGED.encode(), "line 5: 2 fields, but the first line has 3 columns. A line cut short"),
    "latin-1 label": (
        ".csv",
        (PLAIN + "1,2,é\n").encode("latin-1"),
        r"line 5, byte 5 \(0xe9\): .* Save the file as UTF-8",
    ),
    "latin-1 name": (".csv", PLAIN.replace("b", "é").encode("latin-1"), r"line 1, .* Save the file as UTF-8"),
    "UTF-16 without a mark": (".csv", PLAIN.encode("utf-16-le"), r"in UTF-16 without .* Save text as UTF-8"),
    "Parquet": (".csv", PARQUET, "is a Parquet file, not delimited text"),
    "a quote without another": (
        ".csv",
        PLAIN.replace("y", '"y').encode(),
        r"line 3: the quotes of this record do not match",
    ),
    "cut gzip": (".csv.gz", gzip.compress(PLAIN.encode())[:-12], "the gzip data are damaged or cut short"),
    "cut Parquet": (".parquet", PARQUET[:-40], r"is not a readable .parquet .* Write it again, or leave it out\.$"),
    "names twice in Parquet": (".parquet", bytes_of(lambda file: pq.write_table(TWICE, file)), "both called 'a'"),
    "empty Feather": (".feather", b"", "is not a readable .feather"),
    "cut npy": (".npy", bytes_of(lambda file: np.save(file, X))[:-9], "is no .npy file of numbers, or cut short"),
    "empty npy": (".npy", b"", "is no .npy file of numbers, or cut short"),
}


@pytest.mark.parametrize("place", ["alone", "second"])
@pytest.mark.parametrize(("ending", "content", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_is_named(tmp_path, ending, content, words, place):
    parts, target = tmp_path / "parts", "c6" if ending == ".npy" else "kind"
    parts.mkdir()
    if place == "second":
        good = {".csv": PLAIN.encode(), ".csv.gz": PLAIN.encode(), ".parquet": PARQUET, ".feather": FEATHER}
        good[".npy"] = bytes_of(lambda file: np.save(file, X))
        (parts / f"p0{ending.removesuffix('.gz')}").write_bytes(good[ending])
    (parts / f"p1{ending}").write_bytes(content)
    with pytest.raises(TableError, match=rf"(?s)p1{ending}.*{words}"):
        gathered(parts, target)
    assert f"p1{ending}" in refuse("project", parts, "-t", target, "-m", "pca", "--out", f"{parts}-out").replace(
        " ", ""
    )


def test_other_marks_and_encodings_are_read(tmp_path):
    parts = csv_parts(tmp_path / "parts", PLAIN, PLAIN.replace(",", ";").replace("7", "8"))
    (parts / "p2.csv").write_bytes(PLAIN.replace("7", "9").encode("utf-16"))
    assert gathered(parts, "kind").n_rows == 9
    (parts / "p0.csv").unlink()
    (parts / "p2.csv").unlink()
    assert TableSource.open(parts, "kind", dialect=Dialect(";")).features == ("a", "b")
    alone = csv_parts(tmp_path / "alone", "a\n1\n2\n")  # one column is a table, too
    assert TableSource.open(alone, None, labelled=False).features == ("a",)


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_column_added_by_a_tool_is_not_a_feature(tmp_path, name):
    parts = csv_parts(tmp_path / "parts", f"{name},a,b,kind\n0,1,2,x\n1,3,4,y\n2,5,7,x\n")
    for labels in ({"target": "kind"}, {"target": None}):
        with pytest.raises(TableError, match="column 1"):
            TableSource.open(parts, **labels)
    given = ["project", str(parts), "-t", "kind", "-m", "pca", "-k", "1", "--out", str(tmp_path / "out")]
    refuse(*given)
    succeed(*given, "--drop", name or "column 1")
    assert TableSource.open(parts, "kind", drop=[name or "column 1"]).features == ("a", "b")
    assert TableSource.open(parts, None, features=["a", "b"]).features == (
        "a",
        "b",
    )  # of a model's, others do not matter


def test_a_first_file_without_rows_is_no_column_of_text(tmp_path):
    assert gathered(csv_parts(tmp_path / "parts", "a,b,kind\n", PLAIN), "kind").n_rows == 3
    with pytest.raises(TableError, match="has no rows"):
        gathered(csv_parts(tmp_path / "none", "a,b,kind\n"), "kind")


def test_features_of_a_large_table_are_no_file(tmp_path, monkeypatch):
    parts, model = in_parts(tmp_path / "parts"), str(tmp_path / "m.discrim")
    np.save(tmp_path / "rows.npy", np.column_stack([X, Y]))
    succeed("project", parts, "-t", "kind", "--model", model)
    commands = ["project", str(parts)], ["project", str(tmp_path / "rows.npy")], ["apply", model, str(parts)]
    for ending in (".csv", ".parquet"):
        out = tmp_path / f"features{ending}"
        with monkeypatch.context() as patch:
            patch.setattr("discrim.engines.table_files.LARGE", 1)
            for command in commands:
                assert f"--out {tmp_path / 'features'}." in refuse(*command, "--out", out)
                assert not out.exists()
        for command in commands:  # which fit into memory
            succeed(*command, "--out", out)
            assert len(pd.read_csv(out) if ending == ".csv" else pd.read_parquet(out)) == 300
            out.unlink()
    out.mkdir()  # a folder of that name is one
    succeed("apply", model, parts, "--out", out)
    assert len(list(out.iterdir())) == 3


def test_a_model_of_files_finds_the_columns_of_a_table_quietly(tmp_path, recwarn):
    parts, model, out = in_parts(tmp_path / "parts"), str(tmp_path / "m.discrim"), tmp_path / "features.csv"
    made = ["project", str(parts), "-t", "kind", "--scale", "none", "--model", model]
    succeed(*made)
    FRAME[list("fedcba")].to_csv(tmp_path / "new.csv", index=False)
    succeed("apply", model, tmp_path / "new.csv", "--out", out)
    np.testing.assert_allclose(pd.read_csv(out), WANTED, atol=1e-10)
    assert not [str(one.message) for one in recwarn if "feature names" in str(one.message)]


def test_parts_go_on_in_other_numbers_order_and_blanks(tmp_path):
    total = gathered(csv_parts(tmp_path / "parts", PLAIN, "b,kind,a\n2.5, x,1e3\n"))
    assert total.n_rows == 4
    labels = TableSource.open(tmp_path / "parts", "kind")
    assert {label for part in labels.parts for _, y in labels.batches(part) for label in y} == {"x", "y"}


def test_apply_in_parts_ignores_no_option(tmp_path):
    parts, model = csv_parts(tmp_path / "parts", PLAIN), str(tmp_path / "m.discrim")
    made = ["project", str(parts), "-m", "pca", "-k", "1", "--model", model, "--out", str(tmp_path / "out")]
    succeed(*made)
    apply = ["apply", model, str(parts), "--out", str(tmp_path / "new")]
    assert "--transpose must" in refuse(*apply, "--transpose")
    given = ["project", str(parts), "-t", "kind", "--delimiter", ",", "--id", "a", "--impute", "mean"]
    assert "--impute mean must" in refuse(*given, "--out", tmp_path / "new")


def test_npy_files_in_parts_give_the_model_of_their_rows_in_memory(tmp_path):
    rows, model = np.column_stack([X, Y]), str(tmp_path / "m.discrim")
    (tmp_path / "parts").mkdir()
    for number, some in enumerate(np.array_split(rows, 3)):
        np.save(tmp_path / "parts" / f"p{number}.npy", some)
    np.save(tmp_path / "rows.npy", rows.astype(">f8"))
    np.save(tmp_path / "first.npy", np.asfortranarray(np.column_stack([Y, X])))
    wanted = BayesErrorLDA(cv=HashKFold(5)).fit(X, Y)
    for source, target in (("parts", []), ("rows.npy", ["-t", "c7"]), ("first.npy", ["-t", "c1"])):
        out = tmp_path / f"of {source.partition('.')[0]}"
        given = ["project", str(tmp_path / source), "--scale", "none", "--model", model, "--out", str(out), *target]
        succeed(*given)
        np.testing.assert_allclose(load(model)[-1].components_, wanted.components_, atol=1e-10)
        written = pq.read_table(out).to_pandas()
        np.testing.assert_allclose(written.iloc[:, :2], wanted.transform(X), atol=1e-10)
        assert written.iloc[:, 2].tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(5), r"shape \(5,\)"),
        (np.array([["a", "b"]]), "kind <U1"),
        (np.array([[1, None]], dtype=object), "is no .npy file of numbers"),
    ],
    ids=["one axis", "text", "objects"],
)
def test_npy_files_that_are_no_table_are_refused(tmp_path, array, words):
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(TableError, match=words):
        TableSource.open(tmp_path / "rows.npy", None)


def test_npy_parts_of_other_widths_and_bad_cells_are_named(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    np.save(parts / "p0.npy", np.column_stack([X, Y]))
    np.save(parts / "p1.npy", X[:, :5])
    with pytest.raises(TableError, match=r"p1.npy.*'c6'"):
        TableSource.open(parts, "c1")
    wrong = np.column_stack([X, Y])
    wrong[20, 3] = np.inf
    np.save(parts / "p1.npy", wrong)
    with pytest.raises(ValueError, match=r"p1\.npy, row 21, column 'c4'"):
        gathered(parts)


@pytest.mark.parametrize(
    ("name", "words"), [("nothing", "there is no such file or folder"), ("nothing.csv", "No such")]
)
def test_a_path_without_a_file_is_named(tmp_path, name, words):
    with pytest.raises((ValueError, FileNotFoundError), match=rf"{words}.*{name}|{name}.*{words}"):
        PCA().fit(tmp_path / name, "label")
