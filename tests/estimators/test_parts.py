"""Tables in parts: for any parts, order and executor, the model is that of all rows at once."""

import inspect
import itertools
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import CASES, QUIET, over
from geometry import largest_angle
from samples import labelled
from sklearn.datasets import load_digits
from sklearn.model_selection import LeaveOneGroupOut, PredefinedSplit, StratifiedKFold, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import discrim
from discrim import (
    PCA,
    BayesErrorLDA,
    ClassMoments,
    FisherLDA,
    HashKFold,
    HeteroscedasticLDA,
    MarginPCA,
    MarginSubspace,
    MaximumMarginCriterion,
    RegularizedLDA,
    ScreenedPCA,
    Statistics,
    fit_parts,
    load,
    save,
)
from discrim.estimators.parts import gathering_of
from discrim.evaluation.methods import METHODS

pytestmark = QUIET
CHOSEN = {
    "bayes-error-lda": BayesErrorLDA,
    "regularized-lda": RegularizedLDA,
    "regularized-lda-count": lambda **given: RegularizedLDA("cv", **given),
    "heteroscedastic-lda": lambda **given: HeteroscedasticLDA(2, **given),
    "bayes-error-lda-0.2": lambda **given: BayesErrorLDA(shrinkage=0.2, **given),
}
chosen = pytest.mark.parametrize("make", CHOSEN.values(), ids=CHOSEN)


def parts_of(X, y, n=5, seed=0):
    order = np.random.default_rng(seed).permutation(X.shape[0])
    return [(X[rows], y[rows]) for rows in np.array_split(order, n)]


def assert_same_model(one, other, X, atol=1e-10):
    features = one.transform(X)
    np.testing.assert_allclose(other.transform(X), features, atol=atol * np.abs(features).max())


# ---------------------------------------------------------------------- any division, any order


@over([case for case in CASES if case.laws.streams])
@pytest.mark.parametrize("n_parts", [1, 4, 20])
def test_moments_of_parts_are_those_of_the_table(case, n_parts):
    X, y = labelled(80, 6)
    assert_same_model(case().fit(X, y), fit_parts(case(), parts_of(X, y, n_parts)), X)


@chosen
@pytest.mark.parametrize("n_parts", [1, 3, 11])
def test_the_same_folds_in_memory_give_the_same_model(make, n_parts):
    X, y = load_digits(return_X_y=True)
    whole, gathered = make(cv=HashKFold(5)).fit(X, y), fit_parts(make(), parts_of(X, y, n_parts))
    assert gathered.shrinkage_ == whole.shrinkage_
    assert largest_angle(whole.components_, gathered.components_) < 1e-12
    assert_same_model(whole, gathered, X, atol=1e-12)
    if isinstance(whole, BayesErrorLDA):
        np.testing.assert_allclose(gathered.pair_errors_, whole.pair_errors_, atol=1e-12)
        assert abs(gathered.bayes_error_ - whole.bayes_error_) < 1e-14
        assert abs(gathered.spread_inflation_ - whole.spread_inflation_) < 1e-12


@pytest.mark.parametrize("kind", ["weights", "copies", "sparse", "float32"])
def test_weights_copies_and_precisions_of_a_gathered_default(kind, rng):
    X, y = labelled(300, 6)
    X = np.round(X, 1)
    if kind == "copies":
        X, y = np.r_[X, X[:90]], np.r_[y, y[:90]]
    X = sp.csr_array(np.where(X > 0, X, 0)) if kind == "sparse" else X.astype(np.float32) if kind == "float32" else X
    weights = rng.uniform(0.5, 2, X.shape[0]) if kind == "weights" else np.ones(X.shape[0])
    weights[5] = 0
    parts = [(X[rows], y[rows], weights[rows]) for rows in np.array_split(rng.permutation(len(y)), 4)]
    whole, gathered = BayesErrorLDA(cv=HashKFold(5)).fit(X, y, weights), fit_parts(BayesErrorLDA(), parts)
    assert gathered.shrinkage_ == whole.shrinkage_
    assert gathered.components_.dtype == whole.components_.dtype
    assert_same_model(whole, gathered, X, atol=1e-10 if kind != "float32" else 1e-5)


