"""Numerical accuracy: offsets, gaps, scales and tiny tables, compared with exact arithmetic."""

import itertools
import math
import warnings

import exact
import numpy as np
import pytest
import scipy.sparse as sp
from estimators import (
    CASES,
    CHOSEN_BY_FOLDS,
    KEEPING_COLUMNS,
    QUIET,
    STREAMED,
    SUPERVISED,
    WITH_DEFAULTS,
    over,
    with_coordinates,
)
from geometry import largest_angle, most_turned, signs_differ
from samples import labelled, note

from discrim import (
    PCA,
    ClassMoments,
    FisherLDA,
    LocalFisherDiscriminant,
    MarginPCA,
    MaximumMarginCriterion,
    OrthogonalLDA,
    PairwiseEigenvectors,
    RegularizedLDA,
)
from discrim.estimators.discriminant import DiscriminantReducer

pytestmark = QUIET

OFFSETS = [0.0, 1.0, 1e2, 1e4, 1e6, 1e8]


def in_chunks(X, y, size, weights=None, **keep):
    """Moments of consecutive chunks, added up."""
    parts = [slice(start, start + size) for start in range(0, len(X), size)]
    moments = [ClassMoments.of(X[p], y[p], None if weights is None else weights[p], **keep) for p in parts]
    return sum(moments[1:], start=moments[0])


def ways(case):
    """Return the ways to fit rows; a stream has other folds, if any."""
    streams = case.laws.streams and not case.laws.chosen_by_folds
    return ["dense", "sparse"] + ["stream"] * streams + ["products"] * case.laws.by_products


def fitted_by(way, case, X, y):
    """The rows fitted in one of these ways."""
    if way != "stream":
        return with_coordinates("products" if way == "products" else None, case()).fit(
            sp.csr_array(X) if way == "sparse" else X, y
        )
    streamed = case()
    for rows in np.array_split(np.arange(len(y)), 4):
        streamed.partial_fit(X[rows], y[rows])
    return streamed


# ---------------------------------------------------------------------- offsets and gaps


@over(WITH_DEFAULTS)
@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_directions_at_an_offset(case, table, offset):
    X, y = table
    moved = X + offset
    plain = case().fit(moved - offset, y)  # this subtraction is exact: the same rows, near the origin
    for way in ways(case):
        with note(way):
            fitted = fitted_by(way, case, moved, y)
            assert most_turned(plain.components_, fitted.components_) < 1e-8
            np.testing.assert_allclose(fitted.eigenvalues_, plain.eigenvalues_, atol=1e-8 * plain.eigenvalues_[0])
            np.testing.assert_allclose(fitted.explained_variance_ratio_, plain.explained_variance_ratio_, atol=1e-8)
            np.testing.assert_allclose(fitted.mean_, plain.mean_ + offset, rtol=1e-12)
            assert way == "products" or fitted.rank_ == plain.rank_
            if way != "sparse":
                np.testing.assert_allclose(fitted.transform(moved), plain.transform(moved - offset), atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_float32_scatter_at_an_offset(offset):
    X, y = labelled(300, 3)
    X = (X + offset).astype(np.float32)
    assert exact.error(ClassMoments.of(X, y).within, exact.within(X, y)) < 1e-6
    assert exact.error(in_chunks(X, y, 7).within, exact.within(X, y)) < 1e-6


@over(WITH_DEFAULTS)
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_float32_directions_at_an_offset(case, table, offset):
    X, y = table
    single = (X + offset).astype(np.float32)
    plain = case().fit(single.astype(np.float64) - offset, y)
    assert largest_angle(plain.components_, case().fit(single, y).components_) < 1e-6


@pytest.mark.parametrize("gap", [1e4, 1e8])
def test_scatter_within_classes_that_lie_far_apart(gap):
    X, y = labelled(150, 3)
    X = X + gap * y[:, None]
    within = exact.within(X, y)
    for moments in (ClassMoments.of(X, y), in_chunks(X, y, 1), in_chunks(X, y, 13)):
        assert exact.error(moments.within, within) < 1e-12
        assert exact.error(moments.total, exact.total(X)) < 1e-13


def numacc(number):
    """The univariate tables NumAcc1–4 of NIST's Statistical Reference Datasets, and their certified deviations."""
    if number == 1:
        return np.array([10000001.0, 10000003.0, 10000002.0]), 1.0
    # a first value, then a smaller and a larger one alternately, each the double nearest to its decimal
    first, low, high = {
        2: (1.2, 1.1, 1.3),
        3: (1000000.2, 1000000.1, 1000000.3),
        4: (10000000.2, 10000000.1, 10000000.3),
    }[number]
    return np.array([first] + [low, high] * 500), 0.1


@pytest.mark.parametrize(("number", "digits"), [(1, 15), (2, 15), (3, 9.4), (4, 8.2)])
def test_nist_standard_deviations(number, digits):
    values, certified = numacc(number)
    rows, labels, freedom = values[:, None], np.zeros(len(values), int), len(values) - 1
    best = math.sqrt(exact.scatter(rows)[0, 0] / freedom)  # of the stored doubles, which are not quite the decimals
    by_moments = math.sqrt(ClassMoments.of(rows, labels).within[0, 0] / freedom)
    by_pca = math.sqrt(PCA().fit(rows).eigenvalues_[0] * len(values) / freedom)
    for found in (by_moments, by_pca):
        assert found == pytest.approx(best, rel=1e-15)
        assert -math.log10(max(abs(found / certified - 1), 1e-15)) >= digits
    in_many_parts = math.sqrt(in_chunks(rows, labels, 10).within[0, 0] / freedom)
    assert in_many_parts == pytest.approx(best, rel=1e-14)


def test_pca_at_an_offset_of_1e8_is_accurate_to_the_last_digits():
    X, _ = labelled(150, 3)
    X = X + 1e8
    fitted = PCA().fit(X)
    S = exact.total(X) / len(X)
    values, vectors = np.linalg.eigh(S)
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1], rtol=1e-12)
    assert most_turned(fitted.components_, vectors.T[::-1]) < 1e-11


