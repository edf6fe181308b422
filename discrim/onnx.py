"""Export to ONNX: `register()` adds converters for every reducer and classifier of discrim to skl2onnx.

    float rows → doubles → (x − mean)ᵀ components, or a kernel's features → floats

Graphs compute in doubles, as discrim does, and agree with `transform` to the precision of their input. Reducers that
also classify are transformers in a graph, also in the middle of a Pipeline; with the option "predict" they return
labels and probabilities instead.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler

try:
    from onnx import TensorProto
    from skl2onnx import update_registered_converter
    from skl2onnx._parse import _parse_sklearn
    from skl2onnx.algebra import onnx_ops
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
except ImportError as error:
    raise ImportError(
        "discrim.onnx needs skl2onnx, which is not installed. Install it with pip install 'discrim[onnx]'."
    ) from error

from discrim.core.classifier_rule import ClassifierRule, MeanRule
from discrim.core.cross_validation import any_class
from discrim.core.kernel_choice import PosteriorRule
from discrim.core.landmarks import LandmarkKernel
from discrim.estimators.autoencoder import HIGH, LOW, Autoencoder
from discrim.estimators.discriminant import CentroidClassifier
from discrim.estimators.kernel_map import KernelMap
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.estimators.max_margin_shift import MaxMarginShift
from discrim.estimators.pipeline import LinearMap
from discrim.estimators.posterior_map import PosteriorMap
from discrim.estimators.refined_hyperplane import RefinedHyperplane
from discrim.registry import ENTRIES, load_target

Array = NDArray[np.float64]
Node = Any  # an operator of skl2onnx's algebra
PREDICT = "predict"  # the option of reducers that also classify
# skl2onnx passes zipmap to the final classifier of a Pipeline; the probabilities here are an array in any case
OPTIONS = {PREDICT: [True, False], "zipmap": [True, False, "columns"]}


def register() -> None:
    """Register converters for the estimators of discrim, alone and in a Pipeline.

    Examples
    --------
    >>> import discrim.onnx  # doctest: +SKIP
    >>> discrim.onnx.register()  # doctest: +SKIP
    >>> skl2onnx.to_onnx(pipeline, X[:1].astype("float32"))  # doctest: +SKIP
    >>> skl2onnx.to_onnx(model, X[:1], options={id(model): {"predict": True}})  # doctest: +SKIP
    """
    classes = [load_target(entry.target) for entry in ENTRIES if entry.saved or entry.classifies]
    parsers = {MaxMarginShift: _parse_shift}
    for one in [*classes, LinearMap, ShiftedPCA]:
        update_registered_converter(
            one, f"Discrim{one.__name__}", _shapes, _convert, parser=parsers.get(one, _parse), options=OPTIONS
        )


# ---------------------------------------------------------------------- callbacks of skl2onnx


def _predicts(model: Any, options: dict[str, Any]) -> bool:
    if not options.get(PREDICT, not hasattr(model, "transform")):
        return False
    if not is_classifier(model):
        raise ValueError(f"{type(model).__name__} has no predict. Leave the option {PREDICT!r} out.")
    return True


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs: features, or labels and probabilities (scores, if there are no probabilities)."""
    operator = scope.declare_local_operator(f"Discrim{type(model).__name__}", model)
    operator.inputs = inputs
    kind = _number_type(inputs)
    if _predicts(model, scope.get_options(model, {}) or {}):
        text = np.asarray(model.classes_).dtype.kind in "OSU"
        label = StringTensorType() if text else Int64TensorType()
        second = "probabilities" if hasattr(model, "predict_proba") else "scores"
        named = [("label", label), (second, kind())]
    else:
        named = [("variable", kind())]
    operator.outputs.extend(scope.declare_local_variable(name, type_) for name, type_ in named)
    return operator.outputs


