"""Data sets by name: found in all locations, checked, never downloaded in these tests."""

import gzip
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets
from sklearn.utils import Bunch

from discrim.tables import catalogue
from discrim.tables.catalogue import CatalogueError, DataSet, entries, entry, load, where
from discrim.tables.table_error import TableError
from discrim.tables.writing import write_table

REAL = os.environ.get("DISCRIM_DATA")
NAMED_BY_THE_PAPERS = {
    "sonar", "ovarian", "duke_breast", "climate_crashes", "vertebral_2c", "yaleb", "ocr_letters", "cnae9",
    "planning_relax", "hepatitis", "lung_cancer",
}  # fmt: skip


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No data folder, an empty cache, and no network."""
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "fetch_openml", _no_network)


def _no_network(**options):
    raise OSError("no network here")


@pytest.fixture
def toy(monkeypatch):
    """A downloadable data set of the catalogue's kind: 6 × 2, classes of 4 and 2."""
    X = np.array([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [0, -1]])
    y = np.array(["p", "q", "p", "p", "q", "p"], dtype=object)
    table = catalogue.LabelledTable(X, y.astype(str), ("a", "b"), "target", "here")
    known = DataSet("toy", "A toy", "nowhere", 6, 2, {"p": 4, "q": 2}, openml=7, sha256=table.fingerprint())
    listed = (*entries(), known)
    monkeypatch.setattr(catalogue, "entries", lambda: listed)
    return Bunch(data=X, target=y, feature_names=["a", "b"], categories={})


@pytest.fixture
def openml(toy, monkeypatch):
    """OpenML as it answers for the toy; counts how often it is asked."""
    asked = []

    def fetch(**options):
        assert options["data_id"] == 7
        assert options["as_frame"] is False
        asked.append(options)
        return toy

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return asked


# --- listing --------------------------------------------------------------------------------------------------


def test_everything_named_is_listed_in_order_with_sane_facts():
    names = [listed.name for listed in entries()]
    assert names == sorted(names)
    assert set(names) >= NAMED_BY_THE_PAPERS | {"iris", "wine", "wdbc", "digits"}
    assert len(names) >= 45
    for listed in entries():
        assert re.fullmatch(r"[a-z0-9_]+", listed.name)
        assert listed.title
        assert listed.origin
        assert not listed.sha256 or re.fullmatch(r"[0-9a-f]{64}", listed.sha256)
        assert not listed.prepare or listed.openml is not None
        if listed.classes and listed.n_samples:
            assert sum(listed.classes.values()) == listed.n_samples


def test_no_two_share_a_content_or_an_openml_number():
    for fact in ("sha256", "openml"):
        known = [value for listed in entries() if (value := getattr(listed, fact))]
        assert len(known) == len(set(known))


def test_names_and_aliases():
    assert entry("breast_cancer") is entry("wdbc")
    with pytest.raises(CatalogueError, match=r"'irs'.*'iris'"):
        load("irs")
    with pytest.raises(CatalogueError, match="'ionosphere'"):
        where("Ionosphere")
    with pytest.raises(CatalogueError, match=r"Known are .*banknote.*zzzz\.csv"):
        load("zzzz")


# --- scikit-learn ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "wine", "wdbc", "breast_cancer", "digits"])
def test_built_in_data_sets_match_their_facts_and_hash(name):
    table = load(name)
    known = entry(name)
    assert (table.n_samples, table.n_features) == (known.n_samples, known.n_features)
    assert table.class_counts() == dict(known.classes)
    assert table.fingerprint() == known.sha256
    assert where(name).kind == "scikit-learn"
    assert where(name).here


def test_built_in_rows_keep_their_labels():
    table, bunch = load("iris"), datasets.load_iris()
    np.testing.assert_array_equal(table.X, bunch.data)
    assert table.y.tolist() == [bunch.target_names[code] for code in bunch.target]
    assert table.feature_names == tuple(bunch.feature_names)


# --- the user's folder ----------------------------------------------------------------------------------------


