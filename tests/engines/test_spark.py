"""SparkReducer on a local session, which only `make test-engines` starts because that takes a while.

DISCRIM_SPARK=connect runs the same tests through a server of Spark Connect.
"""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from samples import labelled
from sklearn.preprocessing import StandardScaler
from typed_tables import FRAMES, REFUSED, outcome_of

from discrim import PCA, BayesErrorLDA, HashKFold, MarginPCA, PosteriorMap, RegularizedLDA

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'discrim[spark]'")
spark_module = pytest.importorskip("discrim.spark")
SparkReducer, SparkReducerModel = spark_module.SparkReducer, spark_module.SparkReducerModel
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

    rows = spark.createDataFrame(FRAME).repartition(10)
    found = Pipeline(stages=[SparkReducer(inputCols=list("abcd"))]).fit(rows)
    wanted = BayesErrorLDA(cv=HashKFold(5)).fit(X, FRAME["label"])
    np.testing.assert_allclose(found.stages[0].model.transform(FRAME[list("abcd")]), wanted.transform(X), atol=1e-10)
    found.write().save(str(tmp_path / "pipeline"))
    out = PipelineModel.load(str(tmp_path / "pipeline")).transform(rows).select("a", "reduced").collect()
    expected = dict(zip(X[:, 0], wanted.transform(X), strict=True))
    for row in out:
        np.testing.assert_allclose(row["reduced"].toArray(), expected[row["a"]], atol=1e-10)


