"""Generalised eigenvectors of pairs of classes."""

import literal
import numpy as np
import pytest
import scipy.sparse as sp
from geometry import largest_angle, most_turned
from samples import labelled
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from discrim import ClassMoments, PairwiseEigenvectors, RegularizedLDA


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ridge", [0.1, 2.0])
@pytest.mark.parametrize("centre", [True, False])
def test_first_of_every_pair_largest_first_then_the_second(n_classes, ridge, centre):
    X, y = labelled(60, 9, n_classes, seed=2)
    found = literal.pairwise_eigenvectors(X, y, ridge, X.mean(axis=0) if centre else np.zeros(9))
    levels = [sorted((one[level] for one in found.values()), key=lambda one: -one[0]) for level in range(2)]
    wanted = [one for level in levels for one in level][: 9 if n_classes == 3 else 4]
    fitted = PairwiseEigenvectors(len(wanted), ridge=ridge, centre=centre).fit(X, y)
    np.testing.assert_allclose(fitted.eigenvalues_, [one[0] for one in wanted], rtol=1e-9)
    np.testing.assert_array_equal(fitted.pairs_, [one[2:] for one in wanted])
    np.testing.assert_allclose(np.abs(fitted.components_), np.abs([one[1] for one in wanted]), rtol=1e-6, atol=1e-9)
    every = sum(one[0] for pair in found.values() for one in pair)
    np.testing.assert_allclose(fitted.explained_variance_ratio_, fitted.eigenvalues_ / every, rtol=1e-9)
    assert PairwiseEigenvectors(ridge=ridge, centre=centre).fit(X, y).n_components_ == n_classes * (n_classes - 1)


def test_directions_in_the_span_of_others_are_left_out():
    """Next to no ridge: the last eigenvector of (b, a) is the first of (a, b)."""
    X, y = labelled(60, 3, 2)
    fitted = PairwiseEigenvectors(3, ridge=1e-9).fit(X, y)
    assert np.linalg.matrix_rank(fitted.components_ / np.linalg.norm(fitted.components_, axis=1)[:, None], 1e-4) == 3


def rings(n=300, seed=0):
    """Classes with the same mean that differ in their covariance only."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    scales = np.array([[1.0, 3.0, 1.0, 1.0], [3.0, 1.0, 1.0, 1.0]])
    turn = np.linalg.qr(np.random.default_rng(9).standard_normal((4, 4)))[0]
    return (rng.standard_normal((n, 4)) * scales[y]) @ turn, y


def test_pieces_show_a_linear_classifier_what_means_do_not():
    (X, y), (new, y_new) = rings(), rings(seed=1)
    model = make_pipeline(PairwiseEigenvectors(2, pieces=True), LogisticRegression()).fit(X, y)
    means = make_pipeline(RegularizedLDA(1), LogisticRegression()).fit(X, y)
    best = 2 / np.pi * np.arctan(3)  # of the best rule, |u| > |v| for deviations of 1 and 3: 79.5 %
    assert model.score(new, y_new) > best - 0.04 > 0.6 > means.score(new, y_new)


@pytest.mark.parametrize("centre", [True, False])
def test_pieces_are_both_halves_and_invert(centre):
    X, y = labelled(40, 5)
    X = X + 2.0
    plain = PairwiseEigenvectors(3, centre=centre).fit(X, y)
    cut = PairwiseEigenvectors(3, centre=centre, pieces=True).fit(X, y)
    along = (X - (X.mean(axis=0) if centre else 0)) @ plain.components_.T
    np.testing.assert_allclose(cut.transform(X), np.c_[np.maximum(along, 0), np.maximum(-along, 0)], atol=1e-10)
    assert len(cut.get_feature_names_out()) == 6
    np.testing.assert_allclose(
        cut.inverse_transform(cut.transform(X)), plain.inverse_transform(plain.transform(X)), atol=1e-10
    )
    with pytest.raises(ValueError, match=r"\(40, 3\)"):
        cut.inverse_transform(plain.transform(X))


def test_around_the_origin_the_origin_matters_and_wide_streamed_and_sparse_agree():
    X, y = labelled(12, 30)
    X = X + 1.0
    one = PairwiseEigenvectors(4, centre=False).fit(X, y)
    assert largest_angle(one.components_, PairwiseEigenvectors(4, centre=False).fit(X + 3, y).components_) > 1e-2
    streamed = PairwiseEigenvectors(4, centre=False).fit_statistics(ClassMoments.of(X, y, keep="each"))
    assert most_turned(one.components_, streamed.components_) < 1e-8
    assert (
        most_turned(one.components_, PairwiseEigenvectors(4, centre=False).fit(sp.csr_array(X), y).components_) < 1e-8
    )
    assert one.rank_ == streamed.rank_ == 12  # one more than centred rows have


def test_later_eigenvectors_fill_up_if_the_first_ones_of_pairs_share_a_span():
    """A class that is a copy of another: of 12 directions, the first three of each pair span 9 at most."""
    X, y = labelled(60, 12, 2)
    rows = np.r_[np.arange(60), np.flatnonzero(y == 0)]
    labels = np.r_[y, np.full(len(rows) - 60, 2)]
    fitted = PairwiseEigenvectors(12).fit(X[rows], labels)
    assert np.linalg.matrix_rank(fitted.components_) == 12
