"""Linear discriminant analysis compared with definitions, identities and, where correct, scikit-learn."""

import literal
import numpy as np
import pytest
import scipy.linalg as la
from geometry import largest_angle
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import KFold

from discrim import (
    PCALDA,
    ClassMoments,
    FisherLDA,
    MaximumMarginCriterion,
    NullSpaceLDA,
    OrthogonalLDA,
    RegularizedLDA,
    UncorrelatedLDA,
)

LOADERS = {"wdbc": load_breast_cancer, "wine": load_wine, "digits": load_digits, "iris": load_iris}


def clouds(n_per_class, d, n_classes=3, gap=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_per_class)
    return rng.normal(size=(len(y), d)) + gap * rng.normal(size=(n_classes, d))[y], y


TALL = clouds(40, 6)
WIDE = clouds(8, 90)


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
def test_uncorrelated_identities(X, y):
    model = UncorrelatedLDA().fit(X, y)
    G = model.components_
    within, between, _ = literal.scatters(X, y)
    np.testing.assert_allclose(G @ (within + between) @ G.T, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(G @ between @ G.T, np.diag(model.eigenvalues_), atol=1e-9)
    np.testing.assert_allclose(G @ within @ G.T, np.eye(2) - np.diag(model.eigenvalues_), atol=1e-9)
    features = model.transform(X)
    np.testing.assert_allclose(features.T @ features, np.eye(2), atol=1e-9)


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
def test_orthogonal_is_an_orthonormal_basis_of_uncorrelated_span(X, y):
    model = OrthogonalLDA().fit(X, y)
    G = model.components_
    np.testing.assert_allclose(G @ G.T, np.eye(2), atol=1e-9)
    assert largest_angle(G, UncorrelatedLDA().fit(X, y).components_) < 1e-9
    between = G @ literal.scatters(X, y)[1] @ G.T / len(y)
    np.testing.assert_allclose(between, np.diag(model.eigenvalues_), atol=1e-9 * between.max())
    assert model.eigenvalues_[0] >= model.eigenvalues_[1]


def test_fisher_directions_and_scale():
    X, y = TALL
    within, between, _ = literal.scatters(X, y)
    values = la.eigh(between, within, eigvals_only=True)[::-1][:2]
    model = FisherLDA().fit(X, y)
    G = model.components_
    np.testing.assert_allclose(G @ within @ G.T / len(y), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, values / values.sum(), rtol=1e-9)


def test_null_space_by_its_definition():
    X, y = WIDE
    within, between, _ = literal.scatters(X, y)
    null = la.null_space(within)
    values, vectors = la.eigh(null.T @ between @ null)
    expected = (null @ vectors[:, ::-1][:, :2]).T
    model = NullSpaceLDA().fit(X, y)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * expected, axis=1)), 1.0, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2] / len(y), rtol=1e-9)


def test_null_space_is_filled_with_one_warning_where_there_is_none():
    X, y = TALL
    with pytest.warns(UserWarning, match="0 of 2") as caught:
        model = NullSpaceLDA().fit(X, y)
    assert len(caught) == 1
    assert largest_angle(model.components_, OrthogonalLDA().fit(X, y).components_) < 1e-9


def test_null_space_is_filled_after_its_own_discriminants():
    # n − C < d < n − 1: the null space has one direction, two discriminants are wanted
    X, y = clouds(6, 16)
    with pytest.warns(UserWarning, match="1 of 2"):
        G = NullSpaceLDA().fit(X, y).components_
    np.testing.assert_allclose(G @ G.T, np.eye(2), atol=1e-9)
    assert largest_angle(G, OrthogonalLDA().fit(X, y).components_) < 1e-7


@pytest.mark.parametrize("name", LOADERS)
def test_agrees_with_scikit_learn_where_that_is_right(name):
    X, y = LOADERS[name](return_X_y=True)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    ours = FisherLDA().fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X))


def test_fisher_on_singular_within_scatter_spans_ulda_and_warns_once():
    X, y = WIDE
    with pytest.warns(UserWarning, match="singular") as caught:
        model = FisherLDA().fit(X, y)
    assert len(caught) == 1
    assert largest_angle(model.components_, UncorrelatedLDA().fit(X, y).components_) < 1e-9
    total = np.cov(X.T, bias=True)
    np.testing.assert_allclose(np.diag(model.components_ @ total @ model.components_.T), 1.0, rtol=1e-9)


