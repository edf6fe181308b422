"""Fitted estimators in files of other tools: joblib, skops and MLflow restore equal predictions."""

import io

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discrim
from discrim.registry import ENTRIES, OUR_METHODS, load_target

pytestmark = pytest.mark.filterwarnings("ignore")
X, Y = (part[::3] for part in load_iris(return_X_y=True))
CLASSIFIERS = [entry for entry in ENTRIES if entry.classifies]
MADE = {method.name: lambda method=method: method.estimator(2, 0) for method in OUR_METHODS} | {
    entry.name: lambda entry=entry: load_target(entry.target)() for entry in CLASSIFIERS
}


def outcome(model):
    return model.transform(X) if hasattr(model, "transform") else model.decision_function(X)


@pytest.mark.parametrize("name", MADE)
def test_joblib_and_skops_restore_an_equal_model_of_trusted_types(name):
    model = MADE[name]().fit(X, Y)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    np.testing.assert_array_equal(outcome(joblib.load(file)), outcome(model))
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    written = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=written)) <= set(discrim.trusted_types())
    np.testing.assert_array_equal(outcome(skops.loads(written, trusted=discrim.trusted_types())), outcome(model))


def test_trusted_types_exist_and_are_unique():
    names = discrim.trusted_types()
    assert len(set(names)) == len(names) < 70
    for name in names:
        module, _, kind = name.rpartition(".")
        assert isinstance(load_target(f"{module}:{kind}"), type)


def test_mlflow_stores_a_model(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn", reason="mlflow is not installed")
    model = make_pipeline(StandardScaler(), discrim.BayesErrorLDA(2)).fit(X, Y)
    wanted = {"serialization_format": "skops", "skops_trusted_types": discrim.trusted_types()}
    mlflow.save_model(
        model, tmp_path / "model", **wanted, pip_requirements=["discrim"]
    )  # which are not looked for then
    back = mlflow.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
