"""Every container, solver and stream gives the same subspace and the same values."""

import itertools

import literal
import numpy as np
import pytest
import scipy.sparse as sp
from estimators import CASES, KEEPING_COLUMNS, QUIET, STREAMED, WITH_DEFAULTS, over, with_coordinates
from geometry import largest_angle, most_turned, signs_differ
from memory import assert_peak_below
from samples import graded, labelled, note

from discrim import PCA, BayesErrorLDA, BayesErrorPCA, MarginPCA, RegularizedLDA
from discrim.core.coordinates.products import Products
from discrim.core.cross_validation import PATH
from discrim.core.spread import Margins
from discrim.tables.rows import LabelledRows

pytestmark = QUIET

SPREADS = [case for case in CASES if case.name in literal.MARGIN_ROWS]


def assert_agree(one, other, angle=1e-9, rtol=1e-9):
    assert largest_angle(one.components_, other.components_) < angle
    assert most_turned(one.components_, other.components_) < angle
    assert not signs_differ(one.components_, other.components_)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=rtol)
    np.testing.assert_allclose(other.explained_variance_ratio_, one.explained_variance_ratio_, rtol=rtol)
    np.testing.assert_allclose(other.mean_, one.mean_, atol=rtol)


# ---------------------------------------------------------------------- coordinates


@over(KEEPING_COLUMNS)
def test_every_basis_gives_the_same_answer(case, table):
    X, y = table
    wanted = case().fit(X, y)
    bases = ["features", "rows"] + ["products"] * case.laws.by_products
    for basis, kind in itertools.product(bases, (np.asarray, sp.csr_array)):
        with note((basis, kind)):
            found = with_coordinates(basis, case()).fit(kind(X), y)
            assert_agree(wanted, found)
            assert f"{basis}, as the caller wished" in found.solver_


@over([case for case in CASES if case.laws.by_products])
def test_lanczos_is_chosen_for_a_few_directions_of_a_large_sparse_table(case, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 40)
    X = np.where(X > 0.5, X, 0.0)
    found = case(3).fit(sp.csr_array(X), y)
    monkeypatch.undo()
    assert "products only" in found.solver_
    assert_agree(case(3).fit(X, y), found)


@over([case for case in CASES if case.laws.by_products and case()._needs().contrasts])
def test_methods_with_fewer_directions_than_classes_need_no_number_for_it(case, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 40)
    assert "products only" in case(None).fit(sp.csr_array(np.where(X > 0.5, X, 0.0)), y).solver_


# The default ridge is chosen on some rows, and products are used then; ScreenedPCA names the columns that it selected.
# BayesErrorLDA with a ridge also uses products, but estimates the errors of new rows with random vectors there.
ALL_DIRECTIONS = [case for case in WITH_DEFAULTS if not (case.laws.by_products or isinstance(case(), BayesErrorLDA))]


@over([case for case in ALL_DIRECTIONS if case.name not in ("regularized-lda", "screened-pca")])
def test_methods_that_need_all_directions_refuse_a_large_sparse_table(case, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 40)
    with pytest.raises(ValueError, match="80×40"):
        case(3).fit(sp.csr_array(np.where(X > 0.5, X, 0.0)), y)


@pytest.mark.parametrize("make", [BayesErrorLDA, RegularizedLDA])
def test_the_default_ridge_of_a_large_sparse_table_is_chosen_on_some_rows(make, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 100)
    X = np.where(X > 0.5, X, 0.0)
    monkeypatch.setattr("discrim.core.coordinates.products.CHOICE_ROWS", 80)
    with pytest.warns(UserWarning, match="80 of 80"):
        found = make(2).fit(sp.csr_array(X), y)
    monkeypatch.setattr("discrim.core.coordinates.products.CHOICE_ROWS", 40)
    with pytest.warns(UserWarning, match=r"4\d of 80"):
        some = make(2).fit(sp.csr_array(X), y)
    monkeypatch.undo()
    assert found.path_.shrinkages.tolist() == PATH[PATH >= 0.01].tolist()  # conjugate gradients do not solve less
    whole = make(2).fit(X, y).path_  # which the sample is here
    np.testing.assert_allclose(found.path_.losses, whole.losses[whole.shrinkages >= 0.01], rtol=1e-6)
    assert found.shrinkage_ == found.path_.best()[0]
    np.testing.assert_allclose(
        found.transform(X), make(2, shrinkage=found.shrinkage_, cv=None).fit(X, y).transform(X), atol=1e-6
    )
    assert some.shrinkage_ in found.path_.shrinkages


