"""Reducers on Spark data frames: `SparkReducer`, an estimator of pyspark.ml around any reducer of discrim.

    partitions → statistics (mapInArrow)     eight statistics → one (groupBy, applyInArrow), again     driver: the fit

Rows never come to the driver: it sees a handful of statistics. No RDD is used, so that it runs on Spark Connect too;
as nobody is asked how many partitions there are, the rounds of adding are a fixed number.
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
    from pyspark.ml.param import Param, Params
    from pyspark.ml.param.shared import HasFeaturesCol, HasInputCols, HasLabelCol, HasOutputCol, HasWeightCol
    from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
    from pyspark.sql.types import StructField, StructType
except ImportError as error:
    raise ImportError(
        "discrim.spark needs pyspark, which is not installed. Install it with pip install 'discrim[spark]' (it needs "
        "Java 17)."
    ) from error

from discrim.data.check import PartError
from discrim.engines.table_files import rows_of_columns
from discrim.moments.gather import Gatherer, Gathering, Statistics, gathered_total
from discrim.reducers.bayes_error_lda import BayesErrorLDA
from discrim.reducers.model_file import FORMAT, UNFITTED
from discrim.reducers.parts import fitted_on, gathering_of

FAN_IN, ROUNDS = 8, 3  # statistics that one task adds, so often: of 4,096 partitions, eight come to the driver
FOUND = "at int, statistics binary"


class _Columns(HasInputCols, HasFeaturesCol, HasLabelCol, HasWeightCol, HasOutputCol):
    """Which columns are read and written, and the estimator or model itself, as text."""

    payload: Param[str] = Param(
        Params._dummy(), "payload", "the discrim estimator or model, kept as text", typeConverter=lambda one: _text(one)
    )

    def _columns(self) -> list[str]:
        return list(self.getInputCols()) if self.isSet(self.inputCols) else [self.getFeaturesCol()]


def _text(one: Any) -> str:
    """Text of the bytes of a model, or of an unfitted estimator (as a grid of a CrossValidator names them)."""
    if isinstance(one, str):
        return one
    return base64.b64encode(one if isinstance(one, bytes) else UNFITTED.to_bytes(one)).decode("ascii")


class SparkReducer(Estimator, _Columns, DefaultParamsReadable, DefaultParamsWritable):
    """A reducer of discrim as an estimator of pyspark.ml.

    The model is the one that discrim would fit on all rows in memory (with shrinkage="cv": on folds by content,
    `HashKFold`); methods that look at rows themselves are fitted on a uniform sample of 20,000.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer, default=BayesErrorLDA()
        What is fitted. A grid to choose from is one of `payload`:
        ``ParamGridBuilder().addGrid(reducer.payload, [BayesErrorLDA(1), BayesErrorLDA(2)])``.
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
        return self._set(payload=model)

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
        fitted_on(model, _total(read.mapInArrow(gather, FOUND)))
        found = self._copyValues(SparkReducerModel())
        return found._set(payload=FORMAT.to_bytes(model))


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
    for _ in range(ROUNDS):
        found = found.groupBy((found["at"] / FAN_IN).cast("int").alias("group")).applyInArrow(_added, FOUND)
    rows = [Statistics.from_bytes(bytes(row["statistics"])) for row in found.collect()]
    if not rows:
        raise ValueError("No rows came: every partition of the data frame is empty.")
    return gathered_total(rows)


def _added(key: tuple[Any, ...], found: Any) -> Any:
    """The sum of a group's statistics, in the order of the partitions."""
    ordered = found.sort_by("at").column("statistics")
    return _found(key[0].as_py(), gathered_total([Statistics.from_bytes(cell.as_py()) for cell in ordered]))


def _found(at: int, statistics: Statistics) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.table({"at": pa.array([at], pa.int32()), "statistics": pa.array([statistics.to_bytes()], pa.binary())})


def _gatherer(
    gathering: Gathering, columns: list[str], label: str | None, weight: str | None, *, vectors: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def gather(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        at = context.partitionId() if context else 0
        gatherer = Gatherer(gathering, f"partition {at}", names=None if vectors else columns)
        for batch in batches:
            if batch.num_rows:
                X = _rows(batch, columns, vectors, gatherer.part, gatherer.n_given)
                y, w = (None if name is None else _plain(batch.column(name)) for name in (label, weight))
                gatherer.add(X, y, w)
        if not gatherer.is_empty:
            yield from _found(at, gatherer.statistics()).to_batches()

    return gather


def _plain(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_pylist()) if column.null_count == 0 else np.asarray(column.to_pylist(), dtype=object)


def _rows(batch: Any, columns: list[str], vectors: bool, part: str = "the partition", first: int = 0) -> Any:
    """A batch's features: named columns as a frame, or a column of vectors or arrays as a table."""
    if not vectors:
        return rows_of_columns(batch, columns)
    column = batch.column(columns[0])
    if column.null_count:
        at = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise PartError(f"{part}, row {at}, column {columns[0]!r}: null where a vector belongs. Drop such rows first.")
    if hasattr(column, "storage"):
        column = column.storage
    sizes, X = _of_vectors(column) if column.type.num_fields == 4 else _of_arrays(column)
    if (sizes != sizes[0]).any():
        at = int(np.flatnonzero(sizes != sizes[0])[0])
        raise PartError(
            f"{part}, row {first + at}, column {columns[0]!r}: {sizes[at]} numbers, after rows of {sizes[0]}. Every "
            "row needs as many."
        )
    return X()


Sized = tuple[NDArray[np.int64], Callable[[], Any]]  # how many numbers each row has, and the table if they are as many


def _of_arrays(column: Any) -> Sized:
    sizes = column.value_lengths().to_numpy(zero_copy_only=False)
    return sizes, lambda: _numbers(column.flatten()).reshape(len(sizes), -1)


def _of_vectors(column: Any) -> Sized:
    """Of pyspark.ml vectors: struct<type (0 sparse, 1 dense), size, indices, values>."""
    sparse = column.field(0).to_numpy(zero_copy_only=False) == 0
    lengths = column.field(3).value_lengths().to_numpy(zero_copy_only=False)
    sizes = np.where(sparse, column.field(1).fill_null(0).to_numpy(zero_copy_only=False), lengths)
    values = _numbers(column.field(3).flatten())
    if not sparse.any():
        return sizes, lambda: values.reshape(len(sizes), -1)
    indptr = np.cumsum([0, *lengths])
    indices = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    indices[np.repeat(sparse, lengths)] = column.field(2).flatten().to_numpy(zero_copy_only=False)
    return sizes, lambda: sp.csr_array((values, indices, indptr), shape=(len(sizes), int(sizes[0])))


def _numbers(column: Any) -> NDArray[Any]:
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


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