# ---------------------------------------------------------------------- constant and dependent columns


def columns_that_add_nothing(X):
    rng = np.random.default_rng(0)
    return {
        "constant": np.full(len(X), 1e9 / 3),
        "zero": np.zeros(len(X)),
        "twin": X[:, 0],
        "sum": X @ rng.integers(1, 4, X.shape[1]),
    }


@over(KEEPING_COLUMNS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_constant_and_dependent_columns_add_no_rank(case, table, kind):
    X, y = table
    rank = case(None).fit(X, y).rank_
    for name, column in columns_that_add_nothing(X).items():
        given = kind(np.c_[X, column])
        with note(name), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = case(None).fit(given, y)
            assert len(caught) <= 1
            assert all(np.isfinite(a).all() for a in (fitted.transform(given), fitted.components_, fitted.eigenvalues_))
            # the median of a sum is not the sum of medians: the column does add a direction
            assert fitted.rank_ == rank or (name == "sum" and case.name == "margin-pca-median")


@pytest.mark.parametrize("rank", [1, 7, 40])
def test_the_rank_of_many_columns_is_counted_though_few_components_are_wanted(rank):
    rng = np.random.default_rng(rank)
    assert PCA(1).fit(rng.standard_normal((200, rank)) @ rng.standard_normal((rank, 100))).rank_ == rank


# ---------------------------------------------------------------------- scales


@over(WITH_DEFAULTS)
def test_the_whole_table_times_one_factor(case, table):
    X, y = table
    plain = case().fit(X, y)
    for way, exponent in itertools.product(ways(case), (-300, -70, 80, 300)):
        scaled = X * 10.0**exponent
        with note((way, exponent)):
            fitted = fitted_by(way, case, scaled, y)
            assert most_turned(plain.components_, fitted.components_) < 1e-9
            assert not signs_differ(plain.components_, fitted.components_)
            np.testing.assert_allclose(fitted.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-8)
            assert way == "products" or fitted.rank_ == plain.rank_
            assert np.isfinite(fitted.transform(sp.csr_array(scaled) if way == "sparse" else scaled)).all()


@over(STREAMED)
@pytest.mark.parametrize("order", [1, -1], ids=["small first", "large first"])
def test_a_stream_of_chunks_of_very_different_size(case, order):
    X, y = labelled(60, 4)
    parts = [(X[:30] * 1e-200, y[:30]), (X[30:], y[30:])][::order]
    streamed = case()
    for rows, labels in parts:
        streamed.partial_fit(rows, labels)
    whole = case().fit(*(np.concatenate(side) for side in zip(*parts, strict=True)))
    assert most_turned(whole.components_, streamed.components_) < 1e-9


@over(WITH_DEFAULTS)
def test_float32_times_one_factor(case, table):
    X, y = table
    for exponent in (-30, -18, 18, 34):
        scaled = (X * 10.0**exponent).astype(np.float32)
        with note(exponent):
            plain = case().fit(scaled.astype(np.float64), y)
            fitted = case().fit(scaled, y)
            assert largest_angle(plain.components_, fitted.components_) < 1e-6
            assert fitted.components_.dtype == np.float32


# ---------------------------------------------------------------------- tiny tables


@over(WITH_DEFAULTS)
@pytest.mark.parametrize("shape", [(12, 3), (4, 9)], ids=["tall", "wide"])
def test_equal_rows(case, shape):
    message = "rows.*equal"
    for value, kind in itertools.product((0.0, 0.1, 1e200), (np.asarray, sp.csr_array)):
        X, y = np.full(shape, value), np.arange(shape[0]) % 2
        with note((value, kind)), pytest.raises(ValueError, match=message):
            case(None).fit(kind(X), y)


@over([case for case in CASES if case.laws.by_products])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("fault", ["equal rows", "equal class means", "points"])
def test_an_equal_table_is_rejected_by_products_too(case, fault, kind):
    y, rng = np.arange(40) % 2, np.random.default_rng(0)
    half = rng.standard_normal((20, 30))
    X = {
        "equal rows": np.full((40, 30), 0.1),
        "equal class means": np.repeat(half, 2, axis=0),
        "points": rng.standard_normal((2, 30))[y],
    }[fault]
    if fault != "equal rows" and case.laws.orthonormal:
        pytest.skip("looks at more than the means within and between classes")
    if fault == "points" and not case.laws.inverts:
        assert with_coordinates("products", case(1)).fit(kind(X), y).score(X, y) == 1
        return
    words = {"equal rows": "equal", "equal class means": "means", "points": "class"}[fault]
    with pytest.raises(ValueError, match=words):
        with_coordinates("products", case(1)).fit(kind(X), y)


GAINS = [
    case for case in SUPERVISED + CHOSEN_BY_FOLDS if case.laws.sees_shapes or isinstance(case(), DiscriminantReducer)
]


# (the cost of pairwise eigenvectors is a class's moments around the mean of all rows, which grow with the gap)
@over([case for case in GAINS if case.name != "pairwise-eigenvectors"])
@pytest.mark.parametrize("shape", [(60, 4), (24, 40)], ids=["tall", "wide"])
def test_classes_1e8_apart_are_separated(case, shape):
    X, y = labelled(*shape)
    towards = np.linspace(1.0, 2.0, shape[1])
    first = [case(1).fit(X + gap * np.outer(y, towards), y) for gap in (1e6, 1e8)]
    assert np.isfinite(first[1].components_).all()
    if not case.laws.chosen_by_folds:  # folds may choose another ridge if every ridge predicts all rows
        assert largest_angle(first[0].components_, first[1].components_) < 1e-5
    features = first[1].transform(X + 1e8 * np.outer(y, towards))[:, 0]
    means = np.array([features[y == c].mean() for c in range(3)])
    assert (np.abs(features - means[y]) < np.abs(np.diff(means)).min() / 2).all()


@over(GAINS)
@pytest.mark.parametrize("streamed", [False, True], ids=["rows", "statistics"])
def test_equal_class_means_are_rejected_unless_the_method_uses_covariances(case, streamed):
    half = np.random.default_rng(3).standard_normal((30, 4))
    X = np.concatenate([half, -half, half * [1, 5, 1, 1], -half * [1, 5, 1, 1]])
    y = np.repeat([0, 1], 60)
    if streamed and not case.laws.streams:
        pytest.skip("needs all rows at once")
    fit = (lambda: case(1).fit_statistics(case(1).statistics(X, y))) if streamed else (lambda: case(1).fit(X, y))
    if not case.laws.sees_shapes:
        with pytest.raises(ValueError, match="means"):
            fit()
        return
    direction = fit().components_[0] * [1, 5, 1, 1]  # per deviation
    assert abs(direction).argmax() == 1


@over(KEEPING_COLUMNS)
@pytest.mark.parametrize("shape", [(12, 4), (12, 40)], ids=["tall", "wide"])
def test_equal_rows_within_each_class(case, shape):
    y = np.arange(12) % 3
    means = np.random.default_rng(1).standard_normal((3, shape[1]))
    fitted = case(None).fit(means[y], y)
    kept = 1 if case.name == "pca-lda" else 2  # as many principal components as S_w has directions, but at least one
    assert fitted.rank_ == 2
    assert len(fitted.components_) == kept
    assert largest_angle(fitted.components_, means[1:] - means[0]) < 1e-7
    scores = fitted.transform(means[y])
    np.testing.assert_allclose(scores, scores[:3][y], atol=1e-9 * np.abs(scores).max())


@over(CASES)
@pytest.mark.parametrize("shape", [(8, 4), (4, 9)], ids=["tall", "wide"])
def test_classes_of_one_row_each(case, shape):
    X = np.random.default_rng(2).standard_normal(shape)
    fitted = case(None).fit(X, [f"only {i}" for i in range(len(X))])
    rank = min(shape[0] - 1, shape[1])
    assert fitted.rank_ == rank
    assert largest_angle(fitted.components_, PCA(len(fitted.components_)).fit(X).components_) < 1e-7
    assert np.isfinite(fitted.transform(X)).all()


@over(CASES)
def test_two_rows(case):
    X = np.array([[1.0, 2.0, 3.0], [2.0, 0.0, 3.0]])
    fitted = case(None).fit(X, ["a", "b"])
    assert fitted.rank_ == 1
    assert most_turned(fitted.components_, [[-1.0, 2.0, 0.0]]) < 1e-12


@over(WITH_DEFAULTS)
def test_one_column(case):
    X, y = labelled(20, 1, 2)
    fitted = case(None).fit(X, y)
    assert fitted.rank_ == 1
    assert fitted.components_.shape == (1, 1)
    assert fitted.components_[0, 0] > 0
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(X)), X, atol=1e-12)


