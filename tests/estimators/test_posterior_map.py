"""The posterior map equals its definition, transcribed with explicit loops, and its laws hold."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import check_estimator

from discrim import BayesErrorLDA, HashKFold, PosteriorMap, RegularizedLDA, SparsePLSDA, fit_parts, load, save
from discrim.core import posterior_rule
from discrim.core.class_places import class_places

RIDGES = [odds / (1 + odds) for odds in 10.0 ** np.arange(-4, 1.25, 0.5)]
TEMPERATURES = 2.0 ** np.arange(-1, 8.25, 0.5)
CANDIDATES = [("linear", None, False), *[("rbf", f, scaled) for scaled in (False, True) for f in (0.25, 1, 4)]]


# ---------------------------------------------------------------------- the literal definition


def literal_features(candidate, X, y, new):
    """φ of training rows and of new rows; landmarks are all distinct training rows."""
    kernel, f, scaled = candidate
    if kernel == "linear":
        return X, new
    n, classes = len(X), np.unique(y)
    if scaled:
        mean = X.mean(axis=0)
        between = sum((y == c).sum() * (X[y == c].mean(axis=0) - mean) ** 2 for c in classes)
        eta2 = between / ((X - mean) ** 2).sum(axis=0)
        r = np.maximum(eta2 - (len(classes) - 1) / n, 0.02 * eta2.max())
        X, new = X * np.sqrt(r / r.max()), new * np.sqrt(r / r.max())
    L = np.unique(X, axis=0)
    squares = lambda A, B: ((A[:, None] - B[None]) ** 2).sum(axis=2)  # noqa: E731
    between_landmarks = squares(L, L)
    median = np.median([between_landmarks[i, j] for i in range(len(L)) for j in range(i)])
    kernel_of = lambda A, B: np.exp(-2 * f * squares(A, B) / median)  # noqa: E731
    values, vectors = np.linalg.eigh(kernel_of(L, L))
    kept = values > 1e-7 * values.max()
    factor = vectors[:, kept] / np.sqrt(values[kept])
    return kernel_of(X, L) @ factor, kernel_of(new, L) @ factor


def literal_scores(X, y, new, gamma):
    """a_c of new rows, by a rule of these rows."""
    n, classes = len(X), np.unique(y)
    mean = X.mean(axis=0)
    means = [X[y == c].mean(axis=0) for c in classes]
    within = sum((X[y == c] - m).T @ (X[y == c] - m) for c, m in zip(classes, means, strict=True)) / n
    target = np.trace(within) / np.linalg.matrix_rank(X - mean, tol=1e-6)
    inverse = np.linalg.inv((1 - gamma) * within + gamma * target * np.eye(len(within)))
    shares = [(y == c).mean() for c in classes]
    return np.array(
        [
            (new - mean) @ inverse @ (m - mean) - (m - mean) @ inverse @ (m - mean) / 2 + np.log(p)
            for m, p in zip(means, shares, strict=True)
        ]
    ).T


def softmax(a):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def literal_map(X, y, new, splits, k, candidates=CANDIDATES, s=2.0):
    n, C = len(X), len(np.unique(y))
    mixed = lambda a, T: (1 - 1 / n) * softmax(a / T) + 1 / (n * C)  # noqa: E731
    tried = []
    for candidate in candidates:
        folds = [(*literal_features(candidate, X[i], y[i], X[j]), i, j) for i, j in splits]
        for gamma in RIDGES:
            a = np.empty((n, C))
            for phi, phi_test, training, test in folds:
                a[test] = literal_scores(phi, y[training], phi_test, gamma)
            losses = [-np.log(mixed(a, T)[np.arange(n), y]).mean() for T in TEMPERATURES]
            T = TEMPERATURES[int(np.argmin(losses))]
            tried.append(((a.argmax(axis=1) == y).mean(), min(losses), T, candidate, gamma, a))
    best = max(one[0] for one in tried)
    error = np.sqrt(best * (1 - best) / n)
    accuracy, loss, T, candidate, gamma, a = min(
        (one for one in tried if one[0] >= best - error), key=lambda one: one[1]
    )
    posteriors = mixed(a, T)
    confusions = np.array([posteriors[y == c].mean(axis=0) for c in range(C)])
    places = class_places(confusions, k, seed=0)
    held_out = softmax(s * a / T) @ places
    centred = held_out - held_out.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    if places.shape[1] > 1:
        places = places @ axes
        places *= np.sign(places[0])  # these tables have no place on an axis
    held_out = softmax(s * a / T) @ places
    phi, phi_new = literal_features(candidate, X, y, new)
    final = literal_scores(phi, y, phi_new, gamma)
    return {
        "candidate": candidate,
        "gamma": gamma,
        "T": T,
        "accuracy": accuracy,
        "loss": loss,
        "confusions": confusions,
        "z": softmax(s * final / T) @ places,
        "held out": held_out,
        "p": mixed(final, T),
    }


def curved(n, seed=0, classes=4):
    """Classes that are rings around one another, and two columns of noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + y + 0.35 * rng.standard_normal(n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal((n, 2))], y


