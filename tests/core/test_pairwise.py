"""Moments of rows with missing cells: plain without gaps, pairwise means and covariances with them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import SUPERVISED, over
from geometry import most_turned
from samples import labelled

from discrim import PCA, FisherLDA, fit_parts
from discrim.core.moments.pairwise import pairwise_moments, without_negative_part
from discrim.estimators.discriminant import DiscriminantReducer
from discrim.tables.validation import labelled_rows

X, Y = labelled(80, 5)
DISCRIMINANTS = [
    case
    for case in SUPERVISED
    if isinstance(case(), DiscriminantReducer) and case.laws.streams and "missing" in case().get_params()
]


def with_gaps(table, share=0.15, seed=0):
    gaps = np.random.default_rng(seed).random(table.shape) < share
    return np.where(gaps, np.nan, table)


def test_with_gaps_each_number_is_of_the_rows_that_have_it():
    gaps, weights = with_gaps(X), 1.0 + np.arange(len(Y)) % 2
    found = pairwise_moments(labelled_rows("PCA", gaps, Y, weights, supervised=True))
    means, n = np.zeros((3, 5)), weights.sum()
    for c in range(3):
        for j in range(5):
            there = (c == Y) & ~np.isnan(gaps[:, j])
            means[c, j] = np.average(gaps[there, j], weights=weights[there])
    within = np.zeros((5, 5))
    for j in range(5):
        for k in range(5):
            there = ~np.isnan(gaps[:, j]) & ~np.isnan(gaps[:, k])
            product = (gaps[there, j] - means[Y[there], j]) * (gaps[there, k] - means[Y[there], k])
            within[j, k] = n * np.average(product, weights=weights[there])
    np.testing.assert_allclose(found.means, means, rtol=1e-13)
    np.testing.assert_allclose(found.within, within, rtol=1e-11, atol=1e-11)
    assert found.n_rows == len(Y)


def test_an_indefinite_matrix_becomes_a_scatter_with_the_same_variances():
    scatter = np.diag([4.0, 1.0, 9.0]) ** 0.5 @ np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    scatter = scatter @ np.diag([4.0, 1.0, 9.0]) ** 0.5
    assert np.linalg.eigvalsh(scatter)[0] < -1
    found = without_negative_part(scatter)
    assert np.linalg.eigvalsh(found)[0] > 0
    np.testing.assert_allclose(np.diag(found), np.diag(scatter))
    assert (np.sign(found) == np.sign(scatter)).all()
    good = X.T @ X
    assert without_negative_part(good) is good


@over([*DISCRIMINANTS])
@pytest.mark.filterwarnings("ignore")
def test_a_fit_without_gaps_is_the_plain_one(case):
    plain, open_to_gaps = case().fit(X, Y), case().set_params(missing="pairwise").fit(X, Y)
    np.testing.assert_array_equal(open_to_gaps.components_, plain.components_)
    np.testing.assert_array_equal(open_to_gaps.predict(X), plain.predict(X))


@over([*DISCRIMINANTS])
@pytest.mark.filterwarnings("ignore")
def test_a_few_gaps_turn_little(case):
    """Few missing cells turn the components little."""
    gaps = with_gaps(X, 0.01)
    fitted = case().set_params(missing="pairwise").fit(gaps, Y)
    assert most_turned(fitted.components_, case().fit(X, Y).components_) < 0.2
    assert np.isfinite(fitted.transform(gaps)).all()
    assert "missing cells: pairwise" in fitted.solver_
    far = case().set_params(missing="pairwise").fit(np.ldexp(gaps, 500), Y)
    np.testing.assert_array_equal(far.predict(np.ldexp(gaps, 500)), fitted.predict(gaps))
    filled = np.where(np.isnan(gaps), fitted.mean_, gaps)
    np.testing.assert_allclose(fitted.transform(gaps), fitted.transform(filled))
    np.testing.assert_array_equal(fitted.predict(gaps), fitted.predict(filled))


def test_pca_with_gaps():
    gaps = with_gaps(X)
    fitted = PCA(2, missing="pairwise").fit(gaps)
    assert fitted.n_samples_seen_ == len(X)
    np.testing.assert_allclose(fitted.mean_, np.nanmean(gaps, axis=0))
    np.testing.assert_allclose(
        np.trace(PCA(missing="pairwise").fit(gaps).get_covariance()), 80 / 79 * np.nanvar(gaps, axis=0).sum()
    )
    covariance = np.ma.cov(np.ma.masked_invalid(gaps), rowvar=False).data
    assert most_turned(fitted.components_, np.linalg.eigh(covariance)[1].T[::-1][:2]) < 0.1
    assert np.isfinite(fitted.score(gaps))
    np.testing.assert_array_equal(PCA(2, missing="pairwise").fit(X).components_, PCA(2).fit(X).components_)
    assert PCA(2, missing="pairwise").__sklearn_tags__().input_tags.allow_nan


def fit_file(model, gaps, folder):
    pd.DataFrame(gaps).add_prefix("x").assign(label=Y).to_parquet(folder / "rows.parquet")
    model.fit(folder / "rows.parquet", "label")


WITHOUT_PAIRS = {
    "stream": lambda model, gaps, folder: model.partial_fit(gaps, Y),
    "weighted stream": lambda model, gaps, folder: model.partial_fit(gaps, Y, sample_weight=np.arange(len(Y)) > 0),
    "parts": lambda model, gaps, folder: fit_parts(model, [(gaps, Y)]),
    "file": fit_file,
    "sparse": lambda model, gaps, folder: model.fit(sp.csr_array(gaps), Y),
    "infinite": lambda model, gaps, folder: model.fit(np.where(np.isnan(gaps), np.inf, gaps), Y),
}


@pytest.mark.parametrize("fit", WITHOUT_PAIRS.values(), ids=WITHOUT_PAIRS)
def test_pairwise_statistics_are_not_advised_if_used_or_impossible(fit, tmp_path):
    for model in (FisherLDA(), FisherLDA(missing="pairwise")):
        advice = (
            r"[Ff]ill these cells" if fit is fit_file else r"fill them in, .*in a Pipeline: make_pipeline\(SimpleImp"
        )
        with pytest.raises(ValueError, match=advice) as raised:
            fit(model, with_gaps(X), tmp_path)
        assert "pairwise" not in str(raised.value).replace(str(tmp_path), "")
        assert "drop=" not in str(raised.value)  # an option of reading, which a fit does not have
        assert ("infinite cells as NaN" in str(raised.value)) == (fit is WITHOUT_PAIRS["infinite"])


def test_rows_of_no_weight_are_left_out_of_pairwise_statistics():
    gaps, kept = with_gaps(X), np.arange(len(Y)) % 3 > 0
    weighted = FisherLDA(missing="pairwise").fit(gaps, Y, sample_weight=kept)
    np.testing.assert_allclose(
        weighted.components_, FisherLDA(missing="pairwise").fit(gaps[kept], Y[kept]).components_, atol=1e-10
    )
    gaps[5, 2] = np.inf
    with pytest.raises(ValueError, match="row 5, column 2"):
        FisherLDA(missing="pairwise").fit(gaps, Y, sample_weight=kept)


def test_a_column_or_a_pair_of_columns_that_is_never_there():
    gaps = X.copy()
    gaps[Y == 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"olumn 2 .*class 1"):
        FisherLDA(missing="pairwise").fit(gaps, Y)
    apart = X.copy()
    apart[::2, 0] = apart[1::2, 3] = np.nan
    with pytest.raises(ValueError, match=r"column 0 .*column 3"):
        PCA(missing="pairwise").fit(apart)
    apart[1, 1] = np.inf
    with pytest.raises(ValueError, match="row 1, column 1"):
        PCA(missing="pairwise").fit(apart)
