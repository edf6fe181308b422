"""Factors by alternating convex steps: the objective, its descent, and invariances."""

import os
from functools import cache
from pathlib import Path

import literal
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import ITERATED, over, with_coordinates
from geometry import largest_angle
from samples import labelled
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from discrim import PCA, LogisticPCA, SupportVectorDecomposition

LOSSES = {LogisticPCA: "logistic", SupportVectorDecomposition: "hinge"}
kinds = pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)


def in_their_unit(X):
    """Centred rows of mean square length 1, and the unit."""
    H = X - X.mean(axis=0)
    unit = np.sqrt((H**2).sum() / len(H))
    return H / unit, unit


def minimise_factors(fitted, X, y):
    """The definition's variables at a fit: W, Z, V and v_0, each row's factors found by a general minimiser."""
    H, unit = in_their_unit(X)
    W, V, constants = fitted.components_, fitted.class_coef_.T * unit, fitted.class_intercept_
    alpha, loss = fitted.label_weight, LOSSES[type(fitted)]

    labels, Z = np.unique(y), []
    for x, own in zip(H, y, strict=True):
        signs = np.where(labels == own, 1, -1)

        def value(z, x=x, signs=signs):
            scores = z @ V + constants
            wrong = sum(literal.rounded_hinge(gap) for gap in 1 - signs * scores)
            if loss == "logistic":
                wrong = np.log(np.exp(scores - scores[signs > 0]).sum())
            return ((x - z @ W) ** 2).sum() + alpha * wrong

        options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
        Z.append(minimize(value, W @ x, method="Nelder-Mead", options=options).x)
    return W, np.array(Z), V, constants


def objective(fitted, X, y, variables):
    """The definition, with the parameters of a fit."""
    H, _ = in_their_unit(X)
    return literal.factor_objective(H, y, *variables, fitted.label_weight, fitted.penalty, LOSSES[type(fitted)])


def least_objective(fitted, X, y):
    return objective(fitted, X, y, minimise_factors(fitted, X, y))


@kinds
def test_the_objective_is_that_of_the_definition_and_never_rises(kind):
    X, y = labelled(16, 4, seed=2)
    fitted = kind(2, tol=1e-12, max_iter=500).fit(X, y)
    assert (np.diff(fitted.objective_) <= 0).all()
    assert len(fitted.objective_) == fitted.n_iter_ + 1 >= 3
    assert fitted.objective_[-1] == pytest.approx(least_objective(fitted, X, y), rel=1e-5)
    assert fitted.objective_[0] > fitted.objective_[-1]


@pytest.mark.skipif("DISCRIM_DATA" not in os.environ, reason="set DISCRIM_DATA to the folder of the real data sets")
def test_the_intercept_is_free_of_the_penalty():
    table = pd.read_csv(Path(os.environ["DISCRIM_DATA"]) / "climate_crashes.csv.gz").iloc[:300]
    X, y = scale(table.drop(columns="target").to_numpy()), table["target"].to_numpy()
    fitted = LogisticPCA(2, penalty=1.0).fit(X, y)
    half_log_odds = 0.5 * np.log(np.mean(y == fitted.classes_[1]) / np.mean(y == fitted.classes_[0]))
    np.testing.assert_allclose(fitted.class_intercept_, [-half_log_odds, half_log_odds], rtol=0.02)


@kinds
@pytest.mark.parametrize("k", [1, 2, 4])
def test_it_never_rises_on_either_shape(kind, k, table):
    X, y = table
    fitted = kind(k).fit(X, y)
    assert (np.diff(fitted.objective_) <= 0).all()
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(k), atol=1e-10)
    scores = fitted.transform(X)
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ fitted.components_.T, atol=1e-10)
    np.testing.assert_allclose(
        np.cov(scores.T, bias=True), np.diag(fitted.eigenvalues_) if k > 1 else fitted.eigenvalues_[0], atol=1e-7
    )


