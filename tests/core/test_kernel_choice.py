"""Choice by held-out scores: within one standard error of the best accuracy, the least log loss."""

import weakref

import numpy as np
import pytest

from discrim import PosteriorMap
from discrim.core import kernel_choice
from discrim.core.cross_validation import Folds, best_temperature, splits_of
from discrim.core.kernel_choice import (
    RIDGES,
    Candidate,
    FeatureSpaces,
    HeldOutScores,
    PosteriorRule,
    best_choice,
    rule_scores,
)
from discrim.core.landmarks import relevance
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.posterior_rule import choose_kernel
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.rows import LabelledRows

CODES = np.arange(100) % 2


def scores(n_wrong, margin, seed=0, codes=CODES):
    """Return scores of two classes at a given distance, with a given number of wrong rows."""
    right = np.ones(len(codes))
    right[np.random.default_rng(seed).permutation(len(codes))[:n_wrong]] = -1
    gap = right * margin * np.random.default_rng(seed + 1).uniform(0.5, 1.5, len(codes)) * (2 * codes - 1)
    return np.stack([-gap, gap], axis=1) / 2


def held_out(*by_ridge, codes=CODES, weights=None):
    """Scores of the first ridges; all others are of no use."""
    useless = [np.zeros((len(codes), 2))] * (len(RIDGES) - len(by_ridge))
    return HeldOutScores(np.stack([*by_ridge, *useless]), codes, np.ones(len(codes)) if weights is None else weights)


def loss_of(given):
    return best_temperature(given, CODES, np.ones(len(CODES)))[1]


# of 100 rows 10 wrong: the standard error is 3 points. Half of the rows that are wrong hardly are: a low log loss
BEST, NEAR, FAR = scores(10, 1.0), scores(13, 1.0), scores(14, 1.0)
for sure in (NEAR, FAR):
    wrong = sure.argmax(axis=1) != CODES
    sure[wrong] *= 0.01


def test_log_loss_chooses_within_one_standard_error_of_the_best_accuracy():
    assert loss_of(FAR) < loss_of(BEST)
    assert loss_of(NEAR) < loss_of(BEST)
    first, second = Candidate("linear"), Candidate("rbf", 1.0)
    choice = best_choice({first: [held_out(BEST)], second: [held_out(FAR, NEAR)]})
    assert (choice.candidate, choice.shrinkage) == (second, RIDGES[1])
    assert choice.accuracy == pytest.approx(0.87)
    assert choice.log_loss == pytest.approx(loss_of(NEAR))
    assert "of 2 rules within one standard error (3.0 points) of the best held-out accuracy, 90.0 %" in choice.why
    assert [one.accuracy for one in choice.tried] == pytest.approx([0.9, 0.87])
    assert best_choice({first: [held_out(BEST)], second: [held_out(FAR)]}).candidate == first


def test_a_dropped_candidate_is_reported_and_never_chosen():
    halves = [slice(0, 50), slice(50, 100)]
    whole, dropped = Candidate("linear"), Candidate("rbf", 1.0)
    parts = [held_out(BEST[half], codes=CODES[half]) for half in halves]
    perfect = held_out(scores(0, 5.0)[halves[0]], codes=CODES[halves[0]])
    choice = best_choice({whole: parts, dropped: [perfect]})
    assert choice.candidate == whole
    assert choice.accuracy == pytest.approx(0.9)
    assert [(one.n_folds, one.accuracy) for one in choice.tried] == [(2, pytest.approx(0.9)), (1, 1.0)]
    np.testing.assert_array_equal(choice.held_out.codes, CODES)