def test_a_cross_validator_chooses_among_reducers_and_the_best_is_kept(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

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
    found.bestModel.write().save(str(tmp_path / "best"))
    kept = PipelineModel.load(str(tmp_path / "best"))
    np.testing.assert_array_equal(kept.stages[0].model.components_, found.bestModel.stages[0].model.components_)
    assert found.avgMetrics[0] != found.avgMetrics[1]


def test_more_partitions_than_the_driver_collects(spark):
    rows = spark.createDataFrame(FRAME).repartition(3 * spark_module.FAN_IN)
    found = SparkReducer(inputCols=list("abcd"), model=PCA(2)).fit(rows)
    np.testing.assert_allclose(found.model.transform(X), PCA(2).fit(X).transform(X), atol=1e-10)


def test_invalid_cells_are_named_by_partition_row_and_column(spark):
    from pyspark.ml.linalg import Vectors

    some = FRAME.copy()
    some.loc[7, "c"] = np.nan
    vectors = [(Vectors.dense([1.0, 2.0]),), (None,)]
    uneven = [(Vectors.dense([1.0, 2.0]),), (Vectors.sparse(3, [0], [1.0]),)]
    for rows, given, words in (
        (spark.createDataFrame(some).coalesce(1), {"inputCols": list("abcd")}, "partition 0, row 7, column 'c'"),
        (spark.createDataFrame(vectors, ["features"]).coalesce(1), {}, "null instead of a vector"),
        (spark.createDataFrame(uneven, ["features"]).coalesce(1), {}, "row 1, column 'features': 3 numbers, after"),
    ):
        with pytest.raises(Exception, match=words):
            SparkReducer(model=PCA(1), **given).fit(rows)


def test_vectors_dense_and_sparse(spark):
    from pyspark.ml.linalg import Vectors

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

    wide = labelled(300, 60, seed=3)[0] * np.linspace(3, 0.3, 60) + 5
    names = [f"x {i}" for i in range(60)]
    labels = labelled(300, 60, seed=3)[1]
    frame = pd.DataFrame(wide, columns=names).assign(kind=labels.astype(str), mass=1 + labels % 2)
    columns = spark.createDataFrame(frame).repartition(3)
    vectors = spark.createDataFrame([(Vectors.dense(row),) for row in wide], ["features"]).repartition(3)
    given = {"inputCols": names, "labelCol": "kind", "weightCol": "mass"}
    with pytest.warns(UserWarning, match="60 columns"):
        found = SparkReducer(model=MarginPCA(2, pairs="mean"), maxMemory=50_000, **given).fit(columns)
    wanted = MarginPCA(2, pairs="mean").fit(wide, labels, 1 + labels % 2).transform(wide)
    np.testing.assert_allclose(found.model.transform(frame[names]), wanted, atol=1e-3 * np.abs(wanted).max())
    with pytest.raises(ValueError, match="max_memory"):
        SparkReducer(model=RegularizedLDA(), maxMemory=50_000, **given).fit(columns)
    with pytest.warns(UserWarning, match="60 columns"):
        found = SparkReducer(model=PCA(2), maxMemory=50_000).fit(vectors)
    wanted = PCA(2).fit(wide).transform(wide)
    np.testing.assert_allclose(found.model.transform(wide), wanted, atol=1e-3 * np.abs(wanted).max())


def test_columns_of_other_kinds_of_numbers(spark):
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


NOT_IN_SPARK = {"half precision"}  # a type that it does not have
AS_NUMBERS = {"numbers as text"}  # cells that files turn into numbers, and Spark does not


@pytest.mark.parametrize("name", [name for name in FRAMES if name not in NOT_IN_SPARK])
def test_typed_columns_are_one_table_in_spark_and_in_memory(spark, tmp_path, name):
    import pyarrow.parquet as pq

    table, _ = FRAMES[name]
    pq.write_table(table, tmp_path / "t.parquet")
    *features, target = table.column_names

    def fitted(model):
        try:
            return SparkReducer(model=model, inputCols=features, labelCol=target).fit(rows).model
        except Exception as error:
            raise ValueError from error

    rows = spark.read.parquet(str(tmp_path / "t.parquet"))
    frame, kinds = table.to_pandas(), []

    def kept(model):
        kinds.append({type(label) for label in model.classes_.tolist()})
        return model

    found = outcome_of(lambda m: kept(fitted(m)))
    wanted = outcome_of(lambda m: kept(m.fit(frame[features], frame[target])))
    if name in AS_NUMBERS:
        assert found == REFUSED
    elif found != REFUSED or wanted != REFUSED:
        assert found[0] == wanted[0]
        assert kinds[0] == kinds[1]
        np.testing.assert_allclose(found[1], wanted[1], atol=2e-5)


NAMES = list("abcd")


def test_predictions_are_those_in_memory_and_evaluators_work_on_them(spark):
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator

    rows = spark.createDataFrame(FRAME.assign(label=Y.astype(float), at=np.arange(200))).repartition(3)
    columns = {"predictionCol": "prediction", "probabilityCol": "probability", "rawPredictionCol": "raw"}
    found = SparkReducer(inputCols=NAMES, model=RegularizedLDA(2, shrinkage=0.1), **columns).fit(rows)
    out = found.transform(rows)
    accuracy = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(out)
    wanted = RegularizedLDA(2, shrinkage=0.1).fit(X, Y)
    assert accuracy == pytest.approx(wanted.score(X, Y), abs=1e-12)
    kept = out.toPandas().sort_values("at")
    np.testing.assert_array_equal(kept["prediction"], wanted.predict(X))
    for name, method in (("reduced", "transform"), ("probability", "predict_proba"), ("raw", "decision_function")):
        np.testing.assert_allclose([v.toArray() for v in kept[name]], getattr(wanted, method)(X), atol=1e-9)
    two = spark.createDataFrame(FRAME.assign(label=np.where(Y == 0, "no", "yes"), at=np.arange(200)))
    raw = SparkReducer(inputCols=NAMES, model=RegularizedLDA(1, shrinkage=0.1), **columns).fit(two).transform(two)
    raw = raw.toPandas().sort_values("at")
    plain = RegularizedLDA(1, shrinkage=0.1).fit(X, np.where(Y == 0, "no", "yes"))
    assert raw["prediction"].tolist() == plain.predict(X).tolist()
    np.testing.assert_allclose([v.toArray()[1] for v in raw["raw"]], plain.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="predictionCol"):
        SparkReducer(inputCols=NAMES, model=PCA(1), predictionCol="p").fit(rows).transform(rows)


def test_hyperparameters_are_params(spark, tmp_path):
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    reducer = SparkReducer(model=RegularizedLDA(2, shrinkage=0.1)).setInputCols(NAMES).setPredictionCol("prediction")
    assert "shrinkage: hyperparameter of RegularizedLDA (current: 0.1)" in reducer.explainParams()
    assert "base64" not in reducer.explainParams()
    assert len(reducer.explainParam("payload")) < 200
    changed = reducer.copy({reducer.shrinkage: 0.5})
    assert changed.getModel().shrinkage == 0.5
    assert reducer.getModel().shrinkage == 0.1
    rows = spark.createDataFrame(FRAME.assign(label=Y.astype(float))).coalesce(2)
    grid = ParamGridBuilder().addGrid(reducer.shrinkage, [0.9999, 0.01]).build()
    judge = MulticlassClassificationEvaluator(metricName="accuracy")
    search = CrossValidator(estimator=reducer, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=0).fit(rows)
    assert search.bestModel.model.shrinkage == [0.9999, 0.01][int(np.argmax(search.avgMetrics))]
    model = reducer.fit(rows)
    assert model.parent is reducer
    assert "n_components: hyperparameter of RegularizedLDA (current: 2)" in model.explainParams()
    model.write().save(str(tmp_path / "model"))
    again = SparkReducerModel.load(str(tmp_path / "model"))
    assert again.getPredictionCol() == "prediction"
    np.testing.assert_array_equal(again.model.components_, model.model.components_)
    reducer.write().save(str(tmp_path / "reducer"))
    assert SparkReducer.load(str(tmp_path / "reducer")).getModel().shrinkage == 0.1


def test_invalid_rows(spark):
    some = FRAME[NAMES].copy().assign(at=np.arange(200))
    some.loc[7, "c"] = np.nan
    some.loc[9, "a"] = np.inf
    rows = spark.createDataFrame(some).repartition(3)
    valid = np.delete(X, [7, 9], axis=0)
    wanted = PCA(2).fit(valid)
    found = SparkReducer(inputCols=NAMES, model=PCA(2), handleInvalid="skip").fit(rows)
    np.testing.assert_allclose(found.model.components_, wanted.components_, atol=1e-10)
    out = found.transform(rows).toPandas().sort_values("at")
    assert out["at"].tolist() == [at for at in range(200) if at not in (7, 9)]
    np.testing.assert_allclose([v.toArray() for v in out["reduced"]], wanted.transform(valid), atol=1e-9)
    kept = found.setHandleInvalid("keep").transform(rows).toPandas().sort_values("at")
    assert kept["at"].tolist() == list(range(200))
    assert kept["reduced"].isna().to_numpy().nonzero()[0].tolist() == [7, 9]
    with pytest.raises(ValueError, match="handleInvalid"):
        SparkReducer(inputCols=NAMES, model=PCA(2), handleInvalid="drop").fit(rows)


def test_spark_computes_small_linear_maps_itself(spark):
    from discrim import make_pipeline
    from discrim.model_file import FORMAT

    odd = ["a", "b`x", "c.d", "e"]
    some = pd.DataFrame(X * [1, 1e-6, 1e3, 1], columns=odd).assign(at=np.arange(200))
    points = some[odd].to_numpy(copy=True)
    rows = spark.createDataFrame(some).repartition(3)
    for model, is_expressed in (
        (PCA(2), True),
        (make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1)), True),
        (PCA(2, whiten=True), False),
        (PCA(2, missing="pairwise"), False),
    ):
        found = SparkReducerModel()._set(payload=FORMAT.to_bytes(model.fit(points, Y)))._set(inputCols=odd)
        assert (spark_module._expressed(found.model, len(odd)) is not None) == is_expressed
        out, wanted = found.transform(rows).toPandas().sort_values("at"), model.transform(points)
        atol = 1e-9 * np.abs(wanted).max()
        np.testing.assert_allclose([v.toArray() for v in out["reduced"]], wanted, atol=atol)
    some.loc[5, "e"] = np.inf
    with pytest.raises(Exception, match="finite numbers"):
        found._set(payload=FORMAT.to_bytes(PCA(2).fit(points))).transform(spark.createDataFrame(some)).collect()


