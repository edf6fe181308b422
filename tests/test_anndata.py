"""AnnData objects in and out, by scanpy's conventions; skipped without anndata."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import discrim.pl
import discrim.tl
from discrim import FisherLDA, MarginPCA, PosteriorMap, RegularizedLDA
from discrim.cli import application
from discrim.tables.read import read_features, read_table
from discrim.tables.table_error import TableError

anndata = pytest.importorskip("anndata", reason="anndata is not installed: pip install 'discrim[anndata]'")
pytestmark = pytest.mark.filterwarnings("ignore:.*:FutureWarning")
GENES = ["petal", "sepal", "width", "height"]


@pytest.fixture
def cells():
    X, y = load_iris(return_X_y=True)
    obs = pd.DataFrame(
        {"kind": pd.Categorical(np.array(["a", "b", "c"])[y]), "patient": np.arange(150) % 5},
        index=[f"cell{at}" for at in range(150)],
    )
    var = pd.DataFrame({"variable": [True, True, False, True]}, index=GENES)
    return anndata.AnnData(sp.csr_matrix(X), obs, var, layers={"log": np.log1p(X)})


def test_the_components_of_the_cells_and_the_loadings_of_the_genes_are_written(cells):
    assert discrim.tl.reduce(cells, "kind", method="fisher-lda", key_added="lda") is None
    plain = FisherLDA(2).fit(cells.X.toarray(), cells.obs["kind"])
    np.testing.assert_allclose(cells.obsm["X_lda"], plain.transform(cells.X.toarray()), atol=1e-9)
    np.testing.assert_allclose(cells.varm["lda"], plain.components_.T, atol=1e-9)
    record = cells.uns["lda"]
    assert record["params"] == {"target": "kind", "method": "fisher-lda", "n_components": 2} | {
        name: value for name, value in plain.get_params().items() if isinstance(value, str | int | float)
    }
    np.testing.assert_allclose(record["eigenvalues"], plain.eigenvalues_)
    assert list(record["classes"]) == ["a", "b", "c"]


def test_cells_without_a_label_are_not_fitted_but_transformed(cells):
    whole = cells.copy()
    unknown = np.arange(150) % 3 == 0
    cells.obs["kind"] = cells.obs["kind"].where(~unknown)
    discrim.tl.reduce(cells, "kind", method=RegularizedLDA(2, shrinkage=0.1))
    some = RegularizedLDA(2, shrinkage=0.1).fit(whole.X[np.flatnonzero(~unknown)], whole.obs["kind"][~unknown])
    np.testing.assert_allclose(cells.obsm["X_RegularizedLDA"], some.transform(whole.X), atol=1e-9)


def test_a_layer_and_a_mask_of_genes(cells):
    other = discrim.tl.reduce(cells, "kind", method="pca", layer="log", mask_var="variable", key_added="p", copy=True)
    assert "X_p" not in cells.obsm
    plain = discrim.PCA(2).fit(cells.layers["log"][:, [0, 1, 3]])
    np.testing.assert_allclose(other.varm["p"][[0, 1, 3]], plain.components_.T, atol=1e-9)
    np.testing.assert_array_equal(other.varm["p"][2], 0.0)
    assert other.uns["p"]["params"]["layer"] == "log"


def test_a_map_that_is_not_linear_has_no_loadings(cells):
    discrim.tl.reduce(cells, "kind", method=PosteriorMap(2, kernel="linear"), key_added="map")
    assert "map" not in cells.varm
    assert cells.obsm["X_map"].shape == (150, 2)


def test_blocks_of_dask_are_gathered(cells):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    plain = MarginPCA(2).fit(cells.X.toarray(), cells.obs["kind"]).transform(cells.X.toarray())
    cells.X = da.from_array(cells.X.toarray(), chunks=(40, 4))
    discrim.tl.reduce(cells, "kind", method=MarginPCA(2), key_added="m")
    np.testing.assert_allclose(cells.obsm["X_m"], plain, atol=1e-9)


def test_results_survive_a_file(cells, tmp_path):
    discrim.tl.reduce(cells, "kind", key_added="lda")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(back.obsm["X_lda"], cells.obsm["X_lda"])
    assert back.uns["lda"]["params"]["target"] == "kind"


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"target": "type"}, "target .*kind, patient.* got 'type'"),
        ({"method": "lda"}, "method .*bayes-error-lda.* got 'lda'"),
        ({"layer": "counts"}, "layer .*log.* got 'counts'"),
        ({"mask_var": "hvg"}, "mask_var .*variable.* got 'hvg'"),
    ],
)
def test_errors_name_the_parameter_and_the_valid_values(cells, asked, named):
    with pytest.raises(ValueError, match=named):
        discrim.tl.reduce(cells, **{"target": "kind"} | asked)


def test_a_backed_object_is_refused(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"to_memory\(\)"):
        discrim.tl.reduce(backed, "kind")


def test_cells_are_drawn_by_their_classes(cells):
    pytest.importorskip("matplotlib").use("agg")
    discrim.tl.reduce(cells, "kind", key_added="lda")
    shown = discrim.pl.projection(cells, "lda")
    assert shown.values.classes == ("a", "b", "c")
    assert shown.values.method == "bayes-error-lda"
    drawn = discrim.pl.projection(cells, "X_lda", color="patient").values
    assert drawn.classes == ("0", "1", "2", "3", "4")
    with pytest.raises(ValueError, match="basis"):
        discrim.pl.projection(cells, "umap")
    with pytest.raises(ValueError, match="color"):
        discrim.pl.projection(cells, "lda", color="sex")


def test_a_file_of_cells_is_a_table(cells, tmp_path):
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    table = read_table(path, "kind", drop=["width"])
    assert sp.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), cells.X.toarray()[:, [0, 1, 3]])
    assert table.feature_names == ("petal", "sepal", "height")
    assert list(table.y) == list(cells.obs["kind"])
    assert table.ids[7] == "cell7"
    X, ids = read_features(path, ["height", "petal"], id_column="patient")
    np.testing.assert_array_equal(X.toarray(), cells.X.toarray()[:, [3, 0]])
    assert list(ids[:6]) == ["0", "1", "2", "3", "4", "0"]


def test_files_that_are_not_tables_of_cells_are_rejected_by_name(cells, tmp_path):
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    with pytest.raises(TableError, match=r"'knd'.*'kind'"):
        read_table(path, "knd")
    with pytest.raises(TableError, match=r"target.*'kind'"):
        read_table(path, None)
    with pytest.raises(TableError, match="1,000 bytes"):
        read_table(path, "kind", max_bytes=1000)
    (tmp_path / "broken.h5ad").write_bytes(path.read_bytes()[:3000])
    with pytest.raises(TableError, match="damaged"):
        read_table(tmp_path / "broken.h5ad", "kind")
    cells.obs.loc["cell3", "kind"] = np.nan
    cells.write_h5ad(path)
    with pytest.raises(TableError, match=r"1 cell.*'cell3'"):
        read_table(path, "kind")


def test_compare_reads_it(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    words = f"compare {tmp_path / 'cells.h5ad'} --target kind --methods pca,fisher-lda --splits 2 -j 1"
    run = CliRunner().invoke(application(), words.split())
    assert run.exit_code == 0, run.output
    assert "fisher-lda" in run.output