TABLES = {"lines": labelled(60, 4, n_classes=4, seed=3), "rings": curved(90), "two rings": curved(60, classes=2)}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", TABLES)
def test_it_is_the_definition(name, k):
    X, y = TABLES[name]
    new = labelled(20, 4, seed=9)[0]
    splits = list(StratifiedKFold(5).split(X, y))
    wanted = literal_map(X, y, new, splits, k)
    model = PosteriorMap(k, classifier="rule").fit(X, y)
    assert all(tried.n_folds == 5 for tried in model.kernel_.tried) or name != "lines"
    kernel, _, scaled = wanted["candidate"]
    assert (model.kernel_.name, model.kernel_.scaled) == (kernel, scaled)
    assert model.shrinkage_ == pytest.approx(wanted["gamma"], rel=1e-12)
    assert model.temperature_ == pytest.approx(wanted["T"])
    assert model.held_out_score_ == pytest.approx(wanted["accuracy"])
    assert model.held_out_log_loss_ == pytest.approx(wanted["loss"], rel=1e-8)
    np.testing.assert_allclose(model.confusions_, wanted["confusions"], atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(new), wanted["p"], atol=1e-8)
    np.testing.assert_allclose(model.predict(new), wanted["p"].argmax(axis=1))
    if k != 2 or len(model.classes_) < 4:  # else the places are a minimum's, which test_class_places looks at
        np.testing.assert_allclose(model.transform(new), wanted["z"], atol=1e-8)
    q = softmax(2 * np.log(softmax(_scores(model, new))))
    np.testing.assert_allclose(model.transform(new), q @ model.places_, atol=1e-8)


def _scores(model, X):
    scores = model.decision_function(X)
    return np.c_[np.zeros(len(X)), scores] if scores.ndim == 1 else scores


@pytest.mark.parametrize("candidate", CANDIDATES, ids=str)
def test_every_candidate_is_the_definition(candidate):
    X, y = curved(70, seed=2)
    splits = list(StratifiedKFold(5).split(X, y))
    wanted = literal_map(X, y, X, splits, 3, candidates=[candidate])
    kernel, f, scaled = candidate
    kind = "rbf" if kernel == "rbf" else "linear"
    model = PosteriorMap(3, kernel=kind)
    model._candidates = lambda rows: [
        one for one in PosteriorMap._candidates(model, rows) if (one.width, one.scaled) == (f, scaled)
    ]
    model.fit(X, y)
    np.testing.assert_allclose(model.transform(X), wanted["z"], atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), wanted["p"], atol=1e-8)


def test_a_named_kernel_with_its_parameters_is_that_kernel():
    X, y = curved(50)
    model = PosteriorMap(2, kernel="laplacian", kernel_params={"gamma": 0.3}).fit(X, y)
    values, vectors = np.linalg.eigh(laplacian_kernel(X, gamma=0.3))
    phi = laplacian_kernel(X, gamma=0.3) @ vectors / np.sqrt(values)
    scores = literal_scores(phi, y, phi, model.shrinkage_)
    np.testing.assert_allclose(softmax(_scores(model, X)), softmax(scores / model.temperature_), atol=1e-8)
    assert [one.label for one in model.kernel_.tried] == ["laplacian(gamma=0.3)"]


def test_a_given_width_is_taken_in_the_units_of_the_columns():
    X, y = curved(50)
    one = PosteriorMap(2, kernel="rbf", kernel_params={"gamma": 0.2}).fit(X, y)
    other = PosteriorMap(2, kernel="rbf", kernel_params={"gamma": 0.2 / 64}).fit(8 * X, y)
    np.testing.assert_allclose(one.transform(X), other.transform(8 * X), atol=1e-9)
    assert one.kernel_.params["gamma"] == pytest.approx(0.2)