def test_scoring_on_a_sample_of_the_rows_chooses_nearly_as_well(monkeypatch):
    monkeypatch.setattr("discrim.core.problem.SAMPLE_ROWS", 600)
    X, y = load_digits(return_X_y=True)
    gathered = fit_parts(RegularizedLDA(), parts_of(X, y))
    whole = RegularizedLDA(cv=HashKFold(5)).fit(X, y)
    position = [np.flatnonzero(whole.path_.shrinkages == model.shrinkage_)[0] for model in (whole, gathered)]
    best = whole.path_.accuracies[:, 0].max()
    assert whole.path_.accuracies[position[1], 0] > best - 0.01
    # moments are exact for every sample
    fixed = RegularizedLDA(shrinkage=gathered.shrinkage_).fit(X, y)
    assert_same_model(fixed, gathered, X, atol=1e-12)


# ---------------------------------------------------------------------- scalers


@pytest.mark.parametrize(
    ("scaler", "sparse"),
    [(StandardScaler(), False), (MinMaxScaler((-1, 1)), False), (MaxAbsScaler(), False), (MaxAbsScaler(), True)],
    ids=repr,
)
@pytest.mark.parametrize("make", [lambda cv: PCA(3), lambda cv: BayesErrorLDA(cv=cv)], ids=["PCA", "BayesErrorLDA"])
def test_a_scaler_folds_into_the_same_pass(scaler, sparse, make):
    X, y = load_digits(return_X_y=True)  # some columns are constant, others vary in one row only
    X, table = (X, pd.DataFrame.sparse.from_spmatrix) if sparse else (X + 1_000, pd.DataFrame)
    whole = make_pipeline(scaler, make(list(HashKFold(5).split(X)))).fit(X, y)
    wanted, scale = whole.transform(X), scaler.scale_
    parts = parts_of(sp.csr_array(X) if sparse else X, y)
    frames = [(table(part, columns=[f"p{i}" for i in range(64)]), label) for part, label in parts]
    gathered = fit_parts(make_pipeline(type(scaler)(**scaler.get_params()), make(5)), frames)
    np.testing.assert_allclose(gathered[0].scale_, scale, rtol=1e-12)
    np.testing.assert_allclose(
        gathered.transform(frames[0][0]),
        wanted[np.random.default_rng(0).permutation(len(X))[: len(frames[0][0])]],
        atol=1e-11 * np.abs(wanted).max(),
    )
    assert gathered.feature_names_in_[0] == "p0"


SCALERS = [StandardScaler, MinMaxScaler, MaxAbsScaler]


def of_cyclic_classes(factor):
    """Three classes apart along the first two columns, the first of them in another unit."""
    X, y = np.random.default_rng(0).normal(size=(600, 3)), np.arange(600) % 3
    X[y == 0, 0] += 3
    X[y == 1, 1] += 3
    return X * [factor, 1, 1], y


UNITS = [
    *((StandardScaler, factor) for factor in (1.6e-19, 1e-100, 1e100)),
    (MinMaxScaler, 1e120),
    (MaxAbsScaler, 1e120),
]


@pytest.mark.parametrize(("scaler", "factor"), UNITS)
def test_a_scaler_in_front_takes_columns_of_any_unit(scaler, factor):
    X, y = of_cyclic_classes(factor)
    whole = make_pipeline(scaler(), MaximumMarginCriterion(2)).fit(X, y)
    gathered = fit_parts(make_pipeline(scaler(), MaximumMarginCriterion(2)), parts_of(X, y))
    np.testing.assert_allclose(gathered[0].scale_, whole[0].scale_, rtol=1e-12)
    np.testing.assert_allclose(gathered.transform(X), whole.transform(X), atol=1e-9)


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_column_of_a_unit_beyond_the_exponents_of_doubles_is_named(scaler):
    X, y = of_cyclic_classes(1e200)
    frames = [(pd.DataFrame(part, columns=list("abc")), label) for part, label in parts_of(X, y)]
    with pytest.raises(ValueError, match=r"columns a and [bc]"):
        fit_parts(make_pipeline(scaler(), MaximumMarginCriterion(2)), frames)


