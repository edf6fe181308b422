"""Reducers on Spark data frames: `SparkReducer`, an estimator of pyspark.ml around any reducer of discrim.

    partitions → statistics (mapInArrow)     eight statistics → one (groupBy, applyInArrow), again     driver: the fit

Rows never come to the driver: it sees a handful of statistics. No RDD is used, so that it runs on Spark Connect too;
as nobody is asked how many partitions there are, the rounds of adding are a fixed number. Columns of numbers come to
Python as one column of arrays, which takes Spark less than many columns, and are rows there as they are.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from functools import partial
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
    from pyspark.sql import functions
    from pyspark.sql.types import FloatType, StructField, StructType
except ImportError as error:
    raise ImportError(
        "discrim.spark needs pyspark, which is not installed. Install it with pip install 'discrim[spark]' (it needs "
        "Java 17)."
    ) from error

from discrim.core.moments.gather import Gatherer, Gathering, Statistics, gathered_total
from discrim.engines.table_files import rows_of_columns
from discrim.engines.table_in_parts import NO_ROWS, Look, TableInParts
from discrim.estimators.bayes_error_lda import BayesErrorLDA
from discrim.estimators.parts import MAX_MEMORY, fit_in_parts, gathering_of
from discrim.model_file import FORMAT, UNFITTED
from discrim.tables.validation import PartError
from discrim.tables.warn_once import columns_in_order

FAN_IN, ROUNDS = 8, 3  # statistics that one task adds, so often: of 4,096 partitions, eight come to the driver
FOUND = "at int, found binary"


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
    maxMemory : int, default=8 * 2**30
        Bytes that the statistics may take, as `max_memory` of `fit_parts`: beyond, PCA, MarginPCA and
        MaximumMarginCriterion go through the data frame several times, and other methods are refused.

    Examples
    --------
    >>> from discrim.spark import SparkReducer  # doctest: +SKIP
    >>> SparkReducer(inputCols=["a", "b", "c"], labelCol="kind").fit(frame).transform(frame)  # doctest: +SKIP
    """

    maxMemory: Param[int] = Param(  # noqa: N815 - a parameter of pyspark.ml
        Params._dummy(), "maxMemory", "bytes that the statistics may take", typeConverter=TypeConverters.toInt
    )

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
        maxMemory: int = MAX_MEMORY,
    ) -> None:
        super().__init__()
        given = dict(vars(self)["_input_kwargs"])  # as keyword_only puts them
        self._setDefault(featuresCol="features", labelCol="label", outputCol="reduced", maxMemory=MAX_MEMORY)
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
        named = self.isSet(self.inputCols)
        beside = [self.getLabelCol() if gathering_of(model).supervised else None]
        beside += [self.getWeightCol() if self.isSet(self.weightCol) else None]
        features = _as_array(dataset, columns) if named else functions.col(columns[0])
        rows = dataset.select(features.alias("features"), *(_alias(name, at) for at, name in enumerate(beside) if name))
        read = partial(_read, columns[0], [name is not None for name in beside])
        parts = TableInParts(
            len(columns) if named else _width(rows),
            lambda gathering: _total(rows, partial(_gathered, gathering, columns if named else None, read)),
            lambda look: _total(rows, partial(_looked_at, look, read)),
        )
        fit_in_parts(model, parts, self.getOrDefault(self.maxMemory))
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


def _as_array(dataset: Any, columns: list[str]) -> Any:
    """The columns as one, of arrays; whole numbers and decimals as doubles."""
    single = all(isinstance(dataset.schema[name].dataType, FloatType) for name in columns)
    return functions.array(*(functions.col(_quoted(name)).cast("float" if single else "double") for name in columns))


