"""Written files read back equal, and other files are left unchanged."""

import csv
import errno
import os
import re
import stat
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discrim.tables.archive import write_archive
from discrim.tables.cells import MISSING
from discrim.tables.labelled_table import LabelledTable, normal_text
from discrim.tables.read import read_table
from discrim.tables.writing import whole_file, write_table

FORMATS = ("t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather", "t.npz")


def plain(text):
    """Text as tables have it: composed, without surrounding blanks, no missing cell, no zero at its end."""
    return normal_text(text) == text and text not in MISSING and not text.endswith("\0")


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6).map(
    lambda text: unicodedata.normalize("NFC", text)
)
TRICKY = st.sampled_from(
    [
        "a\rb",
        "=1+2",
        "'=x",
        "''-y",
        "-5",
        "+1e3",
        "x;y;z;w",
        "a,b",
        'say "so"',
        "\ufeffname",
        "a\nb",
        "@x",
        "1.5",
        "|",
        "-",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists((NAMES | TRICKY).filter(plain), min_size=3, max_size=5, unique=True),
    labels=st.lists((NAMES | TRICKY).filter(plain), min_size=2, max_size=3, unique=True),
)
@example(names=["a;b;c;d", "e", "f"], labels=["\ufeffx", "y\rz"])
@example(names=["|\r0", ",0", "-"], labels=['0b "', "b"])  # marks on a line that is the middle of a name
@example(names=[";\n,", '"=\t0', "c"], labels=["b", ",|;#"])
@example(names=["\ufeffa", "'=b", "c"], labels=["=x", "'=x"])
def test_names_and_labels_of_any_text_read_back_equal_in_all_formats(tmp_path_factory, names, labels):
    folder = tmp_path_factory.mktemp("t")
    *features, target = names
    y = np.array([labels[at % len(labels)] for at in range(7)])
    X = np.random.default_rng(0).normal(size=(7, len(features)))
    for name in FORMATS:
        if name == "t.npz":
            with whole_file(folder / name) as handle:
                write_archive(handle, LabelledTable(X, y, tuple(features), "target", ""))
            table = read_table(folder / name, "target")
        else:
            columns = dict(zip(features, X.T, strict=True)) | {target: y}
            write_table(folder / name, columns)
            table = read_table(folder / name, target, header=True if "sv" in name else None)
            assert table.target == target
        assert table.feature_names == tuple(features)
        whole = "sv" in name and all(re.fullmatch(r"0|-?[1-9]\d*", label) for label in labels)
        assert table.y.tolist() == [int(label) if whole else label for label in y.tolist()]
        np.testing.assert_array_equal(table.X, X)


def test_no_line_and_no_cell_begins_as_a_formula_and_numbers_stay(tmp_path):
    same = ["plain", "a=b", "-5", "+1e3", "ok\r=cmd()"]
    cells = {
        "=cmd()": "'=cmd()",
        "+1+2": "'+1+2",
        "-x": "'-x",
        "@sum": "'@sum",
        "\tx": "'\tx",
        "\r=x": "'\r=x",
        "'=": "''=",
    }
    cells |= dict(zip(same, same, strict=True))
    write_table(tmp_path / "t.csv", {"=name": np.array(list(cells)), "x": np.full(len(cells), -1.5)})
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as handle:
        assert list(csv.reader(handle)) == [["'=name", "x"], *([cell, "-1.5"] for cell in cells.values())]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_overwritten_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "t.csv"
    write_table(path, {"a": [1.0]})
    path.chmod(mode)
    write_table(path, {"a": [2.0]})
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "a\n2.0\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, name):
    path, whole = tmp_path / name, tmp_path / f"whole.{name[2:]}"
    os.mkfifo(path)
    taken = []
    reader = threading.Thread(target=lambda: taken.append(path.read_bytes()))
    reader.start()
    write_table(path, {"a": [1.0, 2.0]})
    reader.join(20)
    write_table(whole, {"a": [1.0, 2.0]})
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert taken == [whole.read_bytes()]
    assert sorted(os.listdir(tmp_path)) == sorted([name, whole.name])


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="POSIX devices")
def test_devices_stay_devices(tmp_path):
    link = tmp_path / "t.csv"
    link.symlink_to("/dev/null")
    write_table(link, {"a": [1.0]})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert link.is_symlink()
    code = (
        "from discrim.tables.writing import whole_file\nwith whole_file('/dev/stdout') as handle: handle.write(b'out')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"out"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux's device")
def test_a_device_that_is_full_is_named(tmp_path):
    link = tmp_path / "t.csv"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        write_table(link, {"a": [1.0]})
    assert caught.value.filename == str(link)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
def test_a_link_to_itself_is_refused_and_stays(tmp_path):
    link = tmp_path / "t.csv"
    link.symlink_to("t.csv")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_table(link, {"a": [1.0]})
    assert caught.value.filename == str(link)
    assert link.is_symlink()
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
def test_a_dangling_link_is_written_through(tmp_path):
    link, place = tmp_path / "t.csv", tmp_path / "there.csv"
    link.symlink_to(place)
    write_table(link, {"a": [1.0]})
    assert link.is_symlink()
    assert place.read_text() == "a\n1.0\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_leftovers_of_a_killed_process_are_overwritten_and_files_in_use_are_not(tmp_path):
    path, left = tmp_path / "t.bin", tmp_path / ".t.bin.part"
    left.write_bytes(b"half of something long")
    with whole_file(path) as one:
        one.write(b"one")
        with whole_file(path) as other:
            other.write(b"other")
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["t.bin"]
    left.symlink_to(tmp_path / "elsewhere")
    with whole_file(path) as handle:
        handle.write(b"again")
    assert path.read_bytes() == b"again"
    assert not (tmp_path / "elsewhere").exists()


def test_no_other_writer_takes_a_file_that_is_whole_but_not_yet_renamed(tmp_path, monkeypatch):
    path, renamed = tmp_path / "t.bin", os.replace

    def after_another(source, target):
        monkeypatch.undo()
        with whole_file(path) as other:
            other.write(b"other")
        renamed(source, target)

    monkeypatch.setattr(os, "replace", after_another)
    with whole_file(path) as one:
        one.write(b"one")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["t.bin"]


def test_no_other_writer_takes_a_file_that_failed_but_is_not_yet_removed(tmp_path, monkeypatch):
    path, removed = tmp_path / "t.bin", Path.unlink

    def after_another(self, *args, **kwargs):
        monkeypatch.undo()
        with whole_file(path) as other:
            other.write(b"other")
            removed(self, *args, **kwargs)

    def failing():
        with whole_file(path) as one:
            one.write(b"one")
            raise RuntimeError

    monkeypatch.setattr(Path, "unlink", after_another)
    with pytest.raises(RuntimeError):
        failing()
    assert path.read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["t.bin"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_no_leftovers_on_a_drive_without_locks(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    with whole_file(tmp_path / "t.bin") as handle:
        handle.write(b"one")
    assert (tmp_path / "t.bin").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["t.bin"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
def test_a_file_with_another_hard_link_is_not_overwritten(tmp_path):
    path, other = tmp_path / "t.bin", tmp_path / "other"
    other.write_bytes(b"of value")
    os.link(other, tmp_path / ".t.bin.part")
    with whole_file(path) as handle:
        handle.write(b"one")
    assert (path.read_bytes(), other.read_bytes()) == (b"one", b"of value")
