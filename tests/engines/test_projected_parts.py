"""`project` and `apply` on tables in parts: ids, classifiers, predictions, and the options that need all rows."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import refuse, succeed
from samples import labelled
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from discrim import PCA, KernelMap, RegularizedLDA, load
from discrim.estimators.pipeline import folded_transform
from discrim.threads import one_blas_thread

X, Y = labelled(300, 6)
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.array(["x", "y", "z"])[Y])


def in_parts(folder, frame):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(300), 3)):
        frame.iloc[rows].to_parquet(folder / f"p{number}.parquet", index=False)
    return folder


def named_parts(folder):
    """Write the rows in three files, with a name for each row."""
    return in_parts(folder, FRAME.assign(who=[f"r{at}" for at in range(300)]))


def test_ids_are_carried_through_a_table_in_parts(tmp_path):
    parts, model = named_parts(tmp_path / "parts"), tmp_path / "m.discrim"
    given = ["project", parts, "-t", "kind", "--id", "who", "-m", "pca", "--model", model, "--out", tmp_path / "out"]
    succeed(*given)
    first = pd.read_parquet(tmp_path / "out" / "p1.parquet")
    assert list(first) == ["who", "pca0", "pca1", "kind"]
    assert first["who"].tolist() == [f"r{at}" for at in range(100, 200)]
    assert load(model).feature_names_in_.tolist() == list("abcdef")
    succeed("apply", model, parts, "--id", "who", "--out", tmp_path / "new")
    again = pd.read_parquet(tmp_path / "new" / "p1.parquet")
    pd.testing.assert_frame_equal(again, first.drop(columns="kind"))


@pytest.mark.parametrize("classifier", ["5-nn", "logistic", "itself"])
def test_a_classifier_and_its_predictions_of_a_table_in_parts(tmp_path, classifier):
    parts, whole = named_parts(tmp_path / "parts"), tmp_path / "rows.parquet"
    pd.concat(map(pd.read_parquet, sorted(parts.iterdir()))).to_parquet(whole, index=False)
    given = ["-t", "kind", "--id", "who", "-m", "fisher-lda", "-k", "2", "-c", classifier]
    for source, place in ((parts, "in_parts"), (whole, "in_memory")):
        succeed("project", source, *given, "--model", tmp_path / place)
        succeed("apply", tmp_path / place, parts, "--id", "who", "--predict", "--out", tmp_path / f"{place}_out")
    succeed("apply", tmp_path / "in_memory", whole, "--id", "who", "--predict", "--out", tmp_path / "file.csv")
    mine, theirs = (
        pd.concat(pd.read_parquet(file) for file in sorted((tmp_path / f"{place}_out").iterdir()))
        for place in ("in_parts", "in_memory")
    )
    assert list(mine) == ["who", "fisherlda0", "fisherlda1", "predicted", "probability", "unusual"]
    file = pd.read_csv(tmp_path / "file.csv")
    for found in (mine, theirs):
        np.testing.assert_allclose(found.iloc[:, 1:3], file.iloc[:, 1:3], atol=1e-9)
        assert found["predicted"].tolist() == file["predicted"].tolist()
        np.testing.assert_allclose(found["probability"], file["probability"], atol=1e-6)
        assert found["unusual"].tolist() == file["unusual"].tolist()


def test_types_of_predictions_are_those_of_the_labels(tmp_path):
    parts = in_parts(tmp_path / "parts", FRAME.assign(kind=Y))
    succeed("project", parts, "-t", "kind", "-m", "fisher-lda", "-c", "itself", "--model", tmp_path / "m")
    succeed("apply", tmp_path / "m", parts, "--predict", "--out", tmp_path / "out")
    found = pq.read_table(tmp_path / "out")
    assert str(found.schema.field("predicted").type) == "int64"
    assert (found["predicted"].to_numpy() == Y).mean() > 0.8


def test_options_that_need_all_rows_read_a_small_folder_into_memory(tmp_path, monkeypatch):
    gaps = FRAME.assign(town=np.array(["here", "there"])[np.arange(300) % 2])
    gaps.loc[5, "a"] = np.nan
    parts, model = in_parts(tmp_path / "parts", gaps), tmp_path / "m.discrim"
    given = ["project", parts, "-t", "kind", "-m", "pca", "--impute", "median", "--one-hot"]
    succeed(*given, "--out", tmp_path / "f.csv", "--model", model)
    assert pd.read_csv(tmp_path / "f.csv").shape == (300, 3)
    names = load(model).feature_names_in_.tolist()
    assert names[-2:] == ["town=here", "town=there"]
    succeed(*given, "--model", tmp_path / "again.discrim")
    assert "--one-hot --impute median" in refuse(*given, "--out", tmp_path / "folder")
    succeed("apply", model, parts, "--out", tmp_path / "folder")  # which fills cells in batches
    filled = pd.concat(pd.read_parquet(file) for file in sorted((tmp_path / "folder").iterdir()))
    np.testing.assert_allclose(filled, pd.read_csv(tmp_path / "f.csv").iloc[:, :2], atol=1e-10)
    for cell, words in (("elsewhere", "'elsewhere'"), ("", None)):
        gaps.loc[7, "town"] = cell
        strange = in_parts(tmp_path / f"with {cell}", gaps)
        for name in ("n.csv", f"new {cell}"):
            apply = ["apply", model, strange, "--out", tmp_path / name]
            assert succeed(*apply) if words is None else words in refuse(*apply)
    for cells, words in ((["oops", "1"], "'oops' is not a number"), ([np.inf, 1.0], "'inf' is infinite")):
        gaps.assign(b=np.array(cells)[(gaps.index != 9).astype(int)]).to_parquet(tmp_path / "bad.parquet")
        assert words in refuse("apply", model, tmp_path / "bad.parquet", "--out", tmp_path / "x")
    monkeypatch.setattr("discrim.engines.table_files.LARGE", 1)
    assert "--out must name a folder" in refuse(*given[:6], "--out", tmp_path / "f.csv")
    for more in (["--groups", "town"], ["--drop-missing"], ["--min-class-size", "3"]):
        assert more[0] in refuse("project", parts, "-t", "kind", *more, "--model", tmp_path / "x.discrim")


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler((1, 3)), MaxAbsScaler()]
)
@pytest.mark.parametrize("reducer", [PCA(2), PCA(2, whiten=True), RegularizedLDA(2, shrinkage=0.1)])
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_a_scaler_is_folded_into_the_components(scaler, reducer, offset):
    rows = X * np.array([1, 1e-9, 1e6, 1, 5, 0.0]) + offset * np.array([1, 0, 1, 1, 0, 1])
    model = make_pipeline(clone(scaler), clone(reducer)).fit(rows, Y)
    transform = folded_transform(model)
    assert getattr(transform, "__self__", None) is None  # one product, not the pipeline's own
    wanted = model.transform(rows)
    np.testing.assert_allclose(transform(rows), wanted, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), KernelMap()),
        make_pipeline(MinMaxScaler(clip=True), PCA(2)),
        make_pipeline(PCA(2)),
    ],
)
def test_what_is_no_scaler_before_a_linear_map_is_left_as_it_is(model):
    fitted = clone(model).fit(X, Y)
    assert folded_transform(fitted).__self__ is fitted


def test_two_threads_give_the_digits_of_one(tmp_path, monkeypatch):
    parts = in_parts(tmp_path / "parts", FRAME)
    models = []
    for threads in (1, 2):
        monkeypatch.setattr(type(one_blas_thread), "free_threads", lambda self, threads=threads: threads)
        model, out = tmp_path / f"m{threads}", tmp_path / f"out{threads}"
        succeed("project", parts, "-t", "kind", "--model", model, "--out", out)
        models.append([load(model)[-1].components_.tolist(), *(file.read_bytes() for file in sorted(out.iterdir()))])
    assert models[0] == models[1]
