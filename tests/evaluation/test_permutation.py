"""Permutation test: its p value, the permuted units, and its size without signal."""

import json

import numpy as np
import pytest

from discrim import compare
from discrim.cli.screen import print_json
from discrim.evaluation.plan import labelled_table, planned
from discrim.evaluation.resampling import PermutationTest, permutation_test, permuted_labels, require_exchange
from discrim.evaluation.results import Cell
from discrim.report.page import Origin, page, permutation_chart

CELL = Cell("pls-da", 1, "1-nn")


def grid_of(X, y, n_splits=1, groups=None):
    found = planned(
        labelled_table(X, y), "data", ["pls-da"], ["1-nn"], [1], "holdout-50-50", n_splits=n_splits, groups=groups
    )
    assert CELL in found.cells
    return found


def table(seed, signal, n=24):
    rng, y = np.random.default_rng(seed), np.arange(n) % 2
    X = rng.standard_normal((n, 3))
    X[:, 0] += signal * y
    return X, y


def test_p_is_uniform_without_signal():
    p = np.array([permutation_test(grid_of(*table(seed, 0.0)), CELL, "accuracy", 9).p_value for seed in range(40)])
    assert set(np.round(10 * p).astype(int)) <= set(range(1, 11))
    for level in (0.1, 0.3, 0.5):  # never more often than it says, but for chance: four deviations of 40 draws
        assert (p <= level + 1e-9).mean() <= level + 4 * np.sqrt(level * (1 - level) / 40)
    assert 0.4 < p.mean() < 0.75  # equal scores count as high, so it lies a little above a half


def test_p_is_minimal_if_classes_are_separated():
    found = permutation_test(grid_of(*table(0, 30.0), n_splits=3), CELL, "accuracy", 19)
    assert found.p_value == pytest.approx(1 / 20)
    assert found.score > found.permuted.max()
    assert found.n_splits == 3
    assert found.permuted.mean() < 0.8
    assert "is better than chance (p = 0.050). None of 19 permutations" in str(found)


def test_the_score_is_that_of_the_comparison_on_the_same_splits():
    X, y = table(3, 1.5)
    found = compare(X, y, methods="pls-da", classifiers="1-nn", n_components=[1], n_splits=3, permutations=4, n_jobs=1)
    tested = found.permutations
    cell = found.verdict.recommended
    mine = [r.scores["accuracy"] for r in found.rows if [r.trial[name] for name in cell._fields] == list(cell)]
    assert tested.cell == cell
    assert tested.score == pytest.approx(np.mean(mine))
    assert len(tested.permuted) == 4
    assert str(tested) in found.answer


def test_equal_and_failed_scores_count_as_high():
    tested = PermutationTest(CELL, "accuracy", 0.8, np.array([0.8, 0.79, 0.81, np.nan, 0.1]), 1)
    assert tested.as_high == 3
    assert tested.p_value == pytest.approx(4 / 6)
    assert "not significantly better than chance" in str(tested)


def test_labels_are_exchanged_inside_groups_or_by_whole_groups():
    rng = np.random.default_rng(0)
    codes, groups = np.array([0, 0, 1, 1, 1, 0, 0, 0]), np.array([5, 5, 5, 9, 9, 9, 2, 2])
    seen = {tuple(permuted_labels(codes, groups, rng)) for _ in range(200)}
    for labels in seen:
        assert all(sorted(np.array(labels)[groups == g]) == sorted(codes[groups == g]) for g in (5, 9, 2))
    assert len(seen) == 9
    one_each = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    seen = {tuple(permuted_labels(one_each, groups, rng)) for _ in range(200)}
    assert seen == {(1, 1, 1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 1, 1, 0, 0), (0, 0, 0, 0, 0, 0, 1, 1)}


def test_the_permuted_units_are_reported():
    X, y = table(1, 3.0)
    inside = permutation_test(grid_of(X, y, groups=np.arange(24) // 6), CELL, "accuracy", 2)
    assert inside.exchanged == "labels inside groups"
    whole = permutation_test(grid_of(X, y, groups=np.arange(24) % 8), CELL, "accuracy", 2)
    assert whole.exchanged == "labels of whole groups"


def test_groups_of_nearly_one_label_each_are_refused_before_the_comparison():
    X, y = table(1, 3.0, n=120)
    groups = np.repeat(np.arange(12), 10)
    nearly = groups % 2
    nearly[0] = 1
    with pytest.raises(ValueError, match=r"groups.*1\.5 %"):
        compare(X, nearly, groups=groups, permutations=9, methods="pls-da", n_components=[1], n_jobs=1)
    require_exchange(grid_of(X, y, groups=groups))  # half of the labels change
    require_exchange(grid_of(X, groups % 2, groups=groups))  # whole groups exchange theirs
    require_exchange(grid_of(X, y))


def test_it_is_on_the_page_in_json_and_in_the_chart(capsys):
    options = {"methods": "pls-da", "classifiers": "1-nn", "n_components": [1], "n_splits": 2, "n_jobs": 1}
    found = compare(*table(0, 30.0), permutations=9, **options)
    text = page([found], Origin())
    assert 'data-chart="permutations"' in text
    assert "None of 9 permutations of the labels" in text
    print_json(found)
    facts = json.loads(capsys.readouterr().out)["permutations"]
    assert facts["p_value"] == pytest.approx(0.1)
    assert len(facts["permuted"]) == 9
    chart = permutation_chart(found.permutations)
    assert sum(chart.marks[0].y) == 9
    assert chart.marks[1].x == [100.0]
    plain = compare(*table(0, 30.0), **options)
    assert plain.permutations is None
    assert 'data-chart="permutations"' not in page([plain], Origin())


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "many"])
def test_other_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="permutations"):
        compare(*table(0, 1.0), permutations=wrong)


def test_a_pipeline_without_a_score_is_reported_as_not_tested():
    tested = PermutationTest(Cell("pca", 2, "5-nn"), "accuracy", np.nan, np.array([0.3, 0.4]), 4)
    assert "not possible, because pca with 2 components and 5-NN has no score" in str(tested)
    assert tested.p_value == 1


@pytest.mark.parametrize(
    ("permutations", "ending"),
    [(18, "(p = 0.053; at least 19 permutations are needed)."), (19, "is better than chance (p = 0.050).")],
)
def test_too_few_permutations_are_reported(permutations, ending):
    tested = PermutationTest(Cell("pca", 2, "5-nn"), "accuracy", 0.9, np.full(permutations, 0.5), 4)
    assert ending in str(tested)
    assert ("not significantly" in str(tested)) == (permutations < 19)