@pytest.mark.parametrize("columns", ["doubled", "sum"])
def test_collinear_columns_are_harmless(columns):
    X, y = load_wine(return_X_y=True)
    extra = X[:, :1] if columns == "doubled" else X[:, :2].sum(axis=1, keepdims=True)
    plain, more = FisherLDA().fit(X, y), FisherLDA().fit(np.c_[X, extra], y)
    assert more.rank_ == plain.rank_ == 13
    np.testing.assert_allclose(more.predict_proba(np.c_[X, extra]), plain.predict_proba(X), atol=1e-8)


def test_a_column_that_separates_the_classes_and_is_constant_in_each():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="singular"):
        model = FisherLDA().fit(np.c_[X, y.astype(float)], y)
    features = model.transform(np.c_[X, y.astype(float)])
    # the first direction has no within-class deviation and is scaled by its total one, the second by its within-class
    for c in range(3):
        assert np.ptp(features[y == c, 0]) < 1e-9
    assert features[:, 0].std() == pytest.approx(1.0)
    assert np.sqrt(np.mean(within_centred(features, y)[:, 1] ** 2)) == pytest.approx(1.0)


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
def test_more_components_continue_with_pca_of_the_complement(X, y):
    k = 5
    within, between, _ = literal.scatters(X, y)
    for model in (RegularizedLDA(k, shrinkage=0.3), OrthogonalLDA(k), UncorrelatedLDA(k), PCALDA(k)):
        G = model.fit(X, y).components_
        assert G.shape == (k, X.shape[1])
        assert model.n_discriminants_ == 2
        Q = la.orth(G[:2].T)
        rest = np.eye(X.shape[1]) - Q @ Q.T
        _, vectors = la.eigh(rest @ (within + between) @ rest)
        expected = vectors[:, ::-1][:, :3].T
        pads = G[2:] / np.linalg.norm(G[2:], axis=1)[:, None]
        np.testing.assert_allclose(np.abs(np.sum(pads * expected, axis=1)), 1.0, atol=1e-8)
        if isinstance(model, OrthogonalLDA):
            np.testing.assert_allclose(G @ G.T, np.eye(k), atol=1e-9)
        elif isinstance(model, UncorrelatedLDA):
            np.testing.assert_allclose(np.diag(G @ (within + between) @ G.T), 1.0, rtol=1e-8)
        else:
            np.testing.assert_allclose(np.diag(G @ within @ G.T)[2:] / len(y), 1.0, rtol=1e-8)


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
def test_structure_coefficients_are_correlations(X, y):
    model = RegularizedLDA(4, shrinkage=0.2).fit(X, y)
    features = model.transform(X)
    expected = np.corrcoef(X.T, features.T)[X.shape[1] :, : X.shape[1]]
    np.testing.assert_allclose(model.structure_coefficients_, expected, atol=1e-9)


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0])
def test_regularised_by_its_definition(X, y, gamma):
    within, between, _ = literal.scatters(X, y)
    n, sigma = len(y), literal.ridged(within, X, gamma)
    values, vectors = la.eigh(between / n, sigma)
    model = RegularizedLDA(shrinkage=gamma).fit(X, y)
    G = model.components_
    np.testing.assert_allclose(G @ sigma @ G.T, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-8)
    assert largest_angle(G, vectors[:, ::-1][:, :2].T) < 1e-8
    # the linear rule under Σ_γ, written out
    means = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    inverse = np.linalg.inv(sigma)
    scores = X @ inverse @ means.T - 0.5 * np.diag(means @ inverse @ means.T) + np.log(np.bincount(y) / n)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def within_centred(X, y):
    return np.concatenate([X[y == c] - X[y == c].mean(axis=0) for c in np.unique(y)])


@pytest.mark.parametrize(("X", "y"), [TALL, WIDE], ids=["tall", "wide"])
@pytest.mark.parametrize("constant", [False, True])
def test_shrinkage_rules_as_published_in_our_unit(X, y, constant):
    n, p = X.shape
    X = X * np.linspace(0.2, 3, p)  # on a round cloud the rules shrink all the way
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    Z = within_centred(X, y)
    S = Z.T @ Z / n
    squared, trace = np.trace(S @ S), np.trace(S)
    published = {
        "oas": min(1, ((1 - 2 / p) * squared + trace**2) / ((n + 1 - 2 / p) * (squared - trace**2 / p))),
        "ledoit_wolf": ledoit_wolf_shrinkage(Z, assume_centered=True),
    }
    table = np.c_[X, np.full(n, 7.0)] if constant else X
    for rule, g in published.items():
        gamma = RegularizedLDA(shrinkage=rule).fit(table, y).shrinkage_
        assert 0 < g < 1
        np.testing.assert_allclose(gamma / (1 - gamma), g / (1 - g) * rank / p, rtol=1e-9)
        # one matrix up to a factor
        ours = (1 - gamma) * S + gamma * trace / rank * np.eye(p)
        theirs = (1 - g) * S + g * trace / p * np.eye(p)
        np.testing.assert_allclose(ours / np.trace(ours), theirs / np.trace(theirs), rtol=1e-9, atol=1e-15)