def _alias(name: str, at: int) -> Any:
    return functions.col(_quoted(name)).alias(f"beside{at}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _width(rows: Any) -> int:
    """How long the vectors are, by the first one."""
    first = rows.select("features").head(1)
    return 0 if not first or first[0][0] is None else len(first[0][0])


# ---------------------------------------------------------------------- on the workers

Found = Callable[[str, Iterator[Any]], Any]  # of a partition, by its name and batches: something that adds up, or None


def _total(rows: Any, find: Found) -> Any:
    """The sum of what is found in the partitions, added on the workers until few are left."""
    found = rows.mapInArrow(partial(_of_partition, find), FOUND)
    for _ in range(ROUNDS):
        found = found.groupBy((found["at"] / FAN_IN).cast("int").alias("group")).applyInArrow(_added, FOUND)
    some = [_unpacked(bytes(row["found"])) for row in found.collect()]
    if not some:
        raise ValueError(NO_ROWS)
    return gathered_total(some)


def _of_partition(find: Found, batches: Iterator[Any]) -> Iterator[Any]:
    context = TaskContext.get()
    at = context.partitionId() if context else 0
    found = find(f"partition {at}", (batch for batch in batches if batch.num_rows))
    if found is not None:
        yield from _packed(at, found).to_batches()


def _gathered(
    gathering: Gathering, names: list[str] | None, read: Callable[..., Any], part: str, batches: Iterator[Any]
) -> Statistics | None:
    gatherer = Gatherer(gathering, part, names=names)
    for batch in batches:
        gatherer.add(*read(batch, part, gatherer.n_given))
    return None if gatherer.is_empty else gatherer.statistics()


def _looked_at(look: Look, read: Callable[..., Any], part: str, batches: Iterator[Any]) -> Any:
    found = [one for batch in batches if (one := look(*read(batch))) is not None]
    return gathered_total(found) if found else None


def _added(key: tuple[Any, ...], found: Any) -> Any:
    """The sum of a group, in the order of the partitions."""
    ordered = found.sort_by("at").column("found")
    return _packed(key[0].as_py(), gathered_total([_unpacked(cell.as_py()) for cell in ordered]))


def _packed(at: int, found: Any) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    content = io.BytesIO()
    if isinstance(found, Statistics):
        content.write(found.to_bytes())
    else:
        np.save(content, found, allow_pickle=False)
    return pa.table({"at": pa.array([at], pa.int32()), "found": pa.array([content.getvalue()], pa.binary())})


def _unpacked(content: bytes) -> Any:
    is_array = content.startswith(np.lib.format.MAGIC_PREFIX)
    return np.load(io.BytesIO(content), allow_pickle=False) if is_array else Statistics.from_bytes(content)


def _read(
    column: str, beside: list[bool], batch: Any, part: str = "the partition", first: int = 0
) -> tuple[Any, Any, Any]:
    """(X, y, sample_weight) of a batch; column : what the features are called"""
    y, weights = (_plain(batch.column(f"beside{at}")) if there else None for at, there in enumerate(beside))
    return _vectors(batch.column("features"), column, part, first), y, weights


def _plain(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_pylist()) if column.null_count == 0 else np.asarray(column.to_pylist(), dtype=object)


def _vectors(column: Any, name: str, part: str = "the partition", first: int = 0) -> Any:
    """A column of vectors or arrays as a table."""
    if column.null_count:
        at = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise PartError(f"{part}, row {at}, column {name!r}: null where a vector belongs. Drop such rows first.")
    if hasattr(column, "storage"):
        column = column.storage
    sizes, X = _of_vectors(column) if column.type.num_fields == 4 else _of_arrays(column)
    if (sizes != sizes[0]).any():
        at = int(np.flatnonzero(sizes != sizes[0])[0])
        raise PartError(
            f"{part}, row {first + at}, column {name!r}: {sizes[at]} numbers, after rows of {sizes[0]}. Every "
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
    values = column.to_numpy(zero_copy_only=False)
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


def _writer(model: Any, columns: list[str], output: str, *, vectors: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                X = _vectors(batch.column(columns[0]), columns[0]) if vectors else rows_of_columns(batch, columns)
                with columns_in_order():
                    scores = np.asarray(model.transform(X))
                yield _with_vectors(batch, output, scores)

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
