"""The path of shrinkages against cross-validation written out: every fold, every ridge, every row."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from samples import labelled

from discrim.core.cross_validation import PATH, Folds, PathScores, score_path, splits_of
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.rows import LabelledRows

GAMMAS = np.array([0.01, 0.2, 0.9])


def folds_of(points, cv, random_state=None):
    return Folds(points, splits_of(points, cv, random_state))


def literal_scores(X, y, w, training, gamma, log_priors):
    """log p_c − ½ (x − μ_c)ᵀ Σ_γ⁻¹ (x − μ_c) of each row, up to a term that all classes share."""
    classes = np.unique(y[training])
    X_t, y_t, w_t = X[training], y[training], w[training]
    n = w_t.sum()
    means = np.array([np.average(X_t[y_t == c], axis=0, weights=w_t[y_t == c]) for c in classes])
    centred = X_t - means[np.searchsorted(classes, y_t)]
    within = (centred.T * w_t) @ centred / n
    rank = np.linalg.matrix_rank(X_t - X_t.mean(axis=0))
    sigma = (1 - gamma) * within + gamma * np.trace(within) / rank * np.eye(X.shape[1])
    shares = np.array([w_t[y_t == c].sum() / n for c in classes])
    logs = np.log(shares) if log_priors is None else log_priors[classes]
    apart = X[:, None] - means
    return classes, logs - 0.5 * np.einsum("ncd,de,nce->nc", apart, np.linalg.inv(sigma), apart)


def literal_path(X, y, w, splits, log_priors=None):
    """Weighted accuracy, and log loss (mean over folds by their weight), for each γ; unseen classes are never right."""
    accuracy, loss = np.zeros(len(GAMMAS)), np.zeros(len(GAMMAS))
    for g, gamma in enumerate(GAMMAS):
        hits = total = 0.0
        for training, test in splits:
            classes, scores = literal_scores(X, y, w, training, gamma, log_priors)
            for i in test:
                own = np.flatnonzero(classes == y[i])
                logs = scores[i] - np.log(np.exp(scores[i] - scores[i].max()).sum()) - scores[i].max()
                hits += w[i] * (len(own) > 0 and own[0] == scores[i].argmax())
                loss[g] -= w[i] * (logs[own[0]] if len(own) else logs.min())
                total += w[i]
        accuracy[g], loss[g] = hits / total, loss[g] / total
    return accuracy, loss


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lacking", [False, True], ids=["all classes", "a class unseen in training"])
@pytest.mark.parametrize("priors", [None, "equal"])
def test_accuracies_and_losses_are_those_of_cross_validation_written_out(weighted, lacking, priors, rng):
    X, y = labelled(40, 4, seed=5)
    X = X * 0.5  # some rows are then misclassified
    w = rng.uniform(0.2, 3, 40) if weighted else np.ones(40)
    tests = [np.flatnonzero(y == 2), np.flatnonzero(y != 2)[::3]] if lacking else np.array_split(rng.permutation(40), 3)
    splits = [(np.setdiff1d(np.arange(40), test), np.sort(test)) for test in tests]
    log_priors = None if priors is None else np.log(np.full(3, 1 / 3))
    found = score_path(folds_of(LabelledRows(X, y, np.arange(3), w), splits, None), GAMMAS, priors, every_count=False)
    accuracy, loss = literal_path(X, y, w, splits, log_priors)
    np.testing.assert_allclose(found.accuracies[:, 0], accuracy, rtol=1e-12)
    np.testing.assert_allclose(found.losses[:, 0], loss, rtol=1e-9)
    assert accuracy.max() < 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_best_has_the_number_of_highest_accuracy_and_there_the_least_loss_within_one_standard_error(seed):
    rng = np.random.default_rng(seed)
    accuracies = rng.integers(6, 10, (3, 4)) / 10
    scores = PathScores(GAMMAS, accuracies, rng.permutation(12).reshape(3, 4) / 12, total_weight=12.0)
    highest = accuracies.max()
    k = min(k for k in range(4) if accuracies[:, k].max() == highest)
    near = [g for g in range(3) if highest - accuracies[g, k] <= np.sqrt(highest * (1 - highest) / 12)]
    assert scores.best() == (GAMMAS[min(near, key=lambda g: scores.losses[g, k])], k + 1)


def test_what_one_standard_error_is():
    scores = PathScores(GAMMAS, np.array([[0.9], [0.87], [0.869]]), np.array([[3.0], [2.0], [1.0]]), total_weight=100.0)
    assert scores.best() == (GAMMAS[1], 1)  # √(0.9·0.1/100) = 0.03, and 0.869 is farther away
    assert replace(scores, total_weight=1e6).best() == (GAMMAS[0], 1)
    assert replace(scores, total_weight=80.0).best() == (GAMMAS[2], 1)
    impossible = replace(scores, accuracies=np.array([[0.9], [-np.inf], [0.88]]))
    assert impossible.best() == (GAMMAS[2], 1)


def test_samples_of_the_held_out_rows_take_weights_as_repetition(rng, monkeypatch):
    monkeypatch.setattr("discrim.core.cross_validation.JUDGED_ROWS", 20)
    X, y = labelled(90, 3, seed=2)
    counts = rng.integers(1, 4, 90)
    splits = [(np.arange(45), np.arange(45, 90))]
    each = np.repeat(np.arange(90), counts)
    repeated = [(np.flatnonzero(each < 45), np.flatnonzero(each >= 45))]
    weighted = folds_of(LabelledRows(X, y, np.arange(3), counts.astype(float)), splits, None)
    plain = folds_of(LabelledRows(X[each], y[each], np.arange(3)), repeated, None)
    scores = [score_path(folds, GAMMAS, None, every_count=False) for folds in (weighted, plain)]
    np.testing.assert_allclose(*(one.losses for one in scores), rtol=1e-9)
    np.testing.assert_allclose(*(one.accuracies for one in scores), rtol=1e-12)
    assert [one.total_weight for one in scores] == [20, 20]


def test_splits_with_the_same_test_rows_do_not_narrow_the_standard_error(rng):
    X, y = labelled(60, 3, seed=4)
    points = LabelledRows(X, y, np.arange(3), rng.uniform(0.5, 2, 60))
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    once, often = (score_path(folds_of(points, splits * times), GAMMAS, None, every_count=False) for times in (1, 4))
    for name in ("accuracies", "losses", "total_weight"):
        np.testing.assert_allclose(getattr(often, name), getattr(once, name), rtol=1e-12)
    assert once.total_weight == pytest.approx(points.weights[:20].sum() + points.weights[40:].sum())


def test_without_a_ridge_a_rule_is_in_the_range_of_the_rows_and_none_where_classes_differ_but_do_not_vary():
    X, y = labelled(60, 3, seed=4)
    folds = [(np.arange(40), np.arange(40, 60))]
    gammas, codes = np.array([0.0, 0.3]), LabelledRows(X, y, np.arange(3))
    plain, twice, apart = (
        score_path(folds_of(replace(codes, X=table), folds, None), gammas, None, every_count=False)
        for table in (X, np.c_[X, X[:, 0] - X[:, 1]], np.c_[X, y == 1])
    )
    assert 0 < twice.accuracies[0, 0] == plain.accuracies[0, 0]
    np.testing.assert_allclose(twice.losses[0], plain.losses[0], rtol=1e-9)
    assert (apart.accuracies[0, 0], apart.losses[0, 0]) == (-np.inf, np.inf)
    assert apart.losses[1, 0] < plain.losses[1, 0]


@pytest.mark.parametrize("gammas", [GAMMAS, np.array([0.0, 0.5, 1.0])])
def test_after_all_discriminants_the_score_is_that_of_the_rule(gammas):
    X, y = labelled(60, 5, seed=4)
    folds = folds_of(LabelledRows(0.6 * X, y, np.arange(3)), 3, None)
    all_of_them, counts = (score_path(folds, gammas, None, every_count=every) for every in (False, True))
    assert counts.accuracies.shape == (3, 2)
    np.testing.assert_allclose(counts.accuracies[:, 1:], all_of_them.accuracies, rtol=1e-12)
    np.testing.assert_allclose(counts.losses[:, 1:], all_of_them.losses, rtol=1e-9)
    assert counts.losses[0, 0] > counts.losses[0, 1]


@pytest.mark.parametrize("every_count", [False, True])
def test_a_path_scored_in_parts_is_the_same(every_count, monkeypatch):
    X, y = labelled(60, 5, seed=4)
    folds = folds_of(LabelledRows(np.c_[X, X[:, 0] + (y == 1)], y, np.arange(3)), 3, None)  # no rule without a ridge
    gammas = np.array([0.0, 0.0, 0.3, 1.0])
    whole = score_path(folds, gammas, None, every_count=every_count)
    monkeypatch.setattr("discrim.core.cross_validation.LARGE_RULE", 10)
    parts = score_path(folds, gammas, None, every_count=every_count)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-12)
    np.testing.assert_array_equal(parts.accuracies, whole.accuracies)


def test_scores_after_every_count_of_many_classes_are_not_held_at_once(rng):
    codes = np.repeat(np.arange(60), 6)
    folds = folds_of(LabelledRows(rng.standard_normal((360, 60)), codes, np.arange(60)), 2, None)
    tracemalloc.start()
    try:
        found = score_path(folds, PATH, None, every_count=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.accuracies.shape == (24, 59)
    assert peak < 20e6  # 64 rows of scores would be 43 MB, and there are three copies


@pytest.mark.parametrize("every_count", [False, True])
def test_where_no_class_varies_in_training_no_ridge_is_a_rule(every_count):
    X, y = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.1, 0.9], [1.8, 0.2]]), np.arange(6) % 2
    folds = folds_of(LabelledRows(X, y, np.arange(2)), [(np.arange(4), np.arange(4, 6))], None)
    found = score_path(folds, np.array([0.0, 0.5, 1.0]), None, every_count=every_count)
    assert (found.accuracies == -np.inf).all()
    assert (found.losses == np.inf).all()
    assert found.best() == (0.0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_of_ridges_that_are_one_rule_the_least_is_chosen(seed):
    X, y = labelled(40, 1, seed=seed)  # of a single column all ridges give the same variance
    found = score_path(folds_of(LabelledRows(X, y, np.arange(3)), 4, None), PATH, None, every_count=False)
    np.testing.assert_allclose(found.losses, found.losses[0, 0], rtol=1e-12)
    assert found.best() == (0.0, 1)


def test_rows_that_are_all_equal_leave_the_priors():
    moments = ClassMoments.of(np.full((8, 3), 7.3), np.repeat([0, 1], [6, 2]))
    scores = RidgeRules.of(moments, GAMMAS).scores(np.full((8, 3), 7.3)).mT
    np.testing.assert_allclose(scores, np.broadcast_to(np.log([0.75, 0.25]), scores.shape))


def test_classes_that_do_not_vary_are_separated():
    X, y = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 4, axis=0), np.repeat([0, 1, 2], 4)
    scores = RidgeRules.of(ClassMoments.of(X, y), GAMMAS).scores(X)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) == y).all()


@pytest.mark.parametrize(("n", "d", "columns"), [(10, 7, 7), (9, 7, 7), (10, 7, 9)])
def test_a_rule_without_a_ridge_exists_as_long_as_rows_are_enough(n, d, columns, rng):
    """Check the rank that decides: n rows in three classes give a within-class scatter of rank n − 3 at most."""
    X, y = rng.standard_normal((n, d)), np.arange(n) % 3
    rules = RidgeRules.of(ClassMoments.of(np.c_[X, X[:, : columns - d]], y), np.array([0.0, 0.5]))
    assert np.isfinite(rules.offsets[1]).all()
    assert np.isnan(rules.offsets[0]).all() == (n - 3 < d)


@pytest.mark.parametrize("every_count", [False, True])
def test_a_held_out_row_beyond_the_units_of_the_others_has_a_finite_loss(every_count):
    X, y = labelled(60, 4)
    X = 1e-150 * X
    X[7] = [1e250, 1e250, 1e250, -1e250]
    with np.errstate(over="ignore", invalid="ignore"):
        found = score_path(folds_of(LabelledRows(X, y, np.arange(3)), 5), PATH[1:], None, every_count=every_count)
    assert np.isfinite(found.losses).all()
