"""Every rule compared with the paper's steps written out, and laws of groupings."""

import itertools

import numpy as np
import pytest

from discrim.estimators import pair_refinement
from discrim.estimators.pair_refinement import (
    MERGED_SET,
    RULES,
    Terms,
    discriminant,
    grouping_of,
    groupings,
    groups_of,
    merged,
    one_merged,
)


def variance(values):
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / len(values)


def d_written_out(plus, minus):
    """Equation 5: squared difference of the means over the sum of the variances."""
    gap = sum(plus) / len(plus) - sum(minus) / len(minus)
    spread = variance(plus) + variance(minus)
    if spread == 0:
        return np.inf if gap else 0.0
    return gap**2 / spread


def combined(terms, chosen, of_class):
    return [sum(terms.weights[i] * row[i] for i in chosen) for row in terms.rows[of_class]]


def extreme_two_written_out(terms, largest):
    """Min/Max rule: of all pairs the one with the least (greatest) a_k1² + a_k2²."""
    sums = {
        pair: terms.weights[pair[0]] ** 2 + terms.weights[pair[1]] ** 2
        for pair in itertools.combinations(range(len(terms.weights)), 2)
    }
    return set((max if largest else min)(sums, key=sums.get))


def algorithm_1_written_out(terms, largest):
    """Discriminant rule with min/max: add one index at a time and test property (25) again."""
    chosen, left = [], list(range(len(terms.weights)))
    while left:
        k = (max if largest else min)(left, key=lambda i: abs(terms.weights[i]))
        trial = [*chosen, k]
        together = d_written_out(combined(terms, trial, terms.positive), combined(terms, trial, ~terms.positive))
        alone = max(
            d_written_out(terms.rows[terms.positive, i].tolist(), terms.rows[~terms.positive, i].tolist())
            for i in trial
        )
        if together < alone * (1 - 1e-9):
            break
        chosen, left = trial, [i for i in left if i != k]
    return set(chosen)


def algorithm_2_written_out(terms):
    """Sign rule: standardise to T+, then the heavier of the positive and the negative a_i μ_−i."""
    plus = terms.rows[terms.positive]
    centre, scale = plus.mean(axis=0), plus.std(axis=0)
    minus = (terms.rows[~terms.positive] - centre) / scale
    weights = terms.weights * scale  # the same hyperplane in standardised features
    products = [weights[i] * minus[:, i].mean() for i in range(len(weights))]
    first = {i for i, p in enumerate(products) if p > 0}
    second = {i for i, p in enumerate(products) if p < 0}
    return first if sum(products[i] for i in first) > -sum(products[i] for i in second) else second


def random_terms(seed, n=14, d=7):
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 3 == 0
    rows = rng.normal(size=(n, d)) + np.outer(positive, rng.normal(size=d) * 2)
    return Terms(rng.normal(size=d), rows, positive, np.ones(n))


WRITTEN_OUT = {
    "min": lambda terms: extreme_two_written_out(terms, largest=False),
    "max": lambda terms: extreme_two_written_out(terms, largest=True),
    "discriminant-min": lambda terms: algorithm_1_written_out(terms, largest=False),
    "discriminant-max": lambda terms: algorithm_1_written_out(terms, largest=True),
    "sign": algorithm_2_written_out,
    "none": lambda terms: set(),
}


@pytest.mark.parametrize("columns_at_once", [2, 64])
@pytest.mark.parametrize("rule", MERGED_SET)
def test_rule_is_its_definition_written_out(rule, columns_at_once, monkeypatch):
    monkeypatch.setattr(pair_refinement, "COLUMNS_AT_ONCE", columns_at_once)
    sizes = set()
    for seed in range(40):
        terms = random_terms(seed)
        chosen = MERGED_SET[rule](terms)
        assert set(chosen.tolist()) == WRITTEN_OUT[rule](terms)
        sizes.add(len(chosen))
    # the draws must put a rule to the test: runs that stop early and runs that go on
    assert len(sizes) > (2 if rule.startswith(("discriminant", "sign")) else 0)


def fisher_weights(rows, positive):
    within = sum(np.cov(rows[side].T, bias=True) * side.sum() for side in (positive, ~positive))
    return np.linalg.solve(within, rows[positive].mean(axis=0) - rows[~positive].mean(axis=0))


def test_a_long_run_of_fishers_weights_over_blocks_of_columns():
    rng = np.random.default_rng(2)
    positive = np.arange(200) % 2 == 0
    rows = rng.normal(size=(200, 90)) + 0.3 * positive[:, None]
    terms = Terms(fisher_weights(rows, positive), rows, positive, np.ones(200))
    down = MERGED_SET["discriminant-max"](terms)
    assert set(down.tolist()) == algorithm_1_written_out(terms, largest=True)
    assert len(down) > 64  # more than one block


def test_twin_columns_with_rounding_between_them_are_a_tie():
    weights = np.array([0.7, 0.3, 0.3 * (1 - 1e-15), 0.3, 0.7 * (1 + 1e-15)])
    terms = Terms(weights, np.zeros((2, 5)), np.array([True, False]), np.ones(2))
    assert MERGED_SET["min"](terms).tolist() == [1, 2]
    assert MERGED_SET["max"](terms).tolist() == [0, 4]


