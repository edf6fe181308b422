"""The posterior map: a classifier's view of the rows, in few dimensions."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils import Tags

from discrim.core.calibration import calibrated
from discrim.core.class_places import class_places, on_principal_axes
from discrim.core.classifier_rule import FOREST_ROWS, ClassifierRule, choose_classifier, choose_forest
from discrim.core.cross_validation import Folds, hash_splitter, splits_of
from discrim.core.explanation import Explanation, two_classes
from discrim.core.kernel_choice import WIDTHS, Candidate, Choice, ChosenKernel, require_known_kernel_params
from discrim.core.landmark_rule import LARGE_ROWS
from discrim.core.landmarks import content_priorities
from discrim.core.posterior_rule import (
    SHARPNESS,
    HeldOutRows,
    PosteriorRule,
    choose_rule,
    class_confusions,
    column_deviations,
    fitted_rule,
    is_too_large,
    tempered_sharpness,
    weight_covariance,
)
from discrim.doc_links import public_estimator
from discrim.engines.dask_tables import accept_dask, in_dask_parts, is_dask
from discrim.engines.table_files import files_for, in_files, is_path
from discrim.estimators.map_statistics import AbsentAttribute, MapOfStatistics, require_rows_to_hold_out
from discrim.estimators.parts import fit_within
from discrim.tables.check_parameters import (
    POSITIVE,
    Constraints,
    Possible,
    check_parameters,
    named,
    whole,
)
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_finite,
    require_representable,
    require_two_classes,
    unchanged_on_failure,
)
from discrim.tables.warn_once import warn

Array = NDArray[np.float64]
LANDMARKS_WANTED = (whole(2), Possible("or None to choose it by the rows", lambda count: count is None))


def _scores_classes(given: Any) -> bool:
    """Return True for a scikit-learn classifier."""
    return not isinstance(given, type) and hasattr(given, "get_params") and is_classifier(given)


@public_estimator
class PosteriorMap(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, MapOfStatistics):
    """Posterior map: every row at the mean of its classes' places, weighted by how probable a classifier finds them.

        z(x) = Σ_c q_c(x) v_c ,   q = softmax(s·a(x)/T) ,   a_c(x) = m_cᵀΣ_γ⁻¹φ(x) − ½ m_cᵀΣ_γ⁻¹m_c + log p_c

    The fewest features for a classifier, and a picture of what it confuses; not linear. The rule a is linear
    discriminant analysis with a ridge, on the columns or in the features φ of a Gaussian kernel; the kernel, its width,
    the ridge γ and the temperature T are chosen by held-out rows. Classes that held-out rows confuse have places v near
    each other.

    What lies inside a class is not shown: no clusters, no outliers, no loadings. Which class sits where changes with
    the sample, and training rows look better than new ones: show held-out rows. Bring columns to similar scales first,
    e.g. with StandardScaler. For directions with loadings use BayesErrorLDA.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions, of which there are no more than C−1 (None): asked for more, C−1 are returned.
    kernel : str, default="auto"
        "auto": the columns as they are, or a Gaussian kernel of three widths, with the columns plain or scaled by how
        much each tells of the classes, whichever held-out rows like best. "linear", "rbf", or the name of another
        kernel of scikit-learn's `pairwise_kernels`.
    kernel_params : dict, default=None
        Parameters of a named kernel, such as {"gamma": 0.1} for "rbf", which then is the only candidate.
    sharpness : float or "tempered", default=2.0
        s. Large values pile the rows on their classes' places; 1 gives the mean of the places as probable as they are.
        "tempered", for pictures: as sharp as puts the median held-out row at 0.8 of the way to its place.
    n_landmarks : int, default=None
        Most rows that a kernel is seen from; None for 300 while the kernel is chosen and 1,000 for the rule.
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds that choose.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks and the random starts of the places, which also shuffles the folds; None for 0 and
        scikit-learn's unshuffled ones.
    classifier : estimator, "rule" or None, default=None
        Any scikit-learn classifier, whose view is drawn: with probabilities or a decision function, calibrated by a
        temperature on held-out folds. "rule" for the rule of the kernels alone. None lets a random forest of 100 trees
        compete with it on dense tables of up to 5,000 rows, if `kernel` is "auto" and `cv` a number: held-out rows of
        the forest are those that a tree has not seen.

    Attributes
    ----------
    places_ : ndarray of shape (n_classes, n_components)
        v: unit vectors, or for one component evenly spaced numbers in [−1, 1]. Axes are the principal axes of held-out
        rows on the map, largest variance first.
    confusions_ : ndarray of shape (n_classes, n_classes)
        Mean probability of each class (column) on held-out rows of each class (row).
    kernel_ : ChosenKernel
        What was chosen and why, with the held-out accuracy and log loss of every candidate tried. Its name is that of a
        kernel, or of a classifier.
    shrinkage_ : float
        γ; 0 for a forest or a given classifier.
    temperature_ : float
        T.
    sharpness_ : float
        s, as given or as tempered.
    held_out_score_ : float
        Accuracy of the rule on held-out rows.
    held_out_log_loss_ : float
        Log loss of `predict_proba` on held-out rows.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of columns seen.
    n_components_ : int
        Number of dimensions.
    feature_importances_ : ndarray of shape (n_features,)
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

    _weight_covariance: Array | None = None  # of q, over held-out rows; None in models saved by version 0.1

    inverse_transform = AbsentAttribute(
        "many rows share a place, which says how probable the classes are and nothing else. Use BayesErrorLDA, whose "
        "components can be carried back."
    )
    components_ = AbsentAttribute("the map is not linear, so it has no directions. Use BayesErrorLDA for loadings.")

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": (whole(1), Possible("or None for one less than there are classes", lambda k: k is None)),
        "kernel": named("auto", *KERNEL_PARAMS),
        "sharpness": (*POSITIVE, *named("tempered")),
        "n_landmarks": LANDMARKS_WANTED,
        "classifier": (
            *named("rule"),
            Possible("a scikit-learn classifier", _scores_classes),
            Possible("or None to choose among the rule and a forest", lambda given: given is None),
        ),
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        kernel: str = "auto",
        kernel_params: dict[str, Any] | None = None,
        sharpness: float | str = SHARPNESS,
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
        """Choose the classifier by held-out rows, train it on all, and find the classes' places.

        Above 5,000 rows, kernel and landmarks are chosen on a sample of up to 20,000, and moments of the landmarks'
        features are summed over all rows; `solver_` says so.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows; or a Dask array or data frame; or the path of a file or a folder (Parquet, Feather, CSV, .npy).
            The last two are read twice, in parts.
        y : array of shape (n_samples,)
            Their labels. Of files, the name of the column that holds them.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts. A weight of 2 is the row twice, so weights that sum to 1 say as much as a single
            row: standard errors are wide.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        if is_path(X) or is_dask(X):
            self._look = None
            asked = self._gathering()
            table = in_files(files_for(asked, X, y, sample_weight)) if is_path(X) else None
            fit_within(self, asked, table or in_dask_parts([(X, y, sample_weight)]))
            return self
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=True)
            require_two_classes(self, rows.classes)
            require_finite(rows.X, rows.numbers)
            self._statistics = self._look = None
            self._fit_rows(rows)
        return self

    def _check_parameters(self) -> None:
        check_parameters(self)
        require_known_kernel_params(self.kernel, self.kernel_params)

    def _fit_rows(self, rows: LabelledRows) -> None:
        require_rows_to_hold_out(rows)
        if rows.shape[0] > LARGE_ROWS and self._has_landmarks and hash_splitter(self.cv, self.random_state):
            self._fit_many_rows(rows)
            return
        folds = Folds(rows, splits_of(rows, self.cv, self.random_state))
        seed = self._seed
        priorities = content_priorities(rows.X, seed)
        first, choice, rule = self._chosen_rule(folds, priorities, seed)
        self._publish(rows.classes, float(rows.class_totals.sum()), first, choice, rule, seed)
        self._held_out = HeldOutRows.from_folds(folds, choice)
        self._column_deviations = column_deviations(rows)
        self._importances = self._mean_effects(rows, priorities)
        self.solver_ = f"{rule.name} on {rows.shape[0]} rows, chosen by {len(folds.splits.pairs)} folds"

    def _chosen_rule(
        self, folds: Folds, priorities: NDArray[np.intp], seed: int
    ) -> tuple[Choice, Choice, PosteriorRule | ClassifierRule]:
        """Return what was chosen first, what was chosen at last, and the rule of all rows."""
        if self._is_given:
            choice, given = choose_classifier(self.classifier, folds)
            return choice, choice, given
        rows = folds.points
        first, choice = choose_rule(folds, priorities, self._candidates(rows), self.n_landmarks)
        tries_forest = self.classifier is None and self.kernel == "auto" and isinstance(self.cv, int | np.integer)
        if tries_forest and not rows.is_sparse and rows.shape[0] <= FOREST_ROWS:
            winner, forest = choose_forest(folds, priorities, seed, replace(choice, tried=first.tried))
            if forest is not None:
                return winner, winner, forest
            first = replace(first, tried=winner.tried)
        return first, choice, fitted_rule(rows, priorities, choice, self.n_landmarks)

    @property
    def _is_given(self) -> bool:
        """True if the classifier is the user's."""
        return self.classifier is not None and not isinstance(self.classifier, str)

    def _candidates(self, rows: LabelledRows) -> list[Candidate]:
        """Feature spaces to choose from."""
        linear = Candidate("linear", landmarks_only=is_too_large(*rows.shape))
        widths = [Candidate("rbf", width, scaled) for scaled in (False, True) for width in WIDTHS]
        if self.kernel_params:
            return [Candidate(self.kernel, params=tuple(sorted(self.kernel_params.items())))]
        named = {"auto": [linear, *widths], "linear": [linear], "rbf": widths}
        return named.get(self.kernel, [Candidate(self.kernel)])

    def _publish(
        self,
        classes: NDArray[Any],
        total_weight: float,
        first: Choice,
        choice: Choice,
        rule: PosteriorRule | ClassifierRule,
        seed: int,
    ) -> None:
        self.classes_ = classes
        self._rule = rule
        self._held_out = None
        self._total_weight = total_weight
        self.shrinkage_, self.temperature_ = choice.shrinkage, choice.temperature
        self.held_out_score_, self.held_out_log_loss_ = choice.accuracy, choice.log_loss
        name = rule.name if isinstance(rule, ClassifierRule) else "linear"
        self.kernel_ = ChosenKernel.of(rule.kernel, first, name)
        self.confusions_ = class_confusions(choice.held_out, choice.temperature, self._total_weight)
        self._seed_of_places = seed
        places = self._unrotated_places()
        tempered = isinstance(self.sharpness, str)
        self._picture_sharpness = tempered_sharpness(choice, places)
        self.sharpness_ = self._picture_sharpness if tempered else float(self.sharpness)
        self._weight_covariance = weight_covariance(choice)
        self.places_ = on_principal_axes(places, self._weight_covariance)

    def _unrotated_places(self) -> Array:
        """Compute the classes' places for the number of components that is asked for."""
        most = len(self.classes_) - 1
        k = most if self.n_components is None else int(self.n_components)
        if k > most:
            warn(
                f"n_components={k}, but a map of {most + 1} classes has {most} dimension(s): {most} are kept. Pass "
                f"n_components ≤ {most}, or None for all.",
            )
        return class_places(self.confusions_, k, self._seed_of_places)

    def with_components(self, n_components: int | None) -> Self:
        """Return the map that a fit to the same rows would give with another number of components.

        Parameters
        ----------
        n_components : int or None
            Number of dimensions, None for one less than there are classes.

        Returns
        -------
        PosteriorMap
            Another one; this one stays as it is.
        """
        self._require_solution()
        if isinstance(self.sharpness, str):
            raise ValueError(
                f"sharpness={self.sharpness!r} depends on the places: fit with n_components={n_components}."
            )
        other = copy(self).set_params(n_components=n_components)
        check_parameters(other)
        places = other._unrotated_places()
        other.places_ = (
            on_principal_axes(places, self._weight_covariance) if self._weight_covariance is not None else places
        )
        return other

    # ------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """z of every row."""
        scores, dtype = self._scores(X)
        return self._positions(scores).astype(dtype, copy=False)

    def transform_held_out(self, X: ArrayLike) -> NDArray[Any]:
        """Return z of every row, for training rows by the rule of the fold that held them out.

        Fitted rows look better separated than new ones; held-out positions do not, so pictures of the training rows
        should show these. As features for a classifier they are no better than those of `transform`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows. Those that are not training rows are placed as by `transform`; so are all rows if the model was loaded
            from a file or fitted by statistics of parts.

        Returns
        -------
        positions : array of shape (n_samples, n_components_)
            Positions on the map.
        """
        scores, dtype = self._held_out_scores(X)
        return self._positions(scores).astype(dtype, copy=False)

    def predict_proba_held_out(self, X: ArrayLike) -> Array:
        """Return the probability of every class (n×C), for training rows by the rule of the fold that held them out.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows. Those that are not training rows are treated as by `predict_proba`.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            In the order of classes_.
        """
        return calibrated(self._held_out_scores(X)[0], self.temperature_, self._total_weight)

    def for_plotting(self) -> Self:
        """Return a copy whose sharpness is that of "tempered", so that doubtful rows lie between the classes."""
        self._require_solution()
        other = copy(self)
        other.sharpness_ = vars(self).get("_picture_sharpness", self.sharpness_)
        return other

    def _held_out_scores(self, X: ArrayLike) -> tuple[Array, np.dtype[Any]]:
        scores, dtype = self._scores(X)
        if self._held_out is not None:
            scores = self._held_out.replace(checked_table(self, X), scores)
        return scores, dtype

    def _positions(self, scores: Array) -> Array:
        q = softmax(scores * (self.sharpness_ / self.temperature_), axis=1)
        return q @ self.places_

    def explain(self, X: ArrayLike, between: Any = None) -> Explanation:
        """Compute how much each column moves each row on the map.

        The analytic gradients of the position and of the log odds between the row's two most probable classes, times
        the standard deviation of the column over the training rows. The log odds are those of softmax(a/T), before
        `predict_proba` mixes in the share 1/n of all classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.
        between : pair of class labels, default=None
            Explain the log odds of the first against the second; None for each row's two most probable classes.

        Returns
        -------
        explanation : Explanation
            `log_odds` (n_samples, n_features) and `positions` (n_samples, n_components_, n_features): the effect of one
            standard deviation of each column. `first` and `second`: the two classes of each row. `importances`: the
            mean absolute effect on the log odds over the rows.
        """
        scores = self._scores(X)[0]
        if "_column_deviations" not in vars(self):
            raise ValueError("This model was saved by an older version, without column deviations. Fit it again.")
        table, spread = checked_table(self, X), self._column_deviations
        first, second = two_classes(scores, self.classes_, between)
        steepness = self.sharpness_ / self.temperature_
        q = softmax(scores * steepness, axis=1)
        z = q @ self.places_
        weights = [self._pair_weights(first, second)]
        weights += [steepness * q * (place - z[:, [axis]]) for axis, place in enumerate(self.places_.T)]
        log_odds, *moved = self._rule.effects(table, weights, spread)
        return Explanation(self.classes_[first], self.classes_[second], log_odds, np.stack(moved, axis=1))

    @property
    def feature_importances_(self) -> Array:
        """Mean absolute effect of each column on the log odds of a row's two most probable classes.

        The effect is that of one standard deviation, the mean is over up to 1,000 training rows.
        """
        self._require_solution()
        if self._importances is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_ here: the kernel {self.kernel_.name!r} has no "
                "gradients, or the model was saved by an older version. Use sklearn.inspection.permutation_importance."
            )
        return self._importances

    def decision_function(self, X: ArrayLike) -> Array:
        """a/T of all classes (n×C); with two classes the second's minus the first's (n)."""
        scores = self._scores(X)[0] / self.temperature_
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class."""
        best = self._scores(X)[0].argmax(axis=1)  # which asks first whether there was a fit
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of every class (n×C), calibrated by held-out rows."""
        scores, _ = self._scores(X)
        return calibrated(scores, self.temperature_, self._total_weight)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Log probability of every class (n×C)."""
        return np.log(self.predict_proba(X))

    def _scores(self, X: ArrayLike) -> tuple[Array, np.dtype[Any]]:
        """Return a of all classes (n×C), and the type of the rows' numbers."""
        self._require_solution()
        table = checked_table(self, X)
        require_finite(table)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._rule.scores(table)
        seen = np.isfinite(self._rule.offsets)  # −inf: a class of the table without a row in the sample
        require_representable(scores[:, seen], table)
        return scores, table.dtype

    @property
    def n_components_(self) -> int:
        """Number of dimensions."""
        self._require_solution()
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