def test_repeatedly_held_out_rows_do_not_narrow_the_standard_error(rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    points = LabelledRows(X + 0.7 * np.eye(3)[y], y, np.arange(3))
    splits = [(np.flatnonzero(np.arange(60) % 2 != part), np.flatnonzero(np.arange(60) % 2 == part)) for part in (0, 1)]
    candidates = [Candidate("linear"), Candidate("rbf", 1.0), Candidate("rbf", 4.0)]
    folds = (Folds(points, splits_of(points, splits * times, None)) for times in (1, 3))
    once, often = (choose_kernel(one, np.arange(60), candidates, 20).why for one in folds)
    assert once == often


@pytest.mark.parametrize("candidates", [[Candidate("rbf", 0.5), Candidate("rbf", 2.0)], [Candidate("poly")]])
def test_blocks_of_rows_add_up_and_spaces_that_share_distances_are_those_alone(candidates, monkeypatch):
    rng = np.random.default_rng(0)
    rows = LabelledRows(rng.standard_normal((40, 3)), np.arange(40) % 2, np.arange(2), rng.uniform(1, 2, 40))
    spaces = FeatureSpaces.of(candidates, rows.X[:10], None)
    monkeypatch.setattr(kernel_choice, "block_slices", lambda *_: (slice(a, a + 15) for a in range(0, 40, 15)))
    for space, features, moments in zip(spaces.spaces, spaces.features(rows.X), spaces.moments(rows), strict=True):
        np.testing.assert_allclose(features, space.features(rows.X))
        whole = ClassMoments.from_rows(rows.moved(features))
        np.testing.assert_allclose(moments.mean, whole.mean, atol=1e-12)
        np.testing.assert_allclose(moments.within, whole.within, rtol=1e-9, atol=1e-12)


def test_features_of_held_out_rows_are_computed_block_by_block(rng):
    """The features of all rows would not fit into memory."""
    rows = LabelledRows(rng.standard_normal((40, 3)), np.arange(40) % 2, np.arange(2))
    rules, blocks = RidgeRules.of(ClassMoments.from_rows(rows), RIDGES), []

    def features(X):
        assert not any(block() is not None for block in blocks)  # the one before is no longer held
        found = np.array(X)
        blocks.append(weakref.ref(found))
        return [found]

    parts = [slice(0, 15), slice(15, 30), slice(30, 40)]
    (scores,) = rule_scores([rules], rows, features, parts)
    assert len(blocks) == 3
    np.testing.assert_allclose(scores.scores, rules.scores(rows.X).mT, rtol=1e-12)


# ---------------------------------------------------------------------- refined columns


def corners(n, noise, seed=0):
    """Clusters at the 16 corners of a cube of four columns, six of them of the second class, and columns of noise."""
    rng = np.random.default_rng(seed)
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    a, b, c, d = (cube > 0).T
    of_corner = ((a & ~b) | (b & c & d)).astype(int)
    drawn = rng.integers(16, size=n)
    signal = cube[drawn] + 0.5 * rng.standard_normal((n, 4))
    return np.c_[signal, rng.standard_normal((n, noise))], of_corner[drawn]


def test_refined_columns_find_a_signal_among_much_noise(monkeypatch):
    X, y = corners(400, 100)
    new, truth = corners(600, 100, seed=1)
    model = PosteriorMap(1, classifier="rule").fit(X, y)
    assert model.kernel_.tried[-1].label.endswith("refined columns")
    assert "refined columns" in model.kernel_.why
    scales = model._rule.kernel.scales
    assert scales.max() == 1
    assert scales[:4].min() > 2 * scales[4:].max()
    monkeypatch.setattr("discrim.core.posterior_rule.REFINED_COLUMNS", 10**9)
    plain = PosteriorMap(1, classifier="rule").fit(X, y)
    assert model.score(new, truth) > plain.score(new, truth) + 0.03
    assert model.held_out_score_ == pytest.approx(model.score(new, truth), abs=0.05)


@pytest.mark.parametrize("change", [{"n": 190}, {"columns": 19}, {"kernel": "linear"}, {"kernel_params": {"gamma": 1}}])
def test_few_rows_or_columns_and_other_kernels_are_not_refined(change):
    X, y = corners(change.pop("n", 300), 60)
    X = X[:, : change.pop("columns", 64)]
    kernel = {"kernel": "rbf" if "kernel_params" in change else "auto", **change}
    tried = PosteriorMap(1, classifier="rule", **kernel).fit(X, y).kernel_.tried
    assert not any("refined" in one.label for one in tried)


def test_as_few_columns_and_rows_as_matter_are_refined():
    X, y = corners(200, 16)
    assert X.shape[1] == 20
    assert (
        PosteriorMap(1, classifier="rule", kernel="rbf").fit(X, y).kernel_.tried[-1].label.endswith("refined columns")
    )


@pytest.mark.parametrize(("seed", "n_folds"), [(0, 2), (1, 5), (2, 5)])
def test_refined_columns_are_chosen_only_if_they_are_ahead_by_one_standard_error(seed, n_folds):
    rng, y = np.random.default_rng(seed), np.arange(300) % 2
    X = (2 * y - 1)[:, None] * np.r_[np.full(6, 0.5), np.zeros(18)] + rng.standard_normal((300, 24))
    model = PosteriorMap(1, classifier="rule", kernel="rbf").fit(X, y)
    *others, refined = model.kernel_.tried
    assert refined.label.endswith("refined columns")
    assert "refined" not in model.kernel_.why
    assert refined.n_folds == n_folds  # it is dropped as soon as it is behind
    if n_folds == 5:
        assert 0 < refined.accuracy - max(one.accuracy for one in others) < np.sqrt(0.1 * 0.9 / 300)


def test_refined_scales_are_the_mean_gradients_of_a_rule_in_any_unit(rng):
    X, y = corners(120, 20)
    rows = LabelledRows(X, y, np.arange(2))
    candidate = Candidate("rbf", 1.0, True, refined=0.1)
    found = kernel_choice.column_scales(candidate, rows, X[:80])
    scales = np.sqrt(relevance(rows))
    for _ in range(kernel_choice.ROUNDS):
        spaces = FeatureSpaces.of([candidate], X[:80], scales)
        rule = PosteriorRule.from_features(spaces.spaces[0], spaces.moments(rows)[0], 0.1)
        odds = lambda at, rule=rule: np.diff(rule.scores(at), axis=1)[:, 0]  # noqa: E731
        steps = 1e-5 * np.eye(24)
        scales = np.array([np.abs(odds(X[:80] + step) - odds(X[:80] - step)).mean() for step in steps])
        scales /= scales.max()
    np.testing.assert_allclose(found, scales, rtol=1e-6)
    for unit in (2.0**-600, 2.0**600):
        scaled = kernel_choice.column_scales(candidate, LabelledRows(unit * X, y, np.arange(2)), unit * X[:80])
        np.testing.assert_allclose(scaled, found, rtol=1e-8)
    constant = np.zeros((80, 24))
    same = kernel_choice.column_scales(candidate, LabelledRows(constant, y[:80], np.arange(2)), constant)
    assert np.isfinite(same).all()