@pytest.mark.parametrize("nothing", [0.0, 1e-17])
def test_weights_of_zero_stop_no_run(nothing):
    terms = random_terms(3)
    padded = Terms(
        np.concatenate([[nothing], terms.weights]),
        np.column_stack([100.0 * terms.positive, terms.rows]),
        terms.positive,
        terms.row_weights,
    )
    expected = MERGED_SET["discriminant-min"](terms) + 1
    assert MERGED_SET["discriminant-min"](padded).tolist() == expected.tolist()


@pytest.mark.parametrize("unit", [1.0, 0.1, 1 / 3])  # with 0.1 and ⅓ the mean of equal values is not quite their value
def test_discriminant_without_spread(unit):
    positive = np.arange(30) % 3 == 0
    values = unit * np.column_stack([np.where(positive, 1.0, 3.0), np.full(30, 3.0)])
    assert discriminant(values, positive, np.random.default_rng(0).uniform(size=30)).tolist() == [np.inf, 0.0]


def test_splits_and_pairs_are_all_there_are():
    for d in range(2, 8):
        terms = random_terms(0, d=d)
        splits = {frozenset(map(frozenset, groups_of(g, np.arange(d)))) for g in groupings("exhaustive-splits", terms)}
        assert len(splits) == 2 ** (d - 1) - 1
        assert all(len(split) == 2 and frozenset().union(*split) == set(range(d)) for split in splits)
        pairs = [groups_of(g, np.arange(d)) for g in groupings("exhaustive-pairs", terms)]
        assert {frozenset(groups[0]) for groups in pairs} == set(map(frozenset, itertools.combinations(range(d), 2)))
        assert all(len(groups) == d - 1 for groups in pairs)


@pytest.mark.parametrize("rule", RULES)
def test_one_feature_is_a_group_of_its_own(rule):
    terms = Terms(np.array([2.0]), np.array([[0.0], [1.0], [3.0]]), np.array([True, True, False]), np.ones(3))
    assert [g.tolist() for g in groupings(rule, terms)] == [[0]]


def test_equal_class_means_belong_to_no_sign():
    """Means that are equal but for the order in which their rows were added up."""
    rng = np.random.default_rng(0)
    values = rng.choice([0.1, 0.2, 0.7, 1.3], 30)
    rows = np.c_[
        np.r_[values, rng.permutation(values)], np.r_[np.zeros(30), np.ones(30)], np.r_[np.ones(30), np.zeros(30)]
    ]
    weights = np.array([1e6, 1.0, 2.0])
    for seed in range(5):
        shuffled = rows.copy()
        shuffled[30:, 0] = np.random.default_rng(seed).permutation(values)
        terms = Terms(weights, shuffled, np.repeat([False, True], 30), np.ones(60))
        assert MERGED_SET["sign"](terms).tolist() == [2]


@pytest.mark.parametrize("more", [-1e-13, 0.0, 1e-13])
def test_signs_of_weights_equal_up_to_rounding_are_deterministic(more):
    rows = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [2.0, 2.0, 1.0], [1.0 + 2 * more, 2.0, 2.0]])
    positive = np.array([True, True, False, False])
    for weights, merged_set in (([2.0, -1.0, 1.0], [1]), ([2.1, -1.0, 1.0], [0])):  # gaps 2 + 2·more, −2, 0
        terms = Terms(np.array(weights), rows, positive, np.ones(4))
        assert MERGED_SET["sign"](terms).tolist() == merged_set


@pytest.mark.parametrize("rule", MERGED_SET)
def test_weights_of_rows_are_repetitions(rule):
    for seed in range(10):
        once = random_terms(seed)
        times = np.random.default_rng(seed).integers(1, 4, size=len(once.rows))
        weighted = Terms(once.weights, once.rows, once.positive, times.astype(float))
        repeated = Terms(
            once.weights, np.repeat(once.rows, times, axis=0), np.repeat(once.positive, times), np.ones(times.sum())
        )
        assert MERGED_SET[rule](weighted).tolist() == MERGED_SET[rule](repeated).tolist()


def test_merged_columns_are_the_sums_of_their_group():
    rng = np.random.default_rng(0)
    for n_groups in (1, 2, 4, 6):
        grouping = np.unique(rng.permutation(np.arange(6) % n_groups), return_inverse=True)[1]
        values = rng.integers(-9, 9, size=(4, 6)).astype(float)
        wanted = np.stack([values[:, grouping == k].sum(axis=1) for k in range(n_groups)], axis=1)
        np.testing.assert_array_equal(merged(values, grouping), wanted)
        assert grouping_of(groups_of(grouping, np.arange(6)), 6).tolist() == grouping.tolist()


def test_one_merged_puts_the_merged_first_and_the_rest_in_order():
    assert one_merged(np.array([3, 1]), 5).tolist() == [1, 0, 2, 0, 3]
    assert one_merged(np.array([3]), 5).tolist() == [0, 1, 2, 3, 4]
    assert one_merged(np.array([], dtype=int), 3).tolist() == [0, 1, 2]
    assert one_merged(np.arange(3), 3).tolist() == [0, 0, 0]