def test_a_gathered_scaler_is_the_fitted_one():
    X, y = labelled(200, 4)
    frame, weights = pd.DataFrame(X, columns=list("abcd")), 1 + np.arange(200) % 3
    halves = [slice(0, 90), slice(90, 200)]
    plain = fit_parts(make_pipeline(StandardScaler(), PCA(2)), [(frame[half], y[half]) for half in halves])
    assert plain[0].n_samples_seen_ == 200
    assert not hasattr(plain[1], "feature_names_in_")  # as in a fit of the pipeline
    given = [(frame[half], y[half], weights[half]) for half in halves]
    weighted = fit_parts(make_pipeline(StandardScaler(), PCA(2)), given)
    np.testing.assert_allclose(weighted[0].var_, StandardScaler().fit(frame, sample_weight=weights).var_, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: RegularizedLDA(2, shrinkage=0.5, class_weight={1: 20.0}),
        lambda: FisherLDA(2, class_weight="balanced"),
        lambda: MarginPCA(2, pairs="median"),
    ],
    ids=["class weights", "balanced, on the sample", "medians, on the sample"],
)
def test_a_scaler_gathers_the_columns_for_every_method(make, sparse):
    X, y = labelled(200, 5)
    X, scaler = X * [1, 10, 100, 1e3, 1e4], partial(StandardScaler, with_mean=not sparse)
    X = sp.csr_array(np.where(X > 0, X, 0.0)) if sparse else X + 3.0
    whole = make_pipeline(scaler(), make()).fit(X, y)
    gathered = fit_parts(make_pipeline(scaler(), make()), parts_of(X, y))
    np.testing.assert_allclose(gathered[0].scale_, whole[0].scale_, rtol=1e-12)
    np.testing.assert_allclose(gathered[0].mean_, whole[0].mean_, rtol=1e-12)
    assert largest_angle(gathered[1].components_, whole[1].components_) < 1e-6


# ---------------------------------------------------------------------- methods on rows


@pytest.mark.parametrize("make", [lambda: MarginPCA(pairs="median"), MarginSubspace], ids=["median", "svm"])
def test_methods_on_rows_are_fitted_on_the_sample(make, monkeypatch):
    X, y = labelled(300, 5)
    whole = fit_parts(make(), parts_of(X, y))
    assert "on 300 distinct rows of 300, by content hash" in whole.solver_
    assert largest_angle(whole.components_, make().fit(X, y).components_) < 1e-6
    monkeypatch.setattr("discrim.core.problem.SAMPLE_ROWS", 200)
    with pytest.warns(UserWarning, match="200 .*300"):
        sampled = fit_parts(make(), parts_of(X, y))
    assert "on 200 distinct rows of 300" in sampled.solver_
    assert not hasattr(make(), "partial_fit")


# ---------------------------------------------------------------------- ways to pass parts


def test_parts_as_functions_and_by_an_executor():
    X, y = labelled(100, 5)
    late = [lambda part=part: part for part in parts_of(X, y)]
    wanted = FisherLDA(2).fit(X, y)
    assert_same_model(wanted, fit_parts(FisherLDA(2), late), X)
    with ThreadPoolExecutor(2) as pool:
        assert_same_model(wanted, fit_parts(FisherLDA(2), parts_of(X, y), map=pool.map), X)


def test_no_part_is_held_after_it_was_read():
    alive = 0

    class Rows(np.ndarray):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def parts():
        nonlocal alive
        for number in range(6):
            assert alive <= 2
            alive += 1
            yield np.random.default_rng(number).standard_normal((50, 3)).view(Rows)

    fit_parts(PCA(2), parts())