# ---------------------------------------------------------------------- laws


def given_splits(y):
    return list(StratifiedKFold(4).split(np.zeros(len(y)), y))


@pytest.mark.parametrize("n_landmarks", [None, 15])
def test_the_order_of_rows_does_not_matter_given_the_splits(rng, n_landmarks):
    X, y = curved(80, classes=5)
    splits = given_splits(y)
    order = rng.permutation(80)
    position = np.argsort(order)
    moved = [(position[training], position[test]) for training, test in splits]
    one = PosteriorMap(2, cv=splits, n_landmarks=n_landmarks).fit(X, y)
    other = PosteriorMap(2, cv=moved, n_landmarks=n_landmarks).fit(X[order], y[order])
    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [None, 15])
def test_weights_are_repetition_given_the_splits(n_landmarks):
    X, y = curved(60, classes=3)
    weights = np.resize([1, 2, 0, 3, 1], 60)
    repeated = np.repeat(np.arange(60), weights)
    splits = given_splits(y)
    of_repeated = [tuple(np.flatnonzero(np.isin(repeated, side)) for side in split) for split in splits]
    one = PosteriorMap(2, cv=splits, n_landmarks=n_landmarks).fit(X, y, sample_weight=weights)
    other = PosteriorMap(2, cv=of_repeated, n_landmarks=n_landmarks).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-9)
    np.testing.assert_allclose(one.confusions_, other.confusions_, atol=1e-9)
    unweighted = PosteriorMap(2, cv=splits, n_landmarks=n_landmarks).fit(X, y)
    assert np.abs(unweighted.predict_proba(X) - one.predict_proba(X)).max() > 1e-3


def test_weights_of_ones_do_not_matter_if_every_row_is_a_landmark():
    # the features then have one dimension less than landmarks, and rounding must not decide whether to count it
    rng = np.random.default_rng(1)
    X, y = np.round(2 * rng.normal(size=(200, 8))), rng.integers(0, 4, 200)
    model = PosteriorMap(2, kernel="rbf", kernel_params={"gamma": 0.02})
    plain, weighted = (clone(model).fit(X, y, sample_weight=weights) for weights in (None, np.ones(200)))
    np.testing.assert_allclose(plain.predict_proba(X), weighted.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "auto"])
def test_sparse_rows_are_as_good_as_dense_ones(kernel):
    X, y = curved(70)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = PosteriorMap(3, kernel=kernel).fit(X, y)
    sparse = PosteriorMap(3, kernel=kernel).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-8)
    np.testing.assert_allclose(sparse.transform(X), dense.transform(sp.csr_array(X)), atol=1e-8)


