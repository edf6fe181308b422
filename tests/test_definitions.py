"""Every method equals its definition, transcribed as loops over samples and pairs (`literal`), on tiny data."""

import warnings

import literal
import numpy as np
import pytest
from estimators import CASES, QUIET, WITH_DEFAULTS, over
from samples import labelled
from scipy.linalg import eigh

from discrim import PCA, BayesErrorPCA, HeteroscedasticLDA, MarginPCA, RegularizedLDA

pytestmark = QUIET

SPREADS = [case for case in CASES if case.name in literal.MARGIN_ROWS]
TABLES = {
    "two classes": (13, 4, 2),
    "three classes": (14, 4, 3),
    "five classes": (17, 3, 5),
    "two classes, wide": (7, 11, 2),
    "three classes, wide": (8, 12, 3),
}
over_tables = pytest.mark.parametrize("shape", TABLES.values(), ids=TABLES)


@over_tables
@over(SPREADS)
def test_directions_and_eigenvalues_are_those_of_the_literal_sum(case, shape):
    X, y = labelled(*shape, seed=1)
    Z = np.array(literal.MARGIN_ROWS[case.name](X, y))
    _, singular, directions = np.linalg.svd(Z, full_matrices=False)
    rank = np.linalg.matrix_rank(Z)
    fitted = case(None).fit(X, y)
    assert fitted.rank_ == rank
    assert fitted.components_.shape == (rank, X.shape[1])
    wanted = np.array([literal.fixed_sign(direction) for direction in directions[:rank]])
    np.testing.assert_allclose(fitted.components_, wanted, atol=1e-9)
    np.testing.assert_allclose(fitted.eigenvalues_ * len(X), singular[:rank] ** 2, rtol=1e-10)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)


@over(WITH_DEFAULTS)
def test_transform_is_centre_and_project_and_inverse_is_least_squares(case, table):
    X, y = table
    fitted = case().fit(X, y)
    W = fitted.components_
    scores = (X - X.mean(axis=0)) @ W.T
    np.testing.assert_allclose(fitted.transform(X), scores, atol=1e-11)
    back = X.mean(axis=0) + scores @ np.linalg.pinv(W.T)
    np.testing.assert_allclose(fitted.inverse_transform(scores), back, atol=1e-9)
    if case.laws.orthonormal:
        np.testing.assert_allclose(W @ W.T, np.eye(2), atol=1e-12)


# ---------------------------------------------------------------------- gain over cost


