"""Class statistics that add up: `ClassMoments.of(A) + ClassMoments.of(B) == ClassMoments.of(A ∪ B)`.

They hold weight, mean and scatter of each class. Every objective is computed from them, and streaming, folds and
clusters all rely on the `+`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.moments.accumulate import MIN_EXPONENT, ClassSums, KnownMoments
from discrim.tables.check_parameters import named, require
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import labelled_rows, require_labels_of_one_kind
from discrim.threads import on_one_blas_thread

Array = NDArray[np.float64]
SAFE_EXPONENT = 240  # numbers within this many powers of two of 1 can be squared and summed


def rounding_share(size: int, precision: float) -> float:
    """Return the share of a scatter's largest eigenvalue below which its eigenvalues are rounding."""
    return float(4.0 * np.sqrt(size) * precision)


def safe_exponent(*parts: ClassMoments) -> int:
    """Return a unit for some statistics: that of the widest, or another one if squares would overflow or underflow.

    Deviations within classes are squared, and differences of class means when classes are merged or compared.
    """
    spread, unit, low, high = -np.inf, parts[0].exponent, np.array(np.inf), np.array(-np.inf)
    for part in parts:
        scatter = part.pooled if part.pooled is not None else part.each
        trace = 0.0 if scatter is None else float(np.trace(scatter, axis1=-2, axis2=-1).sum())
        deviation = float(np.log2(trace) / 2) + part.exponent if trace > 0 else -np.inf
        if deviation > spread:
            spread, unit = deviation, part.exponent
        means = part.means if part.counts.all() else part.means[part.counts > 0]
        low, high = (
            np.minimum(low, means.min(axis=0, initial=np.inf)),
            np.maximum(high, means.max(axis=0, initial=-np.inf)),
        )
    half = float((high / 2 - low / 2).max(initial=0.0))
    spread = max(spread, float(np.frexp(half)[1] + 1) if half > 0 else -np.inf)
    if not np.isfinite(spread) or abs(spread - unit) <= SAFE_EXPONENT:
        return unit
    largest = float(max(np.abs(low).max(), np.abs(high).max()))
    return max(int(spread), int(np.frexp(largest)[1]) - 1000, MIN_EXPONENT)  # means must not overflow


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Additive class statistics: weights, means and scatters, which may be computed in parts.

        W_c = Σ_{i∈c} w_i ,   μ_c = pilot_c + remainder_c ,   S_c = Σ_{i∈c} w_i (x_i − μ_c)(x_i − μ_c)ᵀ

    of the rows times 2^−exponent. `ClassMoments.of` computes them; the sum of two parts equals the statistics of all
    their rows, and `estimator.fit_statistics` fits a model to it.

    Parameters
    ----------
    classes : array of shape (n_classes,)
            Sorted class labels.
    weights : array of shape (n_classes,)
        W_c.
    counts : array of shape (n_classes,)
        Number of rows of each class.
    pilots : array of shape (n_classes, n_features)
        A point near each class's mean, subtracted before anything is squared.
    remainders : array of shape (n_classes, n_features)
            The means minus the pilots.
    emphasis : array of shape (n_classes,)
            e_c, factors on the scatters in `pooled`; 1 unless class weights were known beforehand.
    pooled : array of shape (n_features, n_features) or None
        Σ_c e_c S_c.
    each : array of shape (n_classes, n_features, n_features) or None
        Every S_c.
    exponent : int
            The unit of means and scatters is 2^exponent.
    precision : float
            Machine precision of the numbers in which the scatters were summed.

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
    precision: float = float(np.finfo(np.float64).eps)  # machine precision in which the scatters were summed
    is_labelled: bool = field(init=False)
    n_features: int = field(init=False)
    n_rows: int = field(init=False)
    total_weight: float = field(init=False)
    _overall: Array = field(init=False)  # μ minus the first class's pilot

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
        """Compute the statistics of a table and its labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), default=None
            Sample weights.
        keep : {"pooled", "each", "means"}, default="pooled"
            Which scatters to keep: one pooled d×d scatter, one per class (C·d² memory), or none.
        emphasis : array of shape (n_classes,), default=None
            Factors on the classes' scatters in the pooled one. None means 1.

        Returns
        -------
        moments : ClassMoments
            Class statistics of the samples.
        """
        require("keep", keep, named("pooled", "each", "means"))
        rows = labelled_rows("ClassMoments", X, y, sample_weight, supervised=True)
        if emphasis is not None and (np.shape(emphasis) != (rows.n_classes,) or not (np.asarray(emphasis) > 0).all()):
            raise ValueError(
                f"emphasis must be a number above 0 for each of {rows.n_classes} classes; got shape "
                f"{np.shape(emphasis)}."
            )
        return cls.from_rows(rows, keep=keep, emphasis=emphasis)

    @classmethod
    def from_rows(
        cls,
        rows: LabelledRows,
        *,
        keep: str = "pooled",
        emphasis: Array | None = None,
        doubles: bool = True,
        near: ClassMoments | None = None,
    ) -> ClassMoments:
        """Compute the statistics of validated rows.

        doubles : False squares single-precision rows in single precision, which is twice as fast, unless a direction is
        lost
        near : statistics of other rows of the same classes, whose means serve as pilots
        """
        is_single = rows.X.dtype == np.float32 and not doubles and keep != "means" and not rows.is_sparse
        known_moments = None if near is None or keep != "pooled" or is_single else near._known_moments(rows.classes)
        sums = ClassSums(rows, keep, emphasis=emphasis, doubles=not is_single, known_moments=known_moments)
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
            return cls.from_rows(rows, keep=keep, emphasis=emphasis, near=near)
        return found if (unit := safe_exponent(found)) == found.exponent else found._in_units_of(unit)

    def with_rows(self, rows: LabelledRows) -> ClassMoments:
        """Return the sum of these statistics and those of more rows, computed around the current class means."""
        keep = "each" if self.each is not None else "means" if self.pooled is None else "pooled"
        if rows.shape[0] == 0 and np.isin(rows.classes, self.classes).all():
            return self
        return self + self.from_rows(rows, keep=keep, near=self)

    def _known_moments(self, classes: NDArray[Any]) -> KnownMoments | None:
        """Return weights, means and spread of these classes as known so far, for the choice of pilots."""
        if self.exponent != 0 or self.pooled is None or not (self.emphasis == 1).all():
            return None
        weights, means = np.zeros(len(classes)), np.zeros((len(classes), self.n_features))
        known, at = np.ones(1, dtype=bool), np.zeros(1, dtype=np.intp)
        if self.is_labelled:
            known = np.isin(classes, self.classes)
            at = np.searchsorted(self.classes, classes[known])
        weights[known], means[known] = self.weights[at], (self.pilots + self.remainders)[at]
        return KnownMoments(weights, means, np.diag(self.pooled).copy())

    def _shows_every_direction(self) -> bool:
        """Return True if rounding hides no direction in which the rows vary."""
        scatter = self.scatter(self.emphasis)
        varying = np.diag(scatter) > 0
        scatter = scatter[np.ix_(varying, varying)]
        least = 10 * rounding_share(len(scatter), self.precision) * np.diag(scatter).sum()
        return int(la.lapack.dpstrf(scatter, tol=least)[2]) == len(scatter) if len(scatter) else True

    def __add__(self, other: ClassMoments) -> ClassMoments:
        if not isinstance(other, ClassMoments):
            raise TypeError(f"ClassMoments can only be added to ClassMoments; got {type(other).__name__}.")
        mine, theirs = ((m.n_features, m.pooled is None, m.each is None) for m in (self, other))
        if mine != theirs:
            self._refuse_other_kind(other)
        classes = self.classes
        if self.is_labelled and self.classes is not other.classes:  # folds share one array of classes
            require_labels_of_one_kind(self.classes, other.classes)
            classes = np.unique(np.concatenate([self.classes, other.classes]))
        if not ((self.emphasis == 1).all() and (other.emphasis == 1).all()):
            self._require_common_emphasis(other)
        unit, one, two = safe_exponent(self, other), self, other
        if (self.exponent, other.exponent) != (unit, unit) or not self.classes is other.classes is classes:
            one, two = (part._in_units_of(unit).with_classes(classes) for part in (self, other))
        both = one.weights + two.weights
        share = np.divide(two.weights, both, out=np.zeros_like(both), where=both > 0)
        gap = (two.pilots - one.pilots) + (two.remainders - one.remainders)
        gap[(one.weights == 0) | (two.weights == 0)] = 0.0
        masses = one.weights * share * (1.0 if one.pooled is None else one.emphasis)
        rows = gap * np.sqrt(masses)[:, None]
        # the newer pilot is the mean so far, so the old mean relative to it is small again
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
            unit,
            max(self.precision, other.precision),
        )

    def _refuse_other_kind(self, other: ClassMoments) -> NoReturn:
        raise ValueError(
            f"ClassMoments must have the same features and the same `keep` to be added; got {self.n_features} and "
            f"{other.n_features} features, or different scatters. In a stream, do not change the parameters."
        )

    def _require_common_emphasis(self, other: ClassMoments) -> None:
        if not (np.array_equal(self.classes, other.classes) and np.array_equal(self.emphasis, other.emphasis)):
            raise ValueError(
                "ClassMoments must be pooled with the same class weights to be added; got different ones. Compute both "
                "with keep='each', or with the same emphasis for the same classes."
            )

    def _mapped(
        self,
        points: Callable[[Array], Array],
        scatters: Callable[[Array], Array],
        origin: Array | None = None,
        **also: Any,
    ) -> ClassMoments:
        """Apply functions to the means and to the scatters of the rows minus a point of the feature space."""
        pilots = self.pilots if origin is None else self.pilots - np.ldexp(origin, -self.exponent)
        return replace(
            self,
            pilots=points(pilots),
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

    def with_classes(self, classes: NDArray[Any]) -> ClassMoments:
        """Return the same moments with an entry for each of these classes; classes without rows get zeros."""
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

    def project(self, mean: Array, directions: Array) -> ClassMoments:
        """Return the moments of the coordinates (x − mean)ᵀ directions, without the rows."""
        axes = np.ldexp(directions, self.exponent)
        return self._mapped(lambda rows: rows @ axes.T, lambda S: axes @ S @ axes.T, mean, exponent=0)

    def select_columns(self, columns: NDArray[np.intp]) -> ClassMoments:
        """Return the moments of these columns alone."""
        return self._mapped(lambda rows: rows[:, columns], lambda S: S[..., columns[:, None], columns])

    def standardised(self, shift: Array, scale: Array) -> ClassMoments:
        """Return the moments of (x − shift) / scale, column by column."""
        return self._mapped(lambda rows: rows / scale, lambda S: S / np.outer(scale, scale), shift)

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
        """First class's pilot in the units of the rows: a point near the data that was subtracted exactly."""
        return np.ldexp(self.pilots[0], self.exponent)

    @property
    def mean_offset(self) -> Array:
        """μ − origin, in the units of the rows."""
        return np.ldexp(self._overall, self.exponent)

    def centred_means(self, part: slice = slice(None)) -> Array:
        """Return μ_c − μ, one row per class (or per class in `part`), in the units of the scatters."""
        centred = self.pilots[part] - self.pilots[0]
        centred += self.remainders[part]
        centred -= self._overall
        return centred

    def centred(self, points: Array) -> Array:
        """Return points of the feature space minus μ, in the units of the scatters."""
        centred = self.scaled(points) - self.pilots[0]
        centred -= self._overall
        return centred

    def scaled(self, rows: Any) -> Any:
        """Return dense or sparse rows in the units of the scatters.

        Given directions for such rows, return those whose products with the rows themselves are the same.
        """
        doubles = rows.astype(np.float64, copy=False)
        if not self.exponent:
            return doubles
        return doubles * 0.5**self.exponent if sp.issparse(rows) else np.ldexp(doubles, -self.exponent)

    def residuals(self, rows: Any, codes: Any) -> Array:
        """Return dense rows minus the means of their classes, in the units of the scatters."""
        return np.asarray((self.scaled(rows) - self.pilots[codes]) - self.remainders[codes])

    def in_row_units(self, lengths: Array) -> Array:
        """Return lengths, given in the units of the scatters, in the units of the rows."""
        return np.ldexp(lengths, self.exponent) if self.exponent else lengths

    def scatter(self, class_weights: Array | float = 1.0) -> Array:
        """Compute Σ_c w_c S_c."""
        if self.each is None and self.pooled is not None and (self.emphasis == class_weights).all():
            return self.pooled
        wanted = np.broadcast_to(np.asarray(class_weights, dtype=np.float64), self.weights.shape)
        if self.each is not None:
            return np.tensordot(wanted, self.each, axes=1)
        if self.pooled is None:
            raise ValueError("ClassMoments must hold a scatter; got keep='means'. Use keep='pooled' or keep='each'.")
        factor = wanted[0] / self.emphasis[0]
        if not np.allclose(wanted, factor * self.emphasis, rtol=1e-14, atol=0):
            raise ValueError(
                "ClassMoments must hold a scatter per class for these class weights; got scatters pooled with other "
                "weights. Compute them with keep='each'."
            )
        return factor * self.pooled

    def per_weight(self, values: Array) -> Array:
        """Return eigenvalues of a scatter divided by the total weight, in squared units of the rows."""
        return self.in_squared_units(values / self.total_weight)

    def in_squared_units(self, values: Array) -> Array:
        """Return variances in squared units of the rows (inf if that overflows)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(values, 2 * self.exponent)

    @property
    def within(self) -> Array:
        """S_w = Σ_c S_c."""
        is_plain = self.pooled is not None and self.each is None and bool((self.emphasis == 1).all())
        return self.pooled if is_plain and self.pooled is not None else self.scatter(1.0)

    @property
    def class_covariances(self) -> Array:
        """S_c/W_c of every class (C×d×d)."""
        assert self.each is not None
        return self.each / self.weights[:, None, None]

    @property
    def freedom(self) -> int:
        """Number of rows, less one for each class that has any: the rank of S_w is no more."""
        return self.n_rows - int(np.count_nonzero(self.counts))

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