def test_empty_parts_are_skipped():
    X, y = labelled(60, 4)
    parts = [(X[:0], y[:0]), *parts_of(X, y), (X[:0], y[:0])]
    assert_same_model(PCA(2).fit(X), fit_parts(PCA(2), parts), X)


def test_statistics_of_other_processes():
    X, y = labelled(200, 4)
    sent = [BayesErrorLDA().statistics(*part, part=str(n)).to_bytes() for n, part in enumerate(parts_of(X, y))]
    for order in itertools.islice(itertools.permutations(sent), 0, 120, 40):
        total = sum(map(Statistics.from_bytes, order[1:]), start=Statistics.from_bytes(order[0]))
        assert_same_model(BayesErrorLDA(cv=HashKFold(5)).fit(X, y), BayesErrorLDA().fit_statistics(total), X)


def test_moments_suffice_without_cross_validation():
    X, y = labelled(80, 5)
    moments = ClassMoments.of(X[:30], y[:30]) + ClassMoments.of(X[30:], y[30:])
    fitted = FisherLDA(2).fit_statistics(moments)
    assert_same_model(FisherLDA(2).fit(X, y), fitted, X)
    assert_same_model(FisherLDA(2).fit(np.r_[X, X], np.r_[y, y]), fitted.partial_fit(X, y), X)
    assert BayesErrorLDA(shrinkage=0.2).fit_statistics(moments).bayes_error_ > 0
    # statistics gathered for cross-validation also serve a method without it
    assert_same_model(FisherLDA(2).fit(X, y), FisherLDA(2).fit_statistics(BayesErrorLDA().statistics(X, y)), X)


CHOOSE_BY_FOLDS = [
    estimator
    for estimator in (getattr(discrim, name) for name in discrim.__all__)
    if hasattr(estimator, "fit_statistics") and "cv" in inspect.signature(estimator).parameters
]
NAMED_ROWS = {
    "list": lambda pairs, fold: pairs,
    "iterator": lambda pairs, fold: iter(pairs),
    "wrapped": lambda pairs, fold: check_cv(pairs),
    "predefined": lambda pairs, fold: PredefinedSplit(fold),
}


@pytest.mark.parametrize("named", NAMED_ROWS.values(), ids=NAMED_ROWS)
@pytest.mark.parametrize("estimator", CHOOSE_BY_FOLDS)
def test_row_index_cv_is_rejected_for_tables_in_parts(estimator, named, tmp_path):
    X, y = labelled(60, 4, n_classes=2)
    fold = np.arange(60) // 12
    model = estimator(cv=named(list(LeaveOneGroupOut().split(X, y, fold)), fold))
    pd.DataFrame(X, columns=list("abcd")).assign(label=y.astype(str)).to_csv(tmp_path / "rows.csv", index=False)
    looked_at = []
    kept = estimator(cv=HashKFold(3)).statistics(X, y)

    def part():
        looked_at.append(0)
        return X, y

    for fit in (
        lambda: fit_parts(model, [(X[:30], y[:30]), (X[30:], y[30:])]),
        lambda: fit_parts(make_pipeline(StandardScaler(), model), [part]),
        lambda: fit_parts(model, tmp_path / "rows.csv", target="label"),
        lambda: model.statistics(X, y),
        lambda: model.fit_statistics(kept),
    ):
        with pytest.raises(ValueError, match="cv"):
            fit()
    assert not hasattr(model, "n_features_in_")
    assert not looked_at
    assert model.fit(X, y).n_features_in_ == 4  # row numbers are valid in memory


@pytest.mark.parametrize("estimator", CHOOSE_BY_FOLDS)
def test_a_splitter_divides_the_sample(estimator):
    X, y = labelled(60, 4, n_classes=2)
    model = fit_parts(estimator(cv=StratifiedKFold(3)), [(X[:30], y[:30]), (X[30:], y[30:])])
    assert model.n_features_in_ == 4


