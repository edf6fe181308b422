"""The gallery's examples run, draw their picture, and find what the page says they find."""

import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.fixture
def nothing_at_hand(monkeypatch, tmp_path):
    """No real data: neither a folder of them nor earlier downloads."""
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setattr("discrim.data.catalogue.cache_folder", lambda: tmp_path / "no such folder")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run an example in an empty folder; the figures it found, once its picture is seen to be one."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)

    def ran(name, *arguments):
        main = runpy.run_path(str(ROOT / "examples" / "gallery" / f"{name}.py"))["main"]
        figures = main([*arguments, "--picture", "picture.png"])
        picture = (tmp_path / "picture.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        width, height = (int.from_bytes(picture[at : at + 4]) for at in (16, 20))
        assert min(width, height) > 200
        assert os.listdir(tmp_path) == ["picture.png"]
        return figures

    return ran


def test_made_up_genes_are_told_apart_by_discriminants_and_not_by_pca(run, nothing_at_hand):
    found = run("microarray", "--splits", "3")
    assert found["PCA"] < 0.4  # four classes: a guess is right in a quarter
    assert found["NullSpaceLDA"] > found["PCA"] + 0.3
    assert found["RegularizedLDA"] > found["PCA"] + 0.3
    assert found["training_width"] < 1e-10


def test_real_genes_are_told_apart_by_discriminants_and_less_by_pca(run, data_folder):
    found = run("microarray", "--splits", "3")
    assert min(found["NullSpaceLDA"], found["RegularizedLDA"]) > max(0.8, found["PCA"] + 0.3)


def test_noisy_copies_move_rows_as_the_shift_does_while_the_noise_is_small(run):
    found = run("corruption", "--copies", "4000")
    cosines, lengths = ([found[f"{name} {v}"] for v in ("0.05", "0.25", "1", "4")] for name in ("cosine", "length"))
    assert cosines[0] > 0.9
    assert cosines == sorted(cosines, reverse=True)
    assert lengths == sorted(lengths, reverse=True)
    assert found["others 0.05"] < 0.2 < found["others 4"]  # rows that the shift leaves alone


def test_digits_are_seen_best_on_the_map_of_least_error(run):
    found = run("digits", "--splits", "2")
    assert found["PCA"] < found["RegularizedLDA"] < found["BayesErrorLDA"] - 0.03
    assert found["foretold_error"] == pytest.approx(found["seen_error"], abs=0.01)
    assert found["correlation"] > 0.8


def test_text_stays_sparse_and_few_components_of_least_error_beat_the_others(run, nothing_at_hand):
    found = run("text", "--splits", "1", "--rows", "510")
    assert found["memory"] < 0.5
    assert found["BayesErrorLDA(8)"] > max(found["PCA(8)"], found["RegularizedLDA(8)"]) + 0.15
    assert found["BayesErrorLDA(16)"] == found["RegularizedLDA(16)"] > found["PCA(16)"] + 0.3


def test_spectra_are_told_apart_by_peaks_that_pca_does_not_see(run):
    found = run("spectra", "--samples", "120")
    assert found["variance in PCA(2)"] > 0.9
    assert found["PCA(20)"] < 0.6
    assert found["RegularizedLDA(2)"] > 0.8


def test_a_stream_ends_where_the_batch_does_without_holding_the_rows(run):
    found = run("stream", "--rows", "25000")
    assert found["stream − batch"] < 1e-11
    assert found["memory"] < 0.5
    assert found["angle"] < 10
    assert found["accuracy"] > 0.9


def test_an_image_comes_back_as_well_as_its_variance_foretells(run):
    found = run("compression")
    errors = [found[f"error {p}"] for p in (1, 2, 4, 8, 16, 32, 64, 100)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(found["foretold error 100"], rel=1e-6)
    assert [round(error, 1) for error in errors] == printed_errors()


def test_the_sheet_of_displays_ranks_least_error_before_pca_and_keeps_wine_apart(run):
    found = run("displays", "--splits", "2")
    assert found["rank of bayes-error-lda"] < found["rank of pca"] - 1
    assert found["critical difference"] == pytest.approx(3.05, abs=0.01)
    assert [found[f"class_{at} on its side"] for at in range(3)] == pytest.approx([1.0, 0.93, 1.0], abs=0.005)


def printed_errors():
    """The last column of the page's table for the image."""
    table = re.findall(r"^\| (\d+) \| [\d.]+ % \| [\d.]+ % \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE)
    assert [p for p, _ in table] == ["1", "2", "4", "8", "16", "32", "64", "100"]
    return [float(error) for _, error in table]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_shown_on_the_page(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) < 80
    assert f"examples/gallery/{script.name}" in PAGE
    assert f"(images/gallery_{script.stem}.png)" in PAGE


@pytest.mark.parametrize("picture", sorted(set(re.findall(r"\(images/(\w+\.png)\)", PAGE))))
def test_a_picture_of_the_page_is_there_and_small(picture):
    assert 5_000 < (ROOT / "docs" / "images" / picture).stat().st_size < 150_000
