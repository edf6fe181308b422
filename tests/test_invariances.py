"""Invariances of every estimator: order of rows and columns, names, origin, axes, unit, repetition."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import CASES, CHOSEN_BY_FOLDS, LISTED, OPTIONS, QUIET, SUPERVISED, over, with_coordinates
from geometry import most_turned, signs_differ
from samples import note
from sklearn.model_selection import StratifiedKFold

pytestmark = QUIET

ANGLE = 1e-9
EVERY = CASES + CHOSEN_BY_FOLDS


@pytest.fixture(params=[1, 4], ids=["k=1", "k=4"])
def k(request):
    """Fewer components than three classes have discriminants, and more."""
    return request.param


FITS = {}


@pytest.fixture
def plain(case, k, table):
    """The table's own fit, which several tests look at and none changes."""
    key = case.name, k, table[0].shape
    if key not in FITS:
        FITS[key] = case(k).fit(*table)
    return FITS[key]


def assert_same(one, other, X, scores=None):
    """The same directions with the same signs, values and features."""
    assert most_turned(one.components_, other.components_) < ANGLE
    assert not signs_differ(one.components_, other.components_)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(other.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-9)
    assert other.rank_ == one.rank_
    scores = one.transform(X) if scores is None else scores
    np.testing.assert_allclose(other.transform(X), scores, atol=1e-8 * np.abs(scores).max())


def by_products(case, k):
    """Return True if products with the rows are enough."""
    return case.laws.by_products and (k <= 2 or case.laws.by_products_beyond_classes)


def weights_of_ones_twos_and_zeros(n, rng):
    weights = np.resize([1, 2, 1, 1, 3, 0, 1, 2], n)
    return rng.permutation(weights)


@over(CASES)
def test_order_of_rows(case, k, table, plain, rng):
    X, y = table
    order = rng.permutation(len(X))
    assert_same(plain, case(k).fit(X[order], y[order]), X)


@over(CHOSEN_BY_FOLDS)
def test_order_of_rows_where_the_splits_go_with_them(case, k, table, rng):
    X, y = table
    order = rng.permutation(len(X))
    place = np.argsort(order)
    splits = list(StratifiedKFold(3).split(X, y))
    moved = [(place[training], place[test]) for training, test in splits]
    one = case(k).set_params(cv=splits).fit(X, y)
    assert_same(one, case(k).set_params(cv=moved).fit(X[order], y[order]), X)


@over([case for case in LISTED + OPTIONS if not case.laws.breaks_ties])
def test_order_of_rows_where_distances_tie_and_rows_repeat(case, rng):
    """Test every method, with permuted splits if folds choose a parameter, to the accuracy of an SVM if it uses one."""
    X = np.random.default_rng(0).integers(0, 3, (60, 5)).astype(float)
    y = (X[:, 0] + X[:, 1] > 2) + 1 * (X[:, 2] > 1)
    order = rng.permutation(len(X))
    place = np.argsort(order)
    splits = list(StratifiedKFold(3).split(X, y))
    moved = [(place[training], place[test]) for training, test in splits]
    one, other = case(2), case(2)
    for name in [name for name in one.get_params() if name.split("__")[-1] == "cv" and one.get_params()[name]]:
        one.set_params(**{name: splits})
        other.set_params(**{name: moved})
    features = one.fit(X, y).transform(X)
    exact = 1e-5 if case.laws.uses_svm else 1e-8
    np.testing.assert_allclose(
        other.fit(X[order], y[order]).transform(X), features, atol=exact * np.abs(features).max()
    )


@over(SUPERVISED + CHOSEN_BY_FOLDS)
def test_names_of_classes(case, k, table, plain):
    X, y = table
    renamed = np.array(["zebra", "ant", "mole"])[y]  # in another order, too
    fitted = case(k).fit(X, renamed)
    assert_same(plain, fitted, X)
    assert fitted.classes_.tolist() == ["ant", "mole", "zebra"]


@over(EVERY)
def test_origin(case, k, table, plain, rng):
    X, y = table
    shift = 10 * rng.standard_normal(X.shape[1])
    other = case(k).fit(X + shift, y)
    assert_same(plain, other, X + shift, plain.transform(X))
    np.testing.assert_allclose(other.mean_, plain.mean_ + shift, atol=1e-12)


