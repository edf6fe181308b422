"""Problems of rows: coordinates, statistics and folds follow from what a method needs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from samples import graded, labelled
from sklearn.model_selection import ShuffleSplit

from discrim.core.coordinates.choose import Plan
from discrim.core.coordinates.row_space import GramRows, SingularRows
from discrim.core.cross_validation import splits_of
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import statistics_of_rows
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.row_hash import HashKFold
from discrim.tables.rows import LabelledRows


def rows_of(X, y, weights=None):
    return LabelledRows(X, y, np.arange(y.max() + 1), weights)


def folded(cv, statistics="choose", **needs):
    return Needs(folds=Folding(cv, None, statistics), **needs)


@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, random_state=0), HashKFold(4)], ids=["int", "halves", "hash"])
@pytest.mark.parametrize("shape", [(40, 5), (20, 30)], ids=["tall", "wide"])
def test_statistics_are_those_of_all_rows_whether_folds_divide_them_or_not(cv, shape):
    rows = rows_of(*labelled(*shape))
    problem = Problem.from_rows(rows, folded(cv), 2)
    whole = ClassMoments.from_rows(problem.basis.points)
    np.testing.assert_array_equal(problem.moments.counts, whole.counts)
    np.testing.assert_allclose(problem.moments.means, whole.means, atol=1e-12)
    np.testing.assert_allclose(problem.moments.within, whole.within, atol=1e-10)
    assert problem.shape == shape
    assert len(problem.training_sets) == (3 if isinstance(cv, ShuffleSplit) else 4)


def test_folds_that_choose_nothing_do_not_change_the_last_digits():
    rows = rows_of(*labelled(60, 7))
    plain, judged = (Problem.from_rows(rows, needs, 2).moments.within for needs in (Needs(), folded(5, "judge")))
    np.testing.assert_array_equal(plain, judged)
    assert not np.array_equal(plain, Problem.from_rows(rows, folded(5), 2).moments.within)


def test_folds_that_are_impossible_raise_where_they_are_needed():
    cv = [(np.arange(20), np.array([99]))]
    problem = Problem.from_rows(rows_of(*labelled(30, 4)), folded(cv), 2)
    with pytest.raises(ValueError, match="99"):
        _ = problem.training_sets


def test_there_are_no_training_sets_without_rows_or_folds():
    rows, needs = rows_of(*labelled(30, 4)), folded(5, "judge")
    total = statistics_of_rows(Needs().gathering("a method"), rows)
    assert Problem.from_statistics(total, needs, 2).training_sets == []
    basis = Problem.from_statistics(total, needs, 2).basis
    assert Problem.from_moments(basis, total.moments, needs, 2, total.dtype).training_sets == []


def test_products_keep_no_scatter_and_weighted_scatters_have_their_emphasis():
    X, y = labelled(30, 8)
    rows = rows_of(sp.csr_array(X), y)
    products = Problem.from_rows(rows, Needs(coordinates=Plan("products", "a test")), 2)
    assert products.moments.pooled is None
    needs = Needs(scatter="weighted", scatter_weights=lambda totals: 1 / totals)
    np.testing.assert_array_equal(Problem.from_rows(rows, needs, 2).moments.emphasis, 1 / rows.class_totals)


def test_class_weights_multiply_the_weights_of_the_rows():
    rows = rows_of(*labelled(30, 4), np.full(30, 2.0))
    found = Problem.from_rows(rows, Needs(class_weight={0: 3.0}), 2).moments
    np.testing.assert_allclose(found.weights, rows.class_totals * [3, 1, 1])


def test_the_folds_for_a_choice_by_products_are_those_of_the_sampled_rows_by_their_contents():
    X, y = labelled(80, 40)
    needs = folded(HashKFold(4), coordinates=Plan("products", "a test"))
    problem = Problem.from_rows(rows_of(sp.csr_array(X), y), needs, 2)
    with pytest.warns(UserWarning, match="80 of 80"):
        found, is_sample = problem.training_sets_for_choice()
    with pytest.warns(UserWarning, match="80 of 80"):
        sample = problem.basis.sample()
    assert is_sample
    for fold, (_, test) in zip(found, splits_of(sample.original, HashKFold(4), None).pairs, strict=True):
        np.testing.assert_array_equal(fold.test.X, sample.points.X[test])


def test_wide_rows_are_centred_first_only_where_small_directions_may_matter():
    rows = rows_of(*labelled(20, 60))
    leading, every = (Problem.from_rows(rows, Needs(directions=one), 2).basis for one in ("leading", "all"))
    assert isinstance(leading, GramRows)
    assert isinstance(every, GramRows)
    assert leading.shares is not None
    assert every.shares is None


def test_finer_coordinates_are_built_at_once_or_on_request():
    X, y, V = graded(20, 50, 1e-6)
    rows = rows_of(X, y)
    at_once = Problem.from_rows(rows, Needs(directions="all"), 2)
    assert isinstance(at_once.basis, SingularRows)
    coarse = Problem.from_rows(rows, Needs(directions="leading"), 2)
    assert isinstance(coarse.basis, GramRows)
    finer = coarse.resolved
    assert isinstance(finer.basis, SingularRows)
    assert coarse.resolved is finer
    assert not finer.basis.can_resolve
    assert replace(finer, basis=coarse.basis, moments=coarse.moments).shape == coarse.shape
    np.testing.assert_allclose(abs(finer.basis.vectors.T @ V[:, 0]).max(), 1, atol=1e-12)
