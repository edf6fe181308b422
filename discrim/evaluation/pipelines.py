"""Recommended pipeline by name: unfitted as it was judged, or fitted on all rows for prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from discrim.estimators.pipeline import LinearMap
from discrim.estimators.predictor import Predictor
from discrim.evaluation.classifiers import CLASSIFIERS, named, preprocessing
from discrim.evaluation.methods import METHODS
from discrim.evaluation.results import ITSELF, Cell
from discrim.evaluation.trial import keep_groups, numbers_of_folds
from discrim.registry import Method, Sizes
from discrim.tables.labelled_table import LabelledTable
from discrim.warn_once import columns_in_order


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
