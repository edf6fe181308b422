"""Dask collections: the model of all rows, gathered on the workers; blocks are never collected implicitly."""

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from discrim import PCA, BayesErrorLDA, HashKFold, MarginPCA, PosteriorMap, RegularizedLDA, fit_parts, make_pipeline
from discrim.engines import dask_tables, table_in_parts
from discrim.estimators.parts import fit_collection
from discrim.tables.validation import PartError

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'discrim[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

X, Y = labelled(300, 6)
WANTED = BayesErrorLDA(cv=HashKFold(5)).fit(X, Y).transform(X)


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_wanted(scores):
    np.testing.assert_allclose(np.asarray(scores), WANTED, atol=1e-10)


@pytest.mark.parametrize(
    ("labels", "refused"),
    [([1, "1", 2], "one type"), (["a", np.nan, "b"], "NaN"), (["a", None, "b"], "NaN"), ([True, 1, 2], "one type")],
)
def test_labels_in_memory_are_checked_as_those_of_arrays_in_memory(labels, refused):
    for rows in (X, da.from_array(X, chunks=(100, 6))):
        with pytest.raises(ValueError, match=refused):
            RegularizedLDA(1).fit(rows, labels * 100)
    zeros = RegularizedLDA(1, shrinkage=0.1).fit(da.from_array(X, chunks=(100, 6)), ["a", "a\0", "b"] * 100)
    assert zeros.classes_.tolist() == ["a", "a\0", "b"]


@pytest.mark.parametrize("length", [300, 70, 37, 34])
@pytest.mark.parametrize("labels", ["dask", "numpy"])
def test_arrays(labels, length):
    rows = da.from_array(X, chunks=(length, 6))
    fitted = BayesErrorLDA().fit(rows, da.from_array(Y, chunks=length) if labels == "dask" else Y)
    scores = fitted.transform(rows)
    assert isinstance(scores, da.Array)
    assert scores.shape == (300, 2)
    assert_wanted(scores.compute())
    assert_wanted(fitted.transform(X))


def test_blocks_of_columns_are_joined_with_a_warning():
    with pytest.warns(UserWarning, match="3 blocks of columns"):
        fitted = BayesErrorLDA().fit(da.from_array(X, chunks=(70, 2)), Y)
    assert_wanted(fitted.transform(X))


def test_frames_with_empty_partitions_and_unknown_lengths():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    rows, labels = (dd.from_pandas(values, npartitions=4) for values in (frame.assign(y=Y), pd.Series(Y)))
    rows = dd.concat([rows, rows[rows.a > 1e9]])
    labels = rows["y"]
    fitted = BayesErrorLDA().fit(rows[list("abcdef")], labels)
    scores = fitted.transform(rows[list("abcdef")]).compute()
    assert scores.columns.tolist() == ["bayeserrorlda0", "bayeserrorlda1"]
    assert scores.index.tolist() == list(range(300))
    assert_wanted(scores)
    unknown = rows[list("abcdef")].values
    assert_wanted(BayesErrorLDA().fit(unknown, labels.values).transform(X))
    with pytest.raises(PartError, match="lengths of X"):
        BayesErrorLDA().fit(unknown, Y)


def test_delayed_parts_and_sparse_blocks():
    parts = [dask.delayed((X[rows], Y[rows])) for rows in np.array_split(np.arange(300), 20)]
    assert_wanted(fit_parts(BayesErrorLDA(), parts).transform(X))
    blocks = da.from_array(X, chunks=(100, 6)).map_blocks(sp.csr_array)
    np.testing.assert_allclose(PCA(2).fit(blocks).transform(X), PCA(2).fit(X).transform(X), atol=1e-10)


def test_no_block_is_computed_before_it_is_needed():
    def refuse(block):
        raise AssertionError("computed")

    rows = da.from_array(X, chunks=(100, 6)).map_blocks(refuse, dtype=float, meta=np.empty((0, 6)))
    PCA(2).fit(X).transform(rows)
    with pytest.raises(TypeError, match="Dask"):
        PCA(2).partial_fit(rows)


def test_row_numbers_of_cv_are_refused_before_a_block_is_computed():
    rows = da.from_array(X, chunks=(50, 6)).map_blocks(lambda block: pytest.fail("computed"), meta=X[:0])
    with pytest.raises(ValueError, match="cv"):
        RegularizedLDA(cv=[(np.arange(150), np.arange(150, 300))]).fit(rows, Y)


