"""Files of earlier versions are read and give the same numbers."""

import pickle
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from discrim import FisherLDA, Statistics, load
from discrim.evaluation.store import Store
from discrim.model_file import about
from discrim.registry import MOVED

FOLDER = Path(__file__).parent / "golden"
EXPECTED = np.load(FOLDER / "expected.npz")
MODELS = sorted(path.stem for path in FOLDER.glob("*.discrim"))


def test_every_kind_of_golden_file_exists():
    assert MODELS == ["fisher", "kernel", "nested", "posterior", "sparse", "stream"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_an_earlier_version_transforms_and_predicts_as_it_did(name):
    path = FOLDER / f"{name}.discrim"
    model = load(path)
    np.testing.assert_allclose(model.transform(EXPECTED["X"]), EXPECTED[name], rtol=1e-9, atol=1e-9)
    if name != "stream":
        assert model.predict(EXPECTED["X"]).tolist() == EXPECTED[f"{name}_predicted"].tolist()
    assert about(path) == {"feature_names": ["a", "b", "c", "d"]}


def test_a_stream_of_an_earlier_version_continues():
    model = load(FOLDER / "stream.discrim").partial_fit(EXPECTED["X"][:10])
    rows = np.concatenate([EXPECTED["X"], EXPECTED["X"][:10]])
    np.testing.assert_allclose(model.mean_, rows.mean(axis=0), rtol=1e-12)


def test_statistics_of_an_earlier_version_are_fitted():
    statistics = Statistics.from_bytes((FOLDER / "fisher.statistics").read_bytes())
    found = FisherLDA(2).fit_statistics(statistics).transform(EXPECTED["X"])
    np.testing.assert_allclose(found, EXPECTED["fisher"], rtol=1e-9, atol=1e-9)


def test_a_store_of_an_earlier_version_is_read(tmp_path):
    shutil.copy(FOLDER / "trials.store", tmp_path)  # SQLite writes files next to the one that it reads
    with Store(tmp_path / "trials.store", read_only=True) as store:
        found = [one.scores["accuracy"] for one in store.rows()]
        assert len(store.runs()) == 1
    assert found == EXPECTED["accuracies"].tolist()
    assert len(found) > 0


@pytest.mark.parametrize("module", ["reducers.pca", "classifiers.crammer_singer_svc"])
def test_a_pickle_of_an_earlier_version_is_refused_with_advice(module):
    written = f"cdiscrim.{module}\nPCA\n.".encode()
    with pytest.raises(ImportError, match=r"discrim\.save"):
        pickle.loads(written)


PICKLED = [
    ("core.kernel_rule", "PosteriorRule"),
    ("core.landmark_rule", "Look"),
    ("core.row_limits", "RowLimits"),
    ("estimators.kernel_naive_bayes", "KernelNaiveBayes"),
    ("estimators.linear_map", "LinearMap"),
    ("estimators.svc", "CrammerSingerSVC"),
    ("evaluation.held_out", "BiasCorrectedScore"),
    ("evaluation.permutation", "PermutationTest"),
    ("evaluation.pipelines", "Recommendation"),
    ("evaluation.preprocessing", "preprocessing"),
    ("report.accuracy_curves", "AccuracyCurveValues"),
    ("report.critical_difference", "CriticalDifferenceValues"),
    ("report.importance", "VIPValues"),
    ("report.loadings", "LoadingsValues"),
    ("report.margin_distribution", "MarginValues"),
    ("report.monitoring", "MonitoringValues"),
]


@pytest.mark.parametrize(("module", "name"), PICKLED)
def test_a_pickle_finds_a_class_that_has_moved_to_another_module(module, name):
    found = pickle.loads(f"cdiscrim.{module}\n{name}\n.".encode())
    assert found is getattr(import_module(found.__module__), name)
    assert {f"discrim.{one}" for one, _ in PICKLED} == set(MOVED)