def test_a_saved_stream_continues(tmp_path):
    X, y = labelled(300, 5)
    stream = BayesErrorLDA().partial_fit(X[:200], y[:200])
    save(stream, tmp_path / "stream.discrim")
    on = load(tmp_path / "stream.discrim").partial_fit(X[200:], y[200:])
    assert_same_model(BayesErrorLDA(cv=HashKFold(5)).fit(X, y), on, X)


def test_a_column_that_varies_in_one_row_does_not_break_the_search():
    """If that row is held out, it lies far out along a direction without variance in the training rows."""
    X, y = labelled(200, 4)
    lone = np.zeros((200, 2))
    lone[17, 0], lone[60, 1] = 1e3, -1e3
    path = RegularizedLDA(cv=HashKFold(5)).fit(np.c_[X, lone], y).path_
    assert np.abs(np.diff(path.losses[:, 0])).max() < 1.0
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    again = RegularizedLDA(cv=list(HashKFold(5).split(np.c_[X, lone]))).fit(np.c_[X, lone] @ turned, y).path_
    np.testing.assert_allclose(again.losses[1:], path.losses[1:], rtol=1e-6)


# ---------------------------------------------------------------------- more columns than memory allows


def wide_parts(sparse=False):
    X, y = labelled(400, 120, seed=3)
    X = X * np.linspace(3, 0.3, 120)
    X = np.where(np.abs(X) > 1, X, 0.0) if sparse else X + 5
    parts = parts_of(sp.csr_array(X) if sparse else X, y, 6)
    return X, y, parts


IN_PASSES = {
    "pca": lambda: PCA(3),
    "margin-pca": lambda: MarginPCA(3, pairs="mean"),
    "behind a scaler": lambda: make_pipeline(StandardScaler(), PCA(3)),
    "scatters of each class": lambda: MarginPCA(2, pairs="all"),
}


