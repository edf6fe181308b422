"""Components of least Bayes error: meaning of the scores, and selection."""

from itertools import combinations, product

import numpy as np
import pytest
from samples import labelled

from discrim import PCA, BayesErrorPCA
from discrim.estimators.pca import apparent_errors, bhattacharyya_scores


def test_directions_are_pcas_own_in_the_order_of_their_scores():
    X, y = labelled(60, 6)
    fitted, principal = BayesErrorPCA(4).fit(X, y), PCA().fit(X)
    np.testing.assert_allclose(fitted.components_, principal.components_[fitted.selected_], atol=1e-10)
    np.testing.assert_allclose(fitted.eigenvalues_, principal.eigenvalues_[fitted.selected_], rtol=1e-10)
    assert (np.diff(fitted.scores_[fitted.selected_]) <= 0).all()
    assert len(fitted.scores_) == 6
    assert len(fitted.bayes_error_) == 4


def test_scores_are_shares_of_variance_between_classes():
    X, y = labelled(60, 6)
    scores = BayesErrorPCA().fit(X, y).scores_
    assert ((scores >= 0) & (scores <= 1)).all()
    one_point_each = np.eye(3)[y]
    np.testing.assert_allclose(BayesErrorPCA().fit(one_point_each, y).scores_, 1.0, rtol=1e-12)


def test_the_highest_scores_maximise_the_between_share_over_all_subsets():
    """tr(S_t⁻¹S_b) over k components, for any number of classes."""
    X, y = labelled(60, 6, 4)
    features = PCA().fit_transform(X)
    means = np.array([features[y == c].mean(axis=0) for c in range(4)])
    between = (means * np.bincount(y)[:, None] / len(y)).T @ means
    total = features.T @ features / len(y)

    def share(kept):
        of = np.ix_(kept, kept)
        return np.trace(np.linalg.solve(total[of], between[of]))

    for k in (1, 2, 3):
        assert set(BayesErrorPCA(k).fit(X, y).selected_) == set(max(combinations(range(6), k), key=share))


def test_two_class_scores_give_the_mahalanobis_distance_of_the_means():
    """r² = T/(1 − p₁p₂T), T the sum of the kept scores on the paper's scale."""
    X, y = labelled(50, 5, 2)
    p = y.mean() * (1 - y.mean())
    fitted = BayesErrorPCA(3).fit(X, y)
    features = fitted.transform(X)
    T = fitted.scores_[fitted.selected_].sum() / p
    gap = features[y == 1].mean(axis=0) - features[y == 0].mean(axis=0)
    within = sum((f := features[y == c] - features[y == c].mean(axis=0)).T @ f for c in (0, 1)) / len(y)
    assert gap @ np.linalg.solve(within, gap) == pytest.approx(T / (1 - p * T), rel=1e-10)


def test_bhattacharyya_sees_classes_that_differ_in_variance_only():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.standard_normal((400, 3)) * [3.0, 2.0, 1.0]
    X[:, 1] *= np.where(y == 0, 0.3, 1.4)
    for c in (0, 1):
        X[y == c] -= X[y == c].mean(axis=0)
    assert BayesErrorPCA(1, score="bhattacharyya").fit(X, y).selected_.tolist() == [1]
    assert BayesErrorPCA(score="fisher").fit(X, y).scores_.max() < 1e-12


def test_a_class_without_deviation_scores_high_and_finite():
    means, shares = np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([0.5, 0.5])
    variances, of_classes = np.array([1.0, 2.0]), np.array([[0.0, 1.0], [2.0, 1.0]])
    scores = bhattacharyya_scores(means, variances, of_classes, shares)
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


@pytest.mark.parametrize("unit", [1e-120, 1e-70, 1e70, 1e120])
def test_bhattacharyya_scores_have_no_unit(unit):
    rng = np.random.default_rng(1)
    means, of_classes, shares = rng.standard_normal((3, 4)), rng.uniform(0.5, 2, (3, 4)), np.array([0.2, 0.3, 0.5])
    variances = of_classes.max(axis=0)
    plain = bhattacharyya_scores(means, variances, of_classes, shares)
    scaled = bhattacharyya_scores(means * unit, variances * unit**2, of_classes * unit**2, shares)
    np.testing.assert_allclose(scaled, plain, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_the_apparent_error_never_rises_and_never_fails(n_classes, seed):
    """Also if the selected components separate the training rows up to rounding."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_classes))
    rows = np.linalg.qr(np.c_[np.sqrt(shares), rng.standard_normal((n_classes, n_classes - 1))])[0][:, 1:]
    means = np.c_[rows / np.sqrt(shares)[:, None], rng.standard_normal((n_classes, 2)) * 1e-9]
    errors = apparent_errors(means, shares)
    assert np.isfinite(errors).all()
    assert (np.diff(errors) <= 1e-15).all()
    assert errors[-1] == pytest.approx(0.0, abs=1e-12)


def test_no_components_that_are_rounding_are_scored():
    X, y = labelled(10, 40)
    assert len(BayesErrorPCA().fit(X, y).scores_) == 9
    X, y = labelled(40, 4)
    assert len(BayesErrorPCA().fit(np.c_[X, X], y).scores_) == 4


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
