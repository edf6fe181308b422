"""Kernel coordinates: their products are the kernel, and a reducer after them is its kernel version."""

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from estimators import CASES, QUIET, over
from samples import labelled
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from discrim import PCA, KernelMap, MaxMarginShift, NullSpaceLDA, RegularizedLDA, load, save
from discrim.estimators import kernel_map

pytestmark = QUIET
X, y = labelled(50, 4, seed=5)
NEW = labelled(12, 4, seed=6)[0]


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def assert_same_up_to_signs(one, other, atol):
    assert one.shape == other.shape
    np.testing.assert_allclose(one * np.sign((one * other).sum(axis=0)), other, atol=atol)


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("rbf", {"gamma": 0.1}),
        ("rbf", {"gamma": 0.002}),
        ("linear", {}),
        ("poly", {"degree": 2}),
        ("laplacian", {"gamma": 0.2}),
        ("cosine", {}),
    ],
)
def test_products_of_coordinates_are_the_centred_kernel(kernel, params):
    gamma = params.get("gamma", "median")
    rest = {name: value for name, value in params.items() if name != "gamma"}
    Z = KernelMap(kernel, gamma=gamma, kernel_params=rest or None).fit_transform(X)
    K = centred(pairwise_kernels(X, metric=kernel, **params))
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())
    np.testing.assert_allclose(Z.T @ Z, np.diag(np.diag(Z.T @ Z)), atol=1e-8 * np.abs(K).max() * len(X))


def test_it_is_kernel_pca_with_all_components_for_new_rows_too():
    model = KernelMap(gamma=0.1).fit(X)
    theirs = KernelPCA(None, kernel="rbf", gamma=0.1).fit(X)
    assert_same_up_to_signs(model.transform(NEW)[:, :20], theirs.transform(NEW)[:, :20], 1e-10)
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_[: model.n_components_] / len(X), rtol=1e-6)


def test_new_rows_are_as_training_rows():
    for model in (KernelMap(), KernelMap(n_landmarks=20)):
        Z = model.fit_transform(X)
        np.testing.assert_allclose(np.concatenate([model.transform(row[None]) for row in X]), Z, atol=1e-10)


@over([case for case in CASES if case.laws.rotates])
@pytest.mark.parametrize("k", [1, 2])
def test_with_a_linear_kernel_the_method_behind_is_the_plain_one(case, k):
    plain, kernel = case(k).fit(X, y), make_pipeline(KernelMap("linear"), case(k)).fit(X, y)
    assert_same_up_to_signs(kernel.transform(NEW), plain.transform(NEW), 1e-7)
    if hasattr(plain, "predict"):
        np.testing.assert_array_equal(kernel.predict(NEW), plain.predict(NEW))


def test_behind_it_regularised_lda_is_the_kernel_fisher_discriminant():
    """Mika et al. (1999), Baudat and Anouar (2000): α of largest αᵀMα / αᵀ((1−γ)N/n + γτK)α, all in kernels."""
    gamma, shrinkage, n = 0.1, 0.2, len(X)
    K = rbf_kernel(X, gamma=gamma)
    Kc = centred(K)
    within, between = np.zeros((n, n)), np.zeros((n, n))
    for c in np.unique(y):
        columns = Kc[:, y == c]
        mean = columns.mean(axis=1)
        within += (columns - mean[:, None]) @ (columns - mean[:, None]).T / n
        between += columns.shape[1] * np.outer(mean, mean) / n
    blocks = [K[np.ix_(y == c, y == c)] for c in np.unique(y)]
    scatter = sum(np.trace(block) - block.sum() / len(block) for block in blocks)
    target = scatter / n / np.linalg.matrix_rank(Kc)
    # α matters only in the span of the rows: its principal axes, of length 1 in the kernel's space
    values, vectors = np.linalg.eigh(Kc)
    span = vectors[:, 1:] / np.sqrt(values[1:])
    found, inside = la.eigh(
        span.T @ between @ span, span.T @ ((1 - shrinkage) * within + shrinkage * target * Kc) @ span
    )
    alpha = span @ inside[:, ::-1][:, :2]
    k_new = rbf_kernel(NEW, X, gamma=gamma)
    k_new = k_new - K.mean(axis=0) - (k_new.mean(axis=1, keepdims=True) - K.mean())
    model = make_pipeline(KernelMap(gamma=gamma), RegularizedLDA(2, shrinkage=shrinkage)).fit(X, y)
    assert_same_up_to_signs(model.transform(NEW), k_new @ alpha, 1e-7)
    np.testing.assert_allclose(model[1].eigenvalues_, found[::-1][:2], rtol=1e-7)


def test_behind_it_null_space_lda_lays_each_class_on_one_point():
    Z = make_pipeline(KernelMap(gamma=0.3), NullSpaceLDA(2)).fit(X, y).transform(X)
    means = np.array([Z[y == c].mean(axis=0) for c in range(3)])
    assert np.abs(Z - means[y]).max() < 1e-6 * np.abs(means).max()
    assert np.linalg.matrix_rank(means - means.mean(axis=0)) == 2


def test_shifted_rows_of_kernel_features():
    model = MaxMarginShift(PCA(2), embedding=KernelMap()).fit(X, y)
    by_hand = MaxMarginShift(PCA(2)).fit(KernelMap().fit_transform(X), y)
    assert_same_up_to_signs(model.transform(NEW), by_hand.transform(KernelMap().fit(X).transform(NEW)), 1e-6)


