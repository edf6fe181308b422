"""Linear discriminant analysis of unusual tables."""

import warnings

import literal
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from discrim import (
    PCA,
    PCALDA,
    BayesErrorLDA,
    BayesErrorPCA,
    ClassMoments,
    FisherLDA,
    MarginPCA,
    NullSpaceLDA,
    OrthogonalLDA,
    RegularizedLDA,
    UncorrelatedLDA,
)
from discrim.core.ratio import Covariance

y = np.repeat([0, 1, 2], 20)


def sample(seed=0, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, d)) + 2 * rng.normal(size=(3, d))[y]


@pytest.mark.parametrize("model", [FisherLDA(), UncorrelatedLDA()], ids=str)
@pytest.mark.parametrize(("unit", "dtype"), [(1e-9, np.float64), (1e-4, np.float32)])
def test_a_doubled_column_does_not_hide_a_feature_in_small_units(model, unit, dtype):
    rng = np.random.default_rng(0)
    large, telling = rng.normal(size=60), (3 * y + 0.3 * rng.normal(size=60)) * unit
    assert model.fit(np.c_[large, telling].astype(dtype), y).score(np.c_[large, telling].astype(dtype), y) == 1.0
    doubled = np.c_[large, telling, large].astype(dtype)
    assert model.fit(doubled, y).score(doubled, y) == 1.0
    assert model.rank_ == 2


@pytest.mark.parametrize("factor", [1.0, 1e200, 1e-200])
def test_inverse_transform_with_features_in_very_different_units(factor):
    X = sample(d=3) * [1e5, 1, 1e-5] * factor
    model = FisherLDA(3).fit(X, y)
    features = model.transform(X)
    np.testing.assert_allclose(model.transform(model.inverse_transform(features)), features, atol=1e-4)


def test_null_space_in_single_precision():
    W = np.random.default_rng(5).normal(size=(9, 9))
    labels = np.arange(9) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double, single = (NullSpaceLDA().fit(W.astype(t), labels).eigenvalues_ for t in (np.float64, np.float32))
    np.testing.assert_allclose(single, double, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:The null space")
@pytest.mark.parametrize("model", [OrthogonalLDA(), NullSpaceLDA()], ids=str)
def test_eigenvalues_with_a_unit_are_in_the_rows_units(model):
    X = sample()
    plain = model.fit(X, y).eigenvalues_.copy()
    np.testing.assert_allclose(model.fit(X * 2.0**-270, y).eigenvalues_, plain * 2.0**-540, rtol=1e-9)


@pytest.mark.parametrize("weight", [1e50, 1e-60])
def test_extreme_weights_in_single_precision(weight):
    X = sample().astype(np.float32)
    weights = np.full(60, weight)
    for model in (PCA(2), FisherLDA(), MarginPCA(2), MarginPCA(2, pairs="mean")):
        plain = model.fit(X, y).eigenvalues_.copy()
        values = model.fit(X, y, sample_weight=weights).eigenvalues_
        np.testing.assert_allclose(values / values[0], plain / plain[0], rtol=1e-5)


def test_balanced_classes_count_the_weights():
    X, weights = sample(), np.where(y == 0, 3.0, 1.0)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    weighted = FisherLDA(class_weight="balanced").fit(X, y, sample_weight=weights)
    twice = FisherLDA(class_weight="balanced").fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.eigenvalues_, twice.eigenvalues_, rtol=1e-9)
    FisherLDA(class_weight={0: 2.0}).partial_fit(X[20:], y[20:])  # the class may occur later


X = sample()
BY_CLASS = list(StratifiedKFold(4).split(X, y))
HALVES = ShuffleSplit(3, random_state=0)
LAST = np.arange(60) >= 50
SPLITS = {  # as given, as row numbers
    "an int": (4, BY_CLASS),
    "a splitter": (StratifiedKFold(4), BY_CLASS),
    "halves": (HALVES, list(HALVES.split(X))),
    "masks": ([(~LAST, LAST)], [(np.arange(50), np.arange(50, 60))]),
    "numbers from the end": ([(~LAST, np.arange(-10, 0))], [(np.arange(50), np.arange(50, 60))]),
}


@pytest.mark.parametrize(("given", "numbers"), SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("dropped", [False, True], ids=["all rows", "rows of no weight"])
def test_splits_of_every_kind_are_row_numbers_of_the_given_table(given, numbers, dropped):
    weights = (np.arange(60) % 7 > 0).astype(float) if dropped and isinstance(given, list) else np.ones(60)
    kept = np.flatnonzero(weights)
    renumbered = [[np.flatnonzero(np.isin(kept, part)) for part in split] for split in numbers]
    found = RegularizedLDA(cv=given).fit(X, y, sample_weight=weights).path_
    wanted = RegularizedLDA(cv=renumbered).fit(X[kept], y[kept]).path_
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-12)
    np.testing.assert_array_equal(found.accuracies, wanted.accuracies)


