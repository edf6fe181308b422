"""Spark: `SparkReducer`, an estimator of pyspark.ml around any reducer of discrim.

    partitions → statistics (mapInArrow)     eight statistics → one (groupBy, applyInArrow), again     driver: the fit

The driver receives a few statistics, and rows only of a sample and of parts with far fewer rows than columns. No RDD
is used, so that it runs on Spark Connect too. The number of partitions is not known there, so the number of rounds of
adding is fixed. Numeric columns are sent to Python as one column of arrays, which costs Spark less than many columns;
a transform sends back only what it adds. Spark computes the components of a small linear map of numeric columns
itself, by an SQL expression.
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
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import (
        HasFeaturesCol,
        HasHandleInvalid,
        HasInputCols,
        HasLabelCol,
        HasOutputCol,
        HasPredictionCol,
        HasProbabilityCol,
        HasRawPredictionCol,
        HasWeightCol,
    )
    from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, FloatType, NumericType, StructType
except ImportError as error:
    raise ImportError(
        "discrim.spark needs pyspark, which is not installed. Install it with pip install 'discrim[spark]' (it needs "
        "Java 17)."
    ) from error

from discrim.core.moments.gather import Statistics, gathered_total
from discrim.engines.table_in_parts import Find, TableInParts
from discrim.estimators.base import Reducer
from discrim.estimators.bayes_error_lda import BayesErrorLDA
from discrim.estimators.parts import MAX_MEMORY, fit_in_parts, gathering_of
from discrim.estimators.pca import PCA
from discrim.estimators.pipeline import linear_map
from discrim.model_file import FORMAT, UNFITTED
from discrim.tables.table_error import quoted
from discrim.tables.validation import PartError
from discrim.warn_once import columns_in_order

FAN_IN, ROUNDS = 8, 3  # statistics that one task adds, and how many times: 4,096 partitions send eight to the driver
FOUND = "at int, found binary"
MAX_TERMS = 1_000  # of a linear map that Spark computes; longer expressions take it long to compile
INVALID = ("error", "skip", "keep")
PREDICTIONS = {"predict": "predictionCol", "predict_proba": "probabilityCol", "decision_function": "rawPredictionCol"}
DEFAULTS = {"featuresCol": "features", "labelCol": "label", "outputCol": "reduced", "handleInvalid": "error"}
DEFAULTS |= dict.fromkeys(PREDICTIONS.values(), "")
HYPER = "hyperparameter"  # first word of the documentation of a Param that is one of the estimator


class _Columns(
    HasInputCols,
    HasFeaturesCol,
    HasLabelCol,
    HasWeightCol,
    HasOutputCol,
    HasPredictionCol,
    HasProbabilityCol,
    HasRawPredictionCol,
    HasHandleInvalid,
):
    """Names of the columns that are read and written, and the estimator or model itself, as text.

    The hyperparameters of the estimator are Params too. Their values are stored in the payload only.
    """

    payload: Param[str] = Param(
        Params._dummy(), "payload", "the discrim estimator or model, kept as text", typeConverter=lambda one: _text(one)
    )

    def _columns(self) -> list[str]:
        return list(self.getInputCols()) if self.isSet(self.inputCols) else [self.getFeaturesCol()]

    def getModel(self) -> Any:  # noqa: N802 - a getter of pyspark.ml
        """Return a copy of the estimator or model."""
        raise NotImplementedError

    def _hyperparameters(self) -> dict[str, Any]:
        """Return the values of the estimator's hyperparameters by name; of a pipeline those of its steps."""
        given = self.getModel().get_params()
        return {name: value for name, value in given.items() if not hasattr(value, "get_params") and name != "steps"}

    def _define_hyperparameters(self) -> None:
        """Give this instance a Param for each hyperparameter of the estimator."""
        kind = type(self.getModel()).__name__
        for name in [name for name, one in vars(self).items() if isinstance(one, Param) and _is_hyper(one)]:
            delattr(self, name)
        for name in self._hyperparameters():
            if not hasattr(self, name):
                setattr(self, name, Param(self, name, f"{HYPER} of {kind}"))
        self._params: Any = None  # the cached list of Params

    def _set(self, **given: Any) -> Any:
        hyper = {name: value for name, value in given.items() if _is_hyper(getattr(self, name, None))}
        super()._set(**{name: value for name, value in given.items() if name not in hyper})
        if hyper:
            self._change(hyper)
        if "payload" in given:
            self._define_hyperparameters()
        return self

    def _invalid_rows(self) -> str:
        """Return what becomes of rows with nulls, NaN or infinite values."""
        mode = self.getOrDefault(self.handleInvalid)
        if mode not in INVALID:
            raise ValueError(f"handleInvalid must be one of {', '.join(INVALID)}; got {mode!r}.")
        return str(mode)

    def set(self, param: Any, value: Any) -> None:
        self._set(**{param.name: value})

    def getOrDefault(self, param: Any) -> Any:  # noqa: N802 - a method of pyspark.ml
        one = self._resolveParam(param)
        return self._hyperparameters()[one.name] if _is_hyper(one) else super().getOrDefault(one)

    def explainParam(self, param: Any) -> str:  # noqa: N802 - a method of pyspark.ml
        one = self._resolveParam(param)
        if one.name == "payload":
            return f"payload: {one.doc} (current: {self.getModel()!r})"
        if _is_hyper(one):
            return f"{one.name}: {one.doc} (current: {self.getOrDefault(one)!r})"
        return super().explainParam(one)

    def _change(self, hyperparameters: dict[str, Any]) -> None:
        """Change hyperparameters of the estimator."""
        raise NotImplementedError