def test_columns_are_refused_before_a_job_starts(spark):
    rows = spark.createDataFrame(FRAME.assign(reduced=1.0))
    nested = spark.createDataFrame(FRAME).selectExpr("struct(a, b) as s", "label")
    for given, frame, named in (
        ({"inputCols": ["a", "label"]}, rows, "'label'"),
        ({"inputCols": ["a", "missing"]}, rows, "'missing'"),
        ({"inputCols": ["s.a"]}, nested, "struct column 's'"),
    ):
        with pytest.raises(ValueError, match=named):
            SparkReducer(model=PCA(1), **given).fit(frame)
    with pytest.raises(ValueError, match="'reduced'"):
        SparkReducer(inputCols=NAMES, model=PCA(1)).fit(rows).transform(rows)


def test_a_map_of_many_rows_is_the_one_in_memory(spark):
    n = 6_000  # above which moments of landmarks' features are summed
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    points = rng.standard_normal((n, 2)) * (1 + 2 * y)[:, None]
    frame = pd.DataFrame(points, columns=["a", "b"]).assign(label=y)
    model = PosteriorMap(2, n_landmarks=60)
    found = SparkReducer(model=model, inputCols=["a", "b"]).fit(spark.createDataFrame(frame).repartition(5)).model
    wanted = PosteriorMap(2, n_landmarks=60).fit(points, y)
    assert found.solver_ == wanted.solver_
    np.testing.assert_allclose(found.transform(frame[["a", "b"]]), wanted.transform(points), atol=1e-7)