def test_a_seed_shuffles_the_folds():
    paths = [RegularizedLDA(cv=4, random_state=seed).fit(X, y).path_.losses for seed in (None, 7, 7)]
    np.testing.assert_array_equal(paths[1], paths[2])
    assert not np.allclose(paths[0], paths[1])


def test_the_number_of_discriminants_may_differ_along_the_path():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 6)
    X = np.c_[rng.normal(size=24), rng.normal(size=(4, 4))[labels]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 1 <= RegularizedLDA("cv").fit(X, labels).n_components_ <= 3


def test_moments_take_what_fits_take():
    X = sample()
    expected = ClassMoments.of(X, y).within
    np.testing.assert_allclose(ClassMoments.of(pd.DataFrame(X), y).within, expected)
    np.testing.assert_allclose(ClassMoments.of(sp.coo_array(X), y).within, expected, rtol=1e-12)
    weights = np.where(y == 2, 0.0, 1.0)
    assert ClassMoments.of(X, y, weights).classes.tolist() == [0, 1]


def test_pca_lda_reports_its_number_of_components():
    X = sample(d=6)
    assert PCALDA().fit(X, y).pca_components_ == 6
    assert PCALDA(pca_components=3).fit(X, y).pca_components_ == 3


# ---------------------------------------------------------------------- classes far apart, and few rows


@pytest.mark.parametrize("gap", [1e4, 1e6, 1e8, 1e10])
@pytest.mark.parametrize(
    "model",
    [
        FisherLDA(),
        RegularizedLDA(shrinkage=0.1),
        UncorrelatedLDA(),
        OrthogonalLDA(),
        NullSpaceLDA(),
        PCALDA(),
        BayesErrorLDA(2, shrinkage=0.1),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:The null space of the within-class scatter")
def test_a_class_far_off_leaves_the_others_apart(model, gap):
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    X = rng.normal(size=(300, 4))
    X[:, 1] += 8 * (labels == 1)
    for where in (np.ones(4), np.eye(4)[0]):
        moved = X + gap * np.outer(labels == 2, where)
        fitted = model.fit(moved, labels)
        assert fitted.rank_ == 4
        assert fitted.n_discriminants_ == 2
        assert (fitted.predict(moved) == labels).mean() > 0.99


def test_two_rows_of_each_class_still_choose_a_shrinkage():
    right = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        means, labels = rng.normal(size=(15, 20)), np.repeat(np.arange(15), 2)
        X, test = (means[labels] + rng.normal(size=(30, 20)) for _ in range(2))
        fitted = RegularizedLDA().fit(X, labels)
        assert np.isfinite(fitted.path_.accuracies).any()
        fixed = [RegularizedLDA(shrinkage=gamma).fit(X, labels).score(test, labels) for gamma in (0.01, 0.1, 0.5)]
        right.append((fitted.score(test, labels), max(fixed)))
        RegularizedLDA("cv").fit(X, labels)
    chosen, best = np.mean(right, axis=0)
    assert chosen > best - 0.05


@pytest.mark.filterwarnings("ignore:The within-class scatter is singular")
def test_where_no_class_varies_there_is_no_shrinkage_to_choose():
    labels = np.repeat(np.arange(4), 5)
    X = np.random.default_rng(0).normal(size=(4, 6))[labels]
    for model in (RegularizedLDA(), RegularizedLDA("cv"), BayesErrorLDA()):
        assert model.fit(X, labels).score(X, labels) == 1


# ---------------------------------------------------------------------- single precision


def test_single_precision_keeps_small_directions():
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    X = rng.normal(size=(400, 5))
    X[:, 4] += 4 * labels
    X = (X * [1000, 100, 10, 1, 0.1]).astype(np.float32)
    assert PCA(5).fit(X).rank_ == 5
    np.testing.assert_allclose(PCA(5).fit(X).eigenvalues_, PCA(5).fit(X.astype(float)).eigenvalues_, rtol=1e-5)
    single, double = BayesErrorPCA(1).fit(X, labels), BayesErrorPCA(1).fit(X.astype(float), labels)
    np.testing.assert_allclose(single.bayes_error_, double.bayes_error_, rtol=1e-4)
    streamed = PCA(5).partial_fit(X[:150]).partial_fit(X[150:])
    np.testing.assert_allclose(streamed.eigenvalues_, PCA(5).fit(X.astype(float)).eigenvalues_, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_single_precision_counts_the_directions_of_few_rows():
    X, labels = np.random.default_rng(4).normal(size=(40, 40)).astype(np.float32), np.arange(40) % 4
    for model in (RegularizedLDA(shrinkage=1.0), FisherLDA(), NullSpaceLDA(), UncorrelatedLDA(), OrthogonalLDA()):
        single = model.fit(X, labels)
        values = single.eigenvalues_.copy()
        assert single.rank_ == 39
        np.testing.assert_allclose(values, model.fit(X.astype(float), labels).eigenvalues_, rtol=1e-4)


# ---------------------------------------------------------------------- tables and labels of other kinds, many classes


def test_whole_numbers_and_bools_of_pandas_keep_their_digits():
    long = pd.Series([2**53 + int(v) for v in y], dtype="Int64")
    np.testing.assert_array_equal(FisherLDA().fit(sample(), long).classes_, [2**53, 2**53 + 1, 2**53 + 2])
    assert FisherLDA().fit(sample(), pd.Series(y > 0, dtype="boolean")).classes_.dtype == bool


def test_text_of_any_length_is_text():
    labels = np.array(["red", "green", "a very long name"], dtype=np.dtypes.StringDType())[y]
    np.testing.assert_array_equal(FisherLDA().fit(sample(), labels).classes_, ["a very long name", "green", "red"])


def test_a_table_with_names_of_two_levels():
    table = pd.DataFrame(sample(), columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    np.testing.assert_allclose(FisherLDA().fit(table, y).components_, FisherLDA().fit(sample(), y).components_)


def test_many_classes_fit_or_are_refused_by_name():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40_000, 3)), np.arange(40_000) % 20_000
    assert MarginPCA(1, pairs="median").fit(X, labels).n_components_ == 1
    many = np.arange(40_000)
    with pytest.raises(ValueError, match="enemies"):
        MarginPCA(1, pairs="nearest").fit(X, many)
    with pytest.raises(AttributeError, match="classes"):
        _ = BayesErrorPCA(1).fit(X, labels).bayes_error_


def test_pairs_with_medians_by_their_definition_where_one_class_has_nearly_all():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), [400, 3, 4, 5])
    X = rng.normal(size=(len(labels), 3)) + rng.normal(size=(4, 3))[labels]
    values, vectors = np.linalg.eigh(literal.spread(literal.differences_to_medians(X, labels)))
    fitted = MarginPCA(3, pairs="median").fit(X, labels)
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1] / len(X), rtol=1e-9)
    np.testing.assert_allclose(np.abs(fitted.components_ @ vectors[:, ::-1]), np.eye(3), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The within-class scatter is singular", "ignore:The null space of the within-class")
def test_a_combination_of_all_columns_that_hardly_varies_is_seen_though_no_column_is_one_of_the_others():
    """Each column leaves at least a fiftieth of the next one unexplained; the least singular value is 1.9^−60."""
    columns = np.eye(60) - 0.9 * np.triu(np.ones((60, 60)), 1)
    assert not Covariance(columns.T @ columns).is_nonsingular
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(300, 60)))[0] @ columns
    labels = np.arange(300) % 3
    for model in (FisherLDA(), UncorrelatedLDA(), OrthogonalLDA(), NullSpaceLDA(), RegularizedLDA(shrinkage=0.0)):
        assert np.isfinite(model.fit(X, labels).decision_function(X)).all()


