"""Maximum-margin PCA: relation to other methods, and meaning of the choices of pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from geometry import largest_angle
from samples import labelled

from discrim import PCA, MarginPCA
from discrim.estimators import margin_pca

CHOICES = ["all", "mean", "median", "nearest"]


def spread_of(fitted, n):
    return fitted.components_.T @ np.diag(fitted.eigenvalues_ * n) @ fitted.components_


def test_with_many_classes_all_pairs_turn_into_pca():
    rng = np.random.default_rng(1)
    angles = []
    for n_classes in (2, 10, 50):
        y = np.arange(600) % n_classes
        X = rng.standard_normal((600, 4)) * [1.3, 1.2, 1.1, 1.0] + 0.7 * rng.standard_normal((n_classes, 4))[y]
        angles.append(largest_angle(PCA(2).fit(X).components_, MarginPCA(2, pairs="all").fit(X, y).components_))
    assert angles[0] > 5 * angles[2]


@pytest.mark.parametrize(("ties", "of_each"), [("all", (1, 1)), ("share", (1 / 2, 1)), ("lowest", (1, 0))])
def test_tied_enemies(ties, of_each):
    # Row 0 has two enemies at distance 1: row 2, which has row 1 at distance ½, and row 3, which finds row 0 itself.
    X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    first, second = of_each if ties != "lowest" else (1, 1)  # row 3 finds row 0 in any case
    A = first * np.diag([1.0, 0, 0]) + second * np.diag([0, 1.0, 0]) + np.diag([0, 0, 0.25])
    fitted = MarginPCA(pairs="nearest", ties=ties).fit(X, y)
    np.testing.assert_allclose(spread_of(fitted, 4), A, atol=1e-12)


def test_more_ties_than_memory_holds_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(margin_pca, "MAX_ENEMY_PAIRS", 99)
    X, y = np.eye(20), np.arange(20) % 2
    with pytest.raises(ValueError, match="ties"):
        MarginPCA(pairs="nearest").fit(X, y)
    assert MarginPCA(pairs="nearest", ties="lowest").fit(X, y).rank_ > 1


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
