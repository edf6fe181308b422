"""Class statistics that add up: `ClassMoments.of(A) + ClassMoments.of(B) == ClassMoments.of(A ∪ B)`.

Weight, mean and scatter of each class, the value between the rows and every objective. Streaming, folds and clusters
all come down to the `+`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.moments.accumulate import ClassSums, Foreknown, log_deviation, safe_exponent
from discrim.tables.check_parameters import named, require, require_emphasis
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import labelled_rows, require_labels_of_one_kind
from discrim.threads import on_one_blas_thread

Array = NDArray[np.float64]


def rounding_share(size: int, precision: float) -> float:
    """Eigenvalues of a scatter (size×size, summed in that precision) below this share of the largest are rounding."""
    return float(4.0 * np.sqrt(size) * precision)


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Class statistics that add up: weights, means and scatters, to be gathered in parts anywhere.

        W_c = Σ_{i∈c} w_i ,   μ_c = pilot_c + remainder_c ,   S_c = Σ_{i∈c} w_i (x_i − μ_c)(x_i − μ_c)ᵀ

    of the rows times 2^−exponent. Made by `ClassMoments.of`; the sum of two parts is that of all their rows, and
    `estimator.fit_statistics` takes it from there.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The labels, sorted.
    weights : array of shape (n_classes,)
        W_c.
    counts : array of shape (n_classes,)
        Number of rows of each class.
    pilots : array of shape (n_classes, n_features)
        A point near each class's mean, subtracted before anything is squared.
    remainders : array of shape (n_classes, n_features)
        What is left of the means.
    emphasis : array of shape (n_classes,)
        e_c, 1 unless class weights were known beforehand.
    pooled : array of shape (n_features, n_features) or None
        Σ_c e_c S_c.
    each : array of shape (n_classes, n_features, n_features) or None
        Every S_c.
    exponent : int
        Power of two that is the unit of means and scatters.
    precision : float
        Of the numbers the scatters were summed in.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import ClassMoments, FisherLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> halves = ClassMoments.of(X[::2], y[::2]) + ClassMoments.of(X[1::2], y[1::2])
    >>> FisherLDA().fit_statistics(halves).score(X, y)
    0.98
    """

    classes: NDArray[Any]
    weights: Array
    counts: NDArray[np.int64]
    pilots: Array
    remainders: Array
    emphasis: Array
    pooled: Array | None
    each: Array | None
    exponent: int
    precision: float = float(np.finfo(np.float64).eps)  # of the numbers the scatters were summed in
    is_labelled: bool = field(init=False)
    n_features: int = field(init=False)
    n_rows: int = field(init=False)
    total_weight: float = field(init=False)
    _overall: Array = field(init=False)  # μ, seen from the first class's pilot

    def __post_init__(self) -> None:
        total = float(self.weights.sum())
        from_first = self.pilots - self.pilots[0]
        from_first += self.remainders
        vars(self).update(
            is_labelled=self.classes[0] is not None,
            n_features=self.pilots.shape[1],
            n_rows=int(self.counts.sum()),
            total_weight=total,
            _overall=(self.weights / (total or 1.0)) @ from_first,
        )

    @classmethod
    @on_one_blas_thread
    def of(
        cls, X: Any, y: Any, sample_weight: Any = None, *, keep: str = "pooled", emphasis: Array | None = None
    ) -> ClassMoments:
        """Return statistics of a table and its labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Their labels.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.
        keep : {"pooled", "each", "means"}, default="pooled"
            One d×d scatter, one for each class (C·d² memory), or none.
        emphasis : array of shape (n_classes,), default=None
            Factors on the classes' scatters in the pooled one.

        Returns
        -------
        moments : ClassMoments
            The statistics.
        """
        require("keep", keep, named("pooled", "each", "means"))
        rows = labelled_rows("ClassMoments", X, y, sample_weight, supervised=True)
        require_emphasis(emphasis, rows.n_classes)
        return cls.of_rows(rows, keep=keep, emphasis=emphasis)

    @classmethod
    def of_rows(
        cls,
        rows: LabelledRows,
        *,
        keep: str = "pooled",
        emphasis: Array | None = None,
        doubles: bool = True,
        near: ClassMoments | None = None,
    ) -> ClassMoments:
        """Return statistics of rows that were checked before.

        doubles=False: single-precision rows are squared as such, twice as fast, where no direction is lost by it.
        near: other rows of the same classes, whose means tell where these are.
        """
        is_single = rows.X.dtype == np.float32 and not doubles and keep != "means" and not rows.is_sparse
        foreknown = None if near is None or keep != "pooled" or is_single else near._foreknown(rows.classes)
        sums = ClassSums(rows, keep, emphasis=emphasis, doubles=not is_single, foreknown=foreknown)
        found = cls(
            rows.classes,
            sums.weights,
            sums.counts,
            sums.pilots,
            sums.remainders,
            sums.emphasis,
            sums.pooled,
            sums.each,
            sums.exponent,
            float(np.finfo(np.float32 if is_single else np.float64).eps),
        )
        if is_single and not found._shows_every_direction():
            return cls.of_rows(rows, keep=keep, emphasis=emphasis, near=near)
        return found

    def with_rows(self, rows: LabelledRows) -> ClassMoments:
        """Return these statistics and those of more rows, which are taken around the class means so far."""
        keep = "each" if self.each is not None else "means" if self.pooled is None else "pooled"
        if rows.shape[0] == 0 and np.isin(rows.classes, self.classes).all():
            return self
        return self + self.of_rows(rows, keep=keep, near=self)

    def _foreknown(self, classes: NDArray[Any]) -> Foreknown | None:
        """Return what is known of these classes beforehand: their weights, their means, and how far all rows spread."""
        if self.exponent != 0 or self.pooled is None or not (self.emphasis == 1).all():
            return None
        weights, means = np.zeros(len(classes)), np.zeros((len(classes), self.n_features))
        known, at = np.ones(1, dtype=bool), np.zeros(1, dtype=np.intp)
        if self.is_labelled:
            known = np.isin(classes, self.classes)
            at = np.searchsorted(self.classes, classes[known])
        weights[known], means[known] = self.weights[at], (self.pilots + self.remainders)[at]
        return Foreknown(weights, means, np.diag(self.pooled).copy())

    def _shows_every_direction(self) -> bool:
        """Return whether rounding hides no direction in which the rows vary."""
        scatter = self.scatter(self.emphasis)
        varying = np.diag(scatter) > 0
        scatter = scatter[np.ix_(varying, varying)]
        least = 10 * rounding_share(len(scatter), self.precision) * np.diag(scatter).sum()
        return int(la.lapack.dpstrf(scatter, tol=least)[2]) == len(scatter) if len(scatter) else True

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if not isinstance(other, ClassMoments):
            raise TypeError(f"ClassMoments add up with others of their kind, {type(other).__name__} came.")
        mine, theirs = ((m.n_features, m.pooled is None, m.each is None) for m in (self, other))
        if mine != theirs:
            self._refuse_other_kind(other)
        classes = self.classes
        if self.is_labelled and self.classes is not other.classes:  # as those of folds are
            require_labels_of_one_kind(self.classes, other.classes)
            classes = np.unique(np.concatenate([self.classes, other.classes]))
        if not ((self.emphasis == 1).all() and (other.emphasis == 1).all()):
            self._require_common_emphasis(other)
        exponent = self._exponent_with(other)
        one, two = (part._in_units_of(exponent).among(classes) for part in (self, other))
        both = one.weights + two.weights
        share = np.divide(two.weights, both, out=np.zeros_like(both), where=both > 0)
        gap = (two.pilots - one.pilots) + (two.remainders - one.remainders)
        gap[(one.weights == 0) | (two.weights == 0)] = 0.0
        masses = one.weights * share * (1.0 if one.pooled is None else one.emphasis)
        rows = gap * np.sqrt(masses)[:, None]
        # the newer pilot is the mean so far: the old mean, as seen from it, is small again
        moved = np.where((one.weights > 0)[:, None], (one.pilots - two.pilots) + one.remainders, two.remainders)
        grown = (two.weights > 0)[:, None]
        return ClassMoments(
            classes,
            both,
            one.counts + two.counts,
            np.where(grown, two.pilots, one.pilots),
            np.where(grown, moved + share[:, None] * gap, one.remainders),
            one.emphasis,
            None if one.pooled is None or two.pooled is None else one.pooled + two.pooled + rows.T @ rows,
            None if one.each is None or two.each is None else one.each + two.each + rows[:, :, None] * rows[:, None, :],
            exponent,
            max(self.precision, other.precision),
        )

    def _refuse_other_kind(self, other: ClassMoments) -> NoReturn:
        raise ValueError(
            f"Moments of {self.n_features} and {other.n_features} features, or kept in different ways, do not add "
            "up. Make both with the same columns and the same `keep`; in a stream, keep the estimator's parameters."
        )

    def _require_common_emphasis(self, other: ClassMoments) -> None:
        if not (np.array_equal(self.classes, other.classes) and np.array_equal(self.emphasis, other.emphasis)):
            raise ValueError(
                "Moments pooled with different class weights do not add up. Make both with keep='each', or with the "
                "same emphasis for the same classes."
            )

    def _exponent_with(self, other: ClassMoments) -> int:
        """Return the unit both can be counted in, that of the wider one where it will do."""
        deviations = [log_deviation(part.pooled, part.each) + part.exponent for part in (self, other)]
        wider = self if deviations[0] >= deviations[1] else other
        return safe_exponent(np.concatenate([self.means, other.means]), max(deviations), wider.exponent)

    def _mapped(
        self, points: Callable[[Array], Array], scatters: Callable[[Array], Array], **also: Any
    ) -> ClassMoments:
        """Return moments with functions applied to pilots and remainders, and to the scatters."""
        return replace(
            self,
            pilots=points(self.pilots),
            remainders=points(self.remainders),
            pooled=None if self.pooled is None else scatters(self.pooled),
            each=None if self.each is None else scatters(self.each),
            **also,
        )

    def _in_units_of(self, exponent: int) -> ClassMoments:
        change = self.exponent - exponent
        if change == 0:
            return self
        return self._mapped(lambda rows: np.ldexp(rows, change), lambda S: np.ldexp(S, 2 * change), exponent=exponent)

    def _moved(self, point: Array) -> ClassMoments:
        """Return the moments of the rows minus a point of the feature space."""
        return replace(self, pilots=self.pilots - np.ldexp(point, -self.exponent))

    def among(self, classes: NDArray[Any]) -> ClassMoments:
        """Return the same with a place for each of these classes, of which there may be no rows here."""
        if not self.is_labelled or np.array_equal(classes, self.classes):
            return self
        at = np.searchsorted(classes, self.classes)

        def placed(values: NDArray[Any] | None, fill: float = 0.0) -> Any:
            if values is None:
                return None
            wider = np.full((len(classes), *values.shape[1:]), fill, values.dtype)
            wider[at] = values
            return wider

        return replace(
            self,
            classes=classes,
            weights=placed(self.weights),
            counts=placed(self.counts),
            pilots=placed(self.pilots),
            remainders=placed(self.remainders),
            emphasis=placed(self.emphasis, 1.0),
            each=placed(self.each),
        )

    def along(self, mean: Array, directions: Array) -> ClassMoments:
        """Return the moments of the coordinates (x − mean)ᵀ directions, without the rows."""
        axes = np.ldexp(directions, self.exponent)
        return self._moved(mean)._mapped(lambda rows: rows @ axes.T, lambda S: axes @ S @ axes.T, exponent=0)

    def some_columns(self, columns: NDArray[np.intp]) -> ClassMoments:
        """Return the moments of these columns alone."""
        return self._mapped(lambda rows: rows[:, columns], lambda S: S[..., columns[:, None], columns])

    def standardised(self, shift: Array, scale: Array) -> ClassMoments:
        """Return the moments of (x − shift) / scale, column by column."""
        return self._moved(shift)._mapped(lambda rows: rows / scale, lambda S: S / np.outer(scale, scale))

    @property
    def means(self) -> Array:
        """μ_c in the units of the rows, each rounded to one double."""
        return np.ldexp(self.pilots + self.remainders, self.exponent)

    @property
    def mean(self) -> Array:
        """μ in the units of the rows, rounded to one double."""
        return np.ldexp(self.pilots[0], self.exponent) + np.ldexp(self._overall, self.exponent)

    @property
    def origin(self) -> Array:
        """The first class's pilot, in the units of the rows: a point near the data that was subtracted exactly."""
        return np.ldexp(self.pilots[0], self.exponent)

    @property
    def mean_offset(self) -> Array:
        """μ − origin, in the units of the rows."""
        return np.ldexp(self._overall, self.exponent)

    def centred_means(self, part: slice = slice(None)) -> Array:
        """Return μ_c − μ, one row per class (of some classes), in the moments' own units (like the scatters)."""
        centred = self.pilots[part] - self.pilots[0]
        centred += self.remainders[part]
        centred -= self._overall
        return centred

    def centred(self, points: Array) -> Array:
        """Return points of the feature space minus μ, in the moments' own units."""
        scaled = np.ldexp(points, -self.exponent) if self.exponent else points
        centred = scaled - self.pilots[0]
        centred -= self._overall
        return centred

    def scatter(self, class_weights: Array | float = 1.0) -> Array:
        """Compute Σ_c w_c S_c."""
        if self.each is None and self.pooled is not None and (self.emphasis == class_weights).all():
            return self.pooled
        wanted = np.broadcast_to(np.asarray(class_weights, dtype=np.float64), self.weights.shape)
        if self.each is not None:
            return np.tensordot(wanted, self.each, axes=1)
        if self.pooled is None:
            raise ValueError("These moments hold no scatter. Make them with keep='pooled' or keep='each'.")
        factor = wanted[0] / self.emphasis[0]
        if not np.allclose(wanted, factor * self.emphasis, rtol=1e-14, atol=0):
            raise ValueError(
                "The classes' scatters were pooled with other weights and cannot be told apart. Make the moments with "
                "keep='each'."
            )
        return factor * self.pooled

    def per_weight(self, values: Array) -> Array:
        """Return eigenvalues of a scatter per unit of weight, in the units of the rows squared."""
        return self.in_squared_units(values / self.total_weight)

    def in_squared_units(self, values: Array) -> Array:
        """Return variances in the units of the rows squared (which may lie beyond the largest number: inf)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(values, 2 * self.exponent)

    @property
    def within(self) -> Array:
        """S_w = Σ_c S_c."""
        is_plain = self.pooled is not None and self.each is None and bool((self.emphasis == 1).all())
        return self.pooled if is_plain and self.pooled is not None else self.scatter(1.0)

    @property
    def has_within(self) -> bool:
        """True if S_w follows from these moments."""
        return self.each is not None or (self.pooled is not None and bool((self.emphasis == 1).all()))

    def between_rows(self) -> Array:
        """Return rows √W_c (μ_c − μ): their Gram matrix is S_b."""
        rows = self.centred_means()
        rows *= np.sqrt(self.weights)[:, None]
        return rows

    @property
    def between(self) -> Array:
        """S_b = Σ_c W_c (μ_c−μ)(μ_c−μ)ᵀ."""
        rows = self.between_rows()
        return rows.T @ rows

    @property
    def total(self) -> Array:
        """S_t = S_w + S_b."""
        return self.within + self.between