@over([case for case in EVERY if case.laws.rotates])
def test_axes(case, k, table, plain, rng):
    X, y = table
    Q = np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0]
    other = case(k).fit(X @ Q, y)
    assert most_turned(plain.components_ @ Q, other.components_) < ANGLE
    np.testing.assert_allclose(other.eigenvalues_, plain.eigenvalues_, rtol=1e-9)


@over(EVERY)
def test_unit(case, k, table, plain):
    X, y = table
    for unit in (1 / 7, 1000.0):
        other = case(k).fit(unit * X, y)
        with note(unit):
            assert most_turned(plain.components_, other.components_) < ANGLE
            assert not signs_differ(plain.components_, other.components_)
            np.testing.assert_allclose(other.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)


@over(EVERY)
def test_order_of_columns(case, k, table, plain, rng):
    X, y = table
    order = rng.permutation(X.shape[1])
    other = case(k).fit(X[:, order], y)
    assert most_turned(plain.components_[:, order], other.components_) < ANGLE
    assert not signs_differ(plain.components_[:, order], other.components_)
    np.testing.assert_allclose(other.eigenvalues_, plain.eigenvalues_, rtol=1e-9)


@over([case for case in CASES if not case.laws.counts_enter])
def test_every_row_twice(case, k, table, plain):
    X, y = table
    other = case(k).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert most_turned(plain.components_, other.components_) < ANGLE
    np.testing.assert_allclose(other.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)


@over([case for case in CASES if not case.laws.counts_enter])
def test_weights_times_a_factor(case, k, table, rng):
    X, y = table
    weights = rng.uniform(0.5, 2, len(X))
    one = case(k).fit(X, y, sample_weight=weights)
    for factor in (0.37, 1e60):
        other = case(k).fit(X, y, sample_weight=factor * weights)
        with note(factor):
            assert most_turned(one.components_, other.components_) < ANGLE
            np.testing.assert_allclose(other.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-9)


@over(EVERY)
def test_weights_are_repetition(case, k, table, plain, rng):
    X, y = table
    weights = weights_of_ones_twos_and_zeros(len(X), rng)
    for path in (None, "products") if by_products(case, k) else (None,):
        repeated = with_coordinates(path, case(k)).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        weighted = with_coordinates(path, case(k)).fit(X, y, sample_weight=weights)
        assert_same(repeated, weighted, X)
        np.testing.assert_allclose(weighted.mean_, repeated.mean_, atol=1e-12)
        # the weights have an effect, on the variance only if one column was selected
        same = np.allclose(plain.eigenvalues_, weighted.eigenvalues_, rtol=1e-3)
        assert most_turned(weighted.components_, plain.components_) > 1e-3 or (case.name == "screened-pca" and not same)


@over([case for case in CASES if not (case.laws.whole_weights or case.laws.counts_enter)])
def test_fractional_weights_are_repetition_in_another_unit(case, k, table, rng):
    X, y = table
    weights = weights_of_ones_twos_and_zeros(len(X), rng)
    repeated = case(k).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    weighted = case(k).fit(X, y, sample_weight=weights / 8)
    assert most_turned(repeated.components_, weighted.components_) < ANGLE


@over(CASES)
def test_weights_of_one_are_none(case, k, table, plain):
    X, y = table
    assert_same(plain, case(k).fit(X, y, sample_weight=np.ones(len(X))), X)


@over(EVERY)
@pytest.mark.parametrize("path", ["dense", "sparse", "products"])
def test_a_constant_column_changes_nothing(case, k, table, path):
    X, y = table
    if path == "products" and not by_products(case, k):
        pytest.skip("needs all directions")
    make = np.asarray if path == "dense" else sp.csr_array
    basis = path if path == "products" else None
    plain = with_coordinates(basis, case(k)).fit(make(X), y)
    for value in (0.0, 7.3, -1e12 / 3):
        appended = make(np.c_[X, np.full(len(X), value)])
        with note(value):
            fitted = with_coordinates(basis, case(k)).fit(appended, y)
            np.testing.assert_allclose(fitted.transform(appended), plain.transform(make(X)), rtol=0, atol=1e-10)
            assert path == "products" or fitted.rank_ == plain.rank_


@over(EVERY)
def test_refit_gives_the_same_bits(case, k, table, plain):
    estimator = case(k).fit(table[0][::-1], table[1])
    np.testing.assert_array_equal(estimator.fit(*table).components_, plain.components_)