def test_single_precision_is_restored():
    X, y = curved(70)
    single = X.astype(np.float32)
    Z = PosteriorMap(2).fit(single, y).transform(single)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(
        Z, PosteriorMap(2).fit(single.astype(float), y).transform(single.astype(float)), atol=1e-5
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_origin_and_unit_do_not_matter(kernel):
    X, y = curved(70)
    one = PosteriorMap(3, kernel=kernel).fit(X, y).transform(X)
    np.testing.assert_allclose(PosteriorMap(3, kernel=kernel).fit(X + 1e6, y).transform(X + 1e6), one, atol=1e-5)
    for unit in (1e-200, 1e200):
        np.testing.assert_allclose(PosteriorMap(3, kernel=kernel).fit(unit * X, y).transform(unit * X), one, atol=1e-8)


def test_names_of_classes_do_not_matter():
    X, y = curved(70, classes=3)
    named = PosteriorMap(2).fit(X, np.array(["c", "b", "a"])[y])
    plain = PosteriorMap(2).fit(X, 2 - y)
    np.testing.assert_array_equal(named.transform(X), plain.transform(X))
    assert named.predict(X[:3]).tolist() == [["a", "b", "c"][c] for c in plain.predict(X[:3])]


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_landmarks():
    X, y = curved(300)
    model = PosteriorMap(2, n_landmarks=40, random_state=3, cv=given_splits(y))
    first = model.fit(X, y).transform(X)
    np.testing.assert_array_equal(model.fit(X, y).transform(X), first)
    assert np.abs(model.set_params(random_state=4).fit(X, y).transform(X) - first).max() > 1e-3


def test_rows_in_a_wide_table_are_seen_in_their_span():
    X, y = labelled(30, 80, seed=1)
    rotated = X @ np.linalg.qr(np.random.default_rng(0).standard_normal((80, 80)))[0]
    one, other = PosteriorMap(2, kernel="linear").fit(X, y), PosteriorMap(2, kernel="linear").fit(rotated, y)
    np.testing.assert_allclose(one.transform(X), other.transform(rotated), atol=1e-9)
    scores = literal_scores(X, y, X, one.shrinkage_)
    np.testing.assert_allclose(softmax(_scores(one, X)), softmax(scores / one.temperature_), atol=1e-8)


@pytest.mark.parametrize("far", [1e6, 1e12])
def test_a_far_row_leaves_the_kernel_candidates_as_they_were(far):
    X, y = curved(200)
    splits = given_splits(y)
    before = PosteriorMap(2, kernel="rbf", cv=splits).fit(X, y)
    X[17] = far
    after = PosteriorMap(2, kernel="rbf", cv=splits).fit(X, y)
    plain = [(a, b) for a, b in zip(before.kernel_.tried, after.kernel_.tried, strict=True) if "scaled" not in a.label]
    assert len(plain) == 3
    for one, other in plain:
        assert abs(one.accuracy - other.accuracy) <= 4 / 200
        assert abs(one.log_loss - other.log_loss) < 0.1
    assert abs(before.held_out_score_ - after.held_out_score_) <= 4 / 200
    assert after.temperature_ / before.temperature_ in (0.5, 2**-0.5, 1, 2**0.5, 2)


def test_one_very_distant_row_leaves_finite_numbers():
    X, y = curved(60)
    X[17] = 1e250
    model = PosteriorMap(2, kernel="rbf").fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


# ---------------------------------------------------------------------- many rows


def test_a_candidate_far_behind_is_not_tried_on_all_folds():
    X, y = curved(300)
    model = PosteriorMap(2).fit(X, y)
    folds = {tried.label: tried.n_folds for tried in model.kernel_.tried}
    assert folds["linear"] == 2
    best = max(model.kernel_.tried, key=lambda tried: tried.accuracy)
    assert best.n_folds == 5


def test_many_rows_choose_on_some_and_train_on_all(monkeypatch):
    numbers = posterior_rule.CHOICE_ROWS, posterior_rule.CHOICE_LANDMARKS, posterior_rule.FINAL_LANDMARKS
    assert numbers == (2_500, 300, 1_000)
    monkeypatch.setattr(posterior_rule, "CHOICE_ROWS", 100)
    monkeypatch.setattr(posterior_rule, "CHOICE_LANDMARKS", 30)
    monkeypatch.setattr(posterior_rule, "FINAL_LANDMARKS", 60)
    X, y = curved(400)
    X, y = np.concatenate([X, X[y == 0][:80] + 1e-3]), np.concatenate([y, np.zeros(80, dtype=int)])
    seen = []
    original = posterior_rule.held_out_scores
    monkeypatch.setattr(
        posterior_rule,
        "held_out_scores",
        lambda folds, priorities, candidates, most: (
            seen.append((folds.points.shape[0], len(candidates), most, np.bincount(folds.points.codes).tolist()))
            or original(folds, priorities, candidates, most)
        ),
    )
    model = PosteriorMap(2).fit(X, y)
    in_proportion = [37, 21, 21, 21]  # of 180, 100, 100 and 100
    assert seen == [(100, 7, 30, in_proportion), (480, 1, 60, [180, 100, 100, 100])]
    assert model.kernel_.n_landmarks == 60
    assert model.held_out_score_ > 0.8


def test_a_table_too_large_for_its_own_statistics_is_seen_from_landmarks(monkeypatch):
    monkeypatch.setattr("discrim.estimators.map_statistics.EXACT_SIDE", 20)
    X, y = labelled(60, 25, seed=2)
    model = PosteriorMap(2, kernel="linear").fit(X, y)
    assert (model.kernel_.name, model.kernel_.n_landmarks) == ("linear", 60)
    monkeypatch.undo()
    exact = PosteriorMap(2, kernel="linear").fit(X, y)
    # landmarks that are all rows span the same space; only its smallest directions are left out
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.02)