def _write(folder, name, bunch):
    folder.mkdir(exist_ok=True)
    columns = {"a": bunch.data[:, 0], "b": bunch.data[:, 1], "target": bunch.target.astype(str)}
    write_table(folder / name, columns)


@pytest.mark.parametrize("ending", [".csv.gz", ".csv", ".npz"])
def test_the_folder_has_priority_over_cache_and_download(toy, openml, tmp_path, monkeypatch, ending):
    folder = tmp_path / "mine"
    if ending == ".npz":
        folder.mkdir()
        np.savez(folder / "toy.npz", X=toy.data, target=toy.target.astype(str))
    else:
        _write(folder, f"toy{ending}", toy)
    monkeypatch.setenv("DISCRIM_DATA", str(folder))
    table = load("toy")
    np.testing.assert_array_equal(table.X, toy.data)
    assert table.y.tolist() == toy.target.tolist()
    assert where("toy").kind == "folder"
    assert where("toy").place == str(folder / f"toy{ending}")
    assert openml == []


def test_class_names_and_row_order_may_differ(toy, tmp_path, monkeypatch):
    toy.target = np.where(toy.target == "p", "1", "0")[::-1]
    toy.data = toy.data[::-1]
    _write(tmp_path / "mine", "toy.csv", toy)
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path / "mine"))
    assert load("toy").class_counts() == {0: 2, 1: 4}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda b: b.update(data=b.data[:5], target=b.target[:5]), "5 rows instead of 6"),
        (lambda b: b.update(target=b.target[[0, 1, 1, 1, 1, 0]]), "other values"),
        (lambda b: b.update(target=b.target[[0, 1, 1, 2, 4, 3]]), r"class counts \[3, 3\] instead of \[2, 4\]"),
        (lambda b: b.update(data=b.data + np.eye(6, 2) * 1e-9), "other values"),
    ],
)
def test_another_table_under_the_name_is_refused(toy, tmp_path, monkeypatch, spoil, words):
    spoil(toy)
    _write(tmp_path / "mine", "toy.csv", toy)
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path / "mine"))
    with pytest.raises(CatalogueError, match=words) as caught:
        load("toy")
    assert str(tmp_path / "mine" / "toy.csv") in str(caught.value)
    assert "path" in str(caught.value)


def test_unknown_facts_are_not_checked(toy, tmp_path, monkeypatch):
    _write(tmp_path / "mine", "ovarian.csv", toy)
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path / "mine"))
    assert load("ovarian").n_samples == 6


def test_a_bad_file_in_the_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "sonar.csv.gz").write_bytes(gzip.compress(b"a,target\n1,x\n?,y\n2,x\n"))
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path))
    with pytest.raises(TableError, match=r"sonar\.csv\.gz, line 3"):
        load("sonar")


# --- absent data sets -----------------------------------------------------------------------------------------


def test_errors_of_absent_data_sets_advise(tmp_path, monkeypatch):
    place = where("ovarian")
    assert place.kind == "absent"
    assert not place.here
    with pytest.raises(CatalogueError, match=r"'ovarian'.*ovarian\.csv\.gz.*DISCRIM_DATA"):
        load("ovarian")
    with pytest.raises(CatalogueError, match=r"OpenML.*1467.*columns"):
        load("climate_crashes")
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path / "gone"))
    with pytest.raises(CatalogueError, match=r"gone, which is no folder"):
        load("ovarian")


def test_no_download_unless_allowed(toy, openml):
    assert where("toy").kind == "openml"
    assert not where("toy").here
    with pytest.raises(CatalogueError, match="not on this machine"):
        load("toy", download=False)
    assert openml == []


def test_no_network(toy):
    with pytest.raises(CatalogueError, match=r"OpenML.*7.*network.*toy\.csv\.gz"):
        load("toy")


# --- downloads ------------------------------------------------------------------------------------------------


def test_a_download_is_checked_kept_and_not_repeated(toy, openml, tmp_path):
    first = load("toy")
    assert where("toy").kind == "cache"
    assert where("toy").place == str(tmp_path / "cache" / "discrim" / "toy.npz")
    again = load("toy", download=False)
    assert len(openml) == 1
    assert first.digest() == again.digest()
    assert first.feature_names == again.feature_names == ("a", "b")
    np.testing.assert_array_equal(again.X, toy.data)


