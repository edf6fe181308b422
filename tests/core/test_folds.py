"""Folds of an int, of small classes, and of training rows that are drawn more than once."""

import warnings

import numpy as np
import pytest
from samples import labelled
from sklearn.model_selection import StratifiedKFold

from discrim.core.cross_validation import Folds, splits_of
from discrim.tables.rows import LabelledRows


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


def test_given_training_rows_are_taken_as_given_also_where_the_tests_divide_the_table():
    X, y = labelled(40, 4)
    points = LabelledRows(X, y, np.arange(3))
    drawn = [np.random.default_rng(i).integers(0, 40, 20) for i in range(2)]
    given = [(drawn[0], np.arange(20)), (drawn[1], np.arange(20, 40))]
    for fold, (train, _) in zip(Folds(points, splits_of(points, given, None)), given, strict=True):
        np.testing.assert_array_equal(fold.training.counts, np.bincount(points.codes[train], minlength=3))


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
