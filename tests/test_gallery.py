"""The examples of the gallery run, draw their figure, and show what their text states."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.fixture
def without_data(monkeypatch, tmp_path):
    """Remove real data: the folder and earlier downloads."""
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setattr("discrim.tables.catalogue.cache_folder", lambda: tmp_path / "no such folder")


@pytest.fixture
def ran(monkeypatch):
    """Run a script in its quick form and return its names; it must draw a figure."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.setenv("DISCRIM_QUICK", "1")

    def names_of(name):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.close("all")
        names = runpy.run_path(str(ROOT / "examples" / "gallery" / f"{name}.py"))
        assert pyplot.get_fignums()
        pyplot.close("all")
        return names

    return names_of


def test_simulated_genes_are_separated_by_discriminants_and_not_by_pca(ran, without_data):
    names = ran("microarray")
    found = names["accuracy"]
    assert found["PCA"] < 0.4  # four classes: a guess is right in a quarter
    assert found["NullSpaceLDA"] > found["PCA"] + 0.3
    assert found["RegularizedLDA"] > found["PCA"] + 0.3
    assert names["width"] < 1e-10


def test_real_genes_are_separated_by_discriminants_and_less_by_pca(ran, data_folder):
    found = ran("microarray")["accuracy"]
    assert min(found["NullSpaceLDA"], found["RegularizedLDA"]) > max(0.8, found["PCA"] + 0.3)


def test_noisy_copies_move_rows_as_the_shift_does_while_the_noise_is_small(ran):
    found = ran("corruption")["found"]
    cosines, lengths = ([found[f"{name} {v}"] for v in ("0.05", "0.25", "1", "4")] for name in ("cosine", "length"))
    assert cosines[0] > 0.9
    assert cosines == sorted(cosines, reverse=True)
    assert lengths == sorted(lengths, reverse=True)
    assert found["others 0.05"] < 0.2 < found["others 4"]  # rows that the shift leaves alone


def test_bayes_error_lda_shows_digits_best(ran):
    found = ran("digits")["figures"]
    assert found["PCA"] < found["RegularizedLDA"] < found["BayesErrorLDA"] - 0.03
    assert found["predicted_error"] == pytest.approx(found["seen_error"], abs=0.01)
    assert found["correlation"] > 0.8


def test_text_stays_sparse_and_few_components_of_least_error_beat_the_others(ran, without_data):
    names = ran("text")
    pca, lda, bayes = (dict(zip(names["COUNTS"], right, strict=True)) for right in names["found"].values())
    assert names["share"] < 0.5
    assert bayes[8] > max(pca[8], lda[8]) + 0.15
    assert bayes[16] == lda[16] > pca[16] + 0.3


def test_spectra_are_separated_by_peaks_that_pca_misses(ran):
    found = ran("spectra")["figures"]
    assert found["variance in PCA(2)"] > 0.9
    assert found["PCA(20)"] < 0.6
    assert found["RegularizedLDA(2)"] > 0.8


def test_a_stream_equals_the_batch_without_holding_the_rows(ran):
    names = ran("stream")
    found = names["figures"]
    assert found["stream − batch"] < 1e-11
    assert found["memory"] < 0.5
    assert names["angles"][-1] < 10
    assert found["accuracy"] > 0.9


def test_an_image_is_reconstructed_as_well_as_its_variance_predicts(ran):
    names = ran("compression")
    errors = list(names["errors"].values())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(names["predicted"], rel=1e-6)


def test_the_sheet_of_displays_ranks_least_error_before_pca_and_keeps_wine_apart(ran):
    found = ran("displays")["figures"]
    assert found["rank of bayes-error-lda"] < found["rank of pca"] - 1
    assert found["critical difference"] == pytest.approx(3.05, abs=0.01)
    assert [found[f"class_{at} on its side"] for at in range(3)] == pytest.approx([1.0, 0.966, 1.0], abs=0.005)


def test_pca_needs_the_widest_gap_to_find_the_class_axis(ran):
    found = ran("margin_toy")["first_right"]
    assert found["M-PCA1a (means)"] < found["M-PCA0 (all pairs)"] < found["PCA"]


def test_the_component_that_matters_is_not_the_largest(ran):
    found = ran("least_bayes_error")["right"]
    assert found["PCA"] < 0.65 < 0.9 < found["BayesErrorPCA"]


def test_a_moderate_shift_helps_and_costs_reconstruction(ran):
    names = ran("shift")
    assert max(names["right"][1:]) > names["right"][0]
    assert names["rebuilt"][-1] > names["rebuilt"][0]


def test_the_sign_test_rejects_far_too_often(ran):
    found = ran("corrected_test")["rejected"]
    assert found["sign test"] > 0.15 > 0.12 > found["corrected t test"]


def test_an_offset_turns_only_the_peer(ran):
    ours, reference = ran("offset")["angles"].values()
    assert max(ours) < 1e-5 < 1 < reference[-1]


def test_the_chosen_ridge_is_near_the_best(ran):
    names = ran("ridge_path")
    assert names["chosen"] > max(names["truth"]) - 0.03
    assert max(names["truth"]) > names["truth"][0] + 0.03


def test_balance_is_bought_with_accuracy(ran):
    scores = ran("unbalanced")["scores"]
    assert scores["default"][0] > scores["balanced weights"][0]
    assert scores["default"][1] < scores["balanced weights"][1]


def test_curved_classes_need_a_kernel(ran):
    right = ran("curved_classes")["right"]
    for table in ("rings", "board"):
        assert right[table, "RegularizedLDA"] < 0.6
        assert right[table, "KernelMap, RegularizedLDA"] > 0.65
        assert right[table, "PosteriorMap"] > 0.8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_has_a_title_and_a_test(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 90
    assert set(lines[2]) == {"="}
    assert len(lines[2]) == len(lines[1])
    assert f'"{script.stem}"' in Path(__file__).read_text(encoding="utf-8")