@pytest.mark.parametrize("make", IN_PASSES.values(), ids=IN_PASSES)
def test_too_many_columns_for_statistics_are_fitted_in_passes(make):
    X, y, parts = wide_parts()
    with pytest.warns(UserWarning, match="120 columns"):
        found = fit_parts(make(), parts, max_memory=200_000)
    wanted = make().fit(X, y)
    features = wanted.transform(X)
    np.testing.assert_allclose(found.transform(X), features, atol=1e-3 * np.abs(features).max())
    last, exact = (one[-1] if hasattr(one, "steps") else one for one in (found, wanted))
    np.testing.assert_allclose(last.eigenvalues_, exact.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose(last.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-5)
    assert "block Krylov" in last.solver_


def test_sparse_parts_in_passes_with_weights_and_labels_that_some_parts_lack():
    X, y, _ = wide_parts(sparse=True)
    order, weights = np.argsort(y, kind="stable"), np.random.default_rng(0).integers(1, 4, len(y))
    parts = [(sp.csr_array(X[rows]), y[rows], weights[rows]) for rows in np.array_split(order, 5)]
    parts.insert(2, (sp.csr_array((0, 120)), y[:0], weights[:0]))
    with pytest.warns(UserWarning, match="Krylov"):
        found = fit_parts(MarginPCA(2, pairs="mean"), parts, max_memory=200_000)
    wanted = MarginPCA(2, pairs="mean").fit(X, y, sample_weight=weights)
    features = wanted.transform(X)
    np.testing.assert_allclose(found.transform(X), features, atol=1e-3 * np.abs(features).max())
    np.testing.assert_allclose(found.explained_variance_ratio_, wanted.explained_variance_ratio_, rtol=1e-5)


def test_a_spread_that_is_not_definite_and_importances_in_passes():
    X, y, parts = wide_parts()
    with pytest.warns(UserWarning, match="Krylov"):
        found = fit_parts(MaximumMarginCriterion(2, weight=0.2), parts, max_memory=200_000)
    wanted = MaximumMarginCriterion(2, weight=0.2).fit(X, y)
    np.testing.assert_allclose(found.transform(X), wanted.transform(X), atol=1e-9)
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(found.vip_, wanted.vip_, rtol=1e-9)
    # share of the positive eigenvalues; passes compute the largest ones
    np.testing.assert_allclose(found.explained_variance_ratio_, wanted.explained_variance_ratio_, rtol=1e-4)


def test_passes_skip_parts_without_weight_and_hold_no_scatter():
    _, _, parts = wide_parts()
    held = []

    def spying(function, given):
        for found in map(function, given):
            held.append(found)
            yield found

    weighted = [(*part, np.full(len(part[1]), float(number != 2))) for number, part in enumerate(parts)]
    with pytest.warns(UserWarning, match="Krylov"):
        found = fit_parts(PCA(3), weighted, max_memory=200_000, map=spying)
    kept = np.concatenate([part[0] for number, part in enumerate(parts) if number != 2])
    np.testing.assert_allclose(found.eigenvalues_, PCA(3).fit(kept).eigenvalues_, rtol=1e-5)
    gathered = [one for one in held if isinstance(one, Statistics)]
    assert len(gathered) == len(parts) - 1
    assert all(one.moments.pooled is None and one.moments.each is None for one in gathered)


def test_tables_too_large_for_memory_and_read_once_are_rejected_with_both_sizes():
    _, _, parts = wide_parts()
    for model, given in (
        (PCA(3), iter(parts)),
        (RegularizedLDA(shrinkage=0.1), parts),
        (ScreenedPCA(3, n_selected=10), parts),
        (PCA(), parts),
        (PCA(60), parts),
    ):
        with pytest.raises(ValueError, match="120 columns"):
            fit_parts(model, given, max_memory=200_000)
    assert fit_parts(PCA(3), iter(parts), max_memory=16 * 120**2).n_components_ == 3


def test_the_minimal_memory_of_passes_is_reported_and_sufficient():
    _, _, parts = wide_parts()
    with pytest.raises(ValueError, match=r"max_memory.*99,840"):
        fit_parts(PCA(2), parts, max_memory=90_000)
    with pytest.raises(ValueError, match="99,840"):
        fit_parts(PCA(2), parts, max_memory=99_839)
    with pytest.warns(UserWarning, match="Krylov"):
        assert fit_parts(PCA(2), parts, max_memory=99_840).n_components_ == 2


def test_passes_by_an_executor_of_processes():
    X, _, parts = wide_parts()
    with ProcessPoolExecutor(1) as pool, pytest.warns(UserWarning, match="Krylov"):
        found = fit_parts(make_pipeline(StandardScaler(), PCA(2)), parts, map=pool.map, max_memory=200_000)
    features = make_pipeline(StandardScaler(), PCA(2)).fit_transform(X)
    np.testing.assert_allclose(found.transform(X), features, atol=1e-3 * np.abs(features).max())


# ---------------------------------------------------------------------- paths


@pytest.fixture
def folder(tmp_path):
    X, y = labelled(300, 6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    (tmp_path / "parts").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(300), 3)):
        frame.assign(kind=y)[rows[0] : rows[-1] + 1].to_parquet(tmp_path / "parts" / f"{number}.parquet", index=False)
    np.save(tmp_path / "rows.npy", X)
    return tmp_path


def test_a_path_without_labels(folder):
    X, _ = labelled(300, 6)
    np.testing.assert_allclose(
        fit_parts(PCA(2), folder / "rows.npy").components_, PCA(2).fit(X).components_, atol=1e-10
    )
    assert fit_parts(PCA(2), folder / "parts").n_features_in_ == 7  # no column was named as labels
    assert fit_parts(PCA(2), folder / "parts", target="kind").n_features_in_ == 6
    with pytest.raises(ValueError, match=r"RegularizedLDA.*labels"):
        fit_parts(RegularizedLDA(), folder / "parts")
    with pytest.raises(ValueError, match=r"no_such_folder"):
        fit_parts(PCA(2), folder / "no_such_folder")