def test_what_does_not_fit_together():
    rows = da.from_array(X, chunks=(100, 6))
    with pytest.raises(PartError, match=r"X .*3 .*y .*2"):
        BayesErrorLDA().fit(rows, da.from_array(Y, chunks=150))
    with pytest.raises(PartError, match="lengths"):
        BayesErrorLDA().fit(rows, da.from_array(Y, chunks=((100, 150, 50),)))
    for values, count in ((Y[1:], 299), (np.r_[Y, Y[:1]], 301)):
        with pytest.raises(PartError, match=rf"X .*300 .*y .*{count}"):
            BayesErrorLDA().fit(rows, values)
    wrong = X.copy()
    wrong[150, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*partition 1, row 50, column 2"):
        PCA(2).fit(da.from_array(wrong, chunks=(100, 6)))


@pytest.mark.skipif("DISCRIM_SPARK" not in os.environ, reason="processes are started by make test-engines only")
def test_a_worker_that_dies_during_a_fit_loses_no_data(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'discrim[dask]'")
    died = tmp_path / "died"

    def part(number, *rows):
        if number == 3 and not died.exists():
            died.touch()
            os._exit(1)
        return rows

    pieces = zip(np.array_split(X, 8), np.array_split(Y, 8), strict=True)
    parts = [dask.delayed(part)(number, *rows) for number, rows in enumerate(pieces)]
    alone = {"host": "127.0.0.1", "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **alone) as cluster,
        distributed.Client(cluster),
        dask.config.set(scheduler="distributed"),
    ):
        fitted = fit_parts(BayesErrorLDA(), parts)
    assert died.exists()
    assert_wanted(fitted.transform(X))


WIDE, OF_WIDE = labelled(400, 120, seed=3)
WIDE = WIDE * np.linspace(3, 0.3, 120) + 5


@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "behind a scaler"])
@pytest.mark.parametrize("kind", ["blocks", "delayed"])
def test_too_many_columns_for_statistics_are_fitted_in_passes(kind, scaled):
    rows, labels = da.from_array(WIDE, chunks=(90, -1)), da.from_array(OF_WIDE, chunks=90)
    parts = [(rows, labels)]
    if kind == "delayed":
        parts = list(zip(rows.to_delayed().ravel(), labels.to_delayed().ravel(), strict=True))

    def make():
        return make_pipeline(StandardScaler(), MarginPCA(3)) if scaled else MarginPCA(3)

    with pytest.warns(UserWarning, match="120 columns"):
        found = fit_parts(make(), parts, max_memory=200_000)
    features = make().fit(WIDE, OF_WIDE).transform(WIDE)
    np.testing.assert_allclose(found.transform(WIDE), features, atol=1e-3 * np.abs(features).max())


def test_tables_too_large_are_rejected_before_a_block_is_computed(monkeypatch):
    def never(block):
        raise AssertionError("computed")

    rows = da.from_array(WIDE, chunks=(90, -1)).map_blocks(never, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"max_memory.*RegularizedLDA"):
        fit_parts(RegularizedLDA(), [(rows, OF_WIDE)], max_memory=200_000)
    frame = dd.from_dask_array(rows, columns=[f"x{i}" for i in range(120)])
    with pytest.raises(ValueError, match="RegularizedLDA needs them"):
        fit_parts(RegularizedLDA(), [(frame, frame["x0"])], max_memory=200_000)
    monkeypatch.setattr("discrim.estimators.base.fit_collection", partial(fit_collection, max_memory=200_000))
    with pytest.raises(ValueError, match="RegularizedLDA needs them"):
        RegularizedLDA().fit(rows, OF_WIDE)


def test_a_collection_is_a_part_of_many_blocks_and_never_one_array():
    seen = []

    def look(block):
        seen.append(block.shape)
        return block

    rows = da.from_array(WIDE, chunks=(90, -1)).map_blocks(look, meta=np.empty((0, 0)))
    for parts in (rows, [rows]):
        np.testing.assert_allclose(fit_parts(PCA(2), parts).components_, PCA(2).fit(WIDE).components_, atol=1e-10)
    assert max(shape[0] for shape in seen) == 90


def named_frame():
    return pd.DataFrame(X, columns=list("abcdef"))


PREDICTING = {
    "lda": lambda: BayesErrorLDA(2, shrinkage=0.1).fit(X, Y),
    "names": lambda: RegularizedLDA(2, shrinkage=0.1).fit(named_frame(), np.array(["x", "yy", "z"])[Y % 3]),
    "map": lambda: PosteriorMap(2, kernel="linear").fit(X, Y),
}


