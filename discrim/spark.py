"""Reducers on Spark data frames: `SparkReducer`, an estimator of pyspark.ml around any reducer of discrim.

    partitions → statistics (mapInArrow)     statistics → fewer statistics (repartition, mapInArrow)     driver: the fit

Rows never come to the driver: it sees a handful of statistics. No RDD is used, so that it runs on Spark Connect too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

try:
    from pyspark import TaskContext, keyword_only
    from pyspark.ml import Estimator, Model
    from pyspark.ml.linalg import VectorUDT
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import HasFeaturesCol, HasInputCols, HasLabelCol, HasOutputCol, HasWeightCol
    from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
    from pyspark.sql.types import StructField, StructType
except ImportError as error:
    raise ImportError(
        "discrim.spark needs pyspark, which is not installed. Install it with pip install 'discrim[spark]' (it needs "
        "Java 17)."
    ) from error

from discrim.moments.gather import Gatherer, Gathering, Statistics, gathered_total
from discrim.reducers.bayes_error_lda import BayesErrorLDA
from discrim.reducers.model_file import FORMAT, UNFITTED
from discrim.reducers.parts import fitted_on, gathering_of

FAN_IN = 8  # statistics that one task adds, and the most that come to the driver


class _Columns(HasInputCols, HasFeaturesCol, HasLabelCol, HasWeightCol, HasOutputCol):
    """Which columns are read and written, and the estimator or model itself, as text."""

    payload: Param[str] = Param(
        Params._dummy(), "payload", "the discrim estimator or model, as text", typeConverter=TypeConverters.toString
    )

    def _columns(self) -> list[str]:
        return list(self.getInputCols()) if self.isSet(self.inputCols) else [self.getFeaturesCol()]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


class SparkReducer(Estimator, _Columns, DefaultParamsReadable, DefaultParamsWritable):
    """A reducer of discrim as an estimator of pyspark.ml.

    The model is the one that discrim would fit on all rows in memory (with shrinkage="cv": on folds by content,
    `HashKFold`); methods that look at rows themselves are fitted on a uniform sample of 20,000.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer, default=BayesErrorLDA()
        What is fitted.
    inputCols : list of str, default=None
        Columns of numbers; or
    featuresCol : str, default="features"
        a column of vectors (dense or sparse) or arrays.
    labelCol : str, default="label"
        The labels; not looked at where the method needs none.
    weightCol : str, default=None
        Weights of the rows.
    outputCol : str, default="reduced"
        Where the components are written, as vectors.

    Examples
    --------
    >>> from discrim.spark import SparkReducer  # doctest: +SKIP
    >>> SparkReducer(inputCols=["a", "b", "c"], labelCol="kind").fit(frame).transform(frame)  # doctest: +SKIP
    """

    @keyword_only
    def __init__(
        self,
        *,
        model: Any = None,
        inputCols: list[str] | None = None,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        outputCol: str = "reduced",
    ) -> None:
        super().__init__()
        given = dict(vars(self)["_input_kwargs"])  # as keyword_only puts them
        self._setDefault(featuresCol="features", labelCol="label", outputCol="reduced")
        self._set(**{name: value for name, value in given.items() if name != "model" and value is not None})
        if model is not None:
            self.setModel(model)

    def setModel(self, model: Any) -> SparkReducer:  # noqa: N802 - a setter of pyspark.ml
        """The estimator to fit."""
        return self._set(payload=_text(UNFITTED.to_bytes(model)))

    def getModel(self) -> Any:  # noqa: N802
        """A copy of the estimator."""
        if not self.isSet(self.payload):
            return BayesErrorLDA()
        return UNFITTED.from_bytes(base64.b64decode(self.getOrDefault(self.payload)), "SparkReducer's model")

    def _fit(self, dataset: Any) -> SparkReducerModel:
        model, columns = self.getModel(), self._columns()
        gathering = gathering_of(model)
        label = self.getLabelCol() if gathering.supervised else None
        weight = self.getWeightCol() if self.isSet(self.weightCol) else None
        read = dataset.select(*columns, *(name for name in (label, weight) if name is not None))
        gather = _gatherer(gathering, columns, label, weight, vectors=not self.isSet(self.inputCols))
        fitted_on(model, _total(read.mapInArrow(gather, "statistics binary")))
        found = self._copyValues(SparkReducerModel())
        return found._set(payload=_text(FORMAT.to_bytes(model)))


class SparkReducerModel(Model, _Columns, DefaultParamsReadable, DefaultParamsWritable):
    """A fitted reducer that adds its components to a data frame."""

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresCol="features", labelCol="label", outputCol="reduced")

    @property
    def model(self) -> Any:
        """The fitted discrim model."""
        return FORMAT.from_bytes(base64.b64decode(self.getOrDefault(self.payload)), "The Spark model")

    def _transform(self, dataset: Any) -> Any:
        schema = StructType([*dataset.schema.fields, StructField(self.getOutputCol(), VectorUDT())])
        write = _writer(self.model, self._columns(), self.getOutputCol(), vectors=not self.isSet(self.inputCols))
        return dataset.mapInArrow(write, schema)


# ---------------------------------------------------------------------- on the workers


def _total(found: Any) -> Statistics:
    """The sum of what the partitions found, added on the workers until few are left."""
    n = found.rdd.getNumPartitions() if hasattr(found, "rdd") and not _is_connect(found) else FAN_IN**2
    while n > FAN_IN:
        n = -(-n // FAN_IN)
        found = found.repartition(n).mapInArrow(_merged, "statistics binary")
    rows = [Statistics.from_bytes(bytes(row[0])) for row in found.collect()]
    if not rows:
        raise ValueError("No rows came: every partition of the data frame is empty.")
    return gathered_total(rows)


def _is_connect(frame: Any) -> bool:
    return ".connect." in type(frame).__module__


def _merged(batches: Iterator[Any]) -> Iterator[Any]:
    total: Statistics | None = None
    for batch in batches:
        for cell in batch.column(0):
            one = Statistics.from_bytes(cell.as_py())
            total = one if total is None else total + one
    if total is not None:
        yield _binary(total)


def _binary(statistics: Statistics) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.RecordBatch.from_arrays([pa.array([statistics.to_bytes()], pa.binary())], ["statistics"])


def _gatherer(
    gathering: Gathering, columns: list[str], label: str | None, weight: str | None, *, vectors: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def gather(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        gatherer = Gatherer(gathering, f"partition {context.partitionId() if context else 0}")
        for batch in batches:
            if batch.num_rows:
                X = _rows(batch, columns, vectors)
                y, w = (None if name is None else _plain(batch.column(name)) for name in (label, weight))
                gatherer.add(X, y, w)
        if not gatherer.is_empty:
            yield _binary(gatherer.statistics())

    return gather


def _plain(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_pylist()) if column.null_count == 0 else np.asarray(column.to_pylist(), dtype=object)


def _rows(batch: Any, columns: list[str], vectors: bool) -> Any:
    """A batch's features: named columns as a frame, or a column of vectors or arrays as a table."""
    if not vectors:
        import pandas as pd

        return pd.DataFrame({name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns})
    column = batch.column(columns[0])
    if hasattr(column, "storage"):
        column = column.storage
    if not hasattr(column.type, "num_fields") or column.type.num_fields < 4:  # an array of numbers
        return np.stack(column.to_numpy(zero_copy_only=False)).astype(np.float64)
    return _of_vectors(column)


