"""Shift before extractors: their training rows, unlabelled rows, and errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from geometry import largest_angle, most_turned
from samples import labelled
from scipy.spatial.distance import pdist
from sklearn import decomposition
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, FactorAnalysis, FastICA, SparsePCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from discrim import PCA, MarginPCA, RegularizedLDA
from discrim.core.svm.shift import corrupted_rows, margin_shift
from discrim.estimators.autoencoder import Autoencoder
from discrim.estimators.max_margin_shift import MaxMarginShift, max_margin_shift
from discrim.estimators.shift_search import SHIFTS, best_shift, median_square_distance
from discrim.tables.rows import LabelledRows

ScikitPCA = decomposition.PCA
EXTRACTORS = [
    PCA(2),
    ScikitPCA(2),
    TruncatedSVD(2, algorithm="arpack", random_state=0),
    FastICA(2, random_state=0, max_iter=1000, tol=1e-3),
    SparsePCA(2, random_state=0, max_iter=50),
    FactorAnalysis(2, svd_method="lapack"),
    KMeans(3, random_state=0, n_init=1),
    Autoencoder(2, random_state=0, max_iter=30),
    MarginPCA(2, pairs="mean"),
    make_pipeline(StandardScaler(), ScikitPCA(2)),
]
over_extractors = pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda e: type(e).__name__)


@pytest.fixture
def rows():
    return labelled(60, 6)


def fitted(extractor, X, y):
    return clone(extractor).fit(X, y)


# ---------------------------------------------------------------------- training rows of the extractor


@over_extractors
def test_no_shift_is_the_plain_extractor_exactly(extractor, rows):
    X, y = rows
    plain = fitted(extractor, X, y).transform(X)
    model = MaxMarginShift(extractor, shift=0).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), plain)
    assert (model.shift_, model.sigma2_) == (0.0, 0.0)


@over_extractors
def test_trained_on_shifted_rows_and_applied_to_the_rows(extractor, rows):
    X, y = rows
    new = labelled(10, 6, seed=1)[0]
    reference = fitted(extractor, max_margin_shift(X, y, shift=2.0), y)
    model = MaxMarginShift(extractor, shift=2.0).fit(X, y)
    offset = 0.0
    if type(extractor) is PCA:  # its mean is that of the rows before the shift
        offset = (reference.mean_ - X.mean(axis=0)) @ reference.components_.T
    np.testing.assert_allclose(model.transform(new), reference.transform(new) + offset, atol=1e-7)
    assert np.abs(model.transform(new) - fitted(extractor, X, y).transform(new)).max() > 1e-3


def test_attributes_describe_the_shift(rows):
    X, y = rows
    model = MaxMarginShift(shift=0.8, C=0.5).fit(X, y)
    T = max_margin_shift(X, y, shift=0.8, C=0.5)
    np.testing.assert_allclose(X + model.sigma2_ * model.dual_coef_ @ model.class_coef_, T, atol=1e-12)
    np.testing.assert_allclose(model.class_coef_, model.dual_coef_.T @ (X - X.mean(axis=0)), atol=1e-9)
    assert np.linalg.norm(T - X) == pytest.approx(0.8 * np.linalg.norm(X - X.mean(axis=0)))
    assert model.dual_coef_.max() <= 0.5
    assert model.shift_scores_ == {}
    assert model.embedding_ is None
    assert 0 <= model.duality_gap_ <= 1e-10
    assert model.n_iter_ >= 1
    assert model.classes_.tolist() == [0, 1, 2]


def test_a_shift_finds_the_small_direction_that_separates_classes():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 8)) * np.r_[9, 8, 7, 6, 1, 1, 1, 1]
    X[:, 6] += 4 * (y == 1)
    X[:, 7] += 4 * (y == 2)
    found = MaxMarginShift(PCA(2), shift=10).fit(X, y)
    axes = np.eye(8)[6:]
    assert largest_angle(found.components_, axes) < 0.35
    assert largest_angle(PCA(2).fit(X).components_, axes) > 1.4


def test_negative_parts_are_cut_off_for_nmf(rows):
    X, y = rows
    X = X - X.min()
    T = max_margin_shift(X, y, shift=1.0)
    assert (T < 0).any()
    reference = NMF(2, init="nndsvda", max_iter=2000).fit(np.maximum(T, 0))
    model = MaxMarginShift(NMF(2, init="nndsvda", max_iter=2000), shift=1.0).fit(X, y)
    np.testing.assert_allclose(model.components_, reference.components_, atol=1e-6)


def test_labels_reach_an_extractor_that_wants_them(rows):
    X, y = rows
    names = np.array(["a", "b", "c"])[y]
    model = MaxMarginShift(RegularizedLDA(2, shrinkage=0.1)).fit(X, names)
    assert model.extractor_.classes_.tolist() == ["a", "b", "c"]
    names = names.astype(object)
    names[::5] = None  # such an extractor can only learn from the others
    model = MaxMarginShift(RegularizedLDA(2, shrinkage=0.1)).fit(X, names)
    T = max_margin_shift(X, names)
    known = np.arange(60) % 5 != 0
    reference = RegularizedLDA(2, shrinkage=0.1).fit(T[known], names[known])
    assert most_turned(model.components_, reference.components_) < 1e-7


# ---------------------------------------------------------------------- rows without a label


MARKS = {
    "NaN": (np.nan, None, float),
    "None": (None, None, object),
    "-1": (-1, -1, int),
    "text": ("?", "?", "text"),
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("extractor", [PCA(2), ScikitPCA(2)], ids=["closed form", "explicit"])
def test_rows_without_a_label_do_not_move_but_take_part(mark, extractor, rows):
    value, unlabeled, kind = MARKS[mark]
    X, y = rows
    without = np.arange(len(y)) % 3 == 0
    labels = np.array(["x", "y", "z"])[y].astype(object) if kind == "text" else y.astype(kind)
    labels[without] = value
    labels = labels.astype(str) if kind == "text" else labels
    T = max_margin_shift(X, labels, unlabeled=unlabeled, shift=2.0)
    np.testing.assert_array_equal(T[without], X[without])
    assert np.abs(T - X).max() > 0.5
    model = MaxMarginShift(extractor, shift=2.0, unlabeled=unlabeled).fit(X, labels)
    assert len(model.classes_) == 3
    assert not model.dual_coef_[without].any()
    assert most_turned(model.components_, ScikitPCA(2).fit(T).components_) < 1e-7
    alone = MaxMarginShift(extractor, shift=2.0).fit(X[~without], y[~without])
    assert most_turned(model.components_, alone.components_) > 1e-3  # they do take part


def test_the_svm_of_labelled_rows_sees_the_mean_of_all(rows):
    X, y = rows
    labels = np.where(np.arange(60) % 2 == 0, y, -1)
    model = MaxMarginShift(unlabeled=-1).fit(X, labels)
    labelled_rows = labels >= 0
    H = X - X.mean(axis=0)
    scale = np.sqrt((H**2).sum(axis=1).mean())
    reference = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0)
    coef = reference.fit(H[labelled_rows] / scale, y[labelled_rows]).coef_
    np.testing.assert_allclose(model.class_coef_ / scale, coef - coef.mean(axis=0), atol=1e-5 * np.abs(coef).max())


def test_minus_one_is_a_class_unless_named(rows):
    X, y = rows
    assert MaxMarginShift().fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    assert MaxMarginShift(unlabeled=-1).fit(X, y - 1).classes_.tolist() == [0, 1]


def test_pandas_labels_that_are_missing(rows):
    X, y = rows
    names = pd.Series(np.array(["a", "b", "c"])[y], dtype="string")
    names[3] = pd.NA
    model = MaxMarginShift().fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert not model.dual_coef_[3].any()
    assert MaxMarginShift().fit(X, names.astype("category")).classes_.tolist() == ["a", "b", "c"]


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "extractor", [PCA(2), ScikitPCA(2), make_pipeline(StandardScaler(), ScikitPCA(2)), StandardScaler()], ids=str
)
def test_whole_weights_are_repetition(extractor, rows):
    X, y = rows
    weights = np.resize([1, 0, 2, 3], len(y))
    once = MaxMarginShift(extractor).fit(X, y, sample_weight=weights)
    often = MaxMarginShift(extractor).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(once.transform(X), often.transform(X), atol=1e-6)
    assert once.dual_coef_.shape == (60, 3)
    assert not once.dual_coef_[weights == 0].any()
    T = max_margin_shift(X, y, sample_weight=weights)
    np.testing.assert_array_equal(T[weights == 0], X[weights == 0])
    wanted = max_margin_shift(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(np.repeat(T, weights, axis=0), wanted, atol=1e-6)


# ---------------------------------------------------------------------- sparse tables


def test_sparse_rows_stay_sparse_with_our_pca(rows):
    X, y = rows
    X = np.where(np.abs(X) > 1, X, 0)
    model = MaxMarginShift(PCA(3)).fit(sp.csr_array(X), y)
    assert most_turned(model.components_, MaxMarginShift(PCA(3)).fit(X, y).components_) < 1e-7
    np.testing.assert_allclose(max_margin_shift(sp.csr_array(X), y), max_margin_shift(X, y), atol=1e-7)


def test_without_a_shift_a_sparse_table_reaches_the_extractor_as_it_is(rows):
    X, y = rows
    table = sp.csr_array(np.where(np.abs(X) > 1, X, 0))
    seen = []

    class Watcher(TruncatedSVD):
        def fit(self, X, y=None):
            seen.append(sp.issparse(X))
            return super().fit(X)

    for shift in (0, 1.0):
        MaxMarginShift(Watcher(2), shift=shift).fit(table, y)
    assert seen == [True, False]


def test_other_extractors_get_dense_shifted_rows(rows):
    X, y = rows
    X = np.where(np.abs(X) > 1, X, 0)
    model = MaxMarginShift(ScikitPCA(2)).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        model.transform(sp.csr_array(X)), MaxMarginShift(ScikitPCA(2)).fit(X, y).transform(X), atol=1e-7
    )


# ---------------------------------------------------------------------- the choice of the shift


def held_out_hits(extractor, X, y, train, test, without):
    """Return the test accuracy of a linear SVM on features from training rows and unlabelled rows."""
    right = {}
    part = np.r_[train, without]
    labels = np.where(np.isin(part, without), -1, y[part])
    for shift in SHIFTS:
        model = MaxMarginShift(extractor, shift=shift, unlabeled=-1).fit(X[part], labels)
        F, G = model.transform(X[train]), model.transform(X[test])
        scale = np.sqrt(np.mean((F - F.mean(axis=0)) ** 2))
        svc = LinearSVC(dual=False).fit((F - F.mean(axis=0)) / scale, y[train])
        right[shift] = int((svc.predict((G - F.mean(axis=0)) / scale) == y[test]).sum())
    return right


@pytest.mark.parametrize("extractor", [PCA(2), ScikitPCA(2)], ids=["closed form", "explicit"])
def test_the_chosen_shift_is_that_of_best_held_out_accuracy(extractor):
    X, y = labelled(90, 12, seed=4)
    model = MaxMarginShift(extractor, shift="cv", cv=3, random_state=7).fit(X, y)
    splits = StratifiedKFold(3, shuffle=True, random_state=7).split(X, y)
    hits = [held_out_hits(extractor, X, y, *split, np.empty(0, int)) for split in splits]
    right = {shift: sum(h[shift] for h in hits) for shift in SHIFTS}
    assert model.shift_scores_ == pytest.approx({s: r / 90 for s, r in right.items()})
    assert model.shift_ == min(s for s in SHIFTS if right[s] == max(right.values()))
    assert len(set(right.values())) > 2
    wanted = MaxMarginShift(extractor, shift=model.shift_).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), wanted.transform(X))


def test_a_splitter_row_numbers_and_unlabelled_rows_in_the_choice():
    X, y = labelled(90, 12, seed=4)
    labels = np.where(np.arange(90) % 4 == 0, -1, y)
    known, without = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    splitter = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    ((train, test),) = splitter.split(known, labels[known])
    right = held_out_hits(PCA(2), X, y, known[train], known[test], without)
    assert right != held_out_hits(PCA(2), X, y, known[train], known[test], without[:0])
    for cv in (splitter, [(known[train], known[test])], [(np.r_[known[train], without], np.r_[known[test], without])]):
        model = MaxMarginShift(PCA(2), shift="cv", cv=cv, unlabeled=-1).fit(X, labels)
        assert model.shift_scores_ == pytest.approx({s: r / len(test) for s, r in right.items()})


def test_weights_count_in_the_choice(rows):
    X, y = rows
    weights = np.resize([1, 2, 3], 60)
    index = np.repeat(np.arange(60), weights)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    once = MaxMarginShift(PCA(2), shift="cv", cv=[(train, test)]).fit(X, y, sample_weight=weights)
    split = (np.flatnonzero(index % 2 == 0), np.flatnonzero(index % 2 == 1))
    often = MaxMarginShift(PCA(2), shift="cv", cv=[split]).fit(X[index], y[index])
    assert once.shift_scores_ == pytest.approx(often.shift_scores_)


def test_no_more_folds_than_the_smallest_class_has_rows(rows):
    X, y = rows
    y = np.r_[[9, 9], y[2:]]
    assert MaxMarginShift(PCA(1), shift="cv", cv=5).fit(X, y).shift_ in SHIFTS


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_choice_does_not_depend_on_the_unit(unit):
    X, y = labelled(90, 12, seed=4)
    one, other = (MaxMarginShift(PCA(2), shift="cv", cv=3).fit(s * X, y).shift_scores_ for s in (1.0, unit))
    assert len(set(one.values())) > 2
    assert other == pytest.approx(one)


# ---------------------------------------------------------------------- embeddings


@pytest.mark.parametrize("embedding", ["rff", "nystroem", Nystroem(n_components=5)], ids=["rff", "nystroem", "given"])
def test_numbers_without_finite_squares_are_not_embedded(embedding, rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MaxMarginShift(PCA(1), embedding=embedding, random_state=0).fit(X.astype(np.float32), y)
    for table in (1e200 * X, sp.csr_array(1e200 * X)):
        with pytest.raises(ValueError, match=r"\bX\b.*embedding"):
            MaxMarginShift(PCA(1), embedding=embedding).fit(table, y)


@pytest.mark.parametrize("embedding", ["rff", "nystroem"])
def test_embeddings_of_tiny_numbers_of_single_precision_are_those_of_the_rows_times_a_constant(embedding, rows):
    X, y = rows[0].astype(np.float32), rows[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny, plain = (
            MaxMarginShift(PCA(2), embedding=embedding, random_state=0).fit(table, y).transform(table)
            for table in (X * np.float32(2.0**-100), X)
        )
    np.testing.assert_allclose(np.abs(tiny), np.abs(plain), atol=1e-4 * np.abs(plain).max())


def test_median_rule_by_loops(rows, rng):
    X = rows[0]
    squares = pdist(X, "sqeuclidean")
    found = median_square_distance(X)
    assert (squares <= found + 1e-9).mean() >= 0.5
    assert (squares >= found - 1e-9).mean() >= 0.5
    assert median_square_distance(sp.csr_array(X)) == pytest.approx(found)
    assert median_square_distance(X + 1e6) == pytest.approx(found, rel=1e-6)
    weights = np.resize([1, 2, 3], 60)
    assert median_square_distance(X, weights.astype(float)) == pytest.approx(
        median_square_distance(np.repeat(X, weights, axis=0))
    )
    assert median_square_distance(np.ones((5, 2))) == 1.0
    many = rng.standard_normal((3000, 2))
    assert median_square_distance(many, random_state=0) == pytest.approx(np.median(pdist(many, "sqeuclidean")), rel=0.1)


@pytest.mark.parametrize(
    ("name", "transformer"),
    [
        ("rff", lambda gamma: RBFSampler(gamma=gamma, n_components=500, random_state=3)),
        ("nystroem", lambda gamma: Nystroem(gamma=gamma, n_components=60, random_state=3)),
    ],
)
def test_named_embeddings(name, transformer, rows):
    X, y = rows
    by_name = MaxMarginShift(PCA(2), embedding=name, random_state=3).fit(X, y)
    given = transformer(1 / median_square_distance(X)).fit(X)
    np.testing.assert_allclose(by_name.embedding_.transform(X), given.transform(X), atol=1e-7)
    by_hand = MaxMarginShift(PCA(2)).fit(given.transform(X), y)
    np.testing.assert_allclose(by_name.transform(X), by_hand.transform(given.transform(X)), atol=1e-6)
    same = MaxMarginShift(PCA(2), embedding=transformer(1 / median_square_distance(X))).fit(X, y)
    np.testing.assert_allclose(by_name.transform(X), same.transform(X), atol=1e-6)


@pytest.mark.parametrize("name", ["rff", "nystroem"])
def test_whole_weights_are_repetition_behind_an_embedding(name, rows):
    X, y = rows
    weights = np.resize([1, 0, 2, 3], len(y))
    once, often = (MaxMarginShift(PCA(2), embedding=name, random_state=0) for _ in range(2))
    once.fit(X, y, sample_weight=weights)
    often.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(once.transform(X), often.transform(X), atol=1e-6)


def test_an_embedding_makes_nmf_possible(rows):
    X, y = rows
    with pytest.raises(ValueError, match="NMF"):
        MaxMarginShift(NMF(2), embedding="rff", random_state=0).fit(X, y)
    embedding = make_pipeline(RBFSampler(random_state=0), MinMaxScaler(clip=True))
    model = MaxMarginShift(NMF(2, max_iter=1000, tol=1e-3), embedding=embedding, random_state=0).fit(X, y)
    assert (model.transform(X) >= 0).all()


# ---------------------------------------------------------------------- scikit-learn's tools


def test_feature_names_frames_and_inverse_transform(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = MaxMarginShift(PCA(2)).set_output(transform="pandas").fit(frame, y)
    assert model.transform(frame).columns.tolist() == ["maxmarginshift0", "maxmarginshift1"]
    assert model.feature_names_in_.tolist() == list("abcdef")
    back = model.inverse_transform(model.transform(frame))
    wanted = X.mean(axis=0) + (X - X.mean(axis=0)) @ model.components_.T @ model.components_
    np.testing.assert_allclose(back, wanted, atol=1e-10)
    clusters = MaxMarginShift(KMeans(4, n_init=1, random_state=0)).fit(X, y)
    assert clusters.get_feature_names_out().tolist() == [f"maxmarginshift{i}" for i in range(4)]
    assert not hasattr(clusters, "inverse_transform")
    assert not hasattr(clusters, "components_")
    assert not hasattr(MaxMarginShift(PCA(2), embedding="rff"), "inverse_transform")


def test_grid_search_reaches_the_extractor(rows):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), MaxMarginShift(PCA(1)), KNeighborsClassifier())
    grid = {"maxmarginshift__extractor__n_components": [1, 3], "maxmarginshift__shift": [0, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    fitted_shift = search.best_estimator_.named_steps["maxmarginshift"]
    assert fitted_shift.components_.shape[0] == search.best_params_["maxmarginshift__extractor__n_components"]
    assert not hasattr(fitted_shift.extractor, "_projection")  # the given one stays unfitted


def test_a_seed_reaches_an_extractor_without_one(rows):
    X, y = rows
    one, two = (MaxMarginShift(KMeans(4, n_init=1), random_state=1).fit(X, y).transform(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    kept = MaxMarginShift(KMeans(4, n_init=1, random_state=5), random_state=1).fit(X, y)
    assert kept.extractor_.random_state == 5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
def test_contract():
    check_estimator(MaxMarginShift(ScikitPCA(1), embedding="rff"), on_skip=None)


# ---------------------------------------------------------------------- errors


def test_an_svm_that_was_stopped_early_warns(rows):
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = MaxMarginShift(max_iter=1).fit(*rows)
    assert model.duality_gap_ > 1e-10


def test_sigma2_is_the_factor_itself(table):
    X, y = table
    for sigma2 in (0.0, 0.3, 2.0):
        model = MaxMarginShift(decomposition.PCA(2), sigma2=sigma2, shift="cv").fit(X, y)
        assert model.sigma2_ == pytest.approx(sigma2)
        assert model.shift_scores_ == {}
        by_hand = decomposition.PCA(2).fit(X + sigma2 * model.dual_coef_ @ model.class_coef_)
        np.testing.assert_allclose(np.abs(model.components_), np.abs(by_hand.components_), atol=1e-10)
        relative = MaxMarginShift(decomposition.PCA(2), shift=model.shift_).fit(X, y)
        np.testing.assert_allclose(relative.components_, model.components_, atol=1e-10)


def test_the_smallest_of_equally_good_shifts_is_chosen_despite_rounding():
    assert best_shift({0.0: 0.7, 0.5: 0.1 + 0.2 + 0.5, 1.0: 0.8, 2.0: 0.8 + 1e-15}) == 0.5
    assert best_shift({0.0: 0.7, 0.5: 0.8, 1.0: 0.8 + 1e-9}) == 1.0


@pytest.mark.parametrize("largest", [1e300, 5e307])
@pytest.mark.parametrize("extractor", [None, PCA(2), FunctionTransformer()], ids=["default", "PCA", "identity"])
def test_a_shift_is_chosen_up_to_the_largest_numbers(extractor, largest, rows):
    X, y = rows
    X = X / np.abs(X).max()
    plain, large = (MaxMarginShift(extractor, shift="cv").fit(table, y) for table in (X, X * largest))
    assert large.shift_scores_ == pytest.approx(plain.shift_scores_, abs=1e-12)


class Careless(BaseEstimator, TransformerMixin):
    """A user's own, which divides by zero while it is fitted."""

    def fit(self, X, y=None):
        self.inverse_ = 1.0 / np.zeros(X.shape[1])
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    "options", [{"extractor": Careless()}, {"embedding": Careless()}], ids=["extractor", "embedding"]
)
def test_numpys_error_state_is_the_callers(options, rows):
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        MaxMarginShift(**options).fit(*rows)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        MaxMarginShift(**options).fit(*rows)
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        MaxMarginShift(**options).fit(*rows)


