"""Choice by held-out scores: within one standard error of the best accuracy, the least log loss."""

import numpy as np
import pytest

from discrim.core import kernel_choice
from discrim.core.calibration import best_temperature
from discrim.core.cross_validation import Folds, splits_of
from discrim.core.kernel_choice import RIDGES, Candidate, FeatureSpaces, HeldOutScores, chosen
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.posterior_rule import choose_kernel
from discrim.tables.rows import LabelledRows

CODES = np.arange(100) % 2


def scores(n_wrong, margin, seed=0, codes=CODES):
    """Scores of two classes, so far apart, of which so many rows are wrong."""
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
    choice = chosen({first: [held_out(BEST)], second: [held_out(FAR, NEAR)]})
    assert (choice.candidate, choice.shrinkage) == (second, RIDGES[1])
    assert choice.accuracy == pytest.approx(0.87)
    assert choice.log_loss == pytest.approx(loss_of(NEAR))
    assert "of 2 rules within one standard error (3.0 points) of the best held-out accuracy, 90.0 %" in choice.why
    assert [one.accuracy for one in choice.tried] == pytest.approx([0.9, 0.87])
    assert chosen({first: [held_out(BEST)], second: [held_out(FAR)]}).candidate == first


def test_a_dropped_candidate_is_reported_and_never_chosen():
    halves = [slice(0, 50), slice(50, 100)]
    whole, dropped = Candidate("linear"), Candidate("rbf", 1.0)
    parts = [held_out(BEST[half], codes=CODES[half]) for half in halves]
    perfect = held_out(scores(0, 5.0)[halves[0]], codes=CODES[halves[0]])
    choice = chosen({whole: parts, dropped: [perfect]})
    assert choice.candidate == whole
    assert choice.accuracy == pytest.approx(0.9)
    assert [(one.n_folds, one.accuracy) for one in choice.tried] == [(2, pytest.approx(0.9)), (1, 1.0)]
    np.testing.assert_array_equal(choice.held_out.codes, CODES)


def test_weights_are_repetition():
    weights = np.resize([1.0, 2.0, 0.0, 3.0], 100)
    each = np.repeat(np.arange(100), weights.astype(int))
    weighted = chosen({Candidate("linear"): [held_out(BEST, NEAR, FAR, weights=weights)]})
    listed = [one[each] for one in (BEST, NEAR, FAR)]
    repeated = chosen({Candidate("linear"): [held_out(*listed, codes=CODES[each])]})
    assert weighted.why == repeated.why
    assert (weighted.temperature, weighted.log_loss) == pytest.approx((repeated.temperature, repeated.log_loss))


def test_rows_held_out_again_and_again_make_nothing_more_certain(rng):
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
    spaces = FeatureSpaces.of(candidates, rows, rows.X[:10])
    monkeypatch.setattr(kernel_choice, "block_slices", lambda *_: (slice(a, a + 15) for a in range(0, 40, 15)))
    for space, features, moments in zip(spaces.spaces, spaces.features(rows.X), spaces.moments(rows), strict=True):
        np.testing.assert_allclose(features, space.features(rows.X))
        whole = ClassMoments.of_rows(rows.moved(features))
        np.testing.assert_allclose(moments.mean, whole.mean, atol=1e-12)
        np.testing.assert_allclose(moments.within, whole.within, rtol=1e-9, atol=1e-12)