@pytest.mark.filterwarnings("ignore:The null space of the within-class scatter")
@pytest.mark.parametrize("kind", [OrthogonalLDA, NullSpaceLDA])
@pytest.mark.parametrize(("unit", "dtype"), [(1e-12, np.float32), (1e160, np.float64), (1e-200, np.float64)])
@pytest.mark.parametrize("d", [4, 80], ids=["tall", "wide"])
def test_orthonormal_in_any_unit(kind, unit, dtype, d):
    G = kind(3).fit((unit * sample(d=d)).astype(dtype), y).components_
    np.testing.assert_allclose(G @ G.T, np.eye(3), atol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("priors", [None, [0.6, 0.3, 0.1], "equal"])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_scores_with_a_far_class_are_the_gaussians(priors, far):
    X = sample(3)
    X[y == 2] += far
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    centred = X - means[y]
    precision = np.linalg.inv(centred.T @ centred / 60)
    shares = np.array(priors) if isinstance(priors, list) else np.full(3, 1 / 3)
    apart = X[:, None] - means
    logs = np.log(shares) - 0.5 * np.einsum("ncd,de,nce->nc", apart, precision, apart)
    logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    near = logs > -1e3
    found = FisherLDA(priors=priors).fit(X, y).predict_log_proba(X)
    np.testing.assert_allclose(found[near], logs[near], rtol=1e-6, atol=1e-6)
