"""The path of shrinkages against cross-validation written out: every fold, every ridge, every row."""

from dataclasses import replace

import numpy as np
import pytest
from memory import peak_of
from samples import labelled

from discrim import RegularizedLDA
from discrim.core.cross_validation import PATH, PathScores

GAMMAS = np.array([0.01, 0.2, 0.9])


def path_of(X, y, cv, weights=None, n_components=1, **options):
    return RegularizedLDA(n_components, cv=cv, **options).fit(X, y, sample_weight=weights).path_


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
    accuracy, loss = np.zeros(len(PATH)), np.zeros(len(PATH))
    for g, gamma in enumerate(PATH):
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
    found = path_of(X, y, splits, w if weighted else None, priors=priors)
    accuracy, loss = literal_path(X, y, w, splits, log_priors)
    np.testing.assert_array_equal(found.shrinkages, PATH)
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
    each = np.repeat(np.arange(90), counts)
    weighted = path_of(X, y, [(np.arange(45), np.arange(45, 90))], counts)
    repeated = path_of(X[each], y[each], [(np.flatnonzero(each < 45), np.flatnonzero(each >= 45))])
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-9)
    np.testing.assert_allclose(weighted.accuracies, repeated.accuracies, rtol=1e-12)
    assert weighted.total_weight == repeated.total_weight == 20


def test_splits_with_the_same_test_rows_do_not_narrow_the_standard_error(rng):
    X, y = labelled(60, 3, seed=4)
    weights = rng.uniform(0.5, 2, 60)
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    once, often = (path_of(X, y, splits * times, weights) for times in (1, 4))
    for name in ("accuracies", "losses", "total_weight"):
        np.testing.assert_allclose(getattr(often, name), getattr(once, name), rtol=1e-12)
    assert once.total_weight == pytest.approx(weights[:20].sum() + weights[40:].sum())


def test_without_a_ridge_a_rule_is_in_the_range_of_the_rows_and_none_where_classes_differ_but_do_not_vary():
    X, y = labelled(60, 3, seed=4)
    tables = X, np.c_[X, X[:, 0] - X[:, 1]], np.c_[X, y == 1]
    plain, twice, apart = (path_of(table, y, [(np.arange(40), np.arange(40, 60))]) for table in tables)
    assert 0 < twice.accuracies[0, 0] == plain.accuracies[0, 0]
    np.testing.assert_allclose(twice.losses[0], plain.losses[0], rtol=1e-9)
    assert (apart.accuracies[0, 0], apart.losses[0, 0]) == (-np.inf, np.inf)
    assert apart.losses.min() < plain.losses.min()


def test_after_all_discriminants_the_score_is_that_of_the_rule():
    X, y = labelled(60, 5, seed=4)
    all_of_them, counts = (path_of(0.6 * X, y, 3, n_components=k) for k in (2, "cv"))
    assert counts.accuracies.shape == (len(PATH), 2)
    np.testing.assert_allclose(counts.accuracies[:, 1:], all_of_them.accuracies, rtol=1e-12)
    np.testing.assert_allclose(counts.losses[:, 1:], all_of_them.losses, rtol=1e-9)
    assert counts.losses[1, 0] > counts.losses[1, 1]


@pytest.mark.parametrize("n_components", [2, "cv"])
def test_a_path_scored_in_parts_is_the_same(n_components, monkeypatch):
    X, y = labelled(60, 5, seed=4)
    table = np.c_[X, X[:, 0] + (y == 1)]  # no rule without a ridge
    whole = path_of(table, y, 3, n_components=n_components)
    monkeypatch.setattr("discrim.core.cross_validation.LARGE_RULE", 10)
    parts = path_of(table, y, 3, n_components=n_components)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-12)
    np.testing.assert_array_equal(parts.accuracies, whole.accuracies)


def test_scores_after_every_count_of_many_classes_are_not_held_at_once(rng):
    X, y, found = rng.standard_normal((360, 60)), np.repeat(np.arange(60), 6), []
    peak = peak_of(lambda: found.append(path_of(X, y, 2, n_components="cv")))
    assert found[0].accuracies.shape == (24, 59)
    assert peak < 20e6  # 64 rows of scores would be 43 MB, and there are three copies


@pytest.mark.parametrize("seed", range(5))
def test_of_ridges_that_are_one_rule_the_least_is_chosen(seed):
    X, y = labelled(40, 1, seed=seed)  # of a single column all ridges give the same variance
    found = path_of(X, y, 4)
    np.testing.assert_allclose(found.losses, found.losses[0, 0], rtol=1e-12)
    assert found.best() == (0.0, 1)


@pytest.mark.parametrize(("n", "columns"), [(10, 7), (9, 7), (10, 9)])
def test_a_rule_without_a_ridge_exists_as_long_as_rows_are_enough(n, columns, rng):
    """Check the rank that decides: n rows in three classes give a within-class scatter of rank n − 3 at most."""
    X, y = rng.standard_normal((n + 3, 7)), np.arange(n + 3) % 3
    found = path_of(np.c_[X, X[:, : columns - 7]], y, [(np.arange(n), np.arange(n, n + 3))])
    assert np.isfinite(found.losses[1:]).all()
    assert np.isinf(found.losses[0, 0]) == (n - 3 < 7)


@pytest.mark.parametrize("n_components", [2, "cv"])
def test_a_held_out_row_beyond_the_units_of_the_others_has_a_finite_loss(n_components):
    X, y = labelled(60, 4)
    X = 1e-150 * X
    X[7] = [1e250, 1e250, 1e250, -1e250]
    with np.errstate(over="ignore", invalid="ignore"):
        found = path_of(X, y, 5, n_components=n_components)
    assert np.isfinite(found.losses[1:]).all()


@pytest.mark.parametrize("n_components", [2, "cv"])
def test_where_no_class_varies_in_training_no_ridge_is_a_rule(n_components):
    X, y = labelled(20, 3)
    X[:8] = X[:3][y[:8]]
    found = path_of(X, y, [(np.arange(8), np.arange(8, 20))], n_components=n_components)
    assert (found.accuracies == -np.inf).all()
    assert (found.losses == np.inf).all()
    assert found.best() == (0.0, 1)