@kinds
def test_the_classifier_reads_the_labels_from_the_features(kind):
    for seed in range(6):  # with either sign of either component
        y = np.arange(60) % 3
        X = np.random.default_rng(seed).standard_normal((60, 5)) + 12 * np.eye(3, 5)[y]
        fitted = kind(2, tol=1e-3).fit(X, y)
        scores = fitted.transform(X) @ fitted.class_coef_.T + fitted.class_intercept_
        np.testing.assert_array_equal(scores.argmax(axis=1), y)


@kinds
def test_next_to_no_weight_on_labels_is_pca(kind):
    X, y = labelled(60, 5)
    fitted = kind(2, label_weight=1e-9, penalty=1.0).fit(X, y)
    assert largest_angle(fitted.components_, PCA(2).fit(X).components_) < 1e-4


@kinds
def test_labels_draw_the_factors_to_a_quiet_column_that_separates(kind):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 5)) * [3, 2, 1, 1, 1]
    X[:, 4] += 4 * y
    assert abs(kind(1, label_weight=10.0).fit(X, y).components_[0, 4]) > 0.8


# ---------------------------------------------------------------------- invariances

ORDER = np.random.default_rng(3).permutation(30)
TURN = np.linalg.qr(np.random.default_rng(4).standard_normal((5, 5)))[0]
CHANGES = {
    "order of rows": (lambda X, y: (X[ORDER], y[ORDER]), lambda rows: rows, 1.0),
    "names": (lambda X, y: (X, np.array(["zebra", "ant", "mole"])[y]), lambda rows: rows, 1.0),
    "origin": (lambda X, y: (X + 20, y), lambda rows: rows + 20, 1.0),
    "axes": (lambda X, y: (X @ TURN, y), lambda rows: rows @ TURN, 1.0),
    "unit": (lambda X, y: (1e100 * X, y), lambda rows: 1e100 * rows, 1e100),
    "every row twice": (lambda X, y: (np.r_[X, X], np.r_[y, y]), lambda rows: rows, 1.0),
    "a constant column": (lambda X, y: (np.c_[X, np.full(30, 7.0)], y), lambda X: np.c_[X, np.full(len(X), 7.0)], 1.0),
    "sparse": (lambda X, y: (sp.csr_array(X), y), lambda rows: rows, 1.0),
}


@cache
def unchanged(case):
    return case().set_params(tol=1e-7).fit(*labelled(30, 5))


@over(ITERATED)
@pytest.mark.parametrize("change", CHANGES)
def test_features_are_invariant(case, change):
    alter, moved, unit = CHANGES[change]
    X, y = labelled(30, 5)
    new = labelled(15, 5, seed=1)[0]
    before, after = unchanged(case), case().set_params(tol=1e-7).fit(*alter(X, y))
    one, other = before.transform(new), after.transform(moved(new)) / unit
    signs = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(other * signs, one, atol=2e-3 * np.abs(one).max())
    assert after.objective_[-1] == pytest.approx(before.objective_[-1], rel=1e-5)


@over(ITERATED)
@pytest.mark.parametrize("path", ["features", "rows", "products"])
def test_weights_are_repetition_on_every_path(case, path):
    X, y = labelled(40, 5)
    weights = np.resize([1, 2, 0, 3], 40)
    weighted = with_coordinates(path, case()).fit(X, y, sample_weight=weights)
    repeated = case().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.objective_[-1] == pytest.approx(repeated.objective_[-1], rel=1e-4)
    assert largest_angle(weighted.components_, repeated.components_) < 0.02
    assert largest_angle(weighted.components_, case().fit(X, y).components_) > 0.02


@kinds
def test_too_few_rounds_warn(kind):
    X, y = labelled(60, 5)
    with pytest.warns(ConvergenceWarning, match="1 rounds"):
        kind(2, max_iter=1, tol=1e-12).fit(X, y)