def test_the_rows_a_ridge_is_chosen_on_hold_each_class_in_its_share(monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.products.CHOICE_ROWS", 40)
    X, codes = labelled(160, 50)[0], np.repeat([0, 1, 2], [100, 50, 10])
    for order in (np.arange(160), np.arange(160)[::-1]):
        rows = LabelledRows(sp.csr_array(X[order]), codes[order], np.arange(3))
        with pytest.warns(UserWarning, match="48 of 160"):
            some = Products.of(rows, Margins(), "").sample().points
        assert np.bincount(some.codes).tolist() == [25, 13, 10]  # 100/4, 50/4 and all of the rare class


@pytest.mark.parametrize(
    "given",
    [{"cv": [([0, 1, 2, 3], [4, 5])]}, {"store_covariance": True}, {"shrinkage": "oas"}, {"n_components": "cv"}],
)
def test_what_a_sample_cannot_choose_for_a_large_sparse_table_is_refused(given, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 40)
    with pytest.raises(ValueError, match="sparse"):
        RegularizedLDA(**({"n_components": 2} | given)).fit(sp.csr_array(X), y)


def text(n=250, d=40_000, seed=0):
    """Counts as of words in texts, of two topics, and a table of their labels."""
    X = sp.random(n, d, density=2e-4, random_state=np.random.default_rng(seed), format="lil")
    y = np.arange(n) % 2
    X[y == 1, :3] = 1.0
    return X.tocsr(), y


@over(WITH_DEFAULTS)
def test_a_sparse_table_is_never_made_dense(case):
    X, y = text()
    assert_peak_below(X.shape[0] * X.shape[1] * 8 / 2, lambda: case().fit(X, y).transform(X))


@over(WITH_DEFAULTS)
def test_no_square_array_of_the_columns_where_rows_are_fewer(case):
    X, y = labelled(20, 20_000)
    folds = 0 if case.laws.rotates else 10  # a method that selects columns holds the training rows of all folds
    assert_peak_below((10 + folds) * X.nbytes, lambda: case().fit(X, y).transform(X))  # d×d would be 1,000 times X


# ---------------------------------------------------------------------- small directions


@over(SPREADS)
@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-6])
def test_small_directions_of_wide_rows_by_qr_and_svd(case, smallest):
    X, y, _ = graded(12, 50, smallest)
    _, singular, directions = np.linalg.svd(np.array(literal.MARGIN_ROWS[case.name](X, y)), full_matrices=False)
    rank = (singular > 1e-10 * singular[0]).sum()
    fitted = case(None).fit(X, y)
    assert fitted.rank_ == rank
    assert ("QR and SVD" in fitted.solver_) == (smallest < 1e-3)
    np.testing.assert_allclose(np.sqrt(fitted.eigenvalues_ * 12), singular[:rank], rtol=1e-13 / smallest)
    assert most_turned(fitted.components_, directions[:rank]) < 1e-13 / smallest
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(rank), atol=1e-12)


@over(SPREADS)
def test_directions_down_to_1e_9_of_the_largest_are_found(case):
    X, y, _ = graded(10, 60, 1e-9)
    _, singular, directions = np.linalg.svd(np.array(literal.MARGIN_ROWS[case.name](X, y)), full_matrices=False)
    rank = (singular > 1e-12 * singular[0]).sum()
    fitted = case(None).fit(X, y)
    assert singular[rank - 1] < 1e-7 * singular[0]
    assert fitted.rank_ == rank
    assert largest_angle(fitted.components_, directions[:rank]) < 1e-6


