"""Nearly dependent columns: no error of LAPACK; agreement with 60-digit arithmetic, or a warning."""

import warnings

import mpmath
import numpy as np
import pytest
from estimators import CASES, CHOSEN_BY_FOLDS, over
from sklearn.datasets import load_breast_cancer

from discrim import FisherLDA, RegularizedLDA

N, D, C = 45, 4, 3
LOST = ("so nearly combinations of others", "within-class scatter is singular")


def table(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % C
    return rng.normal(size=(N, D)) + 2 * rng.normal(size=(C, D))[y], y, rng


def outlier(X, rng, size):
    X[7] *= size
    return X


def powers(X, rng, size):
    return np.vander(X[:, 0], int(size) + 1, increasing=True)[:, 1:]


def nearly_twice(X, rng, size):
    return np.c_[X, X[:, 0] + size * rng.normal(size=N)]


def sentinels(X, rng, size):
    return np.where(rng.random(X.shape) < 0.1, size, X)


def heavy_tails(X, rng, size):
    return X * rng.pareto(size, X.shape)


def counts(X, rng, size):
    return np.floor(np.exp(size * np.abs(X)))


def far_scales(X, rng, size):
    return X * size ** np.arange(X.shape[1])


FAMILIES = {
    far_scales: (1e-3, 1e-20),
    outlier: (1e3, 1e6, 1e9, 1e12),
    powers: (4, 8, 12, 16),
    nearly_twice: (0.0, 1e-4, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12, 1e-14),
    sentinels: (-9999.0, -1e9, 1e15),
    heavy_tails: (0.3, 1.0),
    counts: (3.0, 8.0),
}
TABLES = [
    pytest.param(family, size, seed, id=f"{family.__name__}-{size:g}-{seed}")
    for family, sizes in FAMILIES.items()
    for size in sizes
    for seed in range(2)
]


def with_warnings(estimator, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator.fit(X, y)
    return fitted, [str(one.message) for one in caught]


@over(CASES + CHOSEN_BY_FOLDS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_fit_is_finite_and_warns_once(case, family):
    for size in FAMILIES[family]:
        X, y, rng = table(0)
        X = family(X, rng, size)
        fitted, messages = with_warnings(case(1), X, y)
        assert np.isfinite(fitted.transform(X)).all()
        assert not hasattr(fitted, "predict_proba") or np.isfinite(fitted.predict_proba(X)).all()
        assert len({message[:40] for message in messages}) == len(messages)


@over([case for case in CASES + CHOSEN_BY_FOLDS if case.laws.supervised])
def test_one_row_in_other_units(case):
    X, y = load_breast_cancer(return_X_y=True)
    X[7] *= 1e6
    assert np.isfinite(with_warnings(case(1), X, y)[0].transform(X)).all()


def exact_separations(X, y):
    """Eigenvalues of S_w⁻¹S_b in 60 digits, and the least eigenvalue of the correlations within classes."""
    with mpmath.workdps(60):
        rows, d = mpmath.matrix(X.tolist()), X.shape[1]
        whole = mean_of(rows, range(len(y)))
        within, H = mpmath.zeros(d), mpmath.zeros(C, d)
        for c, members in enumerate(groups(y)):
            mean = mean_of(rows, members)
            apart = mpmath.matrix([[rows[int(i), j] - mean[j] for j in range(d)] for i in members])
            within += apart.T * apart
            for j in range(d):
                H[c, j] = mpmath.sqrt(len(members)) * (mean[j] - whole[j])
        scale = mpmath.diag([1 / mpmath.sqrt(within[j, j]) for j in range(d)])
        correlations, H = scale * within * scale, H * scale
        least = float(mpmath.eigsy(correlations, eigvals_only=True)[0])
        if abs(least) < 1e-40:  # exactly twice
            return None, 0.0
        separations = mpmath.eigsy(H * correlations**-1 * H.T, eigvals_only=True)
        return np.sort([float(value) for value in separations])[::-1][: C - 1], least


def mean_of(rows, members):
    return [mpmath.fsum(rows[int(i), j] for i in members) / len(members) for j in range(rows.cols)]


def groups(y):
    return [np.flatnonzero(y == c) for c in range(C)]


@pytest.mark.parametrize(("family", "size", "seed"), TABLES)
def test_separations_are_those_of_60_digits_or_the_fit_warns(family, size, seed):
    X, y, rng = table(seed)
    X = family(X, rng, size)
    wanted, least = exact_separations(X, y)
    fitted, messages = with_warnings(FisherLDA(), X, y)
    warned = any(words in message for message in messages for words in LOST)
    if wanted is None:
        np.testing.assert_allclose(fitted.eigenvalues_, FisherLDA().fit(X[:, :-1], y).eigenvalues_, rtol=1e-9)
        assert not warned
    elif not warned:
        np.testing.assert_allclose(fitted.eigenvalues_, wanted, rtol=min(1e-5, 1e-13 / least))
    else:
        assert least < 1e-7  # well-conditioned tables give no warning


def test_a_ridge_separates_small_from_zero_without_a_warning():
    X, y, rng = table(0)
    for size in FAMILIES[nearly_twice]:
        assert with_warnings(RegularizedLDA(shrinkage=0.1), nearly_twice(X, rng, size), y)[1] == []


@over(CASES + CHOSEN_BY_FOLDS)
@pytest.mark.parametrize("size", [1e-60, 1e-90])
def test_columns_with_squares_below_float64_are_left_out_with_a_warning_of_lda(case, size):
    X, y, rng = table(0)
    fitted, messages = with_warnings(case(1), far_scales(X, rng, size), y)
    assert np.isfinite(fitted.transform(X)).all()
    assert case.name != "fisher-lda" or any(LOST[0] in message for message in messages)


@pytest.mark.parametrize("gamma", [1e-8, 1e-5, 0.1])
def test_missed_loadings_warn_also_with_a_ridge(gamma):
    X, y, rng = table(0)
    X = np.c_[X, X[:, 0] + 1e-7 * rng.normal(size=N)]
    X[:, 4] += 1e-7 * y  # the difference of the two columns separates the classes
    fitted, messages = with_warnings(RegularizedLDA(1, shrinkage=gamma), X, y)
    found, wanted = (one / np.linalg.norm(one) for one in (fitted.components_[0], exact_direction(X, y, gamma, 4)))
    missed = np.linalg.norm(found - np.sign(found @ wanted) * wanted)
    assert any(LOST[0] in message for message in messages) == (missed > 1e-6)


def exact_direction(X, y, gamma, rank):
    """The first eigenvector of Σ_γ⁻¹S_b in 60 digits."""
    with mpmath.workdps(60):
        rows, d = mpmath.matrix(X.tolist()), X.shape[1]
        whole, within, between = mean_of(rows, range(len(y))), mpmath.zeros(d), mpmath.zeros(d)
        for members in groups(y):
            mean = mean_of(rows, members)
            apart = mpmath.matrix([[rows[int(i), j] - mean[j] for j in range(d)] for i in members])
            gap = mpmath.matrix([mean[j] - whole[j] for j in range(d)])
            within, between = within + apart.T * apart / len(y), between + gap * gap.T * len(members) / len(y)
        sigma = within * (1 - mpmath.mpf(gamma))
        for j in range(d):
            sigma[j, j] += mpmath.mpf(gamma) * sum(within[i, i] for i in range(d)) / rank
        L = mpmath.cholesky(sigma)
        inverse = L**-1
        vectors = mpmath.eigsy(inverse * between * inverse.T)[1]
        return np.array([float(value) for value in inverse.T * vectors[:, d - 1]])