@over(SUPERVISED + CHOSEN_BY_FOLDS)
def test_one_class(case):
    X, _ = labelled(20, 3)
    with pytest.raises(ValueError, match=r"class.*'same'"):
        case().fit(X, ["same"] * 20)
    with pytest.raises(ValueError, match="class"):
        case().fit(X, ["same"] * 19 + ["other"], sample_weight=[1] * 19 + [0])


@over(WITH_DEFAULTS)
def test_one_row(case):
    wanted = "class" if case.laws.supervised else "rows"
    with pytest.raises(ValueError, match=wanted):
        case(None).fit([[1.0, 2.0]], [0])


# ---------------------------------------------------------------------- signs and ties


@over(WITH_DEFAULTS)
def test_the_first_loading_near_the_largest_is_positive(case, table):
    X, y = table
    for direction in case().fit(X, y).components_:
        near = np.abs(direction) >= (1 - 1e-6) * np.abs(direction).max()
        assert direction[np.argmax(near)] > 0


@pytest.mark.parametrize("seed", range(8))
def test_signs_are_stable_if_two_loadings_differ_by_rounding(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # of two standardised columns the loadings are ±√½, both
    wanted = np.sqrt(0.5) * np.array([[1.0, 1.0], [1.0, -1.0]])
    for _ in range(4):
        rows = rng.permutation(40)
        found = PCA().fit(X[rows]).components_
        np.testing.assert_allclose(found[np.argsort(found[:, 1])[::-1]], wanted, atol=1e-9)
        streamed = PCA().partial_fit(X[rows[:9]]).partial_fit(X[rows[9:]])
        np.testing.assert_allclose(streamed.components_, found, atol=1e-9)


SQUARE = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


@pytest.mark.parametrize("make", [PCA, MarginPCA], ids=str)
def test_a_tie_at_the_cut_warns(make):
    X, y = np.tile(SQUARE, (2, 1)), np.repeat([0, 1], 4)
    with pytest.warns(UserWarning, match="tie"):
        make(1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(2).fit(X, y)
        make(1).fit(X * [1.0, 1.01], y)


# ---------------------------------------------------------------------- inputs are not modified


def everything(case, X, y, weights):
    """Call every public method."""
    fitted = case().fit(X, y, sample_weight=weights)
    fitted.inverse_transform(fitted.transform(X))
    if case.laws.streams:
        case().partial_fit(X, y, sample_weight=weights).transform(X)
    if hasattr(fitted, "predict"):
        fitted.predict(X)


@over(WITH_DEFAULTS)
def test_the_input_is_never_modified(case, table):
    for kind in (np.array, np.float32, np.asfortranarray, sp.csr_array, sp.csc_array):
        X, y = (part.copy() for part in table)
        given = kind(X)
        weights = 1.0 + np.arange(len(y)) % 3
        parts = [given.data, given.indices, given.indptr] if sp.issparse(given) else [given]
        before = [part.copy() for part in (*parts, y, weights)]
        everything(case, given, y, weights)
        for was, now in zip(before, (*parts, y, weights), strict=True):
            with note(kind):
                np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("power", [-600, 600])
@pytest.mark.parametrize(
    ("model", "degree"),
    [
        (FisherLDA(2), -1),
        (RegularizedLDA(2, shrinkage=0.1), -1),
        (LocalFisherDiscriminant(2), -1),
        (LocalFisherDiscriminant(2, metric="weighted"), -1),
        (PairwiseEigenvectors(2), -1),
        (LocalFisherDiscriminant(2, metric="orthonormalized"), 0),
        (OrthogonalLDA(2), 0),
        (MaximumMarginCriterion(2), 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_unit_of_the_components_is_that_of_one_over_the_rows_or_none(model, degree, power, streamed):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + rng.normal(size=(3, 4))[y]
    if streamed and model._needs().rows is not None:
        pytest.skip("needs rows")
    plain, scaled = (
        model.__class__(**model.get_params()).fit_statistics(model.statistics(rows, y))
        if streamed
        else model.__class__(**model.get_params()).fit(rows, y)
        for rows in (X, np.ldexp(X, power))
    )
    np.testing.assert_allclose(np.ldexp(scaled.components_, -degree * power), plain.components_, rtol=1e-9, atol=1e-12)