# ---------------------------------------------------------------------- the paper's model beyond the closed form


def test_rounds_fit_the_svm_to_the_rows_as_shifted_before():
    X, y = labelled(40, 4, seed=2)
    one = MaxMarginShift(PCA(2), shift=0.5).fit(X, y)
    two = MaxMarginShift(PCA(2), shift=0.5, n_rounds=2).fit(X, y)
    shifted = X + one.sigma2_ * one.dual_coef_ @ one.class_coef_
    svm = MaxMarginShift(PCA(2), shift=0.5).fit(shifted, y)
    again = X + one.sigma2_ * svm.dual_coef_ @ svm.class_coef_
    np.testing.assert_allclose(np.abs(two.components_), np.abs(PCA(2).fit(again).components_), atol=1e-6)
    assert two.sigma2_ == one.sigma2_
    formed = MaxMarginShift(PCA(2), shift=0.5, n_rounds=1).fit(X, y)
    np.testing.assert_allclose(formed.components_, one.components_)


def test_the_weighted_copies_have_the_mean_that_the_shift_approximates():
    """Two classes, a row inside the margin: the mean of its copies moves by σ²C(η_own − η_other), to first order."""
    X, y = labelled(30, 3, 2, seed=1)
    C, sigma2 = 0.05, 1e-3
    model = MaxMarginShift(PCA(1), sigma2=sigma2, C=C).fit(X, y)
    rows = LabelledRows(X, y, np.array([0, 1]), None)
    found = margin_shift(rows, 2, C=C, tol=1e-10, max_iter=10_000)
    many = corrupted_rows(rows, 2, found, sigma2, C, 20_000, np.random.RandomState(0))
    assert many.weights.sum() == pytest.approx(len(X))
    copies, weights = many.X.reshape(-1, 30, 3), many.weights.reshape(-1, 30)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    means = np.einsum("sn,snd->nd", weights, copies)
    inside = np.abs(model.dual_coef_).max(axis=1) > C * (1 - 1e-9)
    wanted = X + sigma2 * model.dual_coef_ @ model.class_coef_
    noise = np.sqrt(sigma2) * np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()) / np.sqrt(20_000)
    assert inside.sum() > 10
    assert np.abs(means - wanted)[inside].max() < 5 * noise


def test_copies_need_an_extractor_with_weights_and_are_drawn_by_the_seed():
    X, y = labelled(30, 4, seed=3)
    with pytest.raises(ValueError, match=r"extractor .*sample_weight"):
        MaxMarginShift(FastICA(2), copies=3).fit(X, y)
    first, again, other = (MaxMarginShift(PCA(2), copies=4, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.components_, again.components_)
    assert np.abs(first.components_ - other.components_).max() > 1e-6
    assert first.transform(X).shape == (30, 2)
