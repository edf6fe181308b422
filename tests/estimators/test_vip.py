"""vip_: importance of every feature, computed from the components and the labels."""

import numpy as np
import pytest
from estimators import LISTED, Case, over, with_coordinates
from samples import labelled

from discrim import (
    PCA,
    FisherLDA,
    HeteroscedasticLDA,
    LocalFisherDiscriminant,
    MarginPCA,
    MarginSubspace,
    PairwiseEigenvectors,
    RegularizedLDA,
)
from discrim.core.coordinates.basis import Features
from discrim.estimators.base import Reducer
from discrim.estimators.solution import importances, label_spread, labels_explained
from discrim.report.features import VIPValues

BY_ROWS = (MarginPCA, MarginSubspace)  # their statistics do not include the spread of all rows
WITH_VIP = [
    case for case in LISTED if isinstance(case(), Reducer) and case.laws.supervised and not isinstance(case(), BY_ROWS)
]
X, Y = labelled(60, 6, 3, seed=5)


def by_regression(model, X, y, weights=None):
    """The formula, with what each component adds to a regression of the one-hot labels."""
    weights = np.ones(len(y)) if weights is None else weights
    tables = (y[:, None] == np.unique(y)).astype(float), model.transform(X).astype(float)
    labels, T = (np.sqrt(weights)[:, None] * (one - np.average(one, axis=0, weights=weights)) for one in tables)

    def explained(k):
        return np.sum((T[:, :k] @ np.linalg.lstsq(T[:, :k], labels, rcond=None)[0]) ** 2)

    added = np.diff([explained(k) for k in range(T.shape[1] + 1)])
    directions = getattr(model, "x_weights_", model.components_.T)
    shares = directions**2 / (directions**2).sum(axis=0)
    return np.array([np.sqrt(X.shape[1] * (added @ shares[j]) / added.sum()) for j in range(X.shape[1])])


@over(WITH_VIP)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(60, 6), (24, 40)], ids=["tall", "wide"])
def test_it_is_the_formula_over_the_fitted_rows(case: Case, shape):
    rows, y = labelled(*shape, 3, seed=4)
    model = case(2).fit(rows, y)
    assert (model.vip_**2).sum() == pytest.approx(shape[1])
    np.testing.assert_allclose(model.vip_, by_regression(model, rows, y), rtol=1e-6)
    np.testing.assert_array_equal(VIPValues.from_estimator(model, rows, y).vip, model.vip_)


def test_every_supervised_reducer_has_it_in_its_docstring():
    assert len(WITH_VIP) >= 18
    for case in LISTED:
        has_vip = "    vip_ : array of shape (n_features,)\n" in type(case()).__doc__
        assert has_vip == (case in WITH_VIP), case


@pytest.mark.parametrize("basis", ["features", "rows", "svd", "products"])
def test_weights_are_repetitions_in_all_coordinates(basis):
    weights = np.arange(60) % 3 + 1
    model = with_coordinates(basis, RegularizedLDA(2, shrinkage=0.1)).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.vip_, by_regression(model, X, Y, weights), rtol=1e-6)
    often = np.repeat(np.arange(60), weights)
    again = with_coordinates(basis, RegularizedLDA(2, shrinkage=0.1)).fit(X[often], Y[often])
    np.testing.assert_allclose(again.vip_, model.vip_, rtol=1e-6)


def test_of_a_stream_and_of_other_units_it_is_the_same():
    whole, stream = FisherLDA(2).fit(X, Y).vip_, FisherLDA(2)
    for part in np.array_split(np.arange(60), 3):
        stream.partial_fit(X[part], Y[part])
    np.testing.assert_allclose(stream.vip_, whole, rtol=1e-8)
    np.testing.assert_allclose(FisherLDA(2).fit(1e200 * X, Y).vip_, whole, rtol=1e-8)
    assert FisherLDA(2).fit(X.astype(np.float32), Y).vip_.dtype == np.float64


@pytest.mark.parametrize("model", [PCA(2), MarginPCA(2), MarginSubspace(2)], ids=lambda one: type(one).__name__)
def test_the_error_of_a_missing_vip_names_the_display(model):
    model.fit(X, Y)
    with pytest.raises(AttributeError, match="vip_"):
        _ = model.vip_
    np.testing.assert_allclose(VIPValues.from_estimator(model, X, Y).vip, by_regression(model, X, Y), rtol=1e-8)


def test_a_component_that_adds_nothing_explains_nothing():
    moments = FisherLDA(2).statistics(X, Y).moments
    basis, rng = Features.from_moments(moments), np.random.default_rng(0)
    first, second = rng.standard_normal((2, 6))
    two = labels_explained(label_spread(np.stack([first, second]), basis, moments))
    mixed = np.stack([first, 3 * first, 0 * first, second, first - 2 * second])
    np.testing.assert_allclose(
        labels_explained(label_spread(mixed, basis, moments)), [two[0], 0, 0, two[1], 0], atol=1e-12
    )
    with pytest.raises(ValueError, match="labels"):
        importances(mixed, np.zeros(5))


@pytest.mark.parametrize("kind", [HeteroscedasticLDA, PairwiseEigenvectors, LocalFisherDiscriminant])
@pytest.mark.parametrize("offset", [0.0, 0.1, 1e3])
def test_equal_class_means_have_no_importances(kind, offset):
    """If classes differ in covariance only, the share that components explain by means is rounding error."""
    rows = np.random.default_rng(0).integers(-64, 64, (40, 4)) / 64
    symmetric = np.r_[rows, -rows]
    X, y = np.r_[symmetric, symmetric * (4, 1, 1, 0.25)] + offset, np.repeat([0, 1], 80)
    model = kind(2).fit(X, y)
    with pytest.raises(AttributeError, match="class means"):
        _ = model.vip_
    with pytest.raises(ValueError, match="class means"):
        VIPValues.from_estimator(model, X, y)
