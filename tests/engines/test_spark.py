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

from discrim import PCA, BayesErrorLDA, HashKFold

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
