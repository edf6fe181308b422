"""Posterior map of many rows: statistics of any parts equal those of all rows in memory."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from discrim import HashKFold, PosteriorMap, Statistics, fit_parts, load, save
from discrim.core import posterior_rule
from discrim.estimators import map_statistics


@pytest.fixture
def few_rows_are_many(monkeypatch):
    for module in (map_statistics, posterior_rule):
        monkeypatch.setattr(module, "LARGE_ROWS", 300)
    monkeypatch.setattr(map_statistics, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(posterior_rule, "FINAL_LANDMARKS", 50)


def rings(n, seed=0, classes=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + y + 0.2 * rng.standard_normal(n)
    X = np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal(n)]
    return np.where(np.abs(X) < 0.1, 0.0, X), y


def same(one, other, X):
    plain = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(plain), atol=1e-8)
    np.testing.assert_allclose(one.transform(X), other.transform(plain), atol=1e-7)
    np.testing.assert_allclose(one.confusions_, other.confusions_, atol=1e-8)
    np.testing.assert_allclose(one.feature_importances_, other.feature_importances_, rtol=1e-7)
    assert (one.shrinkage_, one.temperature_) == (other.shrinkage_, other.temperature_)
    assert one.kernel_.tried == other.kernel_.tried
    assert one.kernel_.n_landmarks == other.kernel_.n_landmarks
    assert one.solver_ == other.solver_


def parts_of(make, X, y, cuts, weights):
    order = [np.asarray(part) for part in np.split(np.arange(len(y)), cuts)]
    return [(make(X[at]), y[at], weights[at]) for at in order[::-1]]


@pytest.mark.usefixtures("few_rows_are_many")
def test_a_given_classifier_is_fitted_to_all_of_many_rows():
    X, y = rings(500)
    model = PosteriorMap(2, classifier=GaussianNB()).fit(X, y)
    assert model.kernel_.name == "GaussianNB"
    assert "500 rows" in model.solver_


@pytest.mark.usefixtures("few_rows_are_many")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "single"])
@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_statistics_of_any_parts_are_those_of_all_rows_in_memory(make, kernel, rng):
    X, y = rings(500)
    weights = rng.uniform(0.5, 2, 500)
    model = PosteriorMap(2, kernel=kernel, cv=4, random_state=1)
    whole = PosteriorMap(2, kernel=kernel, cv=4, random_state=1).fit(make(X), y, weights)
    assert "50 landmarks" in whole.solver_
    assert "all 500 rows" in whole.solver_
    for cuts in ([10, 30, 400], list(range(50, 500, 50))):
        parts = parts_of(make, X, y, cuts, weights)
        same(fit_parts(PosteriorMap(2, kernel=kernel, cv=4, random_state=1), parts), whole, make(X))
        model.choose_landmarks(sum(model.statistics(*part) for part in parts))
        gathered = [model.statistics(*part).to_bytes() for part in parts]
        model.fit_statistics(sum(Statistics.from_bytes(one) for one in gathered))
        same(model, whole, make(X))


@pytest.mark.usefixtures("few_rows_are_many")
def test_files_and_dask_collections_are_the_table_in_memory(tmp_path):
    X, y = rings(500)
    whole = PosteriorMap(2).fit(X, y)
    for at, part in enumerate(np.array_split(np.arange(500), 3)):
        frame = pd.DataFrame(X[part], columns=["a", "b", "c"]).assign(kind=y[part])
        frame.to_parquet(tmp_path / f"{at}.parquet")
    of_files = PosteriorMap(2).fit(tmp_path, "kind")
    assert of_files.feature_names_in_.tolist() == ["a", "b", "c"]
    same(of_files, whole, pd.DataFrame(X, columns=["a", "b", "c"]))
    dask = pytest.importorskip("dask.array")
    same(PosteriorMap(2).fit(dask.from_array(X, chunks=(120, 3)), dask.from_array(y, chunks=120)), whole, X)


@pytest.mark.usefixtures("few_rows_are_many")
def test_order_of_rows_and_repetition_do_not_matter(rng):
    X, y = rings(500)
    order, counts = rng.permutation(500), rng.integers(1, 3, 500)
    whole = PosteriorMap(2).fit(X, y)
    same(PosteriorMap(2).fit(X[order], y[order]), whole, X)
    weighted = PosteriorMap(2).fit(X, y, counts)
    repeated = PosteriorMap(2, n_landmarks=weighted.kernel_.n_landmarks).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("sharpness", ["auto", "tempered"])
def test_few_distinct_rows_need_no_landmarks_chosen_by_hand(monkeypatch, sharpness):
    rng = np.random.default_rng(0)
    X = np.round(2 * rng.normal(size=(600, 3))) / 2
    y = (1.5 * np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=600)).astype(int).clip(0, 3)
    model = PosteriorMap(2, kernel="rbf", kernel_params={"gamma": 0.5}, sharpness=sharpness, cv=HashKFold(5))
    whole = clone(model).fit(X, y)
    by_hand = model.choose_landmarks(model.statistics(X, y)).fit_statistics(model.statistics(X, y))
    monkeypatch.setattr(map_statistics, "LARGE_ROWS", 500)  # of which fewer are distinct
    repeated = clone(model).fit(X, y)
    for found in (by_hand, repeated):
        np.testing.assert_allclose(found.predict_proba(X), whole.predict_proba(X), atol=1e-9)
        np.testing.assert_allclose(found.places_, whole.places_, atol=1e-8)
        assert found.sharpness_ == pytest.approx(whole.sharpness_, rel=1e-6)


@pytest.mark.usefixtures("few_rows_are_many")
def test_all_rows_are_better_than_the_sample():
    X, y = rings(2_000)
    new, truth = rings(2_000, seed=1)
    sampled = pytest.warns(UserWarning, match="distinct rows")
    with sampled:
        of_sample = fit_parts(PosteriorMap(2, kernel="rbf"), iter([(X, y)]))
    of_all = fit_parts(PosteriorMap(2, kernel="rbf"), [(X, y)])
    assert of_all.score(new, truth) > of_sample.score(new, truth)
    assert "2000 rows" in of_all.solver_
    assert "200 rows" in of_sample.solver_


@pytest.mark.usefixtures("few_rows_are_many")
def test_a_linear_choice_is_that_of_moments_of_the_columns(rng):
    X, y = make_blobs(600, 5, centers=3, cluster_std=4.0, random_state=0)
    whole = PosteriorMap(2).fit(X, y)
    assert whole.kernel_.name == "linear"
    same(fit_parts(PosteriorMap(2), [(X[:50], y[:50]), (X[50:], y[50:])]), whole, X)
    plain = PosteriorMap(2, kernel="linear", cv=HashKFold(5)).fit(X, y)
    np.testing.assert_allclose(whole.predict_proba(X).argmax(axis=1), plain.predict_proba(X).argmax(axis=1))


@pytest.mark.usefixtures("few_rows_are_many")
@pytest.mark.parametrize("centers", ["rings", "blobs"])
@pytest.mark.parametrize(
    "scaler", [StandardScaler(), MinMaxScaler((1, 3)), MaxAbsScaler(), StandardScaler(with_std=False)]
)
def test_a_scaler_in_front_is_folded_in(scaler, centers):
    X, y = rings(500) if centers == "rings" else make_blobs(600, 3, cluster_std=4.0, random_state=0)
    X = X * [1.0, 30.0, 0.2] + 5
    parted = fit_parts(make_pipeline(scaler, PosteriorMap(2)), [(X[:100], y[:100]), (X[100:], y[100:])])
    scaled = scaler.fit_transform(X)
    np.testing.assert_allclose(parted[0].transform(X), scaled, atol=1e-9)
    accuracy = PosteriorMap(2).fit(scaled, y).score(scaled, y)
    assert parted.score(X, y) == pytest.approx(accuracy, abs=0.03)
    assert f"all {len(X)} rows" in parted[-1].solver_


@pytest.mark.usefixtures("few_rows_are_many")
def test_folds_that_name_rows_keep_to_them_in_memory():
    X, y = rings(400)
    splits = list(HashKFold(4).split(X))
    assert "chosen by 4 folds" in PosteriorMap(2, cv=splits).fit(X, y).solver_


@pytest.mark.usefixtures("few_rows_are_many")
def test_held_out_positions_are_of_rules_without_the_row(monkeypatch, rng):
    X, y = rng.standard_normal((600, 4)), np.arange(600) % 3
    model = PosteriorMap(2, kernel="rbf").fit(X, y)
    moved = np.abs(model.transform_held_out(X) - model.transform(X)).max(axis=1) > 1e-6
    assert 150 < moved.sum() <= 200
    monkeypatch.setattr(posterior_rule, "SCORED_ROWS", 60)
    fewer = PosteriorMap(2, kernel="rbf").fit(X, y)
    assert (np.abs(fewer.transform_held_out(X) - fewer.transform(X)).max(axis=1) > 1e-6).sum() < 120


def test_the_number_of_landmarks_grows_with_the_rows():
    count = posterior_rule.landmark_count
    assert [count(n, None, 5, 2**33) for n in (6_000, 20_000, 60_000)] == [1_000, 2_000, 4_000]
    assert count(60_000, 700, 5, 2**33) == 700
    assert count(60_000, None, 5, 8 * 9 * 500**2) == 500


# ---------------------------------------------------------------------- streams


@pytest.mark.usefixtures("few_rows_are_many")
@pytest.mark.parametrize("size", [30, 150, 500])
def test_a_stream_keeps_rows_until_landmarks_are_drawn_and_then_sums_moments(size, tmp_path):
    X, y = rings(500)
    model = PosteriorMap(2, kernel="rbf")
    for start in range(0, 500, size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    assert model.score(X, y) > 0.85
    assert "all 500 rows" in model.solver_
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    more, labels = rings(300, seed=2)
    for one in (model, again):
        one.partial_fit(more, labels)
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-9)
    assert "all 800 rows" in again.solver_


@pytest.mark.usefixtures("few_rows_are_many")
def test_a_short_stream_is_the_fit_of_its_rows():
    X, y = rings(150)
    streamed = PosteriorMap(2).partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:])
    parted = fit_parts(PosteriorMap(2), [(X, y)])
    np.testing.assert_array_equal(streamed.transform(X), parted.transform(X))
    assert streamed.places_.shape == (4, 2)


def test_a_linear_stream_is_the_fit_of_its_moments():
    X, y = make_blobs(300, 4, centers=4, cluster_std=3.0, random_state=0)
    streamed = PosteriorMap(2, kernel="linear")
    for part in np.array_split(np.arange(300), 4):
        streamed.partial_fit(X[part], y[part], classes=[0, 1, 2, 3])
    whole = PosteriorMap(2, kernel="linear", cv=HashKFold(5)).fit(X, y)
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="9"):
        streamed.partial_fit(X[:2], [9, 9], classes=[0, 1, 2, 3])


@pytest.mark.usefixtures("few_rows_are_many")
def test_many_rows_are_fitted_with_a_random_state_too():
    X, y = rings(400)
    found = PosteriorMap(2, kernel="rbf", random_state=np.random.RandomState(0)).fit(X, y)
    assert found.held_out_score_ > 0.8
    assert "400 rows, chosen by 5 folds" in found.solver_


def test_a_stream_after_a_fit_starts_over():
    X, y = rings(80)
    model = PosteriorMap(2).fit(X, y)
    with pytest.warns(UserWarning, match="partial_fit"):
        model.partial_fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.transform(X), PosteriorMap(2).partial_fit(X[:60], y[:60]).transform(X))
    model.fit(X, y)
    np.testing.assert_array_equal(model.transform(X), PosteriorMap(2).fit(X, y).transform(X))