def _of_vectors(column: Any) -> Any:
    """Of pyspark.ml vectors: struct<type (0 sparse, 1 dense), size, indices, values>."""
    kinds = column.field(0).to_numpy(zero_copy_only=False)
    values = column.field(3)
    if (kinds == 1).all():
        return values.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    sizes = {cell["size"] or len(cell["values"]) for cell in column.to_pylist()}
    rows = [(c["indices"] if c["type"] == 0 else range(len(c["values"])), c["values"]) for c in column.to_pylist()]
    indptr = np.cumsum([0, *(len(cells) for _, cells in rows)])
    indices = np.concatenate([np.asarray(at, dtype=np.int64) for at, _ in rows])
    cells = np.concatenate([np.asarray(v, dtype=np.float64) for _, v in rows])
    return sp.csr_array((cells, indices, indptr), shape=(len(rows), max(sizes)))


def _writer(model: Any, columns: list[str], output: str, *, vectors: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                yield _with_vectors(batch, output, np.asarray(model.transform(_rows(batch, columns, vectors))))

    return write


def _with_vectors(batch: Any, name: str, scores: NDArray[Any]) -> Any:
    import pyarrow as pa

    n, k = scores.shape
    ends = pa.array(np.arange(0, n * k + 1, k, dtype=np.int32))
    values = pa.ListArray.from_arrays(ends, pa.array(np.ascontiguousarray(scores, dtype=np.float64).ravel()))
    fields = {"type": pa.array(np.ones(n, np.int8)), "size": pa.nulls(n, pa.int32())}
    fields |= {"indices": pa.nulls(n, pa.list_(pa.int32())), "values": values}
    vectors = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    return pa.RecordBatch.from_arrays([*batch.columns, vectors], [*batch.schema.names, name])