@over_tables
def test_heteroscedastic_discriminants_are_those_of_the_literal_criterion(shape):
    X, y = labelled(*shape, seed=7)
    C, cost = literal.chernoff(X, y, 0.3)
    values, vectors = eigh((C + C.T) / 2, cost)
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    fitted = HeteroscedasticLDA(shrinkage=0.3).fit(X, y)
    assert fitted.n_components_ == fitted.n_discriminants_ == rank
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1][:rank], rtol=1e-8, atol=1e-10)
    wanted = np.array([literal.fixed_sign(direction) for direction in vectors.T[::-1][:rank]])
    np.testing.assert_allclose(fitted.components_, wanted, atol=1e-6)
    np.testing.assert_allclose(fitted.components_ @ cost @ fitted.components_.T, np.eye(rank), atol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, "oas"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_heteroscedastic_discriminants_of_equal_covariances_are_those_of_lda(n_classes, shrinkage):
    Z = np.random.default_rng(0).standard_normal((20, 5))
    means = np.random.default_rng(1).standard_normal((n_classes, 5))
    X, y = np.concatenate([mean + Z for mean in means]), np.repeat(np.arange(n_classes), 20)
    one, other = (kind(shrinkage=shrinkage).fit(X, y) for kind in (HeteroscedasticLDA, RegularizedLDA))
    assert one.n_discriminants_ == other.n_discriminants_ == n_classes - 1
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_heteroscedastic_discriminants_see_classes_of_equal_means_where_lda_refuses():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((60, 4))
    X = np.concatenate([half, -half, half * [1, 4, 1, 1], -half * [1, 4, 1, 1]])
    y = np.repeat([0, 1], 120)
    with pytest.raises(ValueError, match="means"):
        RegularizedLDA(shrinkage=0.1).fit(X, y)
    with pytest.warns(UserWarning, match="All class means are equal"):
        fitted = HeteroscedasticLDA(1, shrinkage=0.1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HeteroscedasticLDA(1, shrinkage=0.1).fit(X + 0.01 * y[:, None], y)
    assert abs(fitted.components_[0]).argmax() == 1
    np.testing.assert_allclose(fitted.predict_proba(X), 0.5)
    with pytest.raises(ValueError, match="classes"):
        HeteroscedasticLDA(1, shrinkage=0.1).fit(np.concatenate([X, X]), np.repeat([0, 1], 240))


# ---------------------------------------------------------------------- Bayes-error components


def principal_features(X):
    """All features of numerical rank, by the plain SVD."""
    centred = X - X.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[singular > 1e-10 * singular[0]].T


@over_tables
@pytest.mark.parametrize("score", ["fisher", "bhattacharyya"])
def test_scores_of_every_component_and_the_choice_by_them(score, shape):
    X, y = labelled(*shape, seed=3)
    features = principal_features(X)
    literal_score = literal.correlation_ratio if score == "fisher" else literal.bhattacharyya
    scores = np.array([literal_score(feature, y) for feature in features.T])
    fitted = BayesErrorPCA(2, score=score).fit(X, y)
    best = np.argsort(-scores)[:2]
    np.testing.assert_allclose(fitted.scores_, scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fitted.selected_, best)
    np.testing.assert_allclose(np.abs(fitted.transform(X)), np.abs(features[:, best]), atol=1e-9)
    np.testing.assert_allclose(fitted.eigenvalues_, features[:, best].var(axis=0), rtol=1e-10)


def test_two_classes_score_is_the_papers_times_both_shares():
    X, y = labelled(40, 5, 2)
    features, p = principal_features(X), y.mean()
    papers = (features[y == 0].mean(axis=0) - features[y == 1].mean(axis=0)) ** 2 / features.var(axis=0)
    np.testing.assert_allclose(BayesErrorPCA().fit(X, y).scores_, p * (1 - p) * papers, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("score", ["fisher", "bhattacharyya"])
def test_apparent_error_after_each_component(n_classes, score):
    X, y = labelled(60, 6, n_classes, seed=4)
    fitted = BayesErrorPCA(score=score).fit(X, y)
    features = fitted.transform(X)
    for kept in range(1, 7):
        found = fitted.bayes_error_[kept - 1]
        assert found == pytest.approx(literal.apparent_error(features[:, :kept], y), rel=1e-9)
        assert found == pytest.approx(literal.mahalanobis_error(features[:, :kept], y), rel=1e-9)
    assert (np.diff(fitted.bayes_error_) <= 0).all()
    assert 0 < fitted.bayes_error_[-1] < fitted.bayes_error_[0] < 0.5


def test_two_class_apparent_error_from_the_sum_of_scores():
    X, y = labelled(50, 6, 2, seed=5)
    fitted = BayesErrorPCA().fit(X, y)
    shares = y.mean() * (1 - y.mean())
    T = np.cumsum(fitted.scores_[fitted.selected_]) / shares  # on the paper's scale
    wanted = [literal.normal_tail(np.sqrt(t / (1 - shares * t)) / 2) for t in T]
    np.testing.assert_allclose(fitted.bayes_error_, wanted, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_apparent_error_is_zero_where_all_components_separate_the_training_rows(n_classes):
    X, y = labelled(12, 30, n_classes, seed=6)
    errors = BayesErrorPCA().fit(X, y).bayes_error_
    assert len(errors) == 11
    assert np.isfinite(errors).all()
    assert errors[-1] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(errors) <= 0).all()


def test_the_highest_scores_are_the_best_subset_for_two_classes():
    X, y = labelled(40, 5, 2, seed=7)
    features = principal_features(X)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    best = min(pairs, key=lambda pair: literal.mahalanobis_error(features[:, pair], y))
    assert set(BayesErrorPCA(2).fit(X, y).selected_) == set(best)


# ---------------------------------------------------------------------- the papers' own examples


def crosses(variances, a, minority=1, majority=1):
    """Two classes with means ∓a e₁ and covariance diag(variances), exactly: points on the axes around each mean."""
    arms = np.sqrt(len(variances) * np.asarray(variances))
    points = np.concatenate([np.diag(arms), -np.diag(arms)])
    shift = a * np.eye(len(variances))[0]
    X = np.concatenate([np.repeat(points - shift, majority, axis=0), np.repeat(points + shift, minority, axis=0)])
    return X, np.repeat([0, 1], [majority * len(points), minority * len(points)])


@pytest.mark.parametrize("shares", [(1, 1), (1, 4)], ids=["balanced", "one to four"])
def test_the_papers_population_values(shares):
    variances, a = np.array([1.0, 0.7, 0.2]), 1.3
    X, y = crosses(variances, a, *shares)
    n, n_plus = len(y), int(y.sum())
    share = n_plus / n

    def along(axes_value):
        return np.diag([axes_value, *variances[1:]])

    def spread_of(estimator):
        fitted = estimator.fit(X, y)
        return fitted.components_.T @ np.diag(fitted.eigenvalues_ * n) @ fitted.components_

    wanted = along(variances[0] + 4 * share * (1 - share) * a**2)
    np.testing.assert_allclose(spread_of(PCA()) / n, wanted, atol=1e-12)
    of_all = spread_of(MarginPCA(pairs="all")) / (n_plus * (n - n_plus))
    np.testing.assert_allclose(of_all, 2 * along(variances[0] + 2 * a**2), atol=1e-12)
    for pairs in ("mean", "median"):
        wanted = along(variances[0] + 4 * a**2)
        np.testing.assert_allclose(spread_of(MarginPCA(pairs=pairs)) / n, wanted, atol=1e-12)


def first_axis(estimator, X, y):
    return int(np.argmax(np.abs(estimator.fit(X, y).components_[0])))


def test_only_differences_to_the_means_find_the_class_axis_in_strong_noise():
    X, y = crosses([1.0, 4.0], a=1.0)  # along the classes: 2 (PCA), 3 (all pairs), 5 (means); noise: 4
    assert first_axis(PCA(1), X, y) == 1
    assert first_axis(MarginPCA(1, pairs="all"), X, y) == 1
    assert first_axis(MarginPCA(1, pairs="mean"), X, y) == 0
    assert first_axis(MarginPCA(1, pairs="median"), X, y) == 0


def test_imbalance_hurts_pca_alone():
    balanced, uneven = crosses([1.0, 1.8], a=1.0), crosses([1.0, 1.8], a=1.0, majority=9)
    assert first_axis(PCA(1), *balanced) == 0
    assert first_axis(PCA(1), *uneven) == 1
    for pairs in ("all", "mean", "median"):
        assert first_axis(MarginPCA(1, pairs=pairs), *balanced) == 0
        assert first_axis(MarginPCA(1, pairs=pairs), *uneven) == 0
