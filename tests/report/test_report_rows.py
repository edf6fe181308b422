"""Hotelling's T², the squared residual, and their limits for normal rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn import decomposition
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, PLSDA, MonitoringDisplay, RegularizedLDA
from discrim.estimators.predictor import spe_limit, t2_limit
from discrim.report.rows import MonitoringValues

pytest.importorskip("matplotlib").use("Agg")
X, Y = labelled(40, 6, 3, seed=2)
NEW = labelled(15, 6, 3, seed=9)[0]


@pytest.mark.parametrize("new", [None, NEW], ids=["fitted", "new"])
@pytest.mark.parametrize("model", [PCA(3), PLSDA(2), RegularizedLDA(2, shrinkage=0.1), decomposition.PCA(2)], ids=str)
def test_they_are_the_mahalanobis_distance_and_what_the_best_loadings_leave(model, new):
    model.fit(X, Y)
    found = MonitoringValues.from_estimator(model, X, new)
    T, judged = model.transform(X), X if new is None else new
    inverse = np.linalg.inv(np.atleast_2d(np.cov(T.T)))
    for row, t2, spe in zip(judged, found.t2, found.spe, strict=True):
        t = model.transform(row[None])[0] - T.mean(axis=0)
        assert t2 == pytest.approx(t @ inverse @ t, rel=1e-8)
        P = np.linalg.lstsq(T - T.mean(axis=0), X - X.mean(axis=0), rcond=None)[0]
        assert spe == pytest.approx(np.sum((row - X.mean(axis=0) - t @ P) ** 2), rel=1e-8)


def test_of_pca_and_pls_it_is_the_residual_of_their_own_loadings():
    pca, pls = PCA(3).fit(X), PLSDA(2).fit(X, Y)
    rest = NEW - pca.inverse_transform(pca.transform(NEW))
    np.testing.assert_allclose(MonitoringValues.from_estimator(pca, X, NEW).spe, (rest**2).sum(axis=1), rtol=1e-8)
    rest = NEW - pls.mean_ - pls.transform(NEW) @ pls.x_loadings_.T
    np.testing.assert_allclose(MonitoringValues.from_estimator(pls, X, NEW).spe, (rest**2).sum(axis=1), rtol=1e-8)


def test_a_share_of_normal_rows_stays_within_each_limit():
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((2, 10))

    def drawn(n):
        return 3 * rng.standard_normal((n, 2)) @ factors + rng.standard_normal((n, 10))

    counts = np.zeros(4)
    for _ in range(60):
        fitted, new = drawn(60), drawn(60)
        model = decomposition.PCA(2).fit(fitted)
        for at, values in enumerate(
            (MonitoringValues.from_estimator(model, fitted), MonitoringValues.from_estimator(model, fitted, new))
        ):
            counts[2 * at : 2 * at + 2] += (values.t2 > values.t2_limit).mean(), (values.spe > values.spe_limit).mean()
    shares = counts / 60
    assert shares[0] == pytest.approx(0.05, abs=0.012)
    assert shares[1] == pytest.approx(0.05, abs=0.02)
    assert 0.035 < shares[2] < 0.07
    assert 0.035 < shares[3] < 0.07


@pytest.mark.parametrize(("n", "d", "k"), [(150, 600, 10), (40, 1000, 3)])
def test_new_rows_stay_within_the_limit_where_columns_outnumber_the_fitted_ones(n, d, k):
    rng, beyond = np.random.default_rng(0), []
    for _ in range(8):
        factors = rng.standard_normal((k, d))
        fitted, new = (rng.standard_normal((m, k)) @ factors + rng.standard_normal((m, d)) for m in (n, 300))
        values = MonitoringValues.from_estimator(PCA(k).fit(fitted), fitted, new)
        beyond.append((values.spe > values.spe_limit).mean())
    assert np.mean(beyond) < 0.09  # of the fitted rows' own residuals: 0.76 and 0.89


def test_limits_of_many_rows_are_those_of_chi_squared():
    for fitted in (True, False):
        assert t2_limit(10**6, 3, 0.95, fitted=fitted) == pytest.approx(7.8147, rel=1e-4)
    assert t2_limit(20, 3, 0.95, fitted=True) < 7.8147 < t2_limit(20, 3, 0.95, fitted=False)
    residuals = 2 * np.random.default_rng(0).chisquare(5, 200_000)
    assert spe_limit(residuals, 0.99) == pytest.approx(2 * 15.086, rel=0.01)


def test_rows_beyond_are_named_by_id_the_farthest_first():
    model = make_pipeline(StandardScaler(), PLSDA(2)).fit(X, Y)
    frame = pytest.importorskip("pandas").DataFrame(X, index=[f"sample {at}" for at in range(40)])
    frame.iloc[7] += np.where(np.arange(6) % 2, 30.0, -30.0)
    shown = MonitoringDisplay.from_estimator(model, X, frame.to_numpy(), ids=frame.index, level=0.999)
    assert shown.beyond_[0] == "sample 7"
    assert MonitoringValues.from_estimator(make_pipeline(PCA(2)).fit(frame), frame).ids[7] == "sample 7"
    assert MonitoringValues.from_estimator(model, X).ids[7] == "7"
    texts = next(mark for mark in shown.chart_.marks if mark.part == "names").texts
    assert texts[0] == " sample 7"
    with pytest.raises(ValueError, match="ids must have"):
        MonitoringValues.from_estimator(model, X, ids="abc")


def test_sparse_rows_have_the_same():
    Z = np.where(X > 0.5, X, 0.0)
    model = PLSDA(2).fit(Z, Y)
    dense, sparse = MonitoringValues.from_estimator(model, Z), MonitoringValues.from_estimator(model, sp.csr_array(Z))
    np.testing.assert_allclose(sparse.t2, dense.t2, rtol=1e-8)
    np.testing.assert_allclose(sparse.spe, dense.spe, rtol=1e-8)


def test_without_a_remainder_no_row_is_beyond_the_limit_by_rounding():
    values = MonitoringValues.from_estimator(PCA().fit(X), X, level=0.999)
    assert (values.spe <= values.spe_limit).all()
    assert values.chart().marks


@pytest.mark.parametrize("level", [0, 1, 95])
def test_other_levels_are_refused(level):
    with pytest.raises(ValueError, match="level"):
        MonitoringValues.from_estimator(PCA(2).fit(X), X, level=level)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="5 rows"):
        MonitoringValues.from_estimator(PCA(3).fit(X), X[:4])