def test_a_path_is_accepted_by_fit_only(folder):
    X, y = labelled(300, 6)
    found = RegularizedLDA(cv=HashKFold(5)).fit(str(folder / "parts"), "kind")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    assert_same_model(RegularizedLDA(cv=HashKFold(5)).fit(frame, y.astype(str)), found, frame)
    assert PCA(2).fit(folder / "rows.npy").n_features_in_ == 6
    with pytest.raises(TypeError, match="path"):
        found.transform(folder / "parts")
    with pytest.raises(ValueError, match="groups"):
        RegularizedLDA().fit(folder / "parts", "kind", groups=y)
    with pytest.raises(ValueError, match="sample_weight"):
        RegularizedLDA().fit(folder / "parts", "kind", sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=r"ndarray"):
        RegularizedLDA().fit(folder / "parts", y)


def test_files_of_too_many_columns_are_read_several_times(folder):
    X, _ = labelled(300, 6)
    np.save(folder / "wide.npy", np.tile(X, 20) * np.linspace(1, 3, 120))
    wide = np.load(folder / "wide.npy")
    with pytest.warns(UserWarning, match="Krylov") as caught:
        found = fit_parts(make_pipeline(StandardScaler(), PCA(2)), folder / "wide.npy", max_memory=200_000)
    assert not [str(one.message) for one in caught if "feature names" in str(one.message)]
    features = make_pipeline(StandardScaler(), PCA(2)).fit_transform(wide)
    frame = pd.DataFrame(wide, columns=found.feature_names_in_)
    np.testing.assert_allclose(found.transform(frame), features, atol=1e-3 * np.abs(features).max())


@pytest.mark.parametrize("named_first", [False, True])
def test_parts_with_and_without_names_are_refused(named_first: bool) -> None:
    # the frame's columns are in another order, which an array cannot show
    X = np.random.default_rng(0).normal(size=(60, 3)) * [5, 1, 1]
    frame = pytest.importorskip("pandas").DataFrame(X[:, ::-1], columns=["c", "b", "a"])
    parts = [frame, X] if named_first else [X, frame]
    words = r"'c', 'b', 'a'"
    with pytest.raises(ValueError, match=words):
        fit_parts(PCA(1), parts)
    with pytest.raises(ValueError, match=words):
        PCA(1).partial_fit(parts[0]).partial_fit(parts[1])


def test_statistics_without_names_forget_the_names_of_an_earlier_fit():
    X, y = labelled(40, 3)
    model = FisherLDA().fit(pd.DataFrame(X, columns=list("abc")), y)
    model.fit_statistics(FisherLDA().statistics(X, y))
    assert not hasattr(model, "feature_names_in_")


@QUIET
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_in_passes_have_no_explanations():
    X, y = labelled(60, 200)
    model = discrim.fit_parts(discrim.PCA(1), [(X[:30], y[:30]), (X[30:], y[30:])], max_memory=200_000)
    with pytest.raises(ValueError, match="deviations"):
        model.explain(X[:2])


DOCS = Path(discrim.__file__).parents[1] / "docs"


def use_of_the_sample(name):
    """Return what a method, with its defaults, uses a sample of a table in parts for, in the words of the docs."""
    reducer = METHODS[name].estimator(None, 0)
    try:
        asked = gathering_of(reducer)
    except (TypeError, AttributeError):
        return "in memory only"
    if name == "posterior-map":
        return "the choice of kernel and landmarks"
    if reducer._needs().rows is not None:
        return "the fit"
    return "scoring a choice by folds" if asked.sample_rows else "nothing"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are in the repository only")
def test_the_docs_name_the_use_of_a_sample_by_each_method():
    page = (DOCS / "scale.md").read_text(encoding="utf-8")
    table = page.partition("| use of the sample | methods |\n| --- | --- |\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    written = {name: use for use, names in rows for name in names.replace("`", "").split(", ")}
    assert written == {name: use_of_the_sample(name) for name, method in METHODS.items() if method.ours}
