"""Posterior map: class probabilities of a classifier as positions in few dimensions."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils import Tags

from discrim.core.class_places import on_principal_axes
from discrim.core.classifier_rule import column_effects, odds_weights
from discrim.core.cross_validation import calibrated
from discrim.core.explanation import Explanation, two_classes
from discrim.core.kernel_choice import ChosenKernel
from discrim.core.posterior_rule import SHARPNESS
from discrim.docstrings import public_estimator
from discrim.engines.dask_tables import accept_dask, is_dask
from discrim.engines.table_files import is_path
from discrim.estimators.fitting import fitted_attribute, solved, unchanged_on_failure
from discrim.estimators.map_statistics import SHARPNESS_RULES, AbsentAttribute, MapOfStatistics
from discrim.estimators.parts import fit_collection
from discrim.tables.check_parameters import POSITIVE, Constraints, Possible, check_parameters, named, whole
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_finite,
    require_representable,
    require_two_classes,
)

Array = NDArray[np.float64]
LANDMARKS_WANTED = (whole(2), Possible("or None to choose it by the rows", lambda count: count is None))


@public_estimator
class PosteriorMap(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, MapOfStatistics):
    """Posterior map: place every row at the average of its classes' places, weighted by class probabilities.

        z(x) = Σ_c q_c(x) v_c ,   q = softmax(s·a(x)/T) ,   a_c(x) = m_cᵀΣ_γ⁻¹φ(x) − ½ m_cᵀΣ_γ⁻¹m_c + log p_c

    It gives the fewest features for a classifier, and a picture of the classes that it confuses; it is not linear. The
    rule a is linear discriminant analysis with a ridge, on the columns or in the features φ of a Gaussian kernel.
    Held-out rows choose the kernel, its width, the ridge γ and the temperature T. Classes that are confused on held-out
    rows have places v near each other.

    The map does not show structure within classes: no clusters, no outliers, no loadings. The places of the classes
    depend on the sample, and training rows look better separated than new ones, so plot held-out rows. Scale the
    columns first, e.g. with StandardScaler. For directions with loadings use BayesErrorLDA.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions, at most C−1 (None). If a larger number is requested, C−1 are returned.
    kernel : str, default="auto"
        "auto" chooses by held-out rows between the columns themselves and a Gaussian kernel with three widths, each
        with columns plain, scaled by relevance to the classes, or with refined scales. Otherwise "linear", "rbf", or
        the name of another kernel of scikit-learn's `pairwise_kernels`.
    kernel_params : dict, default=None
        Parameters of a named kernel, such as {"gamma": 0.1} for "rbf", which is then the only candidate.
    sharpness : float, "auto" or "tempered", default="auto"
        s. Large values move the rows to the places of their classes; 1 weights the places by the probabilities. "auto"
        is the smallest of 2, 3, 4, 6, 8 and 12 at which the nearest place predicts held-out rows as well as at any
        other, to within 0.5 %; 2 if n_components is C−1. "tempered", for plots, places the median held-out row at 0.8
        of the distance to its class.
    n_landmarks : int, default=None
        Maximum number of landmarks of a kernel; None uses 300 to choose the kernel and 1,000 for the rule.
    cv: Folds for the choices.
    random_state: Seed of the landmarks and of the random starts of the places, and for shuffling the folds; None uses 0
        and unshuffled folds.
    classifier : estimator, "rule" or None, default=None
        Any scikit-learn classifier to be mapped, with probabilities or a decision function, calibrated by a temperature
        on held-out folds. "rule" uses the kernel rule only. None also tries a random forest of 100 trees, and the mean
        of its probabilities and the rule's, on dense tables with 200 to 5,000 rows, if `kernel` is "auto" and `cv` is
        an int; the forest is screened by its out-of-bag scores.

    Attributes
    ----------
    places_ : array of shape (n_classes, n_components)
        v: unit vectors, or evenly spaced numbers in [−1, 1] for one component. Axes are the principal axes of the
        held-out rows on the map, largest variance first.
    confusions_ : array of shape (n_classes, n_classes)
        Mean probability of each class (column) on held-out rows of each class (row).
    kernel_ : ChosenKernel
        The chosen kernel and the reason, with the held-out accuracy and log loss of every candidate. Its name is that
        of a kernel, of a classifier, or of both joined by "+".
    shrinkage_: γ of the rule; 0 if the forest, the mean of both or a given classifier was chosen.
    temperature_ : float
        T.
    sharpness_ : float
        s, as given or as computed.
    held_out_score_ : float
        Accuracy of the rule on held-out rows.
    held_out_log_loss_ : float
        Log loss of `predict_proba` on held-out rows.
    classes_: Sorted class labels.
    n_features_in_: Number of features seen in fit.
    n_components_: Number of dimensions.
    feature_importances_ : array of shape (n_features,)
        Mean effect of one standard deviation of each column on the log odds of a row's two most probable classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import PosteriorMap
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PosteriorMap(n_components=2).fit(scale(X), y)
    >>> model.transform(scale(X)).shape
    (178, 2)
    >>> model.held_out_score_ > 0.95
    True
    """

    places_: Array = solved()
    confusions_: Array = solved()
    kernel_: ChosenKernel = solved()
    shrinkage_: float = solved()
    sharpness_: float = solved()
    held_out_score_: float = solved()
    held_out_log_loss_: float = solved()
    inverse_transform = AbsentAttribute(
        "a position only shows class probabilities and is shared by many rows. Use BayesErrorLDA, whose components "
        "have an inverse transform."
    )
    components_ = AbsentAttribute("the map is not linear, so it has no directions. Use BayesErrorLDA for loadings.")

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": (whole(1), Possible("or None for n_classes − 1", lambda k: k is None)),
        "kernel": named("auto", *KERNEL_PARAMS),
        "sharpness": (*POSITIVE, *named(*SHARPNESS_RULES)),
        "n_landmarks": LANDMARKS_WANTED,
        "classifier": (
            *named("rule"),
            Possible(
                "a scikit-learn classifier",
                lambda given: not isinstance(given, type) and hasattr(given, "get_params") and is_classifier(given),
            ),
            Possible("or None to choose between the rule and a forest", lambda given: given is None),
        ),
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        kernel: str = "auto",
        kernel_params: dict[str, Any] | None = None,
        sharpness: float | str = "auto",
        n_landmarks: int | None = None,
        cv: Any = 5,
        random_state: Any = None,
        classifier: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.sharpness = sharpness
        self.n_landmarks = n_landmarks
        self.cv = cv
        self.random_state = random_state
        self.classifier = classifier

    # ------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the classifier by held-out rows, fit it to all rows, and compute the places of the classes.

        Above 5,000 distinct rows, kernel and landmarks are chosen on a sample of up to 20,000 rows, and moments of the
        landmarks' features are summed over all rows, unless `random_state` is a RandomState or `cv` needs all rows;
        `solver_` reports it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples; or a Dask array or data frame; or the path of a file or a folder (Parquet, Feather, CSV, .npy). The
            last two are read twice, in parts.
        y : array of shape (n_samples,)
            Class labels; for files, the name of the column that holds them.
        sample_weight : array of shape (n_samples,), default=None
            Sample weights. A weight of 2 counts as two copies of the row, so weights that sum to 1 count as a single
            row and give wide standard errors.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        if is_path(X) or is_dask(X):
            self._look = None
            return fit_collection(self, X, y, sample_weight)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=True)
            require_two_classes(self, rows.classes)
            require_finite(rows.X, rows.numbers)
            self._statistics = self._look = None
            self._fit_rows(rows)
        return self

    def with_components(self, n_components: int | None) -> Self:
        """Return the map that a fit to the same rows would give with another number of components.

        Parameters
        ----------
        n_components : int or None
            Number of dimensions; None for n_classes − 1. A loaded model with a computed sharpness knows only its own
            number of dimensions and n_classes − 1, because others need held-out rows.

        Returns
        -------
        PosteriorMap
            A new map; this one is unchanged.
        """
        self._require_solution()
        other = copy(self).set_params(n_components=n_components)
        check_parameters(other)
        if "_choice" in vars(self):  # not in model files
            other._set_places(self._choice)
            return other
        places, covariance = other._unrotated_places(), vars(self).get("_weight_covariance")  # not in the oldest ones
        if self.sharpness == "auto" and places.shape[1] == len(places) - 1:
            other.sharpness_ = SHARPNESS
        elif isinstance(self.sharpness, str) and places.shape != self.places_.shape:
            raise ValueError(
                f"sharpness must be a number for with_components of a loaded model; got {self.sharpness!r}, which "
                f"needs held-out rows. Fit with n_components={n_components}."
            )
        other.places_ = places if covariance is None else on_principal_axes(places, covariance)
        return other

    # ------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the position z of every row."""
        scores, dtype = self._scores(X)
        return self._positions(scores).astype(dtype, copy=False)

    def transform_held_out(self, X: ArrayLike) -> NDArray[Any]:
        """Return the position of every row, for training rows by the rule of the fold that held them out.

        Training rows look better separated than new ones; held-out positions do not, so use them to plot the training
        rows. As features for a classifier they are no better than those of `transform`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. Rows that are not training rows are placed as by `transform`, as are all rows if the model was
            loaded from a file or fitted from statistics of parts.

        Returns
        -------
        positions : array of shape (n_samples, n_components_)
            Positions on the map.
        """
        scores, dtype = self._scores(X, held_out=True)
        return self._positions(scores).astype(dtype, copy=False)

    def predict_proba_held_out(self, X: ArrayLike) -> Array:
        """Return the probability of every class (n×C), for training rows by the rule of the fold that held them out.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. Rows that are not training rows are treated as by `predict_proba`.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            Probabilities in the order of classes_.
        """
        return calibrated(self._scores(X, held_out=True)[0], self.temperature_, self._total_weight)

    def for_plotting(self) -> Self:
        """Return a copy with the sharpness "tempered", which places uncertain rows between the classes."""
        self._require_solution()
        other = copy(self)
        other.sharpness_ = vars(self).get("_picture_sharpness", self.sharpness_)
        return other

    def _positions(self, scores: Array) -> Array:
        q = softmax(scores * (self.sharpness_ / self.temperature_), axis=1)
        return q @ self.places_

    def explain(self, X: ArrayLike, between: Any = None) -> Explanation:
        """Compute how much each column moves each row on the map.

        The effects are the gradients of the position and of the log odds between the row's two most probable classes,
        times the standard deviation of the column over the training rows. The log odds are those of softmax(a/T),
        before `predict_proba` mixes in the share 1/n of all classes.

        {explained}
        """
        scores = self._scores(X)[0]
        if "_column_deviations" not in vars(self):
            raise ValueError("explain needs column deviations, which models of older versions lack. Fit it again.")
        table, spread = checked_table(self, X), self._column_deviations
        first, second = two_classes(scores, self.classes_, between)
        steepness = self.sharpness_ / self.temperature_
        q = softmax(scores * steepness, axis=1)
        z = q @ self.places_
        weights = [odds_weights(len(self.classes_), self.temperature_, first, second)]
        weights += [steepness * q * (place - z[:, [axis]]) for axis, place in enumerate(self.places_.T)]
        log_odds, *moved = column_effects(self._rule, table, weights, spread)
        return Explanation(self.classes_[first], self.classes_[second], log_odds, np.stack(moved, axis=1))

    @fitted_attribute
    def feature_importances_(self) -> Array:
        """Mean absolute effect of each column on the log odds of a row's two most probable classes.

        The effect is that of one standard deviation; the mean is over at most 1,000 training rows.
        """
        importances: Array | None = vars(self).get("_importances")  # not in models of earlier versions
        if importances is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_: the kernel {self.kernel_.name!r} has no "
                "gradients, or the model was saved by an older version. Use sklearn.inspection.permutation_importance."
            )
        return importances

    def decision_function(self, X: ArrayLike) -> Array:
        """Return a/T of all classes (n×C); for two classes the second's minus the first's (n)."""
        scores = self._scores(X)[0] / self.temperature_
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        best = self._scores(X)[0].argmax(axis=1)  # raises if there was no fit
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of every class (n×C), calibrated on held-out rows."""
        scores, _ = self._scores(X)
        return calibrated(scores, self.temperature_, self._total_weight)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the log probability of every class (n×C)."""
        return np.log(self.predict_proba(X))

    def _scores(self, X: ArrayLike, *, held_out: bool = False) -> tuple[Array, np.dtype[Any]]:
        """Return a of all classes (n×C), known held-out ones for training rows if wanted, and the type of X."""
        self._require_solution()
        table = checked_table(self, X)
        require_finite(table)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._rule.scores(table)
        seen = np.isfinite(self._rule.offsets)  # −inf: a class of the table without rows in the sample
        require_representable(scores[:, seen], table)
        known = vars(self).get("_held_out") if held_out else None
        return scores if known is None else known.replace(table, scores), table.dtype

    @fitted_attribute
    def n_components_(self) -> int:
        """Number of dimensions."""
        return self.places_.shape[1]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel in ("chi2", "additive_chi2")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


accept_dask(PosteriorMap)