# ---------------------------------------------------------------------- parts of a table


def parts_of(X, y, n_parts, *more):
    return list(zip(*(np.array_split(column, n_parts) for column in (X, y, *more)), strict=True))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_linear_one_of_a_table_in_parts_is_that_of_all_rows(make, rng):
    X, y = labelled(150, 4, n_classes=4, seed=3)
    weights = rng.uniform(0.5, 2, 150)
    whole = PosteriorMap(2, kernel="linear", cv=HashKFold(4, random_state=1)).fit(make(X), y, weights)
    rows = [(make(part), *rest) for part, *rest in parts_of(X, y, 4, weights)]
    model = PosteriorMap(2, kernel="linear", cv=4, random_state=1)
    first, *others = [model.statistics(*one) for one in rows[::-1]]
    for other in others:
        first = first + other
    for parted in (
        fit_parts(PosteriorMap(2, kernel="linear", cv=4, random_state=1), rows),
        model.fit_statistics(first),
    ):
        assert (parted.shrinkage_, parted.temperature_) == (whole.shrinkage_, whole.temperature_)
        np.testing.assert_allclose(parted.predict_proba(X), whole.predict_proba(X), atol=1e-9)
        np.testing.assert_allclose(parted.confusions_, whole.confusions_, atol=1e-9)
        assert parted.held_out_log_loss_ == pytest.approx(whole.held_out_log_loss_, rel=1e-9)
        assert parted.n_features_in_ == 4


def test_parts_from_an_iterator_are_fitted_on_a_sample(monkeypatch):
    X, y = curved(120)
    one = fit_parts(PosteriorMap(2), parts_of(X, y, 3))
    other = fit_parts(PosteriorMap(2), parts_of(X[::-1], y[::-1], 5))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert one.score(X, y) > 0.8
    monkeypatch.setattr("discrim.estimators.map_statistics.SAMPLE_ROWS", 80)
    with pytest.warns(UserWarning, match="80 distinct rows"):
        fit_parts(PosteriorMap(2, kernel="rbf"), iter(parts_of(X, y, 3)))


