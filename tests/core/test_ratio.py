"""Ratio with a positive ridge: the same discriminants, without computing the range of the rows."""

import numpy as np
import pytest
from samples import labelled
from scipy.linalg import solve_triangular
from sklearn.metrics.pairwise import rbf_kernel

from discrim import FisherLDA
from discrim.core.discriminants import classical
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Covariance, numerical_rank, ratio_of


@pytest.mark.parametrize("fault", ["none", "few rows", "a combination", "a constant"])
def test_a_ridge_makes_the_range_no_matter_but_for_its_dimension(fault):
    X, y = labelled(9 if fault == "few rows" else 60, 12)
    if fault == "a combination":
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    if fault == "a constant":
        X[:, 5] = 0.1
    moments = ClassMoments.of(X, y)
    in_range, whole = ratio_of(moments), ratio_of(moments, has_ridge=True)
    assert in_range.rank == whole.rank == (8 if fault == "few rows" else 12 if fault == "none" else 11)
    one, other = (classical(ratio, ratio.covariance(0.2)) for ratio in (in_range, whole))
    np.testing.assert_allclose(one.values, other.values, rtol=1e-10)
    first, second = in_range.embedded(one.directions), whole.embedded(other.directions)
    signs = np.sign(np.vecdot(first, second))[:, None]
    np.testing.assert_allclose(first, signs * second, atol=1e-9 * np.abs(first).max())


@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_add_the_dimension_that_centring_removes(seed):
    rng = np.random.default_rng(seed)
    points = np.unique(np.round(2 * rng.normal(size=(200, 8))), axis=0)
    gram = rbf_kernel(points, gamma=0.02)
    features = solve_triangular(np.linalg.cholesky(gram), gram, lower=True).T
    moments = ClassMoments.of(features, rng.integers(0, 4, len(points)))
    assert ratio_of(moments, has_ridge=True).rank == len(points) - 1
    assert numerical_rank(np.array([[0.1, 1.0], [1.0, 0.1]]), 1e-16) == 1  # a block of rounding may be indefinite


def test_a_fit_factors_the_within_class_covariance_once(monkeypatch):
    factored, factor = [], Covariance.__init__
    monkeypatch.setattr(Covariance, "__init__", lambda *given: factored.append(given) or factor(*given))
    FisherLDA().fit(*labelled(60, 12))
    assert len(factored) == 1