@pytest.mark.parametrize("kind", PREDICTING)
@pytest.mark.parametrize("method", ["transform", "predict", "predict_proba", "predict_log_proba", "decision_function"])
def test_methods_of_rows_are_lazy_and_equal_those_in_memory(kind, method):
    model = PREDICTING[kind]()
    compute = getattr(model, method, None)
    if compute is None:
        pytest.skip(f"{type(model).__name__} has no {method}")
    given = named_frame() if kind == "names" else X
    expected = compute(given)
    if kind == "names":
        lazy = compute(dd.from_pandas(given, npartitions=3))
        names = model.get_feature_names_out() if method == "transform" else model.classes_
        assert lazy.ndim == expected.ndim
        assert lazy.ndim == 1 or list(lazy.columns) == list(names)
    else:
        lazy = compute(da.from_array(X, chunks=(70, 6)))
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
    assert type(lazy).__module__.startswith("dask")
    found = np.asarray(lazy.compute())
    np.testing.assert_array_equal(found, expected) if method == "predict" else np.testing.assert_allclose(
        found, expected, atol=1e-12
    )


def test_scores_are_lazy_and_equal_those_in_memory():
    model, rows = RegularizedLDA(2, shrinkage=0.1).fit(X, Y), da.from_array(X, chunks=(70, 6))
    weights = np.arange(300) % 4
    labels = da.from_array(Y, chunks=70)
    assert type(model.score(rows, labels)).__module__.startswith("dask")
    assert float(model.score(rows, labels)) == pytest.approx(model.score(X, Y), abs=1e-12)
    weighted = model.score(rows, Y, sample_weight=weights)
    assert float(weighted) == pytest.approx(model.score(X, Y, sample_weight=weights), abs=1e-12)
    frame = named_frame().assign(y=Y)
    lazy = dd.from_pandas(frame, npartitions=3)
    fitted = RegularizedLDA(2, shrinkage=0.1).fit(lazy[list("abcdef")], lazy["y"])
    assert fitted.score(lazy[list("abcdef")], lazy["y"]).compute() == pytest.approx(model.score(X, Y), abs=1e-12)
    pca = PCA(2).fit(X)
    assert float(pca.score(rows)) == pytest.approx(pca.score(X), rel=1e-10)


def test_empty_blocks_give_no_rows():
    rows = da.from_array(X, chunks=(70, 6))
    some = rows[rows[:, 0] > 1e9]
    together = da.concatenate([rows, some, rows[:3]])
    model = RegularizedLDA(2, shrinkage=0.1).fit(X, Y)
    np.testing.assert_allclose(model.transform(together).compute(), model.transform(np.vstack([X, X[:3]])), atol=1e-12)
    np.testing.assert_array_equal(model.predict(together).compute(), model.predict(np.vstack([X, X[:3]])))


@pytest.mark.parametrize(("length", "n_groups"), [(1, 60), (30, 2), (60, 1)])
def test_small_blocks_are_gathered_together(monkeypatch, length, n_groups):
    seen = []
    monkeypatch.setattr(dask_tables, "MIN_TASKS", 2)
    monkeypatch.setattr(dask_tables, "GROUP_CELLS", 6 * 5 if length == 1 else 10**9)
    gather = table_in_parts.part_statistics
    monkeypatch.setattr(
        table_in_parts, "part_statistics", lambda *given, **named: [seen.append(given[1]), gather(*given, **named)][1]
    )
    model = RegularizedLDA(2, shrinkage=0.1).fit(da.from_array(X, chunks=(5 * length, 6)), Y)
    assert len(seen) == n_groups
    np.testing.assert_allclose(model.transform(X), RegularizedLDA(2, shrinkage=0.1).fit(X, Y).transform(X), atol=1e-10)


def test_a_fault_names_the_partitions_it_is_in():
    faulty = X.copy()
    faulty[250, 1] = np.nan
    with pytest.raises(PartError, match="partition"):
        RegularizedLDA(2, shrinkage=0.1).fit(da.from_array(faulty, chunks=(10, 6)), Y)


def test_a_pipeline_stays_on_the_workers():
    model = make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1))
    rows, labels = da.from_array(X, chunks=(70, 6)), da.from_array(Y, chunks=70)
    plain = clone(model).fit(X, Y)
    model.fit(rows, labels)
    for method in ("transform", "predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(rows)
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(lazy.compute(), getattr(plain, method)(X), atol=1e-9)
        np.testing.assert_array_equal(getattr(model, method)(X), lazy.compute())
    assert float(model.score(rows, labels)) == pytest.approx(plain.score(X, Y))
    assert not hasattr(make_pipeline(StandardScaler(), PCA(2)), "predict")
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(rows, labels, regularizedlda__sample_weight=labels)


def test_a_pipeline_is_fitted_on_a_path(tmp_path):
    pd.DataFrame(X, columns=list("abcdef")).assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    model = make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1)).fit(tmp_path, "y")
    plain = make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1)).fit(named_frame(), Y)
    np.testing.assert_allclose(model.transform(named_frame()), plain.transform(named_frame()), atol=1e-9)
