"""Reductions that can be compared, and the recommended pipeline: unfitted as it was judged, or fitted on all rows.

Reductions are those of the registry, those of scikit-learn, and estimators of the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from discrim.estimators.pipeline import LinearMap
from discrim.estimators.predictor import Predictor
from discrim.evaluation.baselines import MOST_NCA_ROWS
from discrim.evaluation.classifiers import CLASSIFIERS, Classifier, entries_named, named, preprocessing
from discrim.evaluation.results import ITSELF, Cell
from discrim.evaluation.trial import keep_groups, numbers_of_folds
from discrim.registry import OUR_METHODS, Method, Sizes, fewer_than_classes, fewer_than_columns, never
from discrim.tables.labelled_table import LabelledTable
from discrim.warn_once import columns_in_order

_baseline = partial(Method, ours=False)
_BASELINES = (
    _baseline("raw", "the features as they are, not reduced", default=True),
    _baseline(
        "lsi",
        "truncated singular value decomposition",
        "sklearn.decomposition:TruncatedSVD",
        options={"algorithm": "arpack"},
        most_components=fewer_than_columns,
        seeded=True,
    ),
    _baseline(
        "ica",
        "independent components (FastICA)",
        "sklearn.decomposition:FastICA",
        options={"whiten": "unit-variance", "max_iter": 500},
        nested_from=never,
        seeded=True,
        takes_sparse=False,
    ),
    _baseline(
        "cca",
        "canonical correlations with the class indicators",
        "discrim.evaluation.baselines:CanonicalCorrelations",
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _baseline(
        "pls",
        "partial least squares on the class indicators",
        "discrim.evaluation.baselines:PartialLeastSquares",
        takes_sparse=False,
    ),
    _baseline(
        "lasso",
        "columns chosen along the lasso path",
        "discrim.evaluation.baselines:LassoSelection",
        nested_from=never,
        takes_sparse=False,
    ),
    _baseline(
        "lda",
        "scikit-learn's linear discriminant analysis",
        "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _baseline(
        "nca",
        "neighbourhood components analysis",
        "discrim.evaluation.baselines:NeighborhoodComponents",
        nested_from=never,
        seeded=True,
        takes_sparse=False,
        note=f"fitted on at most {MOST_NCA_ROWS:,} training rows",
    ),
    _baseline(
        "random-projection",
        "Gaussian random directions",
        "sklearn.random_projection:GaussianRandomProjection",
        seeded=True,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in (*OUR_METHODS, *_BASELINES)}
RAW = METHODS["raw"]
DEFAULT_METHODS = tuple(name for name, method in METHODS.items() if method.default)


def named_methods(names: Iterable[str], n_rows: int = 0) -> tuple[Method, ...]:
    """Return the methods of these names in this order, each once; "all" means all, "default" the short list.

    n_rows : number of rows; methods that are slow on many rows are not in the short list for these
    """
    return entries_named(
        names, METHODS, [name for name in DEFAULT_METHODS if METHODS[name].default_rows >= n_rows], "methods"
    )


# ---------------------------------------------------------------------- estimators of the caller


@dataclass(frozen=True)
class GivenMethod(Method):
    """Transformer or pipeline that the caller passed.

    model : the estimator; only clones of it are fitted
    parameter : name of the parameter for the number of components; empty if there is none
    classifies : True if it ends in a classifier and is judged by its own predictions
    fixed : number of components, if it cannot be set
    """

    model: Any = None
    parameter: str = ""
    classifies: bool = False
    fixed: int = 0

    def counts(self, asked: Iterable[int], n_features: int) -> tuple[int, ...]:
        """Return the numbers asked for, or its own if the number cannot be set."""
        return tuple(asked) if self.parameter else (self.fixed or n_features,)

    def judges(self, classifiers: Iterable[str]) -> tuple[str, ...]:
        return (ITSELF,) if self.classifies else tuple(classifiers)

    def estimator(self, n_components: int, seed: int) -> Any:
        model = clone(self.model)
        return model.set_params(**{self.parameter: n_components}) if self.parameter else model

    @property
    def predicts(self) -> bool:
        """Return False: it is judged by its own predictions only if it does not transform."""
        return False

    @property
    def own_classifier(self) -> Classifier | None:
        """Return the pipeline's own classifier, if it has one."""
        return Classifier(ITSELF, "the pipeline's own", partial(clone, self.model)) if self.classifies else None

    def with_fixed_count(self, X: Any, y: Any) -> GivenMethod:
        """Return the method with its number of components, found by a fit.

        For a pipeline that ends in a classifier, these are the inputs of the classifier.
        """
        model = clone(self.model)
        if self.classifies:
            model = model[:-1] if isinstance(model, Pipeline) else model
        if not hasattr(model, "transform") or (isinstance(model, Pipeline) and not len(model)):
            return self
        return replace(self, fixed=int(model.fit(X, y).transform(X[:2]).shape[1]))


def as_methods(wanted: str | Any | Iterable[str | Any], n_rows: int = 0) -> tuple[Method, ...]:
    """Return names and estimators as methods, in their order, each name once; "default" depends on n_rows."""
    listed = [wanted] if isinstance(wanted, str) or hasattr(wanted, "fit") else list(wanted)
    found: dict[str, Method] = {}
    for one in listed:
        for method in named_methods([one], n_rows) if isinstance(one, str) else [_given(one)]:
            if isinstance(method, GivenMethod) and method.name in found:
                raise ValueError(
                    f"methods must have different names; got {method.name!r} twice. Wrap one of them in a Pipeline."
                )
            found.setdefault(method.name, method)
    return tuple(found.values())


