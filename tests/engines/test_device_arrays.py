"""Arrays of other libraries stay on their device if array API dispatch is enabled: array_api_strict, PyTorch."""

import numpy as np
import pytest
from estimators import CASES, over
from samples import labelled
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold

from discrim import PCA, BayesErrorLDA, FisherLDA, RegularizedLDA
from discrim.core.moments.class_moments import ClassMoments
from discrim.engines import device_arrays

X, Y = labelled(90, 5)
WIDE, WIDE_LABELS = labelled(12, 20)
LIBRARIES = ("array_api_strict", "torch")


@pytest.fixture(params=LIBRARIES)
def xp(request, monkeypatch):
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed (extra gpu-test)")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        dispatch = config_context(array_api_dispatch=True)
        dispatch.__enter__()
    except ImportError as error:  # scikit-learn before 1.7
        pytest.skip(str(error))
    yield library
    dispatch.__exit__(None, None, None)


def host(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else np.from_dlpack(array))


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_a_device_are_the_plain_ones(xp, offset, weighted):
    weights = 1.0 + np.arange(len(Y)) % 3 if weighted else None
    table, gathering = X + offset, FisherLDA()._gathering()
    given = None if weights is None else xp.asarray(weights)
    found = device_arrays.gather_array(gathering, xp.asarray(table), xp.asarray(Y), given).moments
    plain = ClassMoments.of(table, Y, weights)
    np.testing.assert_allclose(found.within, plain.within, rtol=1e-12, atol=1e-13 * np.trace(plain.within))
    np.testing.assert_allclose(found.centred_means(), plain.centred_means(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-15, atol=1e-14)
    np.testing.assert_array_equal(found.counts, plain.counts)
    np.testing.assert_array_equal(found.weights, plain.weights)


@over([case for case in CASES if case.name in ("pca", "fisher-lda", "margin-pca-mean", "margin-pca-nearest")])
@pytest.mark.parametrize("table", [(X, Y), (WIDE, WIDE_LABELS)], ids=["tall", "wide"])
@pytest.mark.filterwarnings("ignore")
def test_a_fit_and_its_features_are_the_plain_ones(case, xp, table):
    X, y = table
    plain, fitted = case().fit(X, y), case().fit(xp.asarray(X), xp.asarray(y))
    np.testing.assert_allclose(np.abs(fitted.components_), np.abs(plain.components_), atol=1e-10)
    features = fitted.transform(xp.asarray(X))
    assert type(features) is type(xp.asarray(X))
    np.testing.assert_allclose(np.abs(host(features)), np.abs(plain.transform(X)), atol=1e-9)
    back = fitted.inverse_transform(features)
    assert type(back) is type(features)
    np.testing.assert_allclose(host(back), plain.inverse_transform(plain.transform(X)), atol=1e-9)


def test_predictions_are_of_the_same_library(xp):
    plain, fitted = FisherLDA().fit(X, Y), FisherLDA().fit(xp.asarray(X), xp.asarray(Y))
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        given = getattr(fitted, method)(xp.asarray(X))
        assert type(given) is type(xp.asarray(X))
        np.testing.assert_allclose(host(given), getattr(plain, method)(X), rtol=1e-8, atol=1e-8)
    names = FisherLDA().fit(xp.asarray(X), np.array(["a", "b", "c"])[Y])
    assert names.predict(xp.asarray(X)).tolist() == np.array(["a", "b", "c"])[plain.predict(X)].tolist()


def test_single_precision_stays_and_is_summed_in_doubles(xp):
    table = (X + 1e4).astype(np.float32)
    plain, fitted = PCA(2, whiten=True).fit(table), PCA(2, whiten=True).fit(xp.asarray(table))
    assert fitted.components_.dtype == np.float32
    assert host(fitted.transform(xp.asarray(table))).dtype == np.float32
    np.testing.assert_allclose(fitted.components_, plain.components_, atol=2e-5)
    np.testing.assert_allclose(fitted.explained_variance_, plain.explained_variance_, rtol=1e-5)


BY_ROW_NUMBERS = list(StratifiedKFold(3).split(X, Y))


@pytest.mark.parametrize(
    "estimator",
    [
        RegularizedLDA(),
        BayesErrorLDA(),
        RegularizedLDA(shrinkage="ledoit_wolf"),
        RegularizedLDA(cv=BY_ROW_NUMBERS),
        BayesErrorLDA(cv=BY_ROW_NUMBERS),
    ],
)
def test_methods_on_rows_get_numpy_arrays(xp, estimator):
    fitted = estimator.fit(xp.asarray(X), xp.asarray(Y))
    here = type(estimator)(**estimator.get_params()).fit(X, Y)
    np.testing.assert_allclose(fitted.components_, here.components_, atol=1e-10)


def test_extreme_units_and_zero_weights_are_summed_on_the_host(xp):
    for table in (X * 1e200, X * 1e-200):
        np.testing.assert_allclose(PCA(2).fit(xp.asarray(table)).components_, PCA(2).fit(X).components_, atol=1e-10)
    zeros = np.where(np.arange(len(Y)) % 4 == 0, 0.0, 1.0)
    some = PCA(2).fit(xp.asarray(X), sample_weight=xp.asarray(zeros))
    np.testing.assert_allclose(some.components_, PCA(2).fit(X[zeros > 0]).components_, atol=1e-10)


def test_errors_are_the_same_as_for_numpy(xp):
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 cell.*NaN.*row 7, column 2"):
        PCA(2).fit(xp.asarray(bad))
    fitted = PCA(2).fit(xp.asarray(X))
    with pytest.raises(ValueError, match=r"1 cell.*NaN.*row 7, column 2"):
        fitted.transform(xp.asarray(bad))
    with pytest.raises(ValueError, match=r"X .*3 .*5"):
        fitted.transform(xp.asarray(X[:, :3]))
    with pytest.raises(ValueError, match="one label per row"):
        FisherLDA().fit(xp.asarray(X), xp.asarray(Y[:5]))
