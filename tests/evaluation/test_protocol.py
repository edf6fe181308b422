"""Protocols: stratified, the same for every method, and a clear error if a class is too small."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discrim.evaluation.protocol import PROTOCOLS, FewShot, Holdout, KFolds, named_protocol

ALL = [*PROTOCOLS.values(), FewShot("few-shot", 4, per_class=5), KFolds("kfold", 3)]
UNEVEN = np.repeat(["b", "a", "ç"], [61, 23, 17])[np.random.default_rng(3).permutation(101)]


def class_counts(y, rows):
    return {label: int((y[rows] == label).sum()) for label in np.unique(y)}


@pytest.mark.parametrize("protocol", ALL, ids=str)
def test_every_split_divides_all_rows_and_all_classes(protocol):
    splits = list(protocol.splits(UNEVEN, seed=5))
    assert len(splits) == protocol.n_splits
    for train, test in splits:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(UNEVEN)))
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) > 0)
        assert min(class_counts(UNEVEN, train).values()) >= 1
        assert min(class_counts(UNEVEN, test).values()) >= 1


@pytest.mark.parametrize("protocol", ALL, ids=str)
def test_ratio_is_that_of_the_rows_handed_out(protocol):
    splits = list(protocol.splits(UNEVEN))
    n_train, n_test = (sum(len(split[side]) for split in splits) for side in (0, 1))
    assert protocol.ratio(UNEVEN) == pytest.approx(n_test / n_train, rel=1e-12)


@pytest.mark.parametrize("protocol", ALL, ids=str)
def test_same_seed_same_splits_another_seed_others(protocol):
    first, again, other = ([tuple(train) for train, _ in protocol.splits(UNEVEN, seed)] for seed in (11, 11, 12))
    assert first == again
    assert first != other
    assert len(set(first)) == protocol.n_splits


@pytest.mark.parametrize("protocol", ALL, ids=str)
def test_renamed_classes_change_nothing(protocol):
    renamed = np.array([{"b": 7, "a": 9, "ç": -1}[label] for label in UNEVEN])
    for (train, test), (train_renamed, test_renamed) in zip(
        protocol.splits(UNEVEN, 2), protocol.splits(renamed, 2), strict=True
    ):
        assert np.array_equal(train, train_renamed)
        assert np.array_equal(test, test_renamed)


def test_a_longer_run_extends_a_shorter_one():
    for name in ("holdout-80-20", "holdout-50-50", "few-shot"):
        short, long = named_protocol(name, n_splits=3), named_protocol(name, n_splits=9)
        for (train, _), (train_long, _) in zip(short.splits(UNEVEN, 4), long.splits(UNEVEN, 4), strict=False):
            assert np.array_equal(train, train_long)


def test_published_numbers_of_splits_and_shares():
    y = np.repeat([0, 1], [50, 150])
    sizes = {
        name: (protocol.n_splits, len(train), len(test))
        for name, protocol in PROTOCOLS.items()
        for train, test in itertools.islice(protocol.splits(y), 1)
    }
    assert sizes == {
        "holdout-80-20": (50, 160, 40),
        "holdout-50-50": (100, 100, 100),
        "kfold": (10, 180, 20),
        "inverted-kfold": (10, 20, 180),
        "few-shot": (20, 4, 196),
    }
    assert named_protocol("inverted-kfold").ratio(y) == 9.0
    assert named_protocol("kfold").ratio(y) == pytest.approx(1 / 9)
    assert named_protocol("holdout-80-20").ratio(y) == pytest.approx(0.25)
    assert named_protocol("few-shot", per_class=5).ratio(y) == pytest.approx(190 / 10)


def test_folds_part_the_rows_and_inverting_swaps_the_sides():
    plain, inverted = named_protocol("kfold"), named_protocol("inverted-kfold")
    tested = np.concatenate([test for _, test in plain.splits(UNEVEN, 1)])
    assert np.array_equal(np.sort(tested), np.arange(len(UNEVEN)))
    for (train, test), (train_inverted, test_inverted) in zip(
        plain.splits(UNEVEN, 1), inverted.splits(UNEVEN, 1), strict=True
    ):
        assert np.array_equal(train, test_inverted)
        assert np.array_equal(test, train_inverted)


def test_every_row_is_drawn_about_equally_often():
    # 2,000 draws of a fifth: 400 ± 18 each; six deviations either side.
    times = np.zeros(len(UNEVEN))
    for _, test in named_protocol("holdout-80-20", n_splits=2000).splits(UNEVEN):
        times[test] += 1
    for label in np.unique(UNEVEN):
        share = times[label == UNEVEN] / 2000
        expected = share.mean()
        assert np.abs(share - expected).max() < 6 * np.sqrt(expected * (1 - expected) / 2000)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 30), min_size=2, max_size=6), st.floats(0.05, 0.95))
def test_holdout_counts_are_as_near_the_share_as_whole_rows_allow(counts, share):
    y = np.repeat(np.arange(len(counts)), counts)
    (_, test), *_ = Holdout("h", 1, test_share=share).splits(y)
    for label, count in enumerate(counts):
        n_test = int((y[test] == label).sum())
        assert 1 <= n_test <= count - 1
        if 1 <= share * count <= count - 1:
            assert abs(n_test - share * count) < 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(4, 30), min_size=2, max_size=6), st.integers(2, 4), st.integers(0, 2**32))
def test_folds_differ_by_one_row_at_most_in_all_and_in_each_class(counts, n_folds, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    folds = [test for _, test in KFolds("kfold", n_folds).splits(y, seed)]
    assert np.ptp([len(fold) for fold in folds]) <= 1
    for label in range(len(counts)):
        assert np.ptp([int((y[fold] == label).sum()) for fold in folds]) <= 1


@pytest.mark.parametrize(
    ("protocol", "counts", "message"),
    [
        (
            named_protocol("kfold"),
            [30, 4],
            r"at least 10 rows for kfold; got 4 for 1\. Take fewer folds with n_splits=4; or",
        ),
        (named_protocol("inverted-kfold"), [30, 1], r"got 1 for 1\. .*Leave out the rows of small classes; or merge"),
        (named_protocol("holdout-80-20"), [30, 1], r"at least 2 rows for holdout-80-20; got 1 for 1\."),
        (named_protocol("few-shot", per_class=5), [5, 9], r"at least 6 rows for few-shot; got 5 for 0\."),
        (named_protocol("holdout-50-50"), [9], "y must have at least two classes .*only the class 0"),
        (named_protocol("holdout-50-50"), [], "y must have .*no rows"),
    ],
)
def test_a_class_too_small_is_refused_before_any_split(protocol, counts, message):
    y = np.repeat(np.arange(len(counts)), counts)
    with pytest.raises(ValueError, match=message):
        protocol.splits(y)
    with pytest.raises(ValueError, match=message):
        protocol.ratio(y)


def test_errors_of_names_and_numbers_list_the_valid_ones():
    with pytest.raises(ValueError, match=r"protocol must be .*holdout-80-20, holdout-50-50, kfold.*'holdout'"):
        named_protocol("holdout")
    with pytest.raises(ValueError, match="per_class must"):
        named_protocol("kfold", per_class=3)
    with pytest.raises(ValueError, match="n_splits"):
        named_protocol("kfold", n_splits=1)
    with pytest.raises(ValueError, match="n_splits must be"):
        named_protocol("few-shot", n_splits=0)
    with pytest.raises(ValueError, match="per_class must be"):
        named_protocol("few-shot", per_class=0)
    with pytest.raises(ValueError, match="test_share must be"):
        Holdout("h", 1, test_share=1.5)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        named_protocol("kfold").splits([[0, 1], [0, 1]])


def test_protocols_are_values():
    assert named_protocol("kfold") == KFolds("kfold", 10)
    assert hash(named_protocol("few-shot")) == hash(named_protocol("few-shot"))
    assert pickle.loads(pickle.dumps(ALL)) == ALL