def _given(model: Any) -> GivenMethod:
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise TypeError(
            f"methods must be names, or scikit-learn estimators such as PCA() or make_pipeline(StandardScaler(), "
            f"PLSRegression()); got {model!r}."
        )
    classifies = not hasattr(model, "transform")
    if classifies and not hasattr(model, "predict"):
        raise TypeError(f"methods must have transform or predict; {type(model).__name__} has neither.")
    with config_context(print_changed_only=False):
        written = " ".join(model.__repr__(N_CHAR_MAX=10**9).split())
    return GivenMethod(
        _name(model),
        "passed by the caller",
        None if classifies else type(model),
        nested_from=never,
        most_components=_any_number,
        ours=False,
        model=model,
        parameter="" if classifies else _parameter(model),
        classifies=classifies,
        written=written,
    )


def _any_number(sizes: Sizes) -> int:
    return sys.maxsize


def _name(model: Any) -> str:
    if isinstance(model, Pipeline):
        return "+".join(type(step).__name__ for _, step in model.steps if step not in (None, "passthrough"))
    return type(model).__name__


def _parameter(model: Any) -> str:
    """Return the last parameter named n_components, of the estimator or of a step of the pipeline."""
    named = [name for name in model.get_params() if name == "n_components" or name.endswith("__n_components")]
    of_steps = {f"{step}__n_components" for step, _ in model.steps} if isinstance(model, Pipeline) else {"n_components"}
    direct = [name for name in named if name in of_steps]
    return direct[-1] if direct else ""


@dataclass(frozen=True)
class Recommendation:
    """Recommended pipeline: preprocessing, reduction and classifier, by name and as they were judged.

    Attributes
    ----------
    method : str
        Name of the reduction; "raw" if all columns should be kept.
    n_components : int
        Number of components; the number of columns for "raw".
    classifier : str
        Name of the classifier; "itself" for the reduction's own predictions.
    scale : str
        How columns are scaled: "standard", "range" or "none".
    impute : str or None
        How missing cells are filled in; None if none are missing.
    class_weight : str or None
        "balanced" if classes count alike in the classifier, else None.
    """

    method: str
    n_components: int
    classifier: str
    scale: str = "standard"
    impute: str | None = None
    class_weight: str | None = None

    @property
    def cell(self) -> Cell:
        """Return the cell of the results."""
        return Cell(self.method, self.n_components, self.classifier)

    @property
    def reduces(self) -> bool:
        """Return True for a reduction, False for all columns."""
        return self.method != "raw"

    @property
    def predicts_itself(self) -> bool:
        """Return True if the reduction's own predictions were judged."""
        return self.classifier == ITSELF


def build_pipeline(
    wanted: Recommendation, *, sparse: bool = False, seed: int = 0, method: Method | None = None
) -> Pipeline:
    """Build an unfitted pipeline of imputer, scaler, reducer and classifier.

    Parameters
    ----------
    wanted : Recommendation
        Names of the steps; the classifier may be "", for none.
    sparse : bool, default=False
        True if the rows are sparse.
    seed : int, default=0
        Seed of a random method.
    method : Method, default=None
        The method of that name, if it was passed by the caller.
    """
    reduction = method or named(wanted.method, METHODS, "method")
    steps = preprocessing(wanted.scale, wanted.impute, sparse=sparse)
    if reduction.build is not None:
        steps.append(reduction.estimator(wanted.n_components, seed))
    if not wanted.predicts_itself and wanted.classifier:
        steps.append(named(wanted.classifier, CLASSIFIERS, "classifier").estimator(wanted.class_weight))
    elif wanted.predicts_itself and reduction.own_classifier is not None:
        steps.append(reduction.own_classifier.build())
    elif wanted.predicts_itself and not hasattr(steps[-1], "predict"):
        raise ValueError(f"--classifier must name a classifier, because {wanted.method} does not predict.")
    return make_pipeline(*steps)


def fit_pipeline(wanted: Recommendation, table: LabelledTable, groups: Any = None) -> Any:
    """Fit the pipeline on all rows of a table: a `Predictor` if there is a classifier, else a pipeline.

    Rows of one group are kept together by the folds of a method's own choices, and of the calibration.
    Linear reductions of scikit-learn are kept as their directions (`LinearMap`), so that the model can be saved.
    """
    reduction = named(wanted.method, METHODS, "method")
    most = reduction.most_components(Sizes(table.n_samples, table.n_features, len(table.class_counts())))
    if wanted.reduces and not 1 <= wanted.n_components <= most:
        raise ValueError(f"-k must be from 1 to {most} for {reduction.name} on this table; got {wanted.n_components}.")
    pipeline = build_pipeline(wanted, sparse=issparse(table.X))
    model = keep_groups(clone(pipeline), table.y, groups).fit(table.X, table.y)
    model.set_params(**numbers_of_folds(pipeline))  # the rows of each fold are no part of the model
    if wanted.reduces and not reduction.ours:
        at = len(preprocessing(wanted.scale, wanted.impute))
        kept = LinearMap.of(model[at], table.n_features, reduction.name.replace("-", ""))
        model.steps[at] = ("linearmap", kept)
    model[0].feature_names_in_ = np.array(table.feature_names, dtype=object)  # as a fit of a data frame sets them
    if not wanted.classifier:
        return model
    with columns_in_order():
        return Predictor(pipeline).set_fitted(model, table.X, table.y, groups)
