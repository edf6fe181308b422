"""Components of least Bayes error: meaning of the scores, and selection."""

from itertools import product

import numpy as np
import pytest

from discrim import BayesErrorPCA
from discrim.estimators.pca import bhattacharyya_scores


def test_bhattacharyya_sees_classes_that_differ_in_variance_only():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.standard_normal((400, 3)) * [3.0, 2.0, 1.0]
    X[:, 1] *= np.where(y == 0, 0.3, 1.4)
    for c in (0, 1):
        X[y == c] -= X[y == c].mean(axis=0)
    assert BayesErrorPCA(1, score="bhattacharyya").fit(X, y).selected_.tolist() == [1]
    assert BayesErrorPCA(score="fisher").fit(X, y).scores_.max() < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0])
def test_the_apparent_error_never_rises_and_never_fails(n_classes, spread):
    """Also if the selected components separate the rows up to rounding."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=60)]
        X = rng.standard_normal((n_classes, 8))[y] + spread * rng.standard_normal((len(y), 8))
        errors = BayesErrorPCA().fit(X, y).bayes_error_
        assert np.isfinite(errors).all()
        assert (np.diff(errors) <= 1e-15).all()
        assert spread == 1 or errors[-1] < 1e-12


def test_score_is_a_parameter_and_no_method():
    estimator = BayesErrorPCA(2, score="bhattacharyya")
    assert estimator.get_params()["score"] == "bhattacharyya"
    assert not hasattr(estimator, "score")
    assert estimator.set_params(score="fisher").get_params()["score"] == "fisher"


def test_components_of_equal_score_are_ordered_by_variance(rng):
    """Every combination of some settings, and classes by the first alone: along the others means differ by rounding."""
    levels = [[0.0, 0.3], [0.1, 0.7, 2.3], [0.1, 0.4, 1.6], [0.3, 0.4, 0.9]]
    X = np.array(list(product(*levels)))
    y = X[:, 0] > 0.1
    for order in [rng.permutation(len(X)) for _ in range(8)]:
        found = np.abs(BayesErrorPCA().fit(X[order], y[order]).components_)
        np.testing.assert_allclose(found, np.eye(4), atol=1e-9)


def test_a_class_without_deviation_scores_high_and_finite():
    means, shares = np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([0.5, 0.5])
    variances, of_classes = np.array([1.0, 2.0]), np.array([[0.0, 1.0], [2.0, 1.0]])
    scores = bhattacharyya_scores(means, variances, of_classes, shares)
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]