def _is_hyper(param: Any) -> bool:
    return isinstance(param, Param) and param.doc.startswith(HYPER)


def _text(one: Any) -> str:
    """Return the bytes of a model, or of an unfitted estimator (as in a grid of a CrossValidator), as text."""
    if isinstance(one, str):
        return one
    return base64.b64encode(one if isinstance(one, bytes) else UNFITTED.to_bytes(one)).decode("ascii")


def _setter(name: str) -> Callable[[Any, Any], Any]:
    """Return a method that sets the Param of this name."""

    def set_param(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    set_param.__name__ = f"set{name[0].upper()}{name[1:]}"
    set_param.__doc__ = f"Set `{name}`."
    return set_param


def _with_setters(cls: type) -> type:
    """Add a setter for each Param of the class, as pyspark.ml has them."""
    for name in [name for name in dir(cls) if isinstance(getattr(cls, name), Param) and name != "payload"]:
        method = _setter(name)
        if not hasattr(cls, method.__name__):
            setattr(cls, method.__name__, method)
    return cls


@_with_setters
class SparkReducer(_Columns, Estimator, DefaultParamsReadable, DefaultParamsWritable):
    """A reducer of discrim as an estimator of pyspark.ml.

    The model equals the one that discrim fits on all rows in memory (with shrinkage="cv": with folds by content,
    `HashKFold`). Methods that need the rows themselves are fitted on a uniform sample of 20,000. Each hyperparameter of
    `model` is a Param: ``ParamGridBuilder().addGrid(reducer.n_components, [1, 2])``.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer, default=BayesErrorLDA()
        The estimator to fit. A grid of estimators varies `payload`:
        ``ParamGridBuilder().addGrid(reducer.payload, [BayesErrorLDA(1), PCA(2)])``.
    inputCols : list of str, default=None
        Numeric columns; or
    featuresCol : str, default="features"
        a column of vectors (dense or sparse) or arrays.
    labelCol : str, default="label"
        The class labels; not read if the method needs none.
    weightCol : str, default=None
        Weights of the rows.
    outputCol : str, default="reduced"
        New column for the components, as vectors.
    predictionCol : str, default=None
        New column for the predicted label, for estimators that classify: a double if the labels are numbers, else text.
        With "prediction", the evaluators of pyspark.ml work on the model's output.
    probabilityCol : str, default=None
        New column for the probabilities of the classes, as vectors, for estimators with `predict_proba`.
    rawPredictionCol : str, default=None
        New column for the scores of the classes, as vectors, for estimators with `decision_function`.
    handleInvalid : {"error", "skip", "keep"}, default="error"
        Rows with a null, a NaN or an infinite value: "error" raises an error that names the first one, "skip" leaves
        them out, and "keep" also leaves them out of the fit, but keeps them in a transform with nulls as output.
    maxMemory : int, default=8 * 2**30
        Bytes that the statistics may take, as `max_memory` of `fit_parts`. If they need more, PCA, MarginPCA and
        MaximumMarginCriterion read the data frame several times, and other methods raise an error.

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
        predictionCol: str | None = None,
        probabilityCol: str | None = None,
        rawPredictionCol: str | None = None,
        handleInvalid: str = "error",
        maxMemory: int = MAX_MEMORY,
    ) -> None:
        super().__init__()
        given = dict(vars(self)["_input_kwargs"])  # as keyword_only puts them
        self._setDefault(**DEFAULTS, maxMemory=MAX_MEMORY)
        self._define_hyperparameters()
        if model is not None:
            self.setModel(model)
        self._set(**{name: value for name, value in given.items() if name != "model" and value is not None})

    def setModel(self, model: Any) -> SparkReducer:  # noqa: N802 - a setter of pyspark.ml
        """Set the estimator to fit."""
        return self._set(payload=model)

    def getModel(self) -> Any:  # noqa: N802
        """Return a copy of the estimator."""
        if not self.isSet(self.payload):
            return BayesErrorLDA()
        return UNFITTED.from_bytes(base64.b64decode(self._paramMap[self.payload]), "SparkReducer's model")

    def _change(self, hyperparameters: dict[str, Any]) -> None:
        self._set(payload=self.getModel().set_params(**hyperparameters))

    def copy(self, extra: Any = None) -> Any:
        given = dict(extra or {})
        hyper = {one.name: given.pop(one) for one in list(given) if _is_hyper(one)}
        return super().copy(given)._set(**hyper)

    def _fit(self, dataset: Any) -> SparkReducerModel:
        model, columns = self.getModel(), self._columns()
        named = self.isSet(self.inputCols)
        others = [self.getLabelCol() if gathering_of(model).supervised else None]
        others += [self.getWeightCol() if self.isSet(self.weightCol) else None]
        _require_columns(dataset, [*columns, *filter(None, others)], columns if named else [])
        features = _as_array(dataset, columns) if named else _column(columns[0])
        rows = dataset.select(
            features.alias("features"), *(_column(name).alias(f"other{at}") for at, name in enumerate(others) if name)
        )
        drop_invalid = self._invalid_rows() != "error"
        read = partial(_read, columns[0], [name is not None for name in others], drop_invalid)
        width, names = (len(columns), columns) if named else (_width(rows), None)
        parts = TableInParts.from_engine(
            width, lambda find: _total(rows, partial(_of_partition, find, read)), names=names
        )
        fit_in_parts(model, parts, self.getOrDefault(self.maxMemory))
        found = SparkReducerModel()._set(payload=FORMAT.to_bytes(model))
        for name in [one.name for one in self._paramMap if one.name not in ("payload", "maxMemory")]:
            found._set(**{name: self.getOrDefault(name)})
        found.parent = self
        return found


@_with_setters
class SparkReducerModel(_Columns, Model, DefaultParamsReadable, DefaultParamsWritable):
    """A fitted reducer that adds its components, and its predictions if they are named, to a data frame."""

    parent: SparkReducer | None = None

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**DEFAULTS)

    def getModel(self) -> Any:  # noqa: N802
        """Return the fitted discrim model."""
        return FORMAT.from_bytes(base64.b64decode(self._paramMap[self.payload]), "The Spark model")

    def _change(self, hyperparameters: dict[str, Any]) -> None:
        raise ValueError(f"{', '.join(hyperparameters)} of a fitted model must not change. Fit the estimator again.")

    @property
    def model(self) -> Any:
        """The fitted discrim model."""
        return self.getModel()

    def _transform(self, dataset: Any) -> Any:
        model, columns, named = self.getModel(), self._columns(), self.isSet(self.inputCols)
        _require_columns(dataset, columns, columns if named else [])
        outputs = self._outputs(model)
        if taken := [name for name in outputs.values() if name in dataset.columns]:
            raise ValueError(
                f"Output columns must be new; got {', '.join(map(repr, taken))}, which the data frame has. Set "
                "outputCol, predictionCol, probabilityCol or rawPredictionCol to other names, or drop the columns."
            )
        mode = self._invalid_rows()
        found = _expressed(model, len(columns)) if named and len(outputs) == 1 else None
        if found is not None:
            return _with_expression(dataset, columns, *found, self.getOutputCol(), mode)
        features = _as_array(dataset, columns) if named else _column(columns[0])
        arrow_udf: Any = functions.arrow_udf  # whose overloads do not know kinds by annotation
        compute = arrow_udf(_transformer(model, columns, tuple(outputs), mode), _output_type(outputs, model))
        made = "discrim output"
        result = dataset.withColumn(made, compute(features))
        if mode == "skip":
            result = result.filter(_column(made).isNotNull())
        values = {method: functions.col(f"{_quoted(made)}.{method}") for method in outputs}
        for method in outputs.keys() - {"predict"}:
            values[method] = functions.when(values[method].isNotNull(), array_to_vector(values[method]))
        added = [values[method].alias(name) for method, name in outputs.items()]
        return result.select(*map(_column, dataset.columns), *added)

    def _outputs(self, model: Any) -> dict[str, str]:
        """Return the names of the new columns by the method that computes each."""
        outputs = {"transform": self.getOutputCol()}
        for method, param in PREDICTIONS.items():
            name = self.getOrDefault(param)
            if not name:
                continue
            if not hasattr(model, method):
                raise ValueError(f"{param} must not be set: {type(model).__name__} has no {method}.")
            outputs[method] = name
        return outputs


def _require_columns(dataset: Any, names: list[str], numeric: list[str]) -> None:
    """Raise an error for columns that the data frame lacks or that do not hold numbers, before a job starts."""
    types = {field.name: field.dataType for field in dataset.schema.fields}
    for name in names:
        if name in types:
            continue
        outer = name.split(".")[0]
        if isinstance(types.get(outer), StructType):
            raise ValueError(
                f"Columns must be at the top level; got {name!r}, a field of the struct column {outer!r}. Select it "
                f"under a name of its own first: frame.withColumn({name.split('.')[-1]!r}, frame[{name!r}])."
            )
        raise ValueError(f"Columns must be in the data frame; got {name!r}. It has {', '.join(list(types)[:20])}.")
    for name in numeric:
        if not isinstance(types[name], NumericType | BooleanType):
            raise ValueError(
                f"inputCols must be numeric; got {name!r}, which is of type {types[name].simpleString()}. Cast or "
                "encode it first, for example with StringIndexer and OneHotEncoder."
            )


def _as_array(dataset: Any, columns: list[str]) -> Any:
    """Return the columns as one column of arrays; whole numbers and decimals become doubles."""
    single = all(isinstance(dataset.schema[name].dataType, FloatType) for name in columns)
    return functions.array(*(_column(name).cast("float" if single else "double") for name in columns))


def _column(name: str) -> Any:
    return functions.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _width(rows: Any) -> int:
    """Return the length of the vectors, from the first one that is not null."""
    first = rows.select("features").filter(functions.col("features").isNotNull()).head(1)
    return len(first[0][0]) if first else 0


def _output_type(outputs: dict[str, str], model: Any) -> str:
    label = "string" if "predict" in outputs and _are_texts(model) else "double"
    fields = [f"`{method}`: {label if method == 'predict' else 'array<double>'}" for method in outputs]
    return f"struct<{', '.join(fields)}>"


def _are_texts(model: Any) -> bool:
    return bool(model.classes_.dtype.kind not in "biuf")


# ---------------------------------------------------------------------- linear maps, computed by Spark itself


def _expressed(model: Any, n_columns: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return centre and directions if Spark can compute the components: of a small linear map without gaps."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    is_plain = type(last)._features is Reducer._features or (isinstance(last, PCA) and not last.whiten)
    found = linear_map(model) if isinstance(last, Reducer) and is_plain and not last._allows_gaps else None
    return found if found is not None and found[1].shape[1] == n_columns and found[1].size <= MAX_TERMS else None


def _with_expression(
    dataset: Any, columns: list[str], centre: NDArray[Any], directions: NDArray[Any], output: str, mode: str
) -> Any:
    """Return the data frame with the components, computed without Python."""
    made = _quoted("discrim output")
    sums = [_sum(columns, centre.tolist(), weights) for weights in directions.tolist()]
    result = dataset.withColumn("discrim output", functions.expr(f"array({', '.join(sums)})"))
    # a cell that is null, NaN or infinite makes all components so
    valid = functions.expr(f"coalesce(forall({made}, one -> abs(one) < double('infinity')), false)")
    if mode == "skip":
        result = result.filter(valid)
    components = functions.when(valid, array_to_vector(functions.col(made)))
    if mode == "error":
        message = (
            f"Columns {quoted(columns)} must hold finite numbers, small enough for the result; got a null, a NaN, "
            "an infinite value or a result above 1.8e308. Drop such rows, or set handleInvalid='skip'."
        )
        components = components.otherwise(functions.raise_error(functions.lit(message)))
    return result.select(*map(_column, dataset.columns), components.alias(output))


def _sum(columns: list[str], centre: list[float], weights: list[float]) -> str:
    """Return Σ (x_j − c_j) w_j in SQL, added in a tree: Spark cannot read very deep expressions."""
    if len(columns) > 1:
        half = len(columns) // 2
        pieces = [
            _sum(columns[part], centre[part], weights[part]) for part in (slice(0, half), slice(half, len(columns)))
        ]
        return f"({' + '.join(pieces)})"
    return f"(double({_quoted(columns[0])}) - ({centre[0]!r}D)) * ({weights[0]!r}D)"


# ---------------------------------------------------------------------- on the workers


def _total(rows: Any, of_partition: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
    """Return the sum of what is found in the partitions, added on the workers until few are left."""
    found = rows.mapInArrow(of_partition, FOUND)
    for _ in range(ROUNDS):
        found = found.groupBy((found["at"] / FAN_IN).cast("int").alias("group")).applyInArrow(_added, FOUND)
    return gathered_total(_unpacked(bytes(row["found"])) for row in found.collect())


def _of_partition(find: Find, read: Callable[..., tuple[Any, Any, Any]], batches: Iterator[Any]) -> Iterator[Any]:
    context = TaskContext.get()
    at = context.partitionId() if context else 0
    found = find(f"partition {at}", _tables(read, f"partition {at}", batches))
    if found is not None:
        yield from _packed(at, found).to_batches()


def _tables(
    read: Callable[..., tuple[Any, Any, Any]], part: str, batches: Iterator[Any]
) -> Iterator[tuple[Any, Any, Any]]:
    first = 0
    for batch in batches:
        if batch.num_rows:
            table = read(batch, part, first)
            yield table
            first += table[0].shape[0]


def _added(key: tuple[Any, ...], found: Any) -> Any:
    """Return the sum of a group, in the order of the partitions."""
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
    column: str, others: list[bool], drop_invalid: bool, batch: Any, part: str, first: int
) -> tuple[Any, Any, Any]:
    """Return (X, y, sample_weight) of a batch; column : the name of the features"""
    kept = _valid(batch.column("features")) if drop_invalid else None
    if kept is not None and not kept.all():
        batch = batch.filter(kept)
    y, weights = (_plain(batch.column(f"other{at}")) if there else None for at, there in enumerate(others))
    if not batch.num_rows:
        return np.empty((0, 1)), y, weights
    return _vectors(batch.column("features"), column, part, first), y, weights


def _valid(column: Any) -> Any:
    """Return a mask of the rows whose vector is not null and holds finite numbers only."""
    import pyarrow as pa

    kept = column.is_valid().to_numpy(zero_copy_only=False)
    if kept.any():
        X = _vectors(column.filter(pa.array(kept)), "")
        values = X.data if sp.issparse(X) else X
        if not np.isfinite(values).all():
            sums = np.asarray(abs(X).sum(axis=1)).ravel()
            kept = kept.copy()
            kept[np.flatnonzero(kept)[~np.isfinite(sums)]] = False
    return kept


def _transformer(model: Any, columns: list[str], methods: tuple[str, ...], mode: str) -> Callable[[Any], Any]:
    """Return a function of a batch of features that returns a struct array of the outputs."""
    import pyarrow as pa

    def transform(features):  # type: ignore[no-untyped-def]
        kept = np.ones(len(features), bool) if mode == "error" else _valid(features)
        X = _vectors(features.filter(pa.array(kept)), columns[0]) if kept.any() else np.empty((0, 1))
        arrays = [_values(model, method, X, kept) for method in methods]
        fields = [pa.field(method, array.type) for method, array in zip(methods, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(~kept))

    transform.__annotations__ = {"features": pa.Array, "return": pa.Array}  # by which Spark tells the kind of function
    return transform


def _values(model: Any, method: str, X: Any, kept: NDArray[np.bool_]) -> Any:
    """Return what a method gives as an Arrow array, with nulls for the rows that are not kept."""
    import pyarrow as pa

    n = len(kept)
    if method == "predict":
        texts = _are_texts(model)
        labels = np.full(n, None, dtype=object)
        if kept.any():
            predicted = _call(model, method, X)
            labels[kept] = predicted.astype(str) if texts else predicted.astype(float)
        return pa.array(labels, pa.string() if texts else pa.float64())
    width = 0
    scores = np.empty((0, 0))
    if kept.any():
        scores = np.asarray(_call(model, method, X), dtype=np.float64)
        if scores.ndim == 1:  # two classes have one score: that of the second
            scores = np.column_stack([-scores, scores])
        width = scores.shape[1]
    ends = pa.array(np.cumsum([0, *(width * kept)]).astype(np.int32))
    values = pa.array(np.ascontiguousarray(scores).ravel())
    return pa.ListArray.from_arrays(ends, values)


def _call(model: Any, method: str, X: Any) -> NDArray[Any]:
    with columns_in_order():
        return np.asarray(getattr(model, method)(X))


def _plain(column: Any) -> NDArray[Any]:
    """Return labels or weights; as objects where some are null or numpy would cut the zeros at the end of texts."""
    values = column.to_pylist()
    cut = any(isinstance(value, str) and value.endswith("\0") for value in values)
    return np.asarray(values, dtype=object if cut or column.null_count else None)


def _vectors(column: Any, name: str, part: str = "the partition", first: int = 0) -> Any:
    """Return a column of vectors or arrays as a table."""
    if column.null_count:
        at = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise PartError(
            f"{part}, row {at}, column {name!r}: null instead of a vector. Drop such rows, or set handleInvalid='skip'."
        )
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
    """Return the table of arrays of numbers; the numbers are converted only if the sizes are equal."""
    sizes = column.value_lengths().to_numpy(zero_copy_only=False)
    return sizes, lambda: _numbers(column.flatten()).reshape(len(sizes), -1)


def _of_vectors(column: Any) -> Sized:
    """Return the table of pyspark.ml vectors: struct<type (0 sparse, 1 dense), size, indices, values>."""
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
