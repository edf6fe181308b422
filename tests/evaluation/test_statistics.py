"""Each test and interval against its formula, scipy or a printed table; their sizes by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.statistics import (
    corrected_interval,
    corrected_t_test,
    friedman_test,
    holm,
    nemenyi_critical_difference,
    nemenyi_p_values,
    paired_t_test,
    ranks,
    sign_test,
)

DIFFERENCES = np.array([0.02, -0.01, 0.03, 0.0, 0.015, 0.01, -0.005, 0.04, 0.02, 0.005])


def corrected_t_written_out(d, ratio):
    n = len(d)
    mean = sum(d) / n
    variance = sum((x - mean) ** 2 for x in d) / (n - 1)
    return mean / math.sqrt((1 / n + ratio) * variance)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0, 9.0])
def test_corrected_t_is_its_formula(ratio):
    test = corrected_t_test(DIFFERENCES, ratio)
    expected = corrected_t_written_out(DIFFERENCES.tolist(), ratio)
    assert test.statistic == pytest.approx(expected, rel=1e-12)
    assert test.p_value == pytest.approx(2 * stats.t(9).sf(abs(expected)), rel=1e-12)
    assert test.statistic == pytest.approx(test.mean / test.standard_error, rel=1e-12)
    assert test.degrees_of_freedom == 9
    assert isinstance(test.statistic, float)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("differences", [DIFFERENCES, -DIFFERENCES])
def test_without_a_ratio_t_is_scipys(alternative, differences):
    expected = stats.ttest_1samp(differences, 0.0, alternative=alternative)
    test = corrected_t_test(differences, 0.0, one_sided=alternative == "greater")
    assert (test.statistic, test.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-12)
    assert alternative == "greater" or paired_t_test(differences) == test


def test_several_comparisons_at_once_are_the_single_ones():
    table = np.random.default_rng(0).normal(size=(20, 2, 3))
    together, sign = corrected_t_test(table, 0.25), sign_test(table)
    interval = corrected_interval(table, 0.25)
    for i, j in np.ndindex(2, 3):
        single = corrected_t_test(table[:, i, j], 0.25)
        assert together.statistic[i, j] == pytest.approx(single.statistic, rel=1e-12)
        assert together.p_value[i, j] == pytest.approx(single.p_value, rel=1e-12)
        assert sign.p_value[i, j] == sign_test(table[:, i, j]).p_value
        assert interval.low[i, j] == pytest.approx(corrected_interval(table[:, i, j], 0.25).low)


def test_equal_differences_give_no_nan():
    nothing, always = corrected_t_test(np.zeros(5), 0.25), corrected_t_test(np.full(5, -0.3), 0.25)
    assert (nothing.statistic, nothing.p_value) == (0.0, 1.0)
    assert (always.statistic, always.p_value) == (-math.inf, 0.0)
    # 0.9−0.8, 0.8−0.7 and 0.7−0.6 are three doubles, one difference
    rounded = paired_t_test([0.9 - 0.8, 0.8 - 0.7, 0.7 - 0.6])
    assert (rounded.statistic, rounded.p_value) == (math.inf, 0.0)


@pytest.mark.parametrize("wins", [0, 3, 7, 10])
def test_sign_test_is_scipys_binomial_test_without_the_ties(wins):
    d = np.concatenate([np.full(wins, 0.1), np.full(10 - wins, -0.2), np.zeros(4)])
    test = sign_test(d)
    assert test.p_value == pytest.approx(stats.binomtest(wins, 10, 0.5, "greater").pvalue, rel=1e-12)
    assert (test.wins, test.losses, test.ties) == (wins, 10 - wins, 4)


def test_sign_test_of_ties_alone_has_p_1():
    assert sign_test(np.zeros(6)).p_value == 1.0


def test_intervals():
    expected = stats.t.interval(0.95, 9, DIFFERENCES.mean(), stats.sem(DIFFERENCES))
    interval = corrected_interval(DIFFERENCES, 0.0)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-12)
    wider = corrected_interval(DIFFERENCES, 0.25)
    half = (wider.high - wider.low) / (interval.high - interval.low)
    assert half == pytest.approx(math.sqrt((1 / 10 + 0.25) / (1 / 10)), rel=1e-12)
    # An interval leaves out 0 exactly when the test rejects.
    test = corrected_t_test(DIFFERENCES, 0.25)
    edge = DIFFERENCES - test.mean + stats.t.ppf(0.975, 9) * test.standard_error
    assert corrected_t_test(edge, 0.25).p_value == pytest.approx(0.05)
    assert corrected_interval(edge, 0.25).low == pytest.approx(0.0, abs=1e-12)


def holm_written_out(p_values):
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for step, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[i]))
        adjusted[i] = largest
    return adjusted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_the_step_down_written_out(p_values):
    assert holm(p_values) == pytest.approx(holm_written_out(p_values), rel=1e-12, abs=1e-300)


def test_holm_known_values_shape_and_missing():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([[0.01, 0.04], [0.03, 0.005]]).shape == (2, 2)
    with_missing = holm([0.01, math.nan, 0.03])
    assert with_missing[[0, 2]] == pytest.approx([0.02, 0.03])
    assert math.isnan(with_missing[1])


SHIFTS = np.array([0, 0.2, 0.4, 0.1, 0.9])
SCORES = np.round(np.random.default_rng(8).normal(size=(14, 5)) + SHIFTS, 1)  # one digit: there are ties


def test_friedman_is_scipys_ties_too():
    expected = stats.friedmanchisquare(*SCORES.T)
    test = friedman_test(SCORES)
    assert (test.statistic, test.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
    assert any(len(np.unique(row)) < 5 for row in SCORES)


def test_iman_davenport_is_the_f_test_of_the_ranks():
    # F of the ranks' two-way analysis of variance, written out from its sums of squares.
    ranked = stats.rankdata(-SCORES, axis=1)
    n, k = ranked.shape
    columns = n * ((ranked.mean(axis=0) - ranked.mean()) ** 2).sum()
    residual = ((ranked - ranked.mean(axis=0)) ** 2).sum()
    f = (columns / (k - 1)) / (residual / ((n - 1) * (k - 1)))
    test = friedman_test(SCORES)
    assert test.f_statistic == pytest.approx(f, rel=1e-10)
    assert test.f_p_value == pytest.approx(stats.f(k - 1, (n - 1) * (k - 1)).sf(f), rel=1e-10)


def test_friedman_of_equal_methods():
    test = friedman_test(np.ones((4, 3)))
    assert (test.statistic, test.p_value, test.f_statistic) == (0.0, 1.0, 0.0)
    assert test.mean_ranks.tolist() == [2.0, 2.0, 2.0]


def test_mean_ranks_best_is_one_and_ties_share():
    assert friedman_test([[0.9, 0.8, 0.8], [0.5, 0.6, 0.7]]).mean_ranks.tolist() == [2.0, 2.25, 1.75]
    assert ranks([[3.0, 1.0, 2.0]]).tolist() == [[1.0, 3.0, 2.0]]
    assert ranks([[0.1 + 0.2, 0.3]]).tolist() == [[1.5, 1.5]]


# Critical values q_α/√2 of the two-tailed Nemenyi test (Demšar 2006, table 5a).
PRINTED_Q = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


@pytest.mark.parametrize("alpha", [0.05, 0.10])
def test_critical_difference_has_the_printed_constants(alpha):
    for k, q in enumerate(PRINTED_Q[alpha], start=2):
        constant = nemenyi_critical_difference(k, 30, alpha=alpha) / math.sqrt(k * (k + 1) / (6 * 30))
        assert constant == pytest.approx(q, abs=1.1e-3)


def test_nemenyi_p_values_meet_the_critical_difference():
    # Two methods 1 rank apart: the p value crosses α where the critical difference crosses 1.
    scores = np.tile([3.0, 2.0, 1.0], (10, 1))
    p_values = nemenyi_p_values(scores)
    assert np.array_equal(p_values, p_values.T)
    assert np.diag(p_values).tolist() == [1.0, 1.0, 1.0]
    assert nemenyi_critical_difference(3, 10, alpha=p_values[0, 1]) == pytest.approx(1.0, rel=1e-6)
    assert nemenyi_critical_difference(3, 10, alpha=p_values[0, 2]) == pytest.approx(2.0, rel=1e-4)


def test_nemenyi_p_values_for_two_methods_are_normal_tails():
    # For k = 2 the studentized range over √2 is the absolute value of a normal variable.
    scores = np.vstack([np.tile([1.0, 0.0], (7, 1)), np.tile([0.0, 1.0], (3, 1))])
    expected = 2 * stats.norm.sf(0.4 / math.sqrt(2 * 3 / (6 * 10)))
    assert nemenyi_p_values(scores)[0, 1] == pytest.approx(expected, rel=1e-6)


def test_nemenyi_p_values_are_those_of_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is the oracle")
    expected = np.asarray(posthocs.posthoc_nemenyi_friedman(SCORES))
    np.testing.assert_allclose(nemenyi_p_values(SCORES), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: corrected_t_test([0.1], 0.25), "at least 2 splits"),
        (lambda: corrected_t_test(DIFFERENCES, -1.0), "ratio must be"),
        (lambda: corrected_t_test(DIFFERENCES, math.nan), "ratio must be"),
        (lambda: ranks([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: ranks([[1.0, math.nan]]), "scores must not be NaN"),
        (lambda: nemenyi_critical_difference(1, 5), "scores must have"),
    ],
)
def test_errors_name_the_valid_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def accuracies(X, y, trains):
    """Test accuracy of the nearest class mean on every split (rows of the mask `trains`) at once."""
    one, zero = trains * y, trains * (1 - y)
    mean_one = one @ X / one.sum(axis=1, keepdims=True)
    mean_zero = zero @ X / zero.sum(axis=1, keepdims=True)
    normal = mean_one - mean_zero
    threshold = ((mean_one + mean_zero) / 2 * normal).sum(axis=1, keepdims=True)
    right = (normal @ X.T > threshold) == y
    return (right & ~trains).sum(axis=1) / (~trains).sum(axis=1)


def equal_methods_under(protocol, n_rows, n_datasets):
    """Per-split differences of two equally good methods on many data sets, and the protocol's ratio.

    The same classifier sees one of two sets of features of the same distribution: neither can be better.
    """
    rng, y = np.random.default_rng(20), np.repeat([0, 1], n_rows // 2)
    masks = np.zeros((25, protocol.n_splits, len(y)), dtype=bool)
    for seed in range(len(masks)):
        for i, (train, _) in enumerate(protocol.splits(y, seed)):
            masks[seed, i, train] = True
    differences = [
        accuracies(first, y, masks[k % 25]) - accuracies(second, y, masks[k % 25])
        for k in range(n_datasets)
        for first, second in [rng.normal(size=(2, len(y), 3)) + 0.6 * y[:, None]]
    ]
    return np.array(differences).T, protocol.ratio(y)


@pytest.fixture(scope="module")
def equal_methods():
    return equal_methods_under(named_protocol("holdout-80-20"), n_rows=60, n_datasets=2000)


def test_corrected_test_rejects_equal_methods_about_five_times_in_a_hundred(equal_methods):
    differences, ratio = equal_methods
    size = np.mean(corrected_t_test(differences, ratio).p_value < 0.05)
    assert 0.03 < size < 0.07  # 2,000 trials: ± 0.005
    one_sided = np.mean(corrected_t_test(differences, ratio, one_sided=True).p_value < 0.05)
    assert 0.03 < one_sided < 0.07


def test_sign_and_plain_t_tests_reject_equal_methods_far_too_often(equal_methods):
    differences, _ = equal_methods
    assert 0.25 < np.mean(sign_test(differences).p_value < 0.05) < 0.32  # ± 0.01
    assert 0.5 < np.mean(paired_t_test(differences).p_value < 0.05) < 0.68


def test_inverted_folds_overstate_by_the_plain_test_and_understate_by_the_corrected():
    differences, ratio = equal_methods_under(named_protocol("inverted-kfold"), n_rows=200, n_datasets=800)
    assert 0.3 < np.mean(paired_t_test(differences).p_value < 0.05) < 0.5
    assert np.mean(corrected_t_test(differences, ratio).p_value < 0.05) < 0.01


def test_corrected_interval_covers_and_students_does_not(equal_methods):
    differences, ratio = equal_methods
    corrected, plain = corrected_interval(differences, ratio), corrected_interval(differences, 0.0)
    assert 0.93 < np.mean((corrected.low <= 0) & (corrected.high >= 0)) < 0.97
    assert np.mean((plain.low <= 0) & (plain.high >= 0)) < 0.6


def test_corrected_test_still_finds_a_real_difference():
    rng, y = np.random.default_rng(1), np.repeat([0, 1], 100)
    protocol = named_protocol("holdout-80-20")
    trains = np.zeros((protocol.n_splits, len(y)), dtype=bool)
    for i, (train, _) in enumerate(protocol.splits(y)):
        trains[i, train] = True
    found = [
        corrected_t_test(accuracies(good, y, trains) - accuracies(poor, y, trains), 0.25).p_value < 0.05
        for _ in range(100)
        for good, poor in [rng.normal(size=(2, len(y), 3)) + np.array([0.9, 0.3])[:, None, None] * y[:, None]]
    ]
    assert np.mean(found) > 0.8