def test_parts_behind_a_scaler_and_with_names():
    X, y = labelled(90, 3, n_classes=3, seed=1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    parts = [(frame[i::2], y[i::2]) for i in range(2)]
    model = fit_parts(make_pipeline(StandardScaler(), PosteriorMap(2, kernel="linear")), parts)
    by_hand = PosteriorMap(2, kernel="linear", cv=list(HashKFold(5).split(X))).fit(scale(X), y)
    np.testing.assert_allclose(model.predict_proba(frame), by_hand.predict_proba(scale(X)), atol=1e-9)
    assert fit_parts(PosteriorMap(2, kernel="linear"), parts).feature_names_in_.tolist() == ["a", "b", "c"]


# ---------------------------------------------------------------------- use


def test_it_separates_classes_that_are_not_linearly_separable():
    X, y = make_circles(300, noise=0.1, factor=0.5, random_state=0)
    new, truth = make_circles(300, noise=0.1, factor=0.5, random_state=1)
    model = PosteriorMap(2).fit(X, y)
    assert model.transform(new).shape == (300, 1)  # two classes have one dimension
    assert model.score(new, truth) > 0.95
    assert model.kernel_.name == "rbf"
    assert "rbf" in model.kernel_.why
    assert BayesErrorLDA(1).fit(X, y).score(new, truth) < 0.65


def test_probabilities_are_calibrated_on_digits():
    X, y = load_digits(return_X_y=True)
    X = scale(X)
    model = PosteriorMap(2).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.94
    assert log_loss(y[900:], model.predict_proba(X[900:])) < 1.25 * model.held_out_log_loss_ + 0.05
    Z = model.transform(X[900:])
    # the place nearest to a row is mostly that of its class
    nearest = np.linalg.norm(Z[:, None] - model.places_, axis=2).argmin(axis=1)
    assert (nearest == y[900:]).mean() > 0.92


def test_the_tempered_map_puts_the_median_held_out_row_at_0_8():
    X, y = load_digits(return_X_y=True)
    X = scale(X)
    sharp, tempered = (PosteriorMap(2, classifier="rule", sharpness=s).fit(X[:400], y[:400]) for s in (2.0, "tempered"))
    assert tempered.sharpness_ < 1 < sharp.sharpness_
    radii = np.linalg.norm(tempered.transform(X[700:]), axis=1)
    assert 0.7 < np.median(radii) < 0.9
    assert np.median(np.linalg.norm(sharp.transform(X[700:]), axis=1)) > 0.95
    np.testing.assert_array_equal(sharp.places_, tempered.places_)


# ---------------------------------------------------------------------- parameters


@pytest.mark.parametrize("sharpness", [2.0, "auto", "tempered"])
def test_another_number_of_components_is_what_a_fit_with_it_gives(sharpness, tmp_path):
    X, y = labelled(80, 5, n_classes=4, seed=3)
    model = PosteriorMap(3, sharpness=sharpness).fit(X, y)
    before = model.places_.copy()
    for k in (1, 2, 3, None):
        other, fresh = model.with_components(k), PosteriorMap(k, sharpness=sharpness).fit(X, y)
        np.testing.assert_array_equal(other.transform(X), fresh.transform(X))
        np.testing.assert_array_equal(other.for_plotting().transform(X), fresh.for_plotting().transform(X))
        assert other.n_components == k
    save(model, tmp_path / "map.discrim")
    loaded = load(tmp_path / "map.discrim")
    if sharpness == 2.0:
        np.testing.assert_array_equal(loaded.with_components(1).transform(X), model.with_components(1).transform(X))
    else:
        np.testing.assert_array_equal(loaded.with_components(3).transform(X), model.transform(X))
        with pytest.raises(ValueError, match="sharpness"):
            loaded.with_components(1)
    assert model.n_components == 3
    np.testing.assert_array_equal(model.places_, before)
    with pytest.raises(ValueError, match="n_components"):
        model.with_components(0)
    with pytest.raises(NotFittedError):
        PosteriorMap(2).with_components(1)


def test_automatic_sharpness_is_the_smallest_at_which_the_nearest_place_predicts_held_out_rows():
    rng, y = np.random.default_rng(0), np.arange(300) % 10
    X = rng.standard_normal((300, 6)) + 1.5 * rng.standard_normal((10, 6))[y]
    automatic, *fixed = (PosteriorMap(3, kernel="linear", sharpness=s).fit(X, y) for s in ("auto", 2, 3, 4, 6, 8, 12))

    def held_out_accuracy(model):
        Z = model.transform_held_out(X)
        return np.mean(np.linalg.norm(Z[:, None] - model.places_, axis=2).argmin(axis=1) == y)

    chosen = []
    for k in (1, 2, 3):
        found = {one.sharpness: held_out_accuracy(one.with_components(k)) for one in fixed}
        least = min(s for s, score in found.items() if score >= max(found.values()) - 0.005 - 1e-12)
        assert automatic.with_components(k).sharpness_ == least
        chosen.append(least)
    assert chosen == [12, 6, 2]
    assert automatic.with_components(None).sharpness_ == 2


@pytest.mark.parametrize(("kernel", "make"), [("linear", np.asarray), ("rbf", np.asarray), ("rbf", sp.csr_array)])
def test_held_out_positions_are_those_of_a_rule_fitted_without_the_row(kernel, make):
    X, y = curved(90)
    splits = list(StratifiedKFold(5).split(X, y))
    model = PosteriorMap(3, kernel=kernel, cv=splits).fit(make(X), y)
    found = literal_map(X, y, X, splits, 3, [one for one in CANDIDATES if one[0] == kernel])
    np.testing.assert_allclose(model.transform_held_out(make(X)), found["held out"], atol=1e-7)
    shuffled = np.random.default_rng(0).permutation(len(X))[:30]
    np.testing.assert_allclose(model.transform_held_out(make(X[shuffled])), found["held out"][shuffled], atol=1e-7)
    new = X + 0.1
    np.testing.assert_array_equal(model.transform_held_out(make(new)), model.transform(make(new)))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("kernel", "params"), [("linear", None), ("rbf", None), ("rbf", {"gamma": 0.3})])
