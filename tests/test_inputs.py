"""Input of every kind: read correctly, or rejected with an error that names the parameter or the cell."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import CASES, CHOSEN_BY_FOLDS, QUIET, STREAMED, SUPERVISED, WITH_DEFAULTS, over
from geometry import most_turned
from samples import labelled, note, with_names_that_are_read

from discrim import PCA, FisherLDA, MarginPCA, PosteriorMap

pytestmark = QUIET

X, Y = labelled(30, 4)
NAMES = np.array(["b", "a", "c"])[Y]


def mean_margins(**options):
    return MarginPCA(2, pairs="mean", **options)


# ---------------------------------------------------------------------- cells that are not numbers


BAD = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf}
CONTAINERS = {"dense": np.asarray, "float32": np.float32, "sparse": sp.csr_array, "csc": sp.csc_array}


def spoiled(table, value):
    """A copy with the value in row 7, column 2 and twice later on."""
    X = table.copy()
    X[7, 2] = X[9, 0] = X[9, 3] = value
    return X


@over(WITH_DEFAULTS)
def test_bad_cells_are_named_and_counted(case, table):
    X, y = table
    fitted = case().fit(X, y)
    for (name, value), (kind, container) in itertools.product(BAD.items(), CONTAINERS.items()):
        what = "NaN" if np.isnan(value) else "infinity"
        message = rf"X .*3 cells.*{what}.*row 7, column 2"
        bad = container(spoiled(X, value))
        with note((name, kind)), pytest.raises(ValueError, match=message):
            case().fit(bad, y)
        with note((name, kind)), pytest.raises(ValueError, match=message):
            fitted.transform(bad)
        if case.laws.streams:
            with note((name, kind)), pytest.raises(ValueError, match=message):
                case().partial_fit(X, y).partial_fit(bad, y)


# ---------------------------------------------------------------------- labels


def categories(labels):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(pandas.Categorical(labels, categories=["unused", "c", "b", "a", "never seen"]))


LABELS = {
    "strings": lambda: NAMES,
    "unicode": lambda: np.array(["größe", "λ", "日本"])[Y],
    "objects": lambda: NAMES.astype(object),
    "list": lambda: NAMES.tolist(),
    "tuple": lambda: tuple(NAMES.tolist()),
    "negatives": lambda: np.array([-5, -1, 3])[Y],
    "large integers": lambda: Y + 2**62,
    "large unsigned": lambda: Y.astype(np.uint64) + np.uint64(2**63),
    "small unsigned": lambda: Y.astype(np.uint8),
    "whole floats": lambda: Y.astype(float),
    "integers as objects": lambda: Y.astype(object),
    "dates": lambda: np.array(["2020-01-01", "2021-06-05", "1999-12-31"], "M8[D]")[Y],
    "categories with unused levels": lambda: categories(NAMES),
}


@over(SUPERVISED + CHOSEN_BY_FOLDS)
def test_kinds_of_labels(case):
    plain = case().fit(X, Y)
    for name, labels in LABELS.items():
        given = labels()
        with note(name):
            fitted = case().fit(X, given)
            assert most_turned(plain.components_, fitted.components_) < 1e-9
            assert fitted.classes_.tolist() == sorted(set(np.asarray(given).tolist()))


@over(SUPERVISED + CHOSEN_BY_FOLDS)
def test_bools_are_two_classes(case):
    fitted = case(1).fit(X, Y == 0)
    assert fitted.classes_.tolist() == [False, True]
    assert most_turned(case(1).fit(X, np.where(Y == 0, "yes", "no")).components_, fitted.components_) < 1e-9


REFUSED_LABELS = {
    "text and numbers": (lambda: ["a", 1, "a"] * 10, r"\(int, str\)"),
    "text and numbers as objects": (lambda: np.array(["a", 1] * 15, object), r"\(int, str\)"),
    "bools and numbers": (lambda: [True, 2, 1] * 10, r"\(bool, int\)"),
    "text and NaN": (lambda: ["a", float("nan"), "b"] * 10, "10 labels.*row 1"),
    "text and None": (lambda: ["a", "b", None] * 10, "10 labels.*row 2"),
    "NaN": (lambda: np.where(Y == 0, np.nan, Y), r"\by\b.*labels"),
    "infinity": (lambda: np.where(Y == 0, np.inf, Y), r"\by\b.*infinite"),
    "NaT": (lambda: np.array(["2020-01-01", "2020-02-01", "NaT"] * 10, "datetime64[D]"), "10 labels.*row 2"),
    "NaT among spans": (lambda: np.array([1, 2, "NaT"] * 10, "timedelta64[D]"), "10 labels"),
    "measurements": (lambda: X[:, 0], "continuous"),
    "a table": (lambda: np.eye(3)[Y], r"\by\b.*\(30, 3\)"),
    "too few": (lambda: Y[:5], "30 .*y .*5"),
    "none": (lambda: None, r"\by\b"),
}


@over(SUPERVISED + CHOSEN_BY_FOLDS)
def test_labels_that_are_refused(case):
    for name, (labels, message) in REFUSED_LABELS.items():
        with note(name), pytest.raises(ValueError, match=message):
            case().fit(X, labels())


def test_text_labels_of_a_stream_may_grow_longer():
    streamed = mean_margins().partial_fit(X[Y < 2], NAMES[Y < 2])
    streamed.partial_fit(X[Y == 2], np.array(["a much longer name"])[np.zeros((Y == 2).sum(), int)])
    assert streamed.classes_.tolist() == ["a", "a much longer name", "b"]


def test_pca_ignores_labels():
    np.testing.assert_array_equal(PCA(2).fit(X, "ignored").components_, PCA(2).fit(X).components_)


# ---------------------------------------------------------------------- tables


WHOLE = np.random.default_rng(5).integers(-40, 41, (30, 4))
KINDS = {
    "int8": WHOLE.astype(np.int8),
    "uint8": (WHOLE + 41).astype(np.uint8),
    "int64 to 2^62": WHOLE * (2**62 // 41),
    "uint64 to 2^63": (WHOLE + 41).astype(np.uint64) * np.uint64(2**63 // 82),
    "bool": WHOLE > [-30, -10, 5, 20],
    "float16": WHOLE.astype(np.float16),
    "long double": WHOLE.astype(np.longdouble),
    "objects": WHOLE.astype(object),
    "list": WHOLE.tolist(),
}


@over(WITH_DEFAULTS)
def test_kinds_of_numbers(case):
    for name, given in KINDS.items():
        with note(name):
            fitted = case().fit(given, Y)
            plain = case().fit(np.asarray(given).astype(np.float64), Y)
            assert fitted.components_.dtype == fitted.transform(given).dtype == np.float64
            assert most_turned(plain.components_, fitted.components_) < 1e-9


REFUSED_TABLES = {
    "one row of numbers": (X[:, 0], "2D"),
    "three dimensions": (X[None], "dim 3"),
    "no rows": (X[:0], r"0 sample\(s\)"),
    "no columns": (X[:, :0], r"0 feature\(s\)"),
    "complex": (X + 1j, "[Cc]omplex"),
    "masked": (np.ma.array(X, mask=X > 1), "masked"),
    "text": (np.where(X > 1.5, "high", X.astype(str)), "'high' in row .*, column"),
}


@over(WITH_DEFAULTS)
def test_tables_that_are_refused(case):
    for name, (given, message) in REFUSED_TABLES.items():
        with note(name), pytest.raises(ValueError, match=message):
            case().fit(given, Y[: len(given)])


# ---------------------------------------------------------------------- frames


def frame(library, names="abcd"):
    frames = pytest.importorskip(library)
    return with_names_that_are_read(frames.DataFrame(dict(zip(names, X.T, strict=False))))


libraries = pytest.mark.parametrize("library", ["pandas", "polars"])


@libraries
@over(WITH_DEFAULTS)
def test_frames_with_other_columns_are_refused(case, library):
    table = frame(library)
    fitted = case().fit(table, Y)
    np.testing.assert_allclose(fitted.transform(table), case().fit(X, Y).transform(X), atol=1e-10)
    with pytest.raises(ValueError, match="order"):
        fitted.transform(table[list("dcba")])
    with pytest.raises(ValueError, match=r"missing:\n- d"):
        fitted.transform(table[list("abc")])
    with pytest.raises(ValueError, match=r"unseen.*:\n- z"):
        fitted.transform(frame(library, "abcz"))


@over(WITH_DEFAULTS)
def test_columns_of_one_name_are_refused_before_and_after_fit(case):
    pandas = pytest.importorskip("pandas")
    table = frame("pandas")
    doubled = pandas.concat([table, table[["b"]]], axis=1)
    message = "'b'"
    with pytest.raises(ValueError, match=message):
        case().fit(doubled, Y)
    with pytest.raises(ValueError, match=message):
        case().fit(table, Y).transform(doubled)


# ---------------------------------------------------------------------- weights


REFUSED_WEIGHTS = {
    "negative": (np.where(np.arange(30) == 4, -1.0, 1.0), "-1.0 .*row 4"),
    "NaN": (np.where(np.arange(30) == 4, np.nan, 1.0), "sample_weight contains NaN"),
    "infinite": (np.where(np.arange(30) == 4, np.inf, 1.0), "sample_weight contains infinity"),
    "too few": (np.ones(5), r"sample_weight.*\(5,\)"),
    "a table": (np.ones((30, 2)), "[Ss]ample.weight"),
    "all zero": (np.zeros(30), "[Ss]ample.weight"),
    "too large to square": (np.full(30, 1e200), r"sample_weight.*1e\+200"),
    "too small to square": (np.full(30, 1e-200), "sample_weight.*1e-200"),
}


@over(WITH_DEFAULTS)
def test_weights_that_are_refused(case):
    for name, (weights, message) in REFUSED_WEIGHTS.items():
        with note(name), pytest.raises(ValueError, match=message):
            case().fit(X, Y, sample_weight=weights)


@over([case for case in CASES if case.laws.whole_weights])
def test_fractions_are_refused_where_weights_are_counts(case):
    with pytest.raises(ValueError, match=r"sample.weight.*0.5"):
        case().fit(X, Y, sample_weight=np.full(30, 0.5))


# ---------------------------------------------------------------------- options, scores, size


@over(WITH_DEFAULTS)
def test_inverse_transform_of_a_wrong_shape_is_rejected(case):
    fitted = case().fit(X, Y)
    with pytest.raises(ValueError, match=r"\(30, 4\)"):
        fitted.inverse_transform(X)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        fitted.inverse_transform([1.0, 2.0])
    scores = fitted.transform(X)
    np.testing.assert_allclose(fitted.inverse_transform(sp.csr_array(scores)), fitted.inverse_transform(scores))


@over(STREAMED)
def test_a_stream_of_long_sparse_rows_is_refused_clearly(case):
    rows = sp.random_array((6, 5001), density=0.01, format="csr")
    message = "sparse.*5001"
    with pytest.raises(ValueError, match=message):
        case().partial_fit(rows, np.arange(6) % 2)


def lazy_tables():
    """Yield tables that are not in memory, if their library is installed."""
    table = dict(zip("abcd", X.T, strict=True))
    yield "polars.LazyFrame", "X.collect", lambda: pytest.importorskip("polars").LazyFrame(table)
    yield "duckdb.DuckDBPyRelation", r"X.df\(\)", lambda: pytest.importorskip("duckdb").from_df(frame("pandas"))
    yield "anndata.AnnData", "discrim.tl.reduce", lambda: pytest.importorskip("anndata").AnnData(X)


@pytest.mark.parametrize(
    ("kind", "advice", "made"), list(lazy_tables()), ids=lambda one: one if isinstance(one, str) else ""
)
def test_lazy_tables_are_refused_with_advice(kind, advice, made):
    lazy = made()
    fitted = FisherLDA(2).fit(X, Y)
    for use in (lambda: fitted.predict(lazy), lambda: PosteriorMap().fit(lazy, Y)):
        with pytest.raises(TypeError, match=f"{kind}.*{advice}"):
            use()


def test_arrow_tables_and_nullable_columns_are_frames():
    arrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    plain, table = FisherLDA(2).fit(X, Y), frame("pandas")
    labels = np.array(["u", "v", "w", "x"])[Y % 4]
    kinds = [
        (arrow.Table.from_pandas(table), arrow.array(labels)),
        (table.convert_dtypes(), pandas.Series(labels, dtype="string")),
        (table.convert_dtypes(dtype_backend="pyarrow"), pandas.Series(labels).convert_dtypes(dtype_backend="pyarrow")),
        (table, pandas.Series(pandas.Categorical(labels, categories=["x", "w", "v", "u", "never"]))),
    ]
    for given, given_labels in kinds:
        fitted = FisherLDA(2).fit(given, given_labels)
        assert list(fitted.feature_names_in_) == list("abcd")
        assert list(fitted.classes_) == sorted(set(labels))
        np.testing.assert_allclose(fitted.transform(given), plain.transform(X), atol=1e-10)


def test_categories_of_numbers_are_numbers():
    pandas = pytest.importorskip("pandas")
    whole = np.round(X)
    given = pandas.DataFrame(whole, columns=list("abcd")).astype("category")
    np.testing.assert_allclose(FisherLDA(2).fit(given, Y).transform(given), FisherLDA(2).fit(whole, Y).transform(whole))


def test_rows_of_a_frame_keep_their_names():
    pandas = pytest.importorskip("pandas")
    table = frame("pandas").set_index(pandas.Index([f"row {at}" for at in range(len(X))]))
    features = FisherLDA(2).set_output(transform="pandas").fit(table, Y).transform(table)
    assert list(features.index) == list(table.index)
