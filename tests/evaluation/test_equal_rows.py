"""Equal rows and groups: on one side of every split and every inner choice, and in the printed command."""

import numpy as np
import pytest
from samples import labelled

from discrim import RegularizedLDA, compare
from discrim.evaluation.methods import METHODS
from discrim.evaluation.plan import equal_numbers, labelled_table
from discrim.evaluation.protocol import equal_together, named_protocol, protocol_of
from discrim.evaluation.trial import keep_groups

FEW = {"methods": "regularized-lda", "classifiers": "1-nn", "n_components": [1], "n_splits": 4, "n_jobs": 1}


def doubled(seed=0, n=60, d=5):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, d)), np.arange(n) % 2
    order = random.permutation(2 * n)
    return np.tile(X, (2, 1))[order], np.tile(y, 2)[order]


def test_copies_of_continuous_rows_stay_on_one_side_and_noise_stays_noise():
    X, y = doubled()
    found = compare(X, y, **FEW)
    for train, test in found.grid.splits:
        assert not {tuple(row) for row in X[train]} & {tuple(row) for row in X[test]}
        assert set(y[test]) == {0, 1}
    apart = compare(X, y, **FEW, equal_rows="apart")
    together, leaked = (next(line.mean for line in one.lines if line.classifier == "1-nn") for one in (found, apart))
    assert together < 0.7 < leaked
    assert (
        "120 rows are duplicates of other rows; all copies are in the training set or all in the test set"
        in found.answer
    )
    assert "120 rows are duplicates of other rows; copies may be in both" in apart.answer
    assert found.verdict.bias_corrected is not None
    assert not set(found.grid.by_key) & set(apart.grid.by_key)


def test_equal_rows_of_few_discrete_columns_are_ordinary():
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, size=(300, 4)).astype(float), np.arange(300) % 2
    table = labelled_table(X, y)
    assert equal_numbers(table, "auto") is None
    assert equal_numbers(table, "apart") is None
    assert len(np.unique(equal_numbers(table, "together"))) == 16
    assert "300 rows are duplicates of other rows; copies may be in both" in compare(X, y, **FEW).answer
    assert equal_numbers(labelled_table(random.normal(size=(50, 3)), np.arange(50) % 2), "together") is None


def test_a_single_discrete_column_of_few_rows_is_ordinary_and_copies_of_few_rows_are_not():
    random = np.random.default_rng(0)
    y = np.arange(24) % 2
    assert equal_numbers(labelled_table(random.integers(0, 5, size=(24, 1)).astype(float), y), "auto") is None
    for copies in (2, 3):
        rows = np.tile(random.normal(size=(8, 3)), (copies, 1))
        assert equal_numbers(labelled_table(rows, np.arange(len(rows)) % 2), "auto") is not None


def test_a_class_of_one_different_row_is_named_by_its_label():
    random = np.random.default_rng(0)
    X, y = np.tile(random.normal(size=(20, 3)), (2, 1)), np.tile(["u"] * 19 + ["rare"], 2)
    with pytest.raises(ValueError, match=r"got 1 for 'rare'.*Equal rows count once.*equal_rows='apart'"):
        compare(X, y, **FEW)
    assert compare(X, y, **FEW, equal_rows="apart").verdict is not None


def test_zero_and_minus_zero_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    assert equal_numbers(labelled_table(X, ["a", "b", "a"]), "together").tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["holdout-80-20", "kfold", "few-shot"])
def test_a_protocol_of_different_rows_is_found_again_by_name(name):
    y, equal = np.arange(80) % 2, np.repeat(np.arange(40), 2) // 1
    y = (equal % 2).astype(int)
    base = named_protocol(name)
    splits = list(equal_together(base, equal).splits(y, 3))
    again = list(protocol_of(name, base.size, len(splits), equal=equal).splits(y, 3))
    for (train, test), (same, other) in zip(splits, again, strict=True):
        np.testing.assert_array_equal(train, same)
        np.testing.assert_array_equal(test, other)
        assert not set(equal[train]) & set(equal[test])
        assert len(train) + len(test) == 80


def test_equal_rows_join_the_groups_they_are_in():
    X, y = doubled(n=40)
    groups = np.arange(80) % 20
    found = compare(X, y, **FEW, groups=groups[np.argsort(np.argsort(X[:, 0]))])
    for train, test in found.grid.splits:
        assert not {tuple(row) for row in X[train]} & {tuple(row) for row in X[test]}


@pytest.mark.parametrize(
    "name", ["regularized-lda", "bayes-error-lda", "posterior-map", "kernel-bayes-error-lda", "max-margin-shift"]
)
def test_groups_reach_every_inner_choice(name):
    random = np.random.default_rng(0)
    X, y, groups = random.normal(size=(60, 4)), np.arange(60) % 3, np.arange(60) // 4
    model = keep_groups(METHODS[name].estimator(1, 0), y, groups)
    found = [value for name, value in model.get_params().items() if name.endswith("cv")]
    assert {len(folds) for folds in found} == {5}
    for train, test in (pair for folds in found for pair in folds):
        assert not set(groups[train]) & set(groups[test])
    model.fit(X, y)


def test_every_class_is_in_every_test_part_where_groups_allow_it():
    groups = np.repeat(np.arange(20), 5)
    y = (groups % 5 == 0).astype(int)  # four of twenty groups hold the rare class
    found = compare(np.random.default_rng(0).normal(size=(100, 3)), y, **FEW | {"n_splits": 15}, groups=groups)
    assert all(set(y[test]) == {0, 1} for _, test in found.grid.splits)
    assert found.verdict.majority == pytest.approx(0.5)


def test_folds_of_groups_are_as_many_as_rows_and_groups_allow():
    def folds(y, groups):
        return keep_groups(RegularizedLDA(1), np.asarray(y), np.asarray(groups)).cv

    assert len(folds(np.arange(9) % 3, np.arange(9))) == 3  # of three rows of each class
    assert folds(np.arange(4), np.arange(4)) == folds([0, 1, 1], [0, 0, 0]) == 5  # no fold is possible
    # scikit-learn leaves one of four folds empty
    y = [1, 2, 0, 0, 2, 0, 1, 2, 2, 0, 2, 2, 1, 2, 1, 0, 1, 1, 0, 1, 1, 1]
    assert len(folds(y, np.repeat(np.arange(4), [9, 2, 8, 3]))) == 3


def test_methods_that_cross_validate_are_compared_on_few_rows_with_equal_ones():
    X, y = labelled(60, 6, 3)
    found = compare(np.r_[X, X[:6]], np.r_[y, y[:6]], **FEW, protocol="few-shot", per_class=3)
    assert found.failures == []