def _parse_shift(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Parse the embedding and the extractor: new rows are not shifted."""
    for step in (model.embedding_, model.extractor_):
        if isinstance(step, RBFSampler):
            raise NotImplementedError(
                "MaxMarginShift with embedding='rff' cannot be exported to ONNX. Use embedding=KernelMap() or None."
            )
        if step is not None:
            inputs = _parse_sklearn(scope, step, inputs, custom_parsers=custom_parsers)
    return inputs


def _number_type(inputs: Any) -> Any:
    return DoubleTensorType if any(isinstance(one.type, DoubleTensorType) for one in inputs) else FloatTensorType


def _shapes(operator: Any) -> None:
    n, model = operator.inputs[0].get_first_dimension(), operator.raw_operator
    if len(operator.outputs) == 1:
        operator.outputs[0].type.shape = [n, len(model.get_feature_names_out())]
    else:
        operator.outputs[0].type.shape = [n]
        operator.outputs[1].type.shape = [n, len(model.classes_)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model, version = operator.raw_operator, container.target_opset
    at = Graph(version)
    kind = TensorProto.DOUBLE if _number_type(operator.inputs) is DoubleTensorType else TensorProto.FLOAT
    columns = [at("Cast", one, to=TensorProto.DOUBLE) for one in operator.inputs]
    rows = columns[0] if len(columns) == 1 else at("Concat", *columns, axis=1)
    if len(operator.outputs) == 1:
        ends = [at("Cast", _features(at, model, rows), to=kind, output_names=operator.outputs)]
    else:
        ends = _classified(at, model, rows, kind, operator.outputs)
    for end in ends:
        end.add_to(scope, container)


class Graph:
    """Operators of one opset version by name, applied to arrays and other operators."""

    def __init__(self, version: int) -> None:
        self.version = version

    def __call__(self, name: str, *arguments: Any, **options: Any) -> Node:
        return getattr(onnx_ops, f"Onnx{name}")(*arguments, op_version=self.version, **options)

    def times(self, rows: Node, matrix: Any) -> Node:
        return self("MatMul", rows, np.ascontiguousarray(matrix, dtype=np.float64))

    def plus(self, rows: Node, values: Any) -> Node:
        return self("Add", rows, np.atleast_1d(np.asarray(values, dtype=np.float64)))

    def scaled(self, rows: Node, factors: Any) -> Node:
        return self("Mul", rows, np.atleast_1d(np.asarray(factors, dtype=np.float64)))

    def projected(self, rows: Node, mean: Any, directions: Any) -> Node:
        """Return (x − mean)ᵀ directions; each direction is a row."""
        return self.times(self.plus(rows, -np.asarray(mean, dtype=np.float64)), np.asarray(directions).T)

    def squares(self, rows: Node) -> Node:
        """Return ‖x‖² of each row, as a column."""
        return self("ReduceSum", self("Mul", rows, rows), np.array([1], dtype=np.int64), keepdims=1)


# ---------------------------------------------------------------------- features


def _features(at: Graph, model: Any, rows: Node) -> Node:
    """Return the output of `transform`."""
    for kind, build in FEATURES.items():
        if isinstance(model, kind):
            return build(at, model, rows)
    scores = at.projected(rows, model.mean_, model.components_)
    if getattr(model, "pieces", False):
        if not model.centre:
            scores = at.plus(scores, model.mean_ @ model.components_.T)
        return at("Concat", at("Relu", scores), at("Relu", at("Neg", scores)), axis=1)
    k = len(model.components_)
    constant = np.asarray(model._features(np.zeros((1, k))), dtype=np.float64)[0]
    factors = np.asarray(model._features(np.eye(k)), dtype=np.float64) - constant
    return at.plus(at.times(scores, factors), constant)


def _of_posterior_map(at: Graph, model: PosteriorMap, rows: Node) -> Node:
    sharp = at.scaled(_posterior_scores(at, model._rule, rows), model.sharpness_ / model.temperature_)
    return at.times(at("Softmax", sharp, axis=1), model.places_)


def _of_autoencoder(at: Graph, model: Autoencoder, rows: Node) -> Node:
    varies = model.data_range_ > 0
    factors = np.where(varies, (HIGH - LOW) / np.where(varies, model.data_range_, 1.0), 0.0)
    constant = np.where(varies, LOW, (LOW + HIGH) / 2)
    placed = at.plus(at.scaled(at.plus(rows, -model.data_min_), factors), constant)
    return at("Sigmoid", at.plus(at.times(placed, model.components_.T), model.intercept_))


FEATURES: dict[type, Callable[[Graph, Any, Node], Node]] = {
    LinearMap: lambda at, model, rows: at.plus(at.times(rows, model.components_.T), model.offset_),
    KernelMap: lambda at, model, rows: at.plus(
        at.times(_kernel(at, model._kernel_seen, rows), model._axes), -model._offsets
    ),
    PosteriorMap: _of_posterior_map,
    Autoencoder: _of_autoencoder,
}


def _kernel(at: Graph, kernel: LandmarkKernel, rows: Node) -> Node:
    """Return k(x, l) for every landmark l."""
    if kernel.name not in ("rbf", "linear"):
        raise NotImplementedError(f"kernel must be 'rbf' or 'linear' for export to ONNX; got {kernel.name!r}.")
    landmarks, origin, factors = kernel.rescaled_landmarks, kernel.origin, kernel.factors
    landmarks = np.asarray(landmarks.toarray() if hasattr(landmarks, "toarray") else landmarks)
    placed = at.scaled(at.plus(rows, -np.asarray(origin)), factors)
    products = at.times(placed, landmarks.T)
    if kernel.name == "linear":
        return products
    gaps = at.plus(at.scaled(products, -2.0), np.einsum("ld,ld->l", landmarks, landmarks))
    squares = at("Relu", at("Add", gaps, at.squares(placed)))
    return at("Exp", at.scaled(squares, -kernel.params["gamma"]))


# ---------------------------------------------------------------------- classes


def _classified(at: Graph, model: Any, rows: Node, kind: int, outputs: Any) -> list[Node]:
    scores = _scores(at, model, rows)
    best = at("Reshape", at("ArgMax", scores, axis=1, keepdims=0), np.array([-1], dtype=np.int64))
    classes = np.asarray(model.classes_)
    named = classes.astype(str) if classes.dtype.kind in "OSU" else classes.astype(np.int64)
    taken = at("ArrayFeatureExtractor", named.reshape(1, -1), best)
    label = at("Reshape", taken, np.array([-1], dtype=np.int64), output_names=outputs[:1])
    second = _probabilities(at, model, scores) if hasattr(model, "predict_proba") else at("Identity", scores)
    return [label, at("Cast", second, to=kind, output_names=outputs[1:])]


def _scores(at: Graph, model: Any, rows: Node) -> Node:
    """Return the scores of the classes (n×C); the class with the largest score is predicted."""
    if isinstance(model, PosteriorMap):
        return _posterior_scores(at, model._rule, rows)
    if isinstance(model, CentroidClassifier):
        rule = model._rule
        offsets = rule.log_priors - 0.5 * np.einsum("cq,cq->c", rule.centroids, rule.centroids)
        return at.plus(at.times(at.projected(rows, model.mean_, rule.directions), rule.centroids.T), offsets)
    values = at.plus(at.times(rows, model.coef_.T), model.intercept_)
    if len(model.classes_) == 2:
        return at.times(values, np.array([[-0.5, 0.5]]))
    return _votes(at, values, len(model.classes_)) if isinstance(model, RefinedHyperplane) else values


def _posterior_scores(at: Graph, rule: PosteriorRule | ClassifierRule | MeanRule, rows: Node) -> Node:
    if isinstance(rule, MeanRule):
        shares = [
            at("Softmax", at.scaled(_posterior_scores(at, one, rows), 1 / temperature), axis=1)
            for one, temperature in zip(rule.rules, rule.temperatures, strict=True)
        ]
        return _log_shares(at, at.scaled(at("Sum", *shares), 1 / len(shares)), rule)
    if isinstance(rule, ClassifierRule):
        return _forest_scores(at, rule, rows)
    seen = at.plus(rows, -rule.centre) if rule.kernel is None else _kernel(at, rule.kernel, rows)
    return at.plus(at.times(seen, rule.coefficients), rule.offsets)


def _forest_scores(at: Graph, rule: ClassifierRule, rows: Node) -> Node:
    """Return the scores of a forest from its mean leaf shares."""
    forest = rule.classifier
    if not isinstance(forest, RandomForestClassifier) or len(rule.known) < rule.n_classes:
        raise NotImplementedError(
            f"A PosteriorMap of {type(forest).__name__} cannot be exported to ONNX. Use classifier='rule' or a "
            "RandomForestClassifier that knows all classes."
        )
    if rule.centre is not None:
        rows = at.scaled(at.plus(rows, -rule.centre), np.ldexp(1.0, -rule.exponent))
    single = at("Cast", rows, to=TensorProto.FLOAT)
    shares = onnx_ops.OnnxTreeEnsembleRegressor_3(single, op_version=3, **_tree_table(forest))
    return _log_shares(at, at("Cast", shares, to=TensorProto.DOUBLE), rule)


def _log_shares(at: Graph, shares: Node, rule: ClassifierRule | MeanRule) -> Node:
    """Return log((1 − 1/n) p + 1/(nC))."""
    share = any_class(rule.total_weight)
    return at("Log", at.plus(at.scaled(shares, 1 - share), share / len(rule.offsets)))


def _tree_table(forest: RandomForestClassifier) -> dict[str, Any]:
    """Return the nodes of all trees as ONNX lists them; thresholds are rounded down to single precision."""
    table: dict[str, list[Any]] = {}
    for number, one in enumerate(forest.estimators_):
        tree = one.tree_
        inner = tree.children_left >= 0
        single = tree.threshold.astype(np.float32)
        single = np.where(single > tree.threshold, np.nextafter(single, np.float32(-np.inf)), single)
        values, n_classes = tree.value[~inner, 0], len(forest.classes_)
        columns = {
            "nodes_treeids": np.full(tree.node_count, number),
            "nodes_nodeids": np.arange(tree.node_count),
            "nodes_featureids": np.where(inner, tree.feature, 0),
            "nodes_modes": np.where(inner, "BRANCH_LEQ", "LEAF"),
            "nodes_values": np.where(inner, single, 0.0),
            "nodes_truenodeids": np.where(inner, tree.children_left, 0),
            "nodes_falsenodeids": np.where(inner, tree.children_right, 0),
            "target_treeids": np.full(values.size, number),
            "target_nodeids": np.repeat(np.flatnonzero(~inner), n_classes),
            "target_ids": np.tile(np.arange(n_classes), len(values)),
            "target_weights": (values / values.sum(axis=1, keepdims=True) / len(forest.estimators_)).ravel(),
        }
        for name, column in columns.items():
            table.setdefault(name, []).extend(column.tolist())
    return {**table, "n_targets": len(forest.classes_), "aggregate_function": "SUM"}


def _votes(at: Graph, values: Node, n_classes: int) -> Node:
    """Return the number of pairs that each class wins; ties are broken by summed values, as in RefinedHyperplane."""
    low, high = (np.eye(n_classes)[list(side)] for side in zip(*combinations(range(n_classes), 2), strict=True))
    won = at("Cast", at("Greater", values, np.zeros(1)), to=TensorProto.DOUBLE)
    votes = at.plus(at.times(won, high - low), low.sum(axis=0))
    confidence = at.times(values, high - low)
    squeezed = at("Div", confidence, at.scaled(at.plus(at("Abs", confidence), 1.0), 2.0))
    return at("Add", votes, squeezed)


def _probabilities(at: Graph, model: Any, scores: Node) -> Node:
    if not isinstance(model, PosteriorMap):
        return at("Softmax", scores, axis=1)
    share = any_class(model._total_weight)
    soft = at("Softmax", at.scaled(scores, 1 / model.temperature_), axis=1)
    return at.plus(at.scaled(soft, 1 - share), share / len(model.classes_))