def test_an_uncheckable_download_is_rejected_unless_requested(toy, openml, monkeypatch):
    *known, last = catalogue.entries()
    monkeypatch.setattr(catalogue, "entries", lambda: (*known, replace(last, sha256="")))
    monkeypatch.delenv("DISCRIM_UNVERIFIED", raising=False)
    with pytest.raises(CatalogueError, match="DISCRIM_UNVERIFIED=1"):
        load("toy")
    assert not openml
    monkeypatch.setenv("DISCRIM_UNVERIFIED", "1")
    assert load("toy").n_samples == 6


def test_sparse_downloads_stay_sparse(toy, openml):
    toy.data = sp.csr_matrix(toy.data)
    for _ in range(2):
        table = load("toy")
        assert sp.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), toy.data.toarray())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda b: b.data.__setitem__((0, 0), 1.5), "other values"),
        (lambda b: b.data.__setitem__((0, 0), np.nan), "missing"),
        (lambda b: b.update(categories={"a": ["x", "y"]}), "'a' hold text"),
        (lambda b: b.update(data=b.data[:, :1], feature_names=["a"]), "1 feature instead of 2"),
        (lambda b: b.update(target=np.array(list("abcdef"), dtype=object)), "6 different labels"),
    ],
)
def test_downloads_that_are_not_the_data_set_are_refused_and_not_kept(toy, openml, tmp_path, spoil, words):
    spoil(toy)
    with pytest.raises(ValueError, match=words):
        load("toy")
    assert where("toy").kind == "openml"
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_rejected(toy, openml):
    load("toy")
    path = Path(where("toy").place)
    np.savez(path, X=toy.data + np.eye(6, 2), target=toy.target.astype(str))
    with pytest.raises(CatalogueError, match="Delete the file"):
        load("toy")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(TableError, match=r"toy\.npz"):
        load("toy")


def test_a_cache_that_cannot_be_written_is_skipped(toy, openml, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="could not be kept"):
        table = load("toy")
    np.testing.assert_array_equal(table.X, toy.data)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/discrim"),
        ("linux", {}, "/home/me/.cache/discrim"),
        ("darwin", {}, "/home/me/Library/Caches/discrim"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/discrim/Cache"),
    ],
)
def test_the_cache_folder_is_the_platforms(monkeypatch, platform, variables, expected):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(catalogue.sys, "platform", platform)
    assert catalogue.cache_folder().as_posix() == expected


# --- the real files -------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL, reason="DISCRIM_DATA names no folder of data sets")
@pytest.mark.parametrize("name", [listed.name for listed in entries()])
def test_real_files_are_the_data_sets_they_claim_to_be(name, monkeypatch):
    monkeypatch.setenv("DISCRIM_DATA", REAL)
    if not where(name).here:
        pytest.skip(f"{name} is not in DISCRIM_DATA")
    table, known = load(name, download=False), entry(name)
    assert known.n_samples is None or table.n_samples == known.n_samples
    assert not known.sha256 or table.fingerprint() == known.sha256


@pytest.mark.skipif(not REAL, reason="DISCRIM_DATA names no folder of data sets")
def test_a_damaged_copy_of_a_real_file_is_refused(tmp_path, monkeypatch):
    source = Path(REAL) / "banknote.csv.gz"
    if not source.exists():
        pytest.skip("banknote is not in DISCRIM_DATA")
    shutil.copy(source, tmp_path)
    text = gzip.decompress(source.read_bytes()).replace(b"3.6216", b"3.6217", 1)
    (tmp_path / "banknote.csv.gz").chmod(0o644)
    (tmp_path / "banknote.csv.gz").write_bytes(gzip.compress(text))
    monkeypatch.setenv("DISCRIM_DATA", str(tmp_path))
    with pytest.raises(CatalogueError, match="other values"):
        load("banknote")
