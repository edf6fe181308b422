"""SparkReducer on a local session; it is started for `make test-engines` only, as that takes a while.

DISCRIM_SPARK=connect runs the same tests through a server of Spark Connect.
"""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from samples import labelled

from discrim import PCA, BayesErrorLDA, HashKFold, MarginPCA, RegularizedLDA

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'discrim[spark]'")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17, which is not installed"),
    pytest.mark.skipif(
        "DISCRIM_SPARK" not in os.environ, reason="a Spark session is started by make test-engines only"
    ),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore:Failed to set spark"),  # Connect's server has them from its start
]
X, Y = labelled(200, 4)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(label=Y.astype(str))


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    local = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if os.environ["DISCRIM_SPARK"] == "connect":
        pytest.importorskip("grpc_status", reason="Spark Connect is not installed: pip install 'pyspark[connect]'")
        local["spark.connect.grpc.binding.address"] = "127.0.0.1"
        builder = SparkSession.builder.remote("local[2]")
    else:
        builder = SparkSession.builder.master("local[2]")
    session = builder.config(map=local).getOrCreate()
    yield session
    session.stop()


def test_the_model_is_the_one_in_memory_and_survives_a_pipeline(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from discrim.spark import SparkReducer

    rows = spark.createDataFrame(FRAME).repartition(10)
    found = Pipeline(stages=[SparkReducer(inputCols=list("abcd"))]).fit(rows)
    wanted = BayesErrorLDA(cv=HashKFold(5)).fit(X, FRAME["label"])
    np.testing.assert_allclose(found.stages[0].model.transform(FRAME[list("abcd")]), wanted.transform(X), atol=1e-10)
    found.write().overwrite().save(str(tmp_path / "pipeline"))
    out = PipelineModel.load(str(tmp_path / "pipeline")).transform(rows).select("a", "reduced").collect()
    expected = dict(zip(X[:, 0], wanted.transform(X), strict=True))
    for row in out:
        np.testing.assert_allclose(row["reduced"].toArray(), expected[row["a"]], atol=1e-10)


def test_a_cross_validator_chooses_among_reducers_and_the_best_is_kept(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from discrim.spark import SparkReducer

    rows = spark.createDataFrame(FRAME.assign(label=Y.astype(float))).coalesce(2)
    reducer = SparkReducer(inputCols=list("abcd"))
    judge = LogisticRegression(featuresCol="reduced", maxIter=5)
    grid = ParamGridBuilder().addGrid(reducer.payload, [PCA(1), PCA(3)]).build()
    search = CrossValidator(
        estimator=Pipeline(stages=[reducer, judge]),
        estimatorParamMaps=grid,
        evaluator=MulticlassClassificationEvaluator(metricName="accuracy"),
        numFolds=2,
        seed=0,
    )
    found = search.fit(rows)
    best = [PCA(1), PCA(3)][int(np.argmax(found.avgMetrics))].fit(FRAME[list("abcd")])
    np.testing.assert_allclose(found.bestModel.stages[0].model.components_, best.components_, atol=1e-10)
    found.bestModel.write().overwrite().save(str(tmp_path / "best"))
    kept = PipelineModel.load(str(tmp_path / "best"))
    np.testing.assert_array_equal(kept.stages[0].model.components_, found.bestModel.stages[0].model.components_)
    assert found.avgMetrics[0] != found.avgMetrics[1]


def test_more_partitions_than_come_to_the_driver(spark):
    from discrim.spark import FAN_IN, SparkReducer

    rows = spark.createDataFrame(FRAME).repartition(3 * FAN_IN)
    found = SparkReducer(inputCols=list("abcd"), model=PCA(2)).fit(rows)
    np.testing.assert_allclose(found.model.transform(X), PCA(2).fit(X).transform(X), atol=1e-10)


def test_what_cannot_be_taken_is_named_by_partition_row_and_column(spark):
    from pyspark.ml.linalg import Vectors

    from discrim.spark import SparkReducer

    some = FRAME.copy()
    some.loc[7, "c"] = np.nan
    vectors = [(Vectors.dense([1.0, 2.0]),), (None,)]
    uneven = [(Vectors.dense([1.0, 2.0]),), (Vectors.sparse(3, [0], [1.0]),)]
    for rows, given, words in (
        (spark.createDataFrame(some).coalesce(1), {"inputCols": list("abcd")}, "partition 0, row 7, column 'c'"),
        (spark.createDataFrame(vectors, ["features"]).coalesce(1), {}, "null where a vector"),
        (spark.createDataFrame(uneven, ["features"]).coalesce(1), {}, "row 1, column 'features': 3 numbers, after"),
    ):
        with pytest.raises(Exception, match=words):
            SparkReducer(model=PCA(1), **given).fit(rows)


def test_vectors_dense_and_sparse(spark):
    from pyspark.ml.linalg import Vectors

    from discrim.spark import SparkReducer

    Z = np.where(X > 0.5, X, 0.0)
    cells = [
        (Vectors.sparse(4, np.flatnonzero(row).tolist(), row[row != 0].tolist()) if i % 2 else Vectors.dense(row),)
        for i, row in enumerate(Z)
    ]
    found = SparkReducer(model=PCA(2)).fit(spark.createDataFrame(cells, ["features"]))
    np.testing.assert_allclose(found.model.transform(Z), PCA(2).fit(Z).transform(Z), atol=1e-10)
    arrays = spark.createDataFrame([(row.tolist(),) for row in Z], ["features"])
    again = SparkReducer(model=PCA(2)).fit(arrays)
    np.testing.assert_allclose(again.model.transform(Z), PCA(2).fit(Z).transform(Z), atol=1e-10)


def test_too_many_columns_are_gone_through_in_passes_or_refused(spark):
    from pyspark.ml.linalg import Vectors

    from discrim.spark import SparkReducer

    wide = labelled(300, 60, seed=3)[0] * np.linspace(3, 0.3, 60) + 5
    names = [f"x {i}" for i in range(60)]
    labels = labelled(300, 60, seed=3)[1]
    frame = pd.DataFrame(wide, columns=names).assign(kind=labels.astype(str), mass=1 + labels % 2)
    columns = spark.createDataFrame(frame).repartition(3)
    vectors = spark.createDataFrame([(Vectors.dense(row),) for row in wide], ["features"]).repartition(3)
    given = {"inputCols": names, "labelCol": "kind", "weightCol": "mass"}
    with pytest.warns(UserWarning, match="60 columns, whose statistics would take .* passes over the parts"):
        found = SparkReducer(model=MarginPCA(2, pairs="mean"), maxMemory=50_000, **given).fit(columns)
    wanted = MarginPCA(2, pairs="mean").fit(wide, labels, 1 + labels % 2).transform(wide)
    np.testing.assert_allclose(found.model.transform(frame[names]), wanted, atol=1e-3 * np.abs(wanted).max())
    with pytest.raises(ValueError, match=r"60 columns came.*RegularizedLDA needs them"):
        SparkReducer(model=RegularizedLDA(), maxMemory=50_000, **given).fit(columns)
    with pytest.warns(UserWarning, match="60 columns, whose statistics would take .* passes over the parts"):
        found = SparkReducer(model=PCA(2), maxMemory=50_000).fit(vectors)
    wanted = PCA(2).fit(wide).transform(wide)
    np.testing.assert_allclose(found.model.transform(wide), wanted, atol=1e-3 * np.abs(wanted).max())


def test_columns_of_other_kinds_of_numbers(spark):
    from discrim.spark import SparkReducer

    numbers = FRAME[list("abcd")].round(2).assign(b=np.arange(200), c=np.arange(200) % 3 == 0)
    rows = spark.createDataFrame(numbers).selectExpr("cast(a as decimal(9, 2)) a", "b", "c", "d").repartition(3)
    found = SparkReducer(model=PCA(2), inputCols=list("abcd")).fit(rows)
    wanted = PCA(2).fit(numbers.astype(float))
    np.testing.assert_allclose(found.model.components_, wanted.components_, atol=1e-10)
    out = found.transform(rows).toPandas().sort_values("b")
    np.testing.assert_allclose(
        [v.toArray() for v in out["reduced"]], wanted.transform(numbers.astype(float)), atol=1e-8
    )
    single = spark.createDataFrame(FRAME[list("abcd")].astype(np.float32))
    assert SparkReducer(model=PCA(2), inputCols=list("abcd")).fit(single).model.components_.dtype == np.float32
