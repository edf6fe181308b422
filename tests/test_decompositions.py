"""Decompositions if LAPACK fails: the same result, and the same fit of every estimator."""

import types

import numpy as np
import pytest
import scipy.linalg as la
from estimators import LISTED, OPTIONS, QUIET, Case, over
from geometry import most_turned
from scipy.sparse.linalg import ArpackNoConvergence, aslinearoperator
from sklearn.base import clone

from discrim import Autoencoder, CrammerSingerSVC, RefinedHyperplane, decompositions
from discrim.decompositions import cholesky, eigh, largest_eigenpairs, largest_eigenpairs_by_products, pinv, solve, svd

FASTEST = {"eigh": ("evd", "evr"), "svd": ("gesdd",)}


def unwell(monkeypatch, trouble):
    """Let the fastest routines of LAPACK and ARPACK fail, or all of them, or let them return NaN."""

    def failing(name):
        def routine(A, *, driver=None, lapack_driver=None, **options):
            if trouble != "all" and (driver or lapack_driver) not in FASTEST[name]:
                given = {"driver": driver} if driver else {"lapack_driver": lapack_driver}
                return getattr(la, name)(A, **given, **options)
            if trouble == "no numbers":
                return [part * np.nan for part in getattr(la, name)(A)]
            raise la.LinAlgError("the algorithm failed to converge")

        return routine

    def gives_up(*given, **options):
        raise la.LinAlgError("matrix is singular or not positive definite")

    def does_not_converge(*given, **options):
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((0, 0)))

    broken = types.SimpleNamespace(**{**vars(la), "eigh": failing("eigh"), "svd": failing("svd")})
    monkeypatch.setattr(decompositions, "la", broken)
    monkeypatch.setattr(decompositions, "eigsh", does_not_converge)
    if trouble == "all":
        monkeypatch.setattr(np.linalg, "cholesky", gives_up)
        whole = np.linalg.solve  # which does not give up but on a singular matrix, in a stack of them on all at once
        monkeypatch.setattr(np.linalg, "solve", lambda A, B: gives_up() if A.ndim > 2 else whole(A, B))


TROUBLES = pytest.mark.parametrize("trouble", ["fastest", "all", "no numbers"])


def symmetric(values, seed=0):
    Q = la.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    return (A + A.T) / 2, Q