def test_searched_number_of_components_is_the_literal_cross_validation():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = RegularizedLDA("cv", shrinkage=0.3, cv=splits).fit(X, y)
    for k in (1, 2):
        right = 0
        for train, test in splits:
            inner = RegularizedLDA(k, shrinkage=0.3).fit(X[train], y[train])
            features = inner.transform(X[train])
            centroids = np.stack([features[y[train] == c].mean(axis=0) for c in range(3)])
            distances = ((inner.transform(X[test])[:, None] - centroids) ** 2).sum(axis=2)
            scores = -0.5 * distances + np.log(np.bincount(y[train]) / len(train))
            right += (scores.argmax(axis=1) == y[test]).sum()
        assert model.path_.accuracies[0, k - 1] == pytest.approx(right / len(y), abs=1e-12)
    assert model.n_components_ == 2
    assert RegularizedLDA(1, shrinkage="cv").fit(X, y).n_components_ == 1  # an int is kept


def test_maximum_margin_criterion_by_its_definition():
    X, y = load_wine(return_X_y=True)
    within, between, _ = literal.scatters(X, y)
    for weight in (0.0, 0.3, 1.0):
        values, vectors = la.eigh(between - weight * within)
        k = 3 if weight else 2  # S_b alone has two directions
        model = MaximumMarginCriterion(k, weight=weight).fit(X, y)
        expected = vectors[:, ::-1][:, :k].T
        np.testing.assert_allclose(np.abs(np.sum(model.components_ * expected, axis=1)), 1.0, atol=1e-9)
        np.testing.assert_allclose(model.eigenvalues_, values[::-1][:k] / len(y), rtol=1e-7)
    positive = int((la.eigvalsh(between - 0.3 * within) > 0).sum())
    assert MaximumMarginCriterion(weight=0.3).fit(X, y).n_components_ == positive


def test_maximum_margin_criterion_keeps_one_direction_with_a_warning():
    X, y = clouds(50, 4, gap=0.0)
    with pytest.warns(UserWarning, match="MaximumMarginCriterion|best"):
        assert MaximumMarginCriterion().fit(X, y).n_components_ == 1


def test_pca_then_lda_by_its_definition():
    X, y = WIDE
    centred = X - X.mean(axis=0)
    axes = la.svd(centred, full_matrices=False)[2][:10]
    within, between, _ = literal.scatters(centred @ axes.T, y)
    values, vectors = la.eigh(between, within)
    model = PCALDA(pca_components=10).fit(X, y)
    assert largest_angle(model.components_, vectors[:, ::-1][:, :2].T @ axes) < 1e-9
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-9)


def test_priors_and_class_weight():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.array(["a", "b"])[y[50:] - 1]
    base = FisherLDA().fit(X, y).decision_function(X)
    favoured = FisherLDA(priors=[0.9, 0.1]).fit(X, y).decision_function(X)
    np.testing.assert_allclose(favoured - base, np.log(0.1 / 0.9), atol=1e-9)
    few = np.r_[0:50, 50:60]
    balanced = FisherLDA(class_weight="balanced").fit(X[few], y[few])
    repeated = np.r_[0:50, np.repeat(np.arange(50, 60), 5)]
    np.testing.assert_allclose(
        balanced.predict_proba(X), FisherLDA().fit(X[repeated], y[repeated]).predict_proba(X), atol=1e-9
    )


def test_thousands_of_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3000), 3)
    centres = 10 * rng.normal(size=(3000, 6))
    X = centres[y] + 0.1 * rng.normal(size=(9000, 6))
    model = FisherLDA(2).fit(X, y)
    assert model.n_discriminants_ == 2
    assert model.score(X, y) > 0.99
    within, between = (s / len(y) for s in (ClassMoments.of(X, y).within, ClassMoments.of(X, y).between))
    np.testing.assert_allclose(model.eigenvalues_, la.eigh(between, within, eigvals_only=True)[::-1][:2], rtol=1e-8)
