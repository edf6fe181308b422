"""Maximum-margin PCA: relation to other methods, and meaning of the choices of pairs."""

import literal
import numpy as np
import pytest
import scipy.sparse as sp
from geometry import largest_angle, most_turned
from samples import labelled

from discrim import PCA, MarginPCA
from discrim.estimators import margin_pca

CHOICES = ["all", "mean", "median", "nearest"]


def spread_of(fitted, n):
    return fitted.components_.T @ np.diag(fitted.eigenvalues_ * n) @ fitted.components_


def test_two_balanced_classes_are_one_family_in_the_weight_of_the_mean_difference():
    """S_w + t·δδᵀ with t = n/4 (PCA), n/2 (all pairs), n (means), each up to a factor."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 4)) + y[:, None] * [1.0, 0.5, 0.0, -1.0]
    delta = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    within = sum(((x := X[y == c] - X[y == c].mean(axis=0)).T @ x) for c in (0, 1))
    family = {1 / 4: (PCA(), 1), 1 / 2: (MarginPCA(pairs="all"), 20), 1: (MarginPCA(pairs="mean"), 1)}
    for t, (estimator, factor) in family.items():
        wanted = factor * (within + t * 40 * np.outer(delta, delta))
        np.testing.assert_allclose(spread_of(estimator.fit(X, y), 40), wanted, rtol=1e-10, atol=1e-9)


def test_with_many_classes_all_pairs_turn_into_pca():
    rng = np.random.default_rng(1)
    angles = []
    for n_classes in (2, 10, 50):
        y = np.arange(600) % n_classes
        X = rng.standard_normal((600, 4)) * [1.3, 1.2, 1.1, 1.0] + 0.7 * rng.standard_normal((n_classes, 4))[y]
        angles.append(largest_angle(PCA(2).fit(X).components_, MarginPCA(2, pairs="all").fit(X, y).components_))
    assert angles[0] > 5 * angles[2]


def finds(X, y, i, j, enemies):
    """Return True if j is the nearest enemy of row i (of its class, or of all)."""
    candidates = [k for k in range(len(X)) if (y[k] == y[j] if enemies == "each" else y[k] != y[i])]
    return literal.nearest_row(X, i, candidates) == j


def test_each_and_any_are_one_for_two_classes_and_not_for_three():
    X, y = labelled(40, 4, 2)
    each, any_ = (MarginPCA(pairs="nearest", enemies=e).fit(X, y) for e in ("each", "any"))
    np.testing.assert_array_equal(each.components_, any_.components_)
    X, y = labelled(40, 4, 3)
    each, any_ = (MarginPCA(pairs="nearest", enemies=e).fit(X, y) for e in ("each", "any"))
    assert most_turned(each.components_, any_.components_) > 1e-3


@pytest.mark.parametrize(("ties", "of_each"), [("all", (1, 1)), ("share", (1 / 2, 1)), ("lowest", (1, 0))])
def test_tied_enemies(ties, of_each):
    # Row 0 has two enemies at distance 1: row 2, which has row 1 at distance ½, and row 3, which finds row 0 itself.
    X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    first, second = of_each if ties != "lowest" else (1, 1)  # row 3 finds row 0 in any case
    A = first * np.diag([1.0, 0, 0]) + second * np.diag([0, 1.0, 0]) + np.diag([0, 0, 0.25])
    fitted = MarginPCA(pairs="nearest", ties=ties).fit(X, y)
    np.testing.assert_allclose(spread_of(fitted, 4), A, atol=1e-12)


def test_of_tied_enemies_the_first_counts():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    y = np.array([0, 1, 1, 1])  # row 0 finds row 1 of three at distance 1; each of them finds row 0
    for order in ([0, 1, 2, 3], [1, 0, 2, 3]):
        fitted = MarginPCA(pairs="nearest", ties="lowest").fit(X[order], y[order])
        np.testing.assert_allclose(spread_of(fitted, 4), np.diag([2.0, 1.0]), atol=1e-12)


def test_more_ties_than_memory_holds_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(margin_pca, "MAX_ENEMY_PAIRS", 99)
    X, y = np.eye(20), np.arange(20) % 2
    with pytest.raises(ValueError, match="ties"):
        MarginPCA(pairs="nearest").fit(X, y)
    assert MarginPCA(pairs="nearest", ties="lowest").fit(X, y).rank_ > 1


def test_medians_resist_an_outlier_that_moves_the_means():
    rng = np.random.default_rng(2)
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 3)) * 0.3 + y[:, None] * [3.0, 0.0, 0.0]

    def landmarks_moved(pairs):
        rows = {"mean": literal.differences_to_means, "median": literal.differences_to_medians}[pairs]
        before, after = np.array(rows(X, y)), np.array(rows(spoiled, y))
        return np.abs(before - after)[1:].max()

    spoiled = X.copy()
    spoiled[0] = [0.0, 600.0, 0.0]
    assert landmarks_moved("median") < 0.1
    assert landmarks_moved("mean") > 10
    for pairs in ("mean", "median"):  # both follow their definition
        rows = {"mean": literal.differences_to_means, "median": literal.differences_to_medians}[pairs](spoiled, y)
        wanted = np.linalg.svd(np.array(rows), full_matrices=False)[2]
        assert most_turned(MarginPCA(pairs=pairs).fit(spoiled, y).components_, wanted) < 1e-9


@pytest.mark.parametrize("pairs", CHOICES)
def test_the_solver_is_described(pairs):
    X, y = labelled(30, 4)
    assert "n=30 ≥ d=4" in MarginPCA(2, pairs=pairs).fit(X, y).solver_
    X, y = labelled(10, 40)
    assert "n=10 < d=40" in MarginPCA(2, pairs=pairs).fit(X, y).solver_


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_medians_do_not_depend_on_the_number_of_columns_in_a_block(kind, monkeypatch):
    X, y = labelled(41, 7)
    plain = MarginPCA(2, pairs="median").fit(kind(X), y).components_
    monkeypatch.setattr("discrim.core.spread.BLOCK_BYTES", 8 * 41 * 3)
    np.testing.assert_array_equal(MarginPCA(2, pairs="median").fit(kind(X), y).components_, plain)