def test_principal_components_themselves_down_to_1e_9():
    X, y, V = graded(10, 60, 1e-9)
    assert most_turned(PCA().fit(X).components_, V.T) < 1e-6
    np.testing.assert_allclose(np.sqrt(PCA().fit(X).eigenvalues_ * 10), np.geomspace(1, 1e-9, 9), rtol=1e-6)
    chosen = BayesErrorPCA().fit(X, y)
    assert most_turned(chosen.components_, V.T[chosen.selected_]) < 1e-6


@over(SPREADS)
@pytest.mark.parametrize("smallest", [1e-5, 1e-8, 1e-12])
def test_large_directions_keep_their_digits_next_to_small_ones(case, smallest):
    X, y, _ = graded(40, 100, smallest)
    directions = np.linalg.svd(np.array(literal.MARGIN_ROWS[case.name](X, y)), full_matrices=False)[2]
    fitted = case(2).fit(X, y)
    assert most_turned(fitted.components_, directions[:2]) < 1e-10


@over(WITH_DEFAULTS)
def test_small_directions_of_a_wide_sparse_table_are_those_of_the_dense_one(case):
    X, y, _ = graded(12, 50, 1e-7)
    dense, sparse = case(None).fit(X, y), case(None).fit(sp.csr_array(X), y)
    assert sparse.rank_ == dense.rank_
    assert most_turned(dense.components_, sparse.components_) < 1e-6


@pytest.mark.parametrize("make", [PCA, MarginPCA], ids=["PCA", "MarginPCA"])
def test_directions_from_a_gram_matrix_are_orthonormal_to_the_last_digits(make):
    X, y, _ = graded(40, 100, 1e-6)
    fitted = make(19).fit(X, y)
    assert "Gram" in fitted.solver_
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(19), atol=1e-13)


def test_the_gram_matrix_serves_where_no_direction_is_small():
    assert "Gram" in PCA(2).fit(labelled(15, 40)[0]).solver_


# ---------------------------------------------------------------------- streams


def chunks_of_one_row(y):
    return [[i] for i in range(len(y))]


def chunks_of_one_class(y):
    return [np.flatnonzero(y == c) for c in np.unique(y)]