# ---------------------------------------------------------------------- landmarks


def test_exact_and_full_landmark_coordinates_agree(monkeypatch):
    exact = KernelMap(gamma=0.2).fit(X)
    approximate = kernel_map._axes_from_landmarks
    monkeypatch.setattr(kernel_map, "_exact_axes", lambda kernel, rows, priorities: approximate(kernel, rows))
    by_landmarks = KernelMap(gamma=0.2, n_landmarks=50).fit(X)
    assert_same_up_to_signs(by_landmarks.transform(NEW)[:, :25], exact.transform(NEW)[:, :25], 1e-7)
    np.testing.assert_allclose(by_landmarks.eigenvalues_[:25], exact.eigenvalues_[:25], rtol=1e-7)
    Z, W = by_landmarks.transform(NEW), exact.transform(NEW)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-6)


def test_few_landmarks_are_nystroems_approximation():
    model = KernelMap(gamma=0.2, n_landmarks=15).fit(X)
    L = model.landmarks_
    assert L.shape == (15, 4)
    to_landmarks = rbf_kernel(X, L, gamma=0.2)
    approximation = to_landmarks @ np.linalg.pinv(rbf_kernel(L, gamma=0.2)) @ to_landmarks.T
    Z = model.transform(X)
    np.testing.assert_allclose(Z @ Z.T, centred(approximation), atol=1e-7)


def test_many_rows_are_seen_from_landmarks(monkeypatch):
    monkeypatch.setattr(kernel_map, "EXACT_ROWS", 30)
    monkeypatch.setattr(kernel_map, "LANDMARKS", 12)
    assert KernelMap().fit(X).landmarks_.shape == (12, 4)
    assert KernelMap().fit(X[:30]).landmarks_.shape == (30, 4)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_neither_order_nor_listing_of_rows_matters(n_landmarks, rng):
    weights = np.resize([1, 3, 0, 2], len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weights))
    one = KernelMap(n_landmarks=n_landmarks).fit(X, sample_weight=weights)
    other = KernelMap(n_landmarks=n_landmarks).fit(X[repeated])
    np.testing.assert_allclose(one.transform(NEW)[:, :10], other.transform(NEW)[:, :10], atol=1e-8)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-5)
    assert one.gamma_ == pytest.approx(other.gamma_)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_and_single_precision_rows(kernel):
    Z = KernelMap(kernel).fit(X).transform(NEW)
    sparse = KernelMap(kernel).fit(sp.csr_array(X)).transform(sp.csr_array(NEW))
    np.testing.assert_allclose(sparse[:, :4], Z[:, :4], atol=1e-6 * np.abs(Z).max())
    single = KernelMap(kernel).fit(X.astype(np.float32)).transform(NEW.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(np.abs(single[:, :4]), np.abs(Z[:, :4]), atol=1e-3 * np.abs(Z).max())


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_origin_and_unit(kernel):
    Z = KernelMap(kernel).fit(X).transform(NEW)[:, :4]
    np.testing.assert_allclose(KernelMap(kernel).fit(X + 1e6).transform(NEW + 1e6)[:, :4], Z, atol=1e-6)
    scaled = KernelMap(kernel).fit(2.0**300 * X).transform(2.0**300 * NEW)[:, :4]
    np.testing.assert_allclose(scaled if kernel == "rbf" else scaled / 2.0**300, Z, atol=1e-9)


# ---------------------------------------------------------------------- the width


def test_the_median_rule():
    squares = euclidean_distances(X, squared=True)[np.triu_indices(len(X), 1)]
    assert KernelMap().fit(X).gamma_ == pytest.approx(1 / np.median(squares))


def test_the_width_can_be_chosen_by_held_out_rows():
    rows, labels = make_circles(200, noise=0.1, factor=0.6, random_state=0)
    model = KernelMap(gamma="cv").fit(rows, labels)
    assert len(model.tried_) == 4
    squares = euclidean_distances(rows, squared=True)[np.triu_indices(200, 1)]
    factors = model.gamma_ * np.median(squares) / 2
    assert factors == pytest.approx(min((1 / 16, 1 / 4, 1, 4), key=lambda f: abs(f - factors)))
    best = max(model.tried_, key=lambda tried: tried.accuracy)
    assert best.accuracy > 0.95


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_file_brings_it_back_with_what_is_behind_it(make, tmp_path):
    model = make_pipeline(KernelMap(gamma="cv", n_landmarks=20), RegularizedLDA(2)).fit(make(X), y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(make(NEW)), model.transform(make(NEW)))
    assert again[0].tried_ == model[0].tried_


@pytest.mark.parametrize("options", [{"kernel": "linear", "n_landmarks": 10}, {}])
def test_scikit_learns_contract(options):
    check_estimator(KernelMap(**options), on_skip=None)


def test_rows_between_which_every_kernel_value_rounds_to_zero_are_rejected():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((52, 45))
    X = np.where(rng.random(X.shape) < 0.05, -9999, X) * 1e122  # distances of landmarks to themselves are not exactly 0
    with pytest.raises(ValueError, match=r"\bX\b.*kernel"):
        KernelMap(gamma=0.1, n_landmarks=2, random_state=0).fit(X)
