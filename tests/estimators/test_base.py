"""Steps shared by all reducers: streams solved on first use, projection in blocks, attributes."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled

from discrim import PCA, MarginPCA


def test_a_stream_is_solved_once_on_first_use(monkeypatch):
    X, y = labelled(40, 4)
    solved = []
    solve = MarginPCA._solve
    monkeypatch.setattr(MarginPCA, "_solve", lambda *given: solved.append(1) or solve(*given))
    streamed = MarginPCA(2, pairs="mean")
    for rows in np.array_split(np.arange(40), 5):
        streamed.partial_fit(X[rows], y[rows])
    assert not solved
    streamed.transform(X)
    _ = streamed.components_, streamed.eigenvalues_, streamed.rank_
    assert len(solved) == 1
    streamed.partial_fit(X, y).transform(X)
    assert len(solved) == 2


def test_a_stream_keeps_no_rows():
    assert len(pickle.dumps(PCA(2).partial_fit(labelled(5000, 3)[0]))) < 5000


def test_changing_a_parameter_takes_a_stream_away():
    estimator = MarginPCA(2, pairs="mean")
    assert hasattr(estimator, "partial_fit")
    assert not hasattr(estimator.set_params(pairs="nearest"), "partial_fit")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_projection_in_blocks(dtype, kind, monkeypatch):
    monkeypatch.setattr("discrim.tables.rows.BLOCK_ROWS", 64)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)).astype(dtype)
    fitted = PCA(2).fit(kind(X))
    found = fitted.transform(kind(X))
    assert found.dtype == dtype
    wanted = (X - X.mean(axis=0)) @ fitted.components_.T
    np.testing.assert_allclose(found, wanted, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_float32_at_an_offset_is_centred_before_it_is_projected():
    X, _ = labelled(60, 4)
    single = (X + 1e6).astype(np.float32)
    fitted = PCA(2).fit(single)
    wanted = (single.astype(np.float64) - fitted.mean_) @ fitted.components_.T.astype(np.float64)
    np.testing.assert_allclose(fitted.transform(single), wanted, atol=1e-4)


def test_of_equal_loadings_the_first_is_positive():
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((50, 1)) * [1.0, -1.0, 0.3]
        assert PCA(1).fit(X).components_[0, 0] > 0
