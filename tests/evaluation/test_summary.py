"""From rows to the answer: choice of K, intervals, comparisons, and exclusions."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discrim.evaluation.results import Cell, Result, Results, RunFacts
from discrim.evaluation.statistics import corrected_interval, corrected_t_test, holm
from discrim.evaluation.summary import difference, lines_of
from discrim.evaluation.verdict import verdict_of
from discrim.evaluation.wording import shown, table_lines

RATIO = 20 / 80


def rows(method, k, accuracies, classifier="svm", status="ok", splits=None):
    numbers = range(len(accuracies)) if splits is None else splits
    return [
        Result(
            {"method": method, "k": k, "classifier": classifier, "split": split},
            {"accuracy": accuracy, "f1": 1 - accuracy, "n_test": 20, "n_train": 80, "fit_seconds": 0.1 * k},
            status=status,
            reason="" if status == "ok" else "no",
        )
        for split, accuracy in zip(numbers, accuracies, strict=True)
    ]


def noisy(mean, seed, n=20, deviation=0.02):
    values = np.random.default_rng(seed).normal(0, deviation, n)
    return (mean + values - values.mean()).tolist()


def by_method(lines):
    return {(line.method, line.classifier): line for line in lines}


def test_the_smallest_count_within_one_standard_error_of_the_best():
    values = noisy(0.90, 0)
    error = corrected_t_test(values, RATIO).standard_error
    below = (np.array(values) - 1.01 * error).tolist()
    within = (np.array(values) - 0.99 * error).tolist()
    (line,) = lines_of(Results(rows("pca", 1, below) + rows("pca", 2, within) + rows("pca", 5, values)))
    assert (line.k, line.best_k) == (2, 5)
    assert line.mean == pytest.approx(np.mean(within))
    assert line.best_mean == pytest.approx(0.90)
    interval = corrected_interval(within, RATIO)
    assert (line.low, line.high) == pytest.approx((interval.low, interval.high))
    assert list(line.curve) == [1, 2, 5]


def test_comparisons_are_with_the_best_line_of_pca_and_of_all_columns():
    lda, lda2, pca, pca2, raw = (noisy(mean, seed) for seed, mean in enumerate((0.90, 0.95, 0.80, 0.85, 0.93)))
    both = rows("lda", 1, lda) + rows("lda", 2, lda2) + rows("pca", 1, pca, "5-nn") + rows("pca", 7, pca2, "5-nn")
    worse = rows("raw", 30, noisy(0.5, 9), "5-nn") + rows("pca", 1, noisy(0.5, 8))
    found = by_method(lines_of(Results(both + worse + rows("raw", 30, raw))))
    line = found["lda", "svm"]
    assert line.k == 2
    over_pca = corrected_t_test(np.subtract(lda2, pca2), RATIO)
    assert line.against_pca.mean == pytest.approx(over_pca.mean)
    assert line.against_pca.p_value == pytest.approx(over_pca.p_value)
    assert line.against_raw.p_value == pytest.approx(corrected_t_test(np.subtract(lda2, raw), RATIO).p_value)
    assert found["pca", "svm"].against_pca is None
    assert found["raw", "svm"].against_raw is None
    assert found["raw", "svm"].against_pca.mean == pytest.approx(np.subtract(raw, pca2).mean())


def test_p_values_of_a_column_are_adjusted_together():
    everything = rows("pca", 1, noisy(0.8, 0))
    for seed, mean in enumerate((0.81, 0.82, 0.83, 0.88), start=1):
        everything += rows(f"m{seed}", 1, noisy(mean, seed))
    found = [line.against_pca for line in lines_of(Results(everything)) if line.against_pca]
    assert len(found) == 4
    assert [one.adjusted for one in found] == pytest.approx(holm([one.p_value for one in found]).tolist())
    assert {one.verdict for one in found} == {"better", "no difference shown"}


def test_a_worse_line_is_judged_for_all_lines_that_the_best_was_chosen_from():
    everything = rows("lda", 1, noisy(0.88, 0))
    for seed, judge in enumerate(("a", "b", "c"), start=1):
        everything += rows("raw", 9, noisy(0.9 - 0.001 * seed, seed), judge)
    (line,) = (line for line in lines_of(Results(everything)) if line.method == "lda")
    assert line.against_raw.mean < 0
    assert line.against_raw.adjusted == pytest.approx(3 * line.against_raw.p_value)


def test_methods_with_the_same_predictions_are_one_line():
    def rows_of(method, labels, values):
        return [replace(row, scores={**row.scores, "labels": labels}) for row in rows(method, 2, values)]

    values = noisy(0.9, 0, 4)
    twins = rows_of("a", "x", values) + rows_of("b", "x", values) + rows_of("c", "y", values)
    found = {line.method: line.same for line in lines_of(Results(twins))}
    assert found == {"a": ("b",), "c": ()}
    (line,) = (line for line in lines_of(Results(twins), recommended=Cell("b", 2, "svm")) if line.same)
    assert (line.method, line.same) == ("b", ("a",))
    references = rows_of("pca", "x", values) + rows_of("raw", "x", values) + rows_of("d", "x", values)
    assert {line.method for line in lines_of(Results(references))} == {"pca", "raw", "d"}  # each is compared with


def test_the_best_line_is_one_of_all_splits_that_was_not_dropped():
    lda, tried = noisy(0.9, 0), noisy(0.8, 1)
    early = noisy(0.99, 2, 5)  # the highest score, on the first splits only
    everything = rows("lda", 1, lda) + rows("pca", 1, tried, "5-nn") + rows("pca", 1, early)
    for dropped in ((), (Cell("pca", 1, "svm"),)):
        facts = RunFacts(("x", "y"), np.zeros(1, int), 20, dropped=dropped)
        line = by_method(lines_of(Results(everything, facts=facts)))["lda", "svm"]
        assert line.against_pca.mean == pytest.approx(np.subtract(lda, tried).mean())
    better = rows("pca", 1, noisy(0.95, 3), "5-nn") + rows("lda", 1, lda) + rows("pca", 1, early)
    (line,) = (line for line in lines_of(Results(better, facts=facts)) if line.method == "lda")
    assert line.against_pca.adjusted == pytest.approx(line.against_pca.p_value)  # chosen from the only line left


def test_the_recommended_line_has_the_recommended_count_and_dropped_ones_come_last():
    everything = rows("a", 1, noisy(0.9, 0)) + rows("a", 5, noisy(0.9, 1)) + rows("b", 1, noisy(0.99, 2, 5))
    facts = RunFacts(("x", "y"), np.zeros(1, int), 20, dropped=(Cell("b", 1, "svm"),))
    first, last = lines_of(Results(everything, facts=facts), recommended=Cell("a", 5, "svm"))
    assert (first.method, first.k) == ("a", 5)
    assert last.dropped


def test_ten_lines_are_printed_with_the_best_of_all_columns_and_of_pca_but_no_dropped_one():
    names = [*(f"m{at}" for at in range(11)), "pca", "raw"]
    everything = [row for at, name in enumerate(names) for row in rows(name, 1, noisy(0.9 - 0.01 * at, at))]
    facts = RunFacts(("x", "y"), np.zeros(1, int), 20, dropped=(Cell("m0", 1, "svm"),))
    taken = Cell("m10", 1, "svm")
    lines = lines_of(Results(everything, facts=facts), recommended=taken)
    found = SimpleNamespace(lines=lines, verdict=SimpleNamespace(recommended=taken), metric="accuracy")
    assert [line.method for line in shown(found)] == [*(f"m{at}" for at in range(1, 8)), "m10", "pca", "raw"]
    assert shown(found, everything=True) == lines
    assert table_lines(found)[8].startswith("→  m10")
    assert sum("m0 " in line for line in table_lines(found, everything=True)) == 2  # ranks, and all kinds of scores


def test_only_splits_that_both_have_are_compared():
    values, others = noisy(0.9, 0, 6), noisy(0.8, 1, 4)
    found = by_method(lines_of(Results(rows("lda", 1, values) + rows("pca", 1, others, splits=[5, 1, 2, 0]))))
    test = corrected_t_test(np.subtract(np.array(values)[[5, 1, 2, 0]], others), RATIO)
    assert found["lda", "svm"].against_pca.n_splits == 4
    assert found["lda", "svm"].against_pca.p_value == pytest.approx(test.p_value)


def test_a_count_that_some_splits_could_not_give_is_not_chosen():
    (line,) = lines_of(Results(rows("pca", 1, noisy(0.8, 0, 6)) + rows("pca", 2, [0.99, 0.99])))
    assert line.k == line.best_k == 1
    assert line.curve[2] == pytest.approx(0.99)


def test_failed_and_skipped_rows_are_ignored():
    good, bad = rows("pca", 1, noisy(0.8, 0, 5)), rows("lda", 1, [0.0] * 5, status="failed")
    assert lines_of(Results(good + bad)) == lines_of(Results(good))
    assert lines_of(Results(bad)) == []


def test_one_split_gives_a_mean_and_no_interval():
    (line, _) = lines_of(Results(rows("lda", 1, [0.9]) + rows("pca", 1, [0.8])))
    assert line.mean == 0.9
    assert np.isnan(line.low)
    assert line.against_pca is None


def test_best_first_and_of_equals_the_one_with_fewer_components():
    everything = rows("a", 3, [0.9, 0.9]) + rows("b", 2, [0.9, 0.9]) + rows("c", 1, [0.95, 0.95])
    assert [line.method for line in lines_of(Results(everything))] == ["c", "b", "a"]
    assert [line.method for line in lines_of(Results(everything), "f1")] == ["b", "a", "c"]
    with pytest.raises(ValueError, match=r"metric.*accuracy"):
        lines_of(Results([]), "aux")


def test_the_same_difference_in_every_split_is_not_significant():
    found = difference(np.full(8, 1.0) - 2 / 3, 0.25)
    assert found.mean == pytest.approx(1 / 3)
    assert found.p_value == 1.0
    varied = difference(1 / 3 - 0.01 * (np.arange(8) % 2), 0.25)
    assert varied.p_value < 1e-6


@pytest.mark.parametrize(("metric", "least"), [("accuracy", 0.0), ("mcc", -1.0)])
def test_an_interval_ends_at_the_lowest_possible_score(metric, least):
    tried = rows("pca", 1, [0.0, 0.5]) + rows("lda", 1, [0.0, 0.25])
    tried = [replace(row, scores=row.scores | {"mcc": row.scores["accuracy"] - 0.9}) for row in tried]
    for line in lines_of(Results(tried), metric):
        assert line.low == least <= line.mean
    assert verdict_of(Results(tried), metric).low == least
