"""Folds: training statistics are sums of the other folds, for every kind of split."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from samples import labelled
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from discrim.core.cross_validation import Folds, splits_of
from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import LabelledRows


def rows(n=41, weights=None, numbers=None):
    X, y = labelled(n, 4)
    return LabelledRows(X, y, np.arange(3), weights, numbers)


@pytest.mark.parametrize("cv", [4, KFold(3), ShuffleSplit(3, random_state=0)], ids=["int", "folds", "random halves"])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_statistics_are_those_of_the_training_rows(cv, weighted, rng):
    points = rows(weights=rng.uniform(0.5, 2, 41) if weighted else None)
    folds = Folds(points, splits_of(points, cv, None))
    assert len(list(folds)) == (4 if cv == 4 else 3)
    for fold, (train_index, test_index) in zip(folds, folds.splits.pairs, strict=True):
        training, test = fold.training, fold.test
        wanted = ClassMoments.from_rows(points.select(train_index))
        np.testing.assert_allclose(training.weights, wanted.weights)
        np.testing.assert_allclose(training.means, wanted.means, atol=1e-13)
        np.testing.assert_allclose(training.within, wanted.within, atol=1e-11)
        np.testing.assert_array_equal(test.X, points.X[test_index])
        np.testing.assert_array_equal(test.codes, points.codes[test_index])
        assert set(train_index).isdisjoint(test_index)


def test_an_int_gives_scikit_learns_unshuffled_folds_and_a_seed_shuffles_them():
    points = rows()
    plain = [test for _, test in splits_of(points, 4, None).pairs]
    wanted = [test for _, test in StratifiedKFold(4).split(points.X, points.codes)]
    assert all(np.array_equal(a, b) for a, b in zip(plain, wanted, strict=True))
    drawn = [test for _, test in splits_of(points, 4, 7).pairs]
    again = [test for _, test in splits_of(points, 4, 7).pairs]
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(plain, drawn, strict=True))


@pytest.mark.parametrize("seed", range(30))
def test_folds_of_classes_in_any_order_and_number_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(7, rng.integers(30, 90), p=rng.dirichlet(np.ones(7)))
    points = LabelledRows(rng.normal(size=(len(codes), 2)), codes, np.arange(7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = list(StratifiedKFold(3).split(points.X, codes))
    for found, split in zip(splits_of(points, 3, None).pairs, wanted, strict=True):
        assert all(map(np.array_equal, found, split))


def test_one_pass_gives_statistics_of_all_rows_and_of_held_out_rows(rng):
    points, directions = rows(), rng.normal(size=(2, 4))
    folds = Folds(points, splits_of(points, 4, None))
    whole = ClassMoments.from_rows(points)
    for fold in folds:
        both = fold.training + fold.tested
        np.testing.assert_allclose(both.within, whole.within, atol=1e-12)
        np.testing.assert_allclose(both.means, whole.means, atol=1e-14)
        of_rows, of_statistics = replace(fold, tested=None).project(directions), fold.project(directions)
        assert fold.tested.n_rows == of_rows.n_rows == fold.test.shape[0]
        np.testing.assert_allclose(of_statistics.means, of_rows.means, atol=1e-13)
        np.testing.assert_allclose(of_statistics.within, of_rows.within, atol=1e-12)
    halves = Folds(points, splits_of(points, ShuffleSplit(3, random_state=0), None))
    assert all(fold.tested is None for fold in halves)
    assert [fold.project(directions).n_rows for fold in halves] == [len(test) for _, test in halves.splits.pairs]


def test_given_row_numbers_refer_to_the_given_table():
    left = np.flatnonzero(np.arange(41) % 4 != 1)
    whole = rows()
    points = LabelledRows(whole.X[left], whole.codes[left], whole.classes, None, left, 41)
    given = [(np.arange(20, 41), np.arange(20)), (np.arange(20), np.arange(20, 41))]
    for (train, test), (given_train, given_test) in zip(splits_of(points, given, None).pairs, given, strict=True):
        np.testing.assert_array_equal(left[train], np.intersect1d(left, given_train))
        np.testing.assert_array_equal(left[test], np.intersect1d(left, given_test))


def test_given_training_rows_are_taken_as_given_also_where_the_tests_divide_the_table():
    points = rows(40)
    drawn = [np.random.default_rng(i).integers(0, 40, 20) for i in range(2)]
    given = [(drawn[0], np.arange(20)), (drawn[1], np.arange(20, 40))]
    for fold, (train, _) in zip(Folds(points, splits_of(points, given, None)), given, strict=True):
        np.testing.assert_array_equal(fold.training.counts, np.bincount(points.codes[train], minlength=3))


def test_masks_and_numbers_from_the_end():
    points = rows(40)
    mask = np.arange(40) < 30
    ((train, test),) = splits_of(points, [(mask, np.arange(-10, 0))], None).pairs
    np.testing.assert_array_equal(train, np.arange(30))
    np.testing.assert_array_equal(test, np.arange(30, 40))
    left = np.arange(35)
    fewer = LabelledRows(points.X[left], points.codes[left], points.classes, None, left, 40)
    ((train, test),) = splits_of(fewer, [(mask, np.arange(-10, 0))], None).pairs
    np.testing.assert_array_equal(test, np.arange(30, 35))


@pytest.mark.parametrize("seed", [None, 3])
def test_small_classes_are_dealt_so_that_a_fold_takes_one_row_of_a_class_at_most(seed):
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(7), 2))
    points = LabelledRows(np.arange(14.0)[:, None], codes, np.arange(7))
    splits = splits_of(points, 5, seed).pairs
    assert len(splits) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(14))
    for train, test in splits:
        assert 2 <= len(test) <= 3
        assert len(np.unique(codes[test])) == len(test)
        assert set(codes[train]) == set(range(7))
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(14))