def test_explanations_are_finite_differences(kernel, params, make, k):
    X, y = curved(90)
    X = np.round(X, 1) * [1, 10, 1, 1]
    model = PosteriorMap(k, kernel=kernel, kernel_params=params, n_landmarks=60).fit(make(X), y)
    rows, h = X[:9], 1e-5
    found = model.explain(make(rows))
    scores = model.decision_function(rows)
    order = np.argsort(scores, axis=1, kind="stable")
    first, second = order[:, -1], order[:, -2]
    np.testing.assert_array_equal(found.first, model.classes_[first])
    np.testing.assert_array_equal(found.second, model.classes_[second])
    for j, spread in enumerate(X.std(axis=0)):
        up, down = rows + h * spread * np.eye(4)[j], rows - h * spread * np.eye(4)[j]
        moved = (model.transform(make(up)) - model.transform(make(down))) / (2 * h)
        np.testing.assert_allclose(found.positions[:, :, j], moved, atol=1e-6)
        change = (model.decision_function(make(up)) - model.decision_function(make(down))) / (2 * h)
        at = np.arange(len(rows))
        np.testing.assert_allclose(found.log_odds[:, j], change[at, first] - change[at, second], rtol=1e-5, atol=1e-6)


def test_on_noise_held_out_positions_look_like_noise(rng):
    X, y = rng.standard_normal((400, 10)), np.arange(400) % 4
    model = PosteriorMap(2).fit(X, y)
    neighbours = KNeighborsClassifier(5)
    fitted, held_out = model.transform(X), model.transform_held_out(X)
    assert neighbours.fit(fitted, y).score(fitted, y) > 0.45
    assert cross_val_score(neighbours, held_out, y).mean() < 0.32


def test_a_class_of_one_row_has_a_place_too():
    X, y = curved(60, classes=3)
    y = y.copy()
    y[0] = 3
    model = PosteriorMap(2).fit(X, y)
    assert model.places_.shape == (4, 2)
    assert np.isfinite(model.transform(X)).all()
    assert (model.predict_proba(X)[:, 3] > 0).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_file_restores_it(kernel, make, tmp_path):
    X, y = curved(60)
    X = make(X)
    model = PosteriorMap(2, kernel=kernel).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_scikit_learns_contract():
    """Test given landmarks; the laws of every method include the choice among kernels."""
    rbf = PosteriorMap(None, kernel="rbf", kernel_params={"gamma": 0.1}, n_landmarks=20)
    check_estimator(rbf, on_skip=None)


def test_weights_that_are_no_whole_numbers_where_every_held_out_row_is_right():
    y = np.arange(60) % 3
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weights = rng.standard_normal((60, 3)) + 12 * np.eye(3)[y], rng.uniform(0.1, 3, 60)
        assert PosteriorMap(2, kernel="linear").fit(X, y, weights).held_out_score_ == pytest.approx(1)
        assert RegularizedLDA(2).fit(X, y, weights).score(X, y) == 1


def test_a_tempered_map_on_a_line_is_not_the_sharpest():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 6
    X = rng.standard_normal((300, 4)) + 1.5 * np.eye(6)[y][:, :4]
    assert PosteriorMap(1, kernel="linear", sharpness="tempered").fit(X, y).sharpness_ < 4


def test_a_class_without_a_row_in_the_sample_has_its_share_of_any_class(monkeypatch):
    monkeypatch.setattr("discrim.estimators.map_statistics.SAMPLE_ROWS", 100)
    rng = np.random.default_rng(1)
    y = np.r_[np.arange(600) % 2, 2]
    X = rng.standard_normal((601, 3)) + 3 * np.eye(3)[y]
    for seed in range(3):
        model = PosteriorMap(2, kernel="rbf", random_state=seed)
        with pytest.warns(UserWarning, match="distinct rows"):
            model.fit_statistics(model.statistics(X, y))
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert np.isfinite(model.transform(X)).all()


def test_more_components_than_dimensions_are_all_of_them_with_a_warning():
    X, y = labelled(60, 4)
    with pytest.warns(UserWarning, match="n_components=9"):
        assert PosteriorMap(9, kernel="linear").fit(X, y).n_components_ == 2


@pytest.mark.parametrize("method", [PosteriorMap, SparsePLSDA])
def test_classes_of_at_most_two_rows_warn_that_held_out_rows_say_little(method):
    X, y = load_wine(return_X_y=True)
    few = [0, 1, 60, 61, 140, 141]
    with pytest.warns(UserWarning, match=f"No class has more than two rows, so {method.__name__}"):
        method().fit(scale(X)[few], y[few])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method().fit(scale(X)[[*few, 2]], y[[*few, 2]])