def uneven_chunks(y):
    return np.split(np.arange(len(y)), [1, 2, 5, len(y) // 2])


def last_class_late(y):
    return [np.flatnonzero(y < y.max()), np.flatnonzero(y == y.max())]


CHUNKINGS = [chunks_of_one_row, chunks_of_one_class, uneven_chunks, last_class_late]


@over(STREAMED)
def test_a_stream_equals_one_fit(case, table):
    X, y = table
    whole = case().fit(X, y)
    for chunks, kind in itertools.product(CHUNKINGS, (np.asarray, sp.csr_array)):
        given, streamed = kind(X), case()
        for rows in chunks(y):
            streamed.partial_fit(given[rows], y[rows])
        with note((chunks.__name__, kind)):
            assert_agree(whole, streamed, angle=1e-10, rtol=1e-11 if case.laws.orthonormal else 1e-9)
            assert "stream" in streamed.solver_
            if case.laws.supervised:
                assert streamed.classes_.tolist() == [0, 1, 2]


@over(STREAMED)
def test_a_weighted_stream(case, table, rng):
    X, y = table
    weights = rng.uniform(0.5, 2, len(X))
    weights[::7] = 0
    streamed = case()
    for rows in uneven_chunks(y)[2:]:
        streamed.partial_fit(X[rows], y[rows], sample_weight=weights[rows])
    kept = np.concatenate(uneven_chunks(y)[2:])
    whole = case().fit(X[kept], y[kept], sample_weight=weights[kept])
    assert_agree(whole, streamed, angle=1e-10, rtol=1e-11 if case.laws.orthonormal else 1e-9)


@over(STREAMED)
def test_a_stream_can_be_used_before_its_end(case, table):
    X, y = table
    streamed = case()
    half = len(y) // 2
    streamed.partial_fit(X[:half], y[:half])
    early = streamed.components_.copy()
    streamed.partial_fit(X[half:], y[half:])
    assert_agree(case().fit(X, y), streamed, angle=1e-10)
    assert most_turned(early, streamed.components_) > 1e-3


def test_scores_and_errors_of_a_stream():
    X, y = labelled(50, 5)
    for score in ("fisher", "bhattacharyya"):
        streamed, whole = BayesErrorPCA(score=score), BayesErrorPCA(score=score).fit(X, y)
        for rows in chunks_of_one_class(y):
            streamed.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(streamed.scores_, whole.scores_, rtol=1e-10)
        np.testing.assert_array_equal(streamed.selected_, whole.selected_)
        np.testing.assert_allclose(streamed.bayes_error_, whole.bayes_error_, rtol=1e-9)


# ---------------------------------------------------------------------- numbers and memory


@over(WITH_DEFAULTS)
def test_float32_in_float32_out_and_accurate(case, table):
    X, y = table
    single = X.astype(np.float32)
    fitted, wanted = case().fit(single, y), case().fit(single.astype(np.float64), y)
    assert fitted.components_.dtype == np.float32
    assert fitted.transform(single).dtype == np.float32
    assert fitted.inverse_transform(fitted.transform(single)).dtype == np.float32
    assert_agree(wanted, fitted, angle=1e-6, rtol=1e-6)


def as_memmap(X, folder):
    path = folder / "rows.dat"
    X.tofile(path)
    return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)


LAYOUTS = {
    "Fortran": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X, folder: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X, folder: X,  # as the fixture gives it
    "memory-mapped": as_memmap,
    "other byte order": lambda X, folder: X.astype(X.dtype.newbyteorder()),
    "list": lambda X, folder: X.tolist(),
}


@over(WITH_DEFAULTS)
def test_layout_in_memory_does_not_matter(case, table, tmp_path):
    X, y = table
    plain = case().fit(X.copy(), y)
    for name, layout in LAYOUTS.items():
        given = layout(X, tmp_path)
        with note(name):
            fitted = case().fit(given, y)
            assert_agree(plain, fitted, angle=1e-12, rtol=1e-12)
            np.testing.assert_allclose(fitted.transform(given), fitted.transform(X), atol=1e-11)


@over(WITH_DEFAULTS)
@pytest.mark.parametrize("shape", [(60, 6), (15, 40)], ids=["tall", "wide"])
def test_sparse_formats(case, shape):
    X, y = labelled(*shape)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    plain = case().fit(X, y)
    for container in (sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array):
        with note(container):
            fitted = case().fit(container(X), y)
            assert_agree(plain, fitted)
            np.testing.assert_allclose(fitted.transform(container(X)), fitted.transform(X), atol=1e-10)


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_every_sparse_container_of_scipy(name, kind):
    X, y = labelled(30, 5)
    X = np.where(X > 0, X, 0.0)
    found = MarginPCA(2, pairs="mean").fit(getattr(sp, f"{name}_{kind}")(X), y)
    assert_agree(MarginPCA(2, pairs="mean").fit(X, y), found)


@over(WITH_DEFAULTS)
@pytest.mark.parametrize("basis", ["features", "rows", "products"])
def test_repeated_and_unsorted_sparse_entries_add_up_and_the_table_is_unchanged(case, basis):
    X, y = labelled(24, 6)
    halves = sp.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.tile(np.repeat(np.arange(6)[::-1], 2), 24), np.arange(0, 289, 12)),
        shape=X.shape,
    )
    wanted = case().fit(X[:, ::-1], y)
    if basis == "products" and not case.laws.by_products:
        pytest.skip("needs all directions")
    assert_agree(wanted, with_coordinates(basis, case()).fit(halves, y))
    assert halves.nnz == 288
