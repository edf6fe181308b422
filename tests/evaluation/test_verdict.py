"""Verdict: each sentence if it is true, on data and in simulation; recommendation; bias-corrected scores."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

from discrim import compare
from discrim.evaluation.plan import FIRST_SPLITS, hopeless
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.resampling import HeldOutLabels
from discrim.evaluation.results import Cell, Result, Results, RunFacts, Scores, packed
from discrim.evaluation.statistics import corrected_t_test
from discrim.evaluation.trial import classification_scores
from discrim.evaluation.verdict import PipelineChoice, _finding, _linear_instead, metric_for, verdict_of
from discrim.evaluation.wording import (
    AS_WELL,
    COSTS,
    HELPS,
    NO_SIGNAL,
    NOT_SHOWN,
    _range,
    dropped_and_joined,
    in_p,
    judge,
    recall_in_words,
    signed,
)

RATIO = 0.25
METHODS = ("one", "two", "three", "four", "pca")
CLASSIFIERS = ("svm", "5-nn")
PARTNERS = ("logistic", "5-nn", "rbf-svm", "forest")


def choice_of(cells, scores, ratio=RATIO, nonlinear=()):
    table = Scores(tuple(cells), tuple(range(scores.shape[1])), scores, ratio)
    n_features = max((cell.k for cell in cells if cell.method == "raw"), default=0)
    return PipelineChoice(table, frozenset(nonlinear), n_features=n_features)


def chosen_outside(bootstrap, choice):
    """The score of what is chosen on rows that had no part in the choice."""
    return bootstrap.score(bootstrap.choose(choice))


def contrasts(choice, at):
    return choice.contrast(at, choice.partners), choice.contrast(at, choice.pca)


def cells_of(methods=METHODS, counts=(1, 2, 3, 5, 10)):
    reduced = [Cell(method, k, judge) for method in methods for k in counts for judge in CLASSIFIERS]
    return (*reduced, *(Cell("raw", 30, judge) for judge in PARTNERS))


def correctness(random, n_rows, cells, expected):
    """Draw which predictions are correct (cells × rows); rows have a common and a method-specific difficulty."""
    by_method = {cell.method: random.standard_normal(n_rows) for cell in cells}
    row = random.standard_normal(n_rows)
    own = random.standard_normal((len(cells), n_rows))
    shared = np.array([by_method[cell.method] for cell in cells])
    latent = np.sqrt(0.4) * row + np.sqrt(0.3) * shared + np.sqrt(0.3) * own
    return latent < stats.norm.ppf(np.asarray(expected))[:, None]


def evidence_of(random, n_rows, expected, cells=None, n_splits=20):
    """Scores of repeated holdouts of one sample of rows, as `compare` sees them."""
    cells = cells or cells_of()
    right = correctness(random, n_rows, cells, [expected(cell) for cell in cells])
    tests = [random.permutation(n_rows)[: n_rows // 5] for _ in range(n_splits)]
    scores = np.array([right[:, test].mean(axis=1) for test in tests]).T
    scores += 0.004 * random.standard_normal(scores.shape)
    first = Scores(tuple(cells), tuple(range(FIRST_SPLITS)), scores[:, :FIRST_SPLITS], RATIO)
    gone = hopeless(first)  # as a run drops them
    assert not any(cell.method == "raw" for cell in gone)
    kept = [at for at, cell in enumerate(cells) if cell not in gone]
    return choice_of([cells[at] for at in kept], scores[kept])


def findings(choice):
    taken, reduction = choice.pair(choice.table.values)
    found = [one.finding for one in contrasts(choice, reduction) if one is not None]
    assert (choice.table.cells[taken].method == "raw") == (found[0] == COSTS)  # what is recommended is what is claimed
    return found


# --- simulations with known truth -----------------------------------------------------------------------------------


def test_where_methods_do_not_differ_a_difference_is_claimed_in_one_run_of_twenty_at_most():
    runs = [findings(evidence_of(np.random.default_rng(seed), 150, lambda cell: 0.85)) for seed in range(150)]
    claimed = sum(bool({HELPS, COSTS} & set(found)) for found in runs)
    assert claimed <= 0.05 * len(runs)


def test_a_large_difference_is_claimed_nearly_always_and_in_the_right_direction():
    helps = [
        evidence_of(np.random.default_rng(at), 200, lambda c: 0.7 if c.method == "raw" else 0.9) for at in range(20)
    ]
    costs = [
        evidence_of(np.random.default_rng(at), 200, lambda c: 0.95 if c.method == "raw" else 0.7) for at in range(20)
    ]
    assert sum(findings(one)[0] == HELPS for one in helps) >= 18
    assert sum(findings(one)[0] == COSTS for one in costs) >= 18


def test_the_recommended_count_contains_the_components_that_matter_and_not_all_there_are():
    curve = {1: 0.6, 2: 0.75, 3: 0.9, 5: 0.9, 10: 0.9, 30: 0.9}
    counts = []
    for seed in range(60):
        evidence = evidence_of(np.random.default_rng(seed), 250, lambda cell: curve[cell.k])
        counts.append(chosen(evidence).k)
    assert np.mean(np.array(counts) >= 3) >= 0.95
    assert np.mean(np.array(counts) == 3) >= 0.8


def held_out_rows(random, n_rows, cells, expected, n_splits=8, minority=0.5):
    """Rows of results and what is kept of the run, for made-up predictions of two classes."""
    codes = (random.random(n_rows) < minority).astype(int)
    right = correctness(random, n_rows, cells, expected)
    rows = []
    for split, (train, test) in enumerate(named_protocol("holdout-80-20", n_splits=n_splits).splits(codes, 0)):
        for cell, correct in zip(cells, right, strict=True):
            labels = np.where(correct[test], codes[test], 1 - codes[test])
            scores = classification_scores(codes[test], labels, np.arange(2))
            scores |= {"n_train": len(train), "n_test": len(test), "fit_seconds": 0.0, "labels": packed(labels)}
            common = {"protocol": "holdout-80-20", "protocol_size": None, "seed": 0}
            trial = {**common, **cell._asdict(), "split": split}
            rows.append(Result(trial, scores))
    return rows, RunFacts(("no", "yes"), codes, n_splits), codes


def test_the_bias_corrected_score_is_that_of_new_rows():
    cells = tuple(Cell(f"m{at}", 1, "svm") for at in range(40))
    naive, corrected = [], []
    for seed in range(12):
        rows, facts, _ = held_out_rows(np.random.default_rng(seed), 80, cells, [0.7] * len(cells))
        found = verdict_of(Results(rows, facts=facts), "accuracy")
        naive.append(found.score)
        corrected.append(found.bias_corrected.mean)
        assert found.bias_corrected.low <= found.bias_corrected.mean <= found.bias_corrected.high
    assert np.mean(naive) > 0.74  # the best of forty that are alike
    assert abs(np.mean(corrected) - 0.7) < 0.02


def test_the_score_of_all_columns_is_corrected_for_the_choice_of_their_classifier():
    cells = (Cell("m", 1, "svm"), *(Cell("raw", 5, f"judge {at}") for at in range(20)))
    rows, facts, _ = held_out_rows(np.random.default_rng(0), 80, cells, [0.7] * len(cells))
    results = Results(rows, facts=facts)
    best = max(results.scores("accuracy").of_cell(cell).mean() for cell in cells[1:])
    assert verdict_of(results, "accuracy").against_raw.score < best - 0.02


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "f1"])
def test_with_one_cell_the_bias_corrected_score_is_the_score(metric):
    rows, facts, _ = held_out_rows(np.random.default_rng(3), 300, (Cell("m", 1, "svm"),), [0.8], minority=0.3)
    found = verdict_of(Results(rows, facts=facts), metric)
    assert found.bias_corrected.mean == pytest.approx(found.score, abs=0.01)
    # about 90 rows are left out and tested: two standard errors of their share are 0.08 on either side
    assert 0.12 < found.bias_corrected.high - found.bias_corrected.low < 0.2


def test_a_split_without_drawn_rows_does_not_count_in_the_choice():
    """Groups left out one at a time: those that a bootstrap sample lacks would look like splits of score 0."""
    random, cells = np.random.default_rng(0), (Cell("m", 1, "svm"), Cell("m", 2, "svm"))
    codes, groups = random.integers(0, 2, 800), np.repeat(np.arange(8), 100)
    tests, trains = ([np.flatnonzero((groups == g) == side) for g in range(8)] for side in (True, False))
    right = random.random((800, 2)) < [0.8, 0.95]
    labels = [np.where(right[test], codes[test, None], 1 - codes[test, None]) for test in tests]
    held_out = HeldOutLabels(cells, ("a", "b"), codes, tests, trains, labels, groups, np.ones(800))
    scores = np.array([right[test].mean(axis=0) for test in tests]).T
    evidence = choice_of(cells, scores, 1 / 7)
    assert evidence.reduction(scores) == 1
    for metric in ("accuracy", "balanced_accuracy", "f1"):
        assert chosen_outside(held_out.bootstrap(metric), evidence.reduction).mean == pytest.approx(
            right[:, 1].mean(), abs=0.01
        )


def test_weights_count_in_the_choice_as_in_the_score():
    cells, codes, rows = (Cell("a", 1, "svm"), Cell("b", 1, "svm")), np.arange(200) % 2, np.arange(200)
    heavy = rows < 100
    labels = np.where(
        np.column_stack([~heavy, heavy]), codes[:, None], 1 - codes[:, None]
    )  # b is right where it matters
    weights = np.where(heavy, 10.0, 0.1)
    held_out = HeldOutLabels(cells, ("x", "y"), codes, [rows] * 2, [rows] * 2, [labels] * 2, rows, weights)
    assert chosen_outside(held_out.bootstrap("accuracy"), lambda scores: int(scores.mean(axis=1).argmax())).low > 0.97


def test_groups_are_drawn_as_a_whole():
    rows, facts, codes = held_out_rows(np.random.default_rng(0), 60, (Cell("m", 1, "svm"),), [0.8])
    held_out = HeldOutLabels.from_results(Results(rows, facts=facts))
    object.__setattr__(held_out, "groups", np.repeat(np.arange(12), 5))
    drawn = held_out._draws(np.random.default_rng(0)).reshape(-1, 12, 5)
    assert (drawn == drawn[:, :, :1]).all()
    assert (drawn[:, :, 0].sum(axis=1) == 12).all()
    alone = HeldOutLabels.from_results(Results(rows, facts=facts))._draws(np.random.default_rng(0))
    assert (alone[:, codes == 1].sum(axis=1) == (codes == 1).sum()).all()


# --- recommendation -------------------------------------------------------------------------------------------------


def scored(**by_cell):
    """Evidence from rows of scores by "method_k"."""
    cells = tuple(Cell(name.rpartition("_")[0], int(name.rpartition("_")[2]), "svm") for name in by_cell)
    return choice_of(cells, np.array(list(by_cell.values())), nonlinear={"kernel"})


def around(mean, seed, deviation=0.02, n=20):
    values = np.random.default_rng(seed).normal(0, deviation, n)
    return mean + values - values.mean()


def chosen(evidence):
    return evidence.table.cells[evidence.reduction(evidence.table.values)]


def test_linear_if_not_shown_worse_then_the_fewest_components_then_the_higher_score():
    evidence = scored(lda_5=around(0.9, 0), lda_2=around(0.895, 1), pca_2=around(0.893, 2), kernel_2=around(0.899, 3))
    assert chosen(evidence) == ("lda", 2, "svm")
    assert evidence.table.cells[evidence.best_of(evidence.reductions)] == ("lda", 5, "svm")
    # people want loadings: more components that are linear before fewer that are not, unless they are shown worse
    assert chosen(scored(lda_5=around(0.899, 0), kernel_2=around(0.9, 3))) == ("lda", 5, "svm")
    worse = scored(lda_5=around(0.85, 0), kernel_2=around(0.9, 3), kernel_3=around(0.901, 4))
    assert chosen(worse) == ("kernel", 2, "svm")
    assert chosen(scored(lda_5=around(0.9, 0), raw_9=around(0.95, 1))) == ("lda", 5, "svm")  # raw is no reduction
    assert (
        chosen(scored(lda_5=around(0.9, 0), lda_9=around(0.95, 2), raw_9=around(0.95, 1))).k == 5
    )  # 9 of 9 reduce nothing


def test_a_significantly_worse_method_is_not_chosen_even_within_a_standard_error():
    wide = around(0.9, 0, deviation=0.05)
    evidence = scored(lda_5=wide, lda_2=wide - 0.01 - around(0.0, 1, deviation=0.002))
    assert corrected_t_test(wide, RATIO).standard_error > 0.01
    assert chosen(evidence).k == 5
    assert chosen(scored(lda_5=wide, lda_2=wide - 0.01 - around(0.0, 1, deviation=0.03))).k == 2


def test_a_loss_beyond_a_standard_error_is_not_excused_by_few_splits():
    evidence = scored(lda_5=np.array([0.90, 0.91, 0.92]), lda_1=np.array([0.99, 0.60, 0.75]))
    gaps = evidence.table.values[0] - evidence.table.values[1]
    assert corrected_t_test(gaps, RATIO, one_sided=True).p_value > 0.05
    assert chosen(evidence).k == 5


def test_half_a_standard_error_is_excused_and_one_and_a_half_are_not():
    best = around(0.9, 0)
    error = corrected_t_test(best, RATIO).standard_error
    for gap, k in ((0.5, 2), (1.5, 5)):  # no test shows either, so noisy is the difference
        assert chosen(scored(lda_5=best, lda_2=best - gap * error + around(0, 1, deviation=0.2))).k == k


def test_of_equal_means_the_best_is_the_one_with_fewer_components():
    evidence = scored(lda_5=around(0.9, 0), lda_2=around(0.9, 1))
    assert evidence.best_of([0, 1]) == 1


def test_the_largest_class_is_that_of_the_training_rows():
    codes = np.array([0, 0, 0, 1, 1, 1, 1, 0])
    train, test = np.arange(4), np.arange(4, 8)  # three of four are 0; then three of four are 1
    held_out = HeldOutLabels((), ("a", "b"), codes, [test], [train], [], np.arange(8), np.ones(8))
    assert held_out.majority_scores("accuracy").tolist() == [0.25]
    weights = np.array([1.0, 1, 1, 4, 1, 1, 1, 1])
    heavy = HeldOutLabels((), ("a", "b"), codes, [test], [train], [], np.arange(8), weights)
    assert heavy.majority_scores("accuracy").tolist() == [0.75]


def test_the_same_gap_in_every_split_is_judged_by_its_size():
    best = around(0.9, 0)
    assert chosen(scored(lda_5=best, lda_2=best - 0.3)).k == 5
    assert chosen(scored(lda_5=best, lda_2=best - 0.001)).k == 2


def test_one_split_gives_the_highest_score():
    assert chosen(scored(lda_5=[0.9], lda_2=[0.89])).k == 5


def test_if_the_recommended_method_is_nonlinear_a_linear_one_is_named_too():
    cells = (Cell("kernel", 1, "svm"), Cell("lda", 2, "svm"), Cell("lda", 5, "svm"), Cell("raw", 9, "svm"))
    rows, facts, _ = held_out_rows(np.random.default_rng(0), 400, cells, [0.95, 0.6, 0.8, 0.8])
    found = verdict_of(Results(rows, facts=facts), "accuracy", ["kernel"])
    assert (found.recommended, found.linear) == (cells[0], cells[2])
    of_linear = [row.scores["accuracy"] for row in rows if row.cell.k == 5]
    assert found.linear_score == pytest.approx(np.mean(of_linear))
    expected = f"use lda with 5 components ({100 * np.mean(of_linear):.1f} %, judged by a linear SVM)."
    assert found.sentences[-1] == f"For components with loadings {expected}"
    linear = verdict_of(Results(rows, facts=facts), "accuracy")
    assert linear.linear is None
    assert "For components with loadings" not in str(linear)
    alone = verdict_of(Results([row for row in rows if row.cell.method != "lda"], facts=facts), "accuracy", ["kernel"])
    assert alone.linear is None  # there is none to name


def test_cells_with_fewer_splits_take_no_part():
    rows, facts, _ = held_out_rows(np.random.default_rng(0), 60, (Cell("a", 1, "svm"), Cell("b", 2, "svm")), [0.5, 0.9])
    part = [row for row in rows if row.cell.method == "b" or row.split < 3]
    found = verdict_of(Results(part, facts=facts), "accuracy")
    assert found.recommended.method == found.best.method == "b"
    assert found.bias_corrected is not None


# --- claims -----------------------------------------------------------------------------------------------------------


def contrast_with_raw(difference, deviation=0.01, n_methods=1):
    raw = around(0.8, 0, deviation=0.01)
    more = {f"m{at}_2": raw - 0.2 + around(0, at, deviation=0.01) for at in range(n_methods - 1)}
    evidence = scored(lda_2=raw + around(difference, 1, deviation), **more, raw_9=raw, raw_8=raw - 0.1)
    return evidence, contrasts(evidence, 0)[0]


def test_the_opponent_is_the_best_of_its_kind_and_p_counts_all_candidates():
    evidence, found = contrast_with_raw(0.03, n_methods=4)
    test = corrected_t_test(evidence.table.values[0] - evidence.table.values[-2], RATIO)
    assert found.other == ("raw", 9, "svm")
    assert found.difference == pytest.approx(0.03)
    assert found.p_value == pytest.approx(4 * test.p_value)
    _, worse = contrast_with_raw(-0.03, n_methods=4)
    assert worse.p_value == pytest.approx(corrected_t_test(-0.03 + around(0, 1, 0.01), RATIO).p_value)
    assert (found.finding, worse.finding) == (HELPS, COSTS)


def test_raw_and_pca_are_adjusted_together():
    raw = around(0.8, 0, 0.01)
    lda, pca = raw + around(0.02, 1, 0.015), raw + around(0.0, 2, 0.01)
    alone = contrasts(scored(lda_2=lda, raw_9=raw), 0)[0]
    both = contrasts(scored(lda_2=lda, raw_9=raw, pca_2=pca), 0)
    two_methods, two_tests = 2, 2
    assert both[0].p_value == pytest.approx(two_methods * two_tests * alone.p_value)
    assert contrasts(scored(pca_2=pca, raw_9=raw), 0)[1] is None  # PCA is not compared with itself


def test_methods_that_were_dropped_early_count_as_candidates():
    evidence = scored(lda_2=around(0.8, 0), raw_9=around(0.8, 1), pca_2=around(0.8, 2))
    six = replace(evidence, n_methods=6)
    assert [one.looked_at(one.partners, True) for one in (evidence, six)] == [2, 6]
    assert [one.looked_at(one.pca, True) for one in (evidence, six)] == [1, 5]  # PCA is the other side


def test_the_detectable_difference_is_the_limit_of_significance():
    _, found = contrast_with_raw(0.001, deviation=0.04, n_methods=3)
    assert found.finding == NOT_SHOWN
    for factor, finding in ((0.99, NOT_SHOWN), (1.01, HELPS)):
        _, edge = contrast_with_raw(factor * found.detectable, deviation=0.04, n_methods=3)
        assert edge.finding == finding


def test_the_detectable_difference_counts_methods_and_tests():
    raw = around(0.8, 0, 0.01)
    evidence = scored(lda_2=raw + around(0.001, 1, 0.04), raw_9=raw, pca_2=raw + around(0.0, 2, 0.04))
    error = corrected_t_test(evidence.table.values[0] - evidence.table.values[1], RATIO).standard_error
    two_methods, two_tests = 2, 2
    edge = stats.t.isf(0.05 / 2 / two_methods / two_tests, 19) * error
    assert contrasts(evidence, 0)[0].detectable == pytest.approx(edge)


def test_equality_is_claimed_only_if_the_interval_is_narrow():
    assert contrast_with_raw(0.001, deviation=0.01)[1].finding == AS_WELL
    assert contrast_with_raw(0.001, deviation=0.05)[1].finding == NOT_SHOWN
    assert contrast_with_raw(0.015, deviation=0.03)[1].finding == NOT_SHOWN
    assert contrast_with_raw(-0.02, deviation=0.03)[1].finding == NOT_SHOWN


def test_differences_of_scores_lie_between_minus_one_and_one():
    _, found = contrast_with_raw(0.1, deviation=3.0)
    assert (found.low, found.high) == (-1.0, 1.0)


def test_balanced_accuracy_decides_where_one_class_has_most_rows():
    assert metric_for({"a": 61, "b": 39}, "auto") == "balanced_accuracy"
    assert metric_for({"a": 60, "b": 40}, "auto") == "accuracy"
    assert metric_for({"a": 99, "b": 1}, "accuracy") == "accuracy"


# --- the five sentences on tables for which they are true -----------------------------------------------------------

FEW = {"n_splits": 12, "n_jobs": 1, "methods": ["regularized-lda"]}


def hidden_sectors(n_rows=600, n_columns=1_000):
    """Two classes in six sectors of a ring, in a plane that only a projection shows: each column is mostly noise."""
    random = np.random.default_rng(0)
    angle = random.uniform(0, 2 * np.pi, n_rows)
    plane = np.linalg.qr(random.normal(size=(n_columns, 2)))[0].T
    ring = 6 * np.column_stack([np.cos(angle), np.sin(angle)])
    return ring @ plane + 0.6 * random.normal(size=(n_rows, n_columns)), (angle * 3 / np.pi).astype(int) % 2


def test_reducing_helps_where_only_a_projection_shows_the_signal():
    found = compare(*hidden_sectors(), classifiers="5-nn", n_components=[2], scale="none", **FEW)
    assert found.verdict.finding == HELPS
    first, second, _ = found.sentences
    assert first.startswith("Use 2 components of pca: ")
    assert second.startswith("Reducing helps: on all 1000 columns, ")
    assert "(difference +" in second
    assert found.verdict.against_raw.p_value < 0.005  # far from the level: the truth is clear
    assert found.verdict.headline == "Reducing helps: 2 components instead of 1000 columns"


def test_keep_your_columns_where_a_forest_wins_by_construction():
    """XOR of two columns among noise: no projection of class means shows it, trees find it."""
    X = np.random.default_rng(0).normal(size=(400, 12))
    found = compare(X, (X[:, 0] * X[:, 1] > 0).astype(int), classifiers="5-nn", n_components=[1, 2, 5], **FEW)
    assert found.verdict.headline == "Keep your 12 columns"
    assert found.recommendation.cell == ("raw", 12, "forest")
    assert found.sentences[0].startswith("Keep your 12 columns: a random forest has ")


def test_reducing_costs_where_one_component_is_too_few():
    X, y = load_digits(return_X_y=True)
    found = compare(X[:600], y[:600], classifiers="5-nn", n_components=[1], **FEW)
    assert found.verdict.finding == COSTS
    first, second, third = found.sentences
    assert first.startswith("Keep your 64 columns: ")
    assert second.startswith("The best reduction, 1 component of regularized-lda, has ")
    assert "p < 0.001" in second
    assert "regularized-lda" in third
    assert found.verdict.headline == "Keep your 64 columns"
    assert found.recommendation.method == "raw"
    assert not found.recommendation.reduces
    assert found.verdict.against_raw.difference < -0.2


def test_raw_features_do_as_well_where_one_column_is_all_there_is():
    y = np.arange(1500) % 3
    column = np.random.default_rng(0).normal(size=1500) + 8 * y
    found = compare(np.column_stack([column, column]), y, classifiers="5-nn", n_components=[1], **FEW)
    assert found.verdict.finding == AS_WELL
    assert found.sentences[1].startswith("It is as good as all 2 columns: ")
    assert found.verdict.headline == "1 component is as good as 2 columns"


def test_no_difference_can_be_shown_with_few_rows():
    X, y = load_iris(return_X_y=True)
    found = compare(X[::3], y[::3], n_components=[2], **FEW)
    assert found.verdict.finding == NOT_SHOWN
    assert found.sentences[1].startswith("No difference from all 4 columns can be shown with 50 rows: ")
    assert found.verdict.headline == "No difference between 2 components and 4 columns can be shown with 50 rows"
    raw = found.verdict.against_raw
    ends = [f"{100 * (raw.difference + sign * raw.detectable):+.1f}".replace("-", "−") for sign in (-1, 1)]
    assert f"95 % interval {ends[0]} to {ends[1]}, p = " in found.sentences[1]


@pytest.mark.parametrize("difference", [0.02, -0.02])
@pytest.mark.parametrize("n_methods", [1, 30])
def test_the_stated_interval_contains_zero_exactly_if_the_difference_is_not_significant(difference, n_methods):
    for deviation in np.geomspace(0.01, 0.2, 30):
        _, found = contrast_with_raw(difference, deviation, n_methods)
        assert (found.detectable >= abs(found.difference)) == (found.p_value >= 0.05)


def test_one_split_compares_nothing_with_all_columns():
    found = compare(*load_iris(return_X_y=True), **FEW | {"methods": "pca", "n_components": [2], "n_splits": 1})
    assert found.verdict.against_raw is None
    assert found.verdict.headline == "2 components, not compared with 4 columns"
    why = "1 split cannot show whether they differ"
    assert found.sentences[1] == f"There is no comparison with all 4 columns: {why}."


def test_a_failure_of_all_columns_leaves_no_comparison_and_no_reduction_to_as_many_components():
    found = compare(*load_iris(return_X_y=True), **FEW | {"methods": "pca", "n_components": [2, 4], "n_splits": 3})
    rows = [
        replace(row, status="failed", reason="lost") if row.cell.method == "raw" and row.split == 0 else row
        for row in found.rows
    ]
    without = replace(found, rows=rows)
    assert without.verdict.recommended.k == 2
    assert without.verdict.headline == "2 components, not compared with 4 columns"
    assert "no classifier of all columns has a result on every split" in without.sentences[1]


@pytest.mark.parametrize("n_columns", [1, 3])
def test_as_many_components_as_columns_are_not_reported_as_a_failure(n_columns):
    X, y = load_iris(return_X_y=True)
    asked = {"methods": "pca", "n_components": [n_columns], "n_splits": 2}
    found = compare(X[:, :n_columns], y, **FEW | asked)
    why = f"as many components as columns ({n_columns}) are no reduction"
    assert found.verdict is None
    assert found.sentences == (f"No reduction could be judged: {why}.",)
    assert "recommended" not in str(found)
    with pytest.raises(ValueError, match="are no reduction"):
        found.best_pipeline()


def test_a_callers_classifier_of_all_columns_is_called_by_its_name():
    X, y = load_iris(return_X_y=True)
    found = compare(X, y, **FEW | {"methods": [LogisticRegression()], "n_components": [2], "n_splits": 3})
    rows = [row for row in found.rows if row.cell.method != "raw"]  # so that it is the best of all columns
    assert ": LogisticRegression has " in replace(found, rows=rows).sentences[1]


def test_classes_that_no_split_holds_out_have_no_recall():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 10)
    groups = np.repeat([(c + shift) % 12 for c in range(8) for shift in (0, 5)], 5)
    asked = {"methods": "pca", "n_components": [2], "n_splits": 2, "groups": groups}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a bootstrap sample may hold no group that is tested
        found = compare(random.standard_normal((80, 4)) + y[:, None], y, **FEW | asked)
    lost = [name for name, share in found.verdict.recall.items() if np.isnan(share)]
    assert lost
    assert f"; no row of {', '.join(map(repr, lost))} was held out." in recall_in_words(found.verdict)
    assert "nan" not in str(found)


def test_without_signal_nothing_is_better_than_the_largest_class():
    random = np.random.default_rng(1)
    found = compare(random.standard_normal((90, 5)), np.arange(90) % 2, n_components=[1, 2], **FEW)
    assert found.verdict.finding == NO_SIGNAL
    assert found.answer.startswith("Nothing is significantly better than predicting the largest class (50.0 %).")
    assert "90 rows may be too few" in found.sentences[1]
    assert "the best PCA" not in found.answer
    assert found.sentences[2].startswith("The simplest of the pipelines with similar scores is ")
    assert found.verdict.headline.startswith("No signal")
    assert found.verdict.majority == pytest.approx(0.5)


def test_signal_in_raw_features_or_in_the_best_reduction_is_signal():
    """One that is recommended for its few components need not be shown to beat the largest class itself."""
    rows = {"lda_1": around(0.52, 0, 0.1), "lda_5": around(0.53, 1, 0.002), "raw_9": around(0.5, 2, 0.1)}
    majority = np.full(20, 0.5)
    assert _finding(scored(**rows), 0, None, majority) == NOT_SHOWN
    rows["lda_5"] = around(0.53, 1, 0.1)
    assert _finding(scored(**rows), 0, None, majority) == NO_SIGNAL
    rows["raw_9"] = around(0.55, 1, 0.002)
    assert _finding(scored(**rows), 0, None, majority) == NOT_SHOWN
    assert _finding(scored(lda_1=np.full(20, 0.5)), 0, None, majority) == NO_SIGNAL  # nothing varies, nothing is gained
    assert _finding(scored(lda_1=np.full(20, 0.9)), 0, None, majority) == NOT_SHOWN


def test_no_signal_is_not_claimed_if_the_test_has_no_power():
    """With more test rows than training rows the corrected test finds hardly anything better than the largest class."""
    evidence, majority = scored(lda_1=around(0.52, 0, 0.1)), np.full(20, 0.5)
    for ratio, finding in ((1.0, NO_SIGNAL), (9.0, NOT_SHOWN)):
        changed = replace(evidence, table=replace(evidence.table, ratio=ratio))
        assert _finding(changed, 0, None, majority) == finding


@pytest.mark.parametrize(("score", "finding"), [(0.6, NOT_SHOWN), (0.5, NO_SIGNAL), (0.4, NO_SIGNAL)])
def test_the_same_score_in_every_split_is_a_signal_above_the_largest_class(score, finding):
    assert _finding(scored(lda_1=np.full(20, score)), 0, None, np.full(20, 0.5)) == finding


@pytest.mark.parametrize("others", [(Cell("raw", 9, "svm"),), ()])
@pytest.mark.parametrize(("expected", "signal"), [(0.95, True), (0.5, False)])
def test_few_splits_of_many_methods_hide_no_signal_that_rows_show(expected, signal, others):
    """Two splits show next to nothing by any t test; held-out rows far above the largest class are a signal still."""
    cells = (*(Cell(f"m{at}", 1, "svm") for at in range(40)), *others)
    rows, facts, _ = held_out_rows(np.random.default_rng(0), 200, cells, [expected] * len(cells), n_splits=2)
    found = verdict_of(Results(rows, facts=facts), "accuracy")
    assert (found.finding != NO_SIGNAL) == signal
    assert ("predicting the largest class" in str(found)) == (not signal)


def test_the_same_difference_in_every_split_is_reported_as_untestable():
    raw = around(0.8, 0)
    lower = contrasts(scored(lda_2=raw - 0.1, raw_9=raw), 0)[0]
    assert lower.finding == NOT_SHOWN
    assert np.isnan(lower.detectable)
    same = contrasts(scored(lda_2=raw, raw_9=raw), 0)[0]
    assert same.finding == AS_WELL


def test_a_class_without_left_out_rows_keeps_its_share_in_the_bias_corrected_score():
    """The mean over the classes that are left would rise where the small classes are the difficult ones."""
    codes = np.repeat([0, 1, 2], [100, 2, 2])
    tests = [np.arange(104) for _ in range(2)]
    named = [np.zeros((104, 1), dtype=int)] * 2  # the largest class for every row: a third of the recall, always
    held_out = HeldOutLabels(
        (Cell("m", 1, "svm"),), tuple("abc"), codes, tests, tests, named, np.arange(104), np.ones(104)
    )
    for metric, score in (("balanced_accuracy", 1 / 3), ("f1", 2 * 100 / (100 + 104) / 3)):
        found = chosen_outside(held_out.bootstrap(metric), lambda scores: 0)
        assert found.mean == pytest.approx(score, abs=0.01)
        assert found.high < score + 0.02
        right = chosen_outside(replace(held_out, labels=[codes[:, None]] * 2).bootstrap(metric), lambda scores: 0)
        assert (right.low, right.mean, right.high) == (1, 1, 1)  # nor is it none of its rows


def test_the_bias_corrected_accuracy_weighs_classes_as_the_rows_do():
    """Two rows of a class are both drawn in half of all bootstraps: among rows left out the class would be too few."""
    cells, codes = (Cell("m", 1, "svm"), Cell("m", 2, "svm")), np.repeat([0, 1, 2], [30, 30, 2])
    tests = [np.r_[split:30:5, 30 + split : 60 : 5, 60 + split % 2] for split in range(4)]
    trains = [np.setdiff1d(np.arange(62), test) for test in tests]
    labels = [np.repeat(np.minimum(codes[test], 1)[:, None], 2, axis=1) for test in tests]  # the third is never named
    held_out = HeldOutLabels(cells, ("a", "b", "c"), codes, tests, trains, labels, np.arange(62), np.ones(62))
    assert chosen_outside(held_out.bootstrap("accuracy"), lambda scores: 0).mean == pytest.approx(12 / 13, abs=0.01)


def test_a_class_named_by_a_number_is_quoted():
    verdict = SimpleNamespace(recall={"0": 0.89, "1": 0.58, "opel": 0.7}, metric="accuracy", majority=0.65)
    expected = "Recall on held-out rows: '1' 58 %, opel 70 %, '0' 89 %. Predicting"
    assert recall_in_words(verdict).startswith(expected)


def test_confusion_and_recall_are_those_of_the_recommended_pipeline():
    rows, facts, codes = held_out_rows(np.random.default_rng(0), 100, (Cell("m", 1, "svm"),), [0.8], minority=0.3)
    found = verdict_of(Results(rows, facts=facts), "balanced_accuracy")
    hits = np.sum([row.scores["hits"] for row in rows], axis=0)
    actual = np.sum([row.scores["actual"] for row in rows], axis=0)
    assert np.diag(found.confusion).tolist() == hits.tolist()
    assert found.confusion.sum(axis=1).tolist() == actual.tolist()
    assert found.recall == {"no": pytest.approx(hits[0] / actual[0]), "yes": pytest.approx(hits[1] / actual[1])}
    assert found.majority == pytest.approx(0.5)  # of balanced accuracy, for any class shares
    assert verdict_of(Results(rows, facts=facts), "accuracy").majority == pytest.approx(np.mean(codes == 0), abs=0.03)


def test_a_callers_classifier_on_all_features_is_no_reduction():
    cells = (Cell("raw", 4, "svm"), Cell("Forest", 4, "itself"), Cell("Powers+SVC", 15, "itself"))
    reducing = (Cell("PCA+SVC", 2, "itself"), Cell("pca", 2, "svm"), Cell("pca", 4, "svm"))
    scores = np.random.default_rng(0).uniform(size=(6, 5))
    assert choice_of((*cells, *reducing), scores).reductions == [3, 4]  # nor are four components of four columns
    assert choice_of((*cells, *reducing), scores).partners == [0, 1, 2]
    assert choice_of(cells[1:], scores[1:3]).reductions == [0, 1]  # how many features there are is not known


def test_a_callers_estimator_is_not_called_linear():
    cells = (Cell("posterior-map", 1, "svm"), Cell("KernelPCA", 1, "svm"), Cell("pca", 1, "svm"))
    scores = np.random.default_rng(0).uniform(size=(3, 5)) * 0.01 + np.array([[0.9], [0.8], [0.7]])
    evidence = choice_of(cells, scores, nonlinear={"posterior-map"})
    assert _linear_instead(evidence, 0) == 2
    assert _linear_instead(evidence, 1) is None
    assert _linear_instead(evidence, 2) is None
    assert _linear_instead(choice_of(cells[:2], scores[:2], nonlinear=evidence.nonlinear), 0) is None


def test_the_classifier_of_a_callers_pipeline_is_called_its_own():
    assert judge(Cell("PCA+SVC", 2, "itself")) == "its own prediction"
    assert judge(Cell("pca", 2, "svm")) == "a linear SVM"


def test_the_difference_agrees_with_the_printed_scores():
    cells = (Cell("lda", 1, "svm"), Cell("pca", 2, "svm"), Cell("raw", 9, "svm"))
    for seed in range(12):
        rows, facts, _ = held_out_rows(np.random.default_rng(seed), 120, cells, [0.9, 0.7, 0.9])
        found = verdict_of(Results(rows, facts=facts), "accuracy")
        ours, theirs = (round(100 * score, 1) for score in (found.shown_score[0], found.against_raw.score))
        assert f"(difference {signed((ours - theirs) / 100)} points" in found.sentences[1]
    ours, theirs = replace(found.bias_corrected, mean=0.97744), replace(found.against_raw, score=0.96855)
    rounded = replace(found, bias_corrected=ours, against_raw=theirs)  # printed as 97.7 and 96.9
    assert signed(rounded.over_raw) == "+0.8"
    kept = replace(found, finding=COSTS, reduction_score=0.8, against_raw=replace(found.against_raw, score=0.9))
    assert signed(kept.over_raw) == "−10.0"  # of the reduction, which is not the recommended pipeline


def test_cells_with_fewer_splits_than_others_take_no_part():
    cells = (Cell("pca", 1, "svm"), Cell("lda", 1, "svm"))
    table = Scores(cells, (0, 1, 2), np.array([[0.5, np.nan, 0.7], [np.nan, np.nan, 0.9]]), RATIO)
    whole = table.complete()
    assert whole.cells == cells[:1]
    assert whole.splits == (0, 2)
    assert whole.values.tolist() == [[0.5, 0.7]]
    assert Scores.from_rows([], "accuracy").complete().cells == ()


# ---------------------------------------------------------------------- words


def test_p_values_have_three_digits_below_a_tenth():
    assert list(map(in_p, (0.0004, 0.0625, 0.25))) == ["p < 0.001", "p = 0.062", "p = 0.25"]


def test_an_interval_wider_than_any_difference_is_none():
    said = [_range(SimpleNamespace(difference=0.01, detectable=size)) for size in (0.05, 1.5, np.nan)]
    assert "−4.0 to +6.0" in said[0]
    assert "too few splits" in said[1]
    assert "cannot be tested" in said[2]


def test_a_class_that_is_never_recognised_is_the_worst():
    found = SimpleNamespace(recall={"a": 0.5, "b": 0.0, "c": np.nan}, metric="accuracy", majority=0.5)
    assert recall_in_words(found).startswith("Recall on held-out rows: b 0 %, a 50 %; no row of c was held out. ")


def test_lines_are_dropped_after_the_fewest_splits_and_joined_for_all_judges():
    def line(method, classifier, **also):
        facts = {"k": 2, "n_splits": 20, "dropped": False, "same": ()} | also
        return SimpleNamespace(method=method, classifier=classifier, **facts)

    gone = [line("a", "svm", dropped=True, n_splits=5), line("a", "5-nn", dropped=True, n_splits=4)]
    assert dropped_and_joined(gone) == ["Dropped after 4 splits, far behind the best: a."]
    twins = [line("b", judge, same=("c",)) for judge in ("svm", "5-nn")]
    assert dropped_and_joined(twins[:1])[0].endswith("(svm); they share one line of the table.")
    assert dropped_and_joined(twins)[0].endswith("(svm and 5-nn); they share these lines of the table.")