@TROUBLES
@pytest.mark.parametrize(
    "values",
    [
        [3.0],
        [-2.0, 1.0],
        np.geomspace(1e-9, 1.0, 7),
        np.linspace(-1.0, 2.0, 24),
        [0.0, 0.0, 0.0, 1.0, 1.0],
        np.zeros(4),
        np.geomspace(1e200, 1e203, 5),
        np.geomspace(1e-260, 1e-257, 6),
    ],
    ids=["one", "two", "graded", "indefinite", "ties", "zeros", "large", "small"],
)
def test_eigenvalues(values, trouble, monkeypatch):
    A, _ = symmetric(np.asarray(values))
    unwell(monkeypatch, trouble)
    found, vectors = eigh(A)
    size = np.abs(values).max()
    np.testing.assert_allclose(found, np.sort(values), rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(A)), atol=1e-13)
    np.testing.assert_allclose(A @ vectors, vectors * found, rtol=0, atol=2e-14 * size)
    some, of_some = largest_eigenpairs(A, 1)
    np.testing.assert_allclose(some, found[-1:], rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(A @ of_some, of_some * some, rtol=0, atol=2e-14 * size)


@TROUBLES
@pytest.mark.parametrize("shape", [(1, 1), (9, 4), (4, 9), (12, 12), (0, 3)], ids=str)
@pytest.mark.parametrize("kind", ["full", "graded", "rank 2", "zeros", "tiny"])
def test_singular_values(shape, kind, trouble, monkeypatch):
    rng = np.random.default_rng(1)
    A = rng.standard_normal(shape)
    if kind == "graded":
        A *= 10.0 ** -np.arange(0, 30 * shape[1], 30)
    elif kind == "rank 2":
        A = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    elif kind != "full":
        A *= 0.0 if kind == "zeros" else 1e-250
    expected = la.svdvals(A)
    unwell(monkeypatch, trouble)
    left, singular, right = svd(A)
    size, k = expected.max(initial=0.0), min(shape)
    assert left.shape == (shape[0], k)
    assert right.shape == (k, shape[1])
    np.testing.assert_allclose(singular, expected, rtol=0, atol=1e-14 * size)
    assert (np.diff(singular) <= 0).all()
    np.testing.assert_allclose(left.T @ left, np.eye(k), atol=1e-13)
    np.testing.assert_allclose(right @ right.T, np.eye(k), atol=1e-13)
    np.testing.assert_allclose((left * singular) @ right, A, rtol=0, atol=1e-14 * size)


@TROUBLES
def test_the_pseudoinverse(trouble, monkeypatch):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((7, 3)) @ rng.standard_normal((3, 5))
    expected = la.pinv(A)
    unwell(monkeypatch, trouble)
    np.testing.assert_allclose(pinv(A), expected, atol=1e-13)


@TROUBLES
def test_triangles_and_solutions_of_stacks(trouble, monkeypatch):
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((4, 9, 3))
    A, B = Z.mT @ Z, rng.standard_normal((4, 3, 2))
    expected = np.linalg.cholesky(A), np.linalg.solve(A, B)
    unwell(monkeypatch, trouble)
    np.testing.assert_allclose(cholesky(A), expected[0], atol=1e-12)
    np.testing.assert_allclose(cholesky(A[1]), expected[0][1], atol=1e-12)
    np.testing.assert_allclose(solve(A, B), expected[1], atol=1e-12)


def test_cholesky_of_a_matrix_indefinite_by_rounding_is_that_of_the_nearest_definite_one():
    A, _ = symmetric(np.array([1.0, 0.5, -1e-17, -2e-17]))
    L = cholesky(A)
    assert (np.diag(L) > 0).all()
    assert not np.triu(L, 1).any()
    np.testing.assert_allclose(L @ L.T, A, atol=1e-14)
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(solve(singular, np.array([[2.0], [2.0]])), [[1.0], [1.0]], atol=1e-14)


@pytest.mark.parametrize("size", [30, 100])
def test_eigenpairs_from_products_if_lanczos_does_not_converge(size, monkeypatch):
    values = np.concatenate([np.linspace(-1.5, 0.5, size - 3), [1.0, 1.2, 2.0]])  # which are not the largest in size
    A, Q = symmetric(values)
    expected = largest_eigenpairs_by_products(aslinearoperator(A), 3, np.ones(size))
    unwell(monkeypatch, "all")
    found, vectors = largest_eigenpairs_by_products(aslinearoperator(A), 3, np.ones(size))
    np.testing.assert_allclose(found, [1.0, 1.2, 2.0], atol=1e-12)
    np.testing.assert_allclose(expected[0], found, atol=1e-12)
    assert most_turned(vectors.T, Q.T[-3:]) < 1e-9
    assert most_turned(expected[1].T, Q.T[-3:]) < 1e-9


@pytest.mark.parametrize("decomposed", [eigh, svd, pinv])
def test_values_that_are_not_finite_are_named(decomposed):
    with pytest.raises(ValueError, match="overflow"):
        decomposed(np.array([[1.0, np.inf], [np.inf, 1.0]]))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), 20)
    X = rng.standard_normal((60, 6)) @ rng.standard_normal((6, 6)) + 2 * rng.standard_normal((3, 6))[y]
    return X, y


def answers(estimator, X, y):
    fitted = estimator.fit(X, y)
    shown = {
        name: getattr(fitted, name)(X) for name in ("transform", "predict_proba", "predict") if hasattr(fitted, name)
    }
    if hasattr(fitted, "inverse_transform"):
        shown["inverse_transform"] = fitted.inverse_transform(shown["transform"])
    return shown


@QUIET
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@over([*LISTED, *OPTIONS, CrammerSingerSVC(), RefinedHyperplane(), Autoencoder(2, random_state=0)])
def test_every_fit_is_the_same_if_lapack_fails(case, wide, rows, monkeypatch):
    X, y = rows
    if wide:
        X, y = X[::4] @ np.random.default_rng(6).standard_normal((6, 40)), y[::4]
    make = case if isinstance(case, Case) else lambda _: clone(case)
    few = {"max_iter": 3} if isinstance(case, Case) and case.laws.iterated else {}  # more would do the same again
    expected = answers(make(2).set_params(**few), X, y)
    unwell(monkeypatch, "all")
    found = answers(make(2).set_params(**few), X, y)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-6 * np.abs(values).max(), err_msg=name)
