"""Invariances of the shift and of the SVM's subspace: order, names, origin, axes, unit, repetition."""

import numpy as np
import pytest
import scipy.sparse as sp
from geometry import most_turned
from samples import labelled
from scipy.stats import ortho_group
from sklearn import decomposition

from discrim import PCA, MarginSubspace, MaxMarginPCA, MaxMarginShift, max_margin_shift

MODELS = {
    "closed form": lambda C: MaxMarginShift(PCA(2), shift=2.0, C=C),
    "explicit": lambda C: MaxMarginShift(decomposition.PCA(2), shift=2.0, C=C),
    "subspace": lambda C: MarginSubspace(2, C=C),
    "classifier inside": lambda C: MaxMarginPCA(2, C=C),
}
C = 0.7
ORDER = np.random.default_rng(3).permutation(90)
COLUMNS = np.random.default_rng(4).permutation(7)
TURN = ortho_group.rvs(7, random_state=5)
AWAY = np.linspace(-20.0, 30.0, 7)
# a change of the table, its effect on a row, and the factor of C that compensates for it
CHANGES = {
    "order of rows": (lambda X, y: (X[ORDER], y[ORDER]), lambda rows: rows, 1.0),
    "names": (lambda X, y: (X, np.array(["zebra", "ant", "mole"])[y]), lambda rows: rows, 1.0),
    "origin": (lambda X, y: (X + AWAY, y), lambda rows: rows + AWAY, 1.0),
    "axes": (lambda X, y: (X @ TURN, y), lambda rows: rows @ TURN, 1.0),
    "columns": (lambda X, y: (X[:, COLUMNS], y), lambda rows: rows[:, COLUMNS], 1.0),
    "unit": (lambda X, y: (1000 * X, y), lambda rows: 1000 * rows, 1.0),
    "every row twice": (lambda X, y: (np.r_[X, X], np.r_[y, y]), lambda rows: rows, 0.5),
    "a constant column": (lambda X, y: (np.c_[X, np.full(90, 1e3)], y), lambda X: np.c_[X, np.full(len(X), 1e3)], 1.0),
}


@pytest.fixture(params=CHANGES)
def change(request):
    return request.param


@pytest.fixture
def rows():
    return labelled(90, 7)


@pytest.mark.parametrize("model", MODELS)
def test_features_are_invariant(model, change, rows):
    if model == "classifier inside" and change == "every row twice":
        pytest.skip("rows and losses count twice, the classifier once: no C makes that the same problem")
    alter, moved, factor = CHANGES[change]
    X, y = rows
    new = labelled(15, 7, seed=1)[0]
    before = MODELS[model](C).fit(X, y)
    after = MODELS[model](factor * C).fit(*alter(X, y))
    unit = 1000.0 if change == "unit" else 1.0
    one, other = before.transform(new), after.transform(moved(new)) / unit
    signs = np.sign((one * other).sum(axis=0))  # which way a turned direction points is another matter
    np.testing.assert_allclose(other * signs, one, atol=1e-5 * np.abs(one).max())


def test_another_cost_is_another_problem(rows):
    X, y = rows
    for model in MODELS.values():
        turned = most_turned(model(C).fit(X, y).components_, model(C / 2).fit(X, y).components_)
        assert turned > 1e-3  # shows that the laws above can fail


@pytest.mark.parametrize("sparse", [False, True])
def test_the_order_of_rows_where_duals_are_not_unique(sparse):
    """Integers put more rows on the margin than there are dimensions, so duals are not unique, but the shift is."""
    rng = np.random.default_rng(453)
    X = rng.integers(0, 5, (120, 4)).astype(float)
    y = np.searchsorted([3, 5], X[:, 0] + X[:, 1] + rng.integers(0, 2, 120))
    order = rng.permutation(120)
    table = sp.csr_array if sparse else np.asarray
    one, other = max_margin_shift(table(X), y, shift=2.0), max_margin_shift(table(X[order]), y[order], shift=2.0)
    assert np.abs(one - X).max() > 0.5
    np.testing.assert_allclose(other, one[order], atol=1e-10)
