"""Small autoencoder with one sigmoid hidden layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from discrim.docstrings import public_estimator
from discrim.estimators.fitting import unchanged_if_it_fails
from discrim.tables.check_parameters import Constraints, check_parameters, number, whole
from discrim.tables.validation import checked_table, require_finite, require_representable

Array = NDArray[np.float64]
LOW, HIGH = 0.1, 0.9  # range in which the sigmoid is not flat
CONSTANT = 1e-12  # a range below this share of the largest value is rounding


@dataclass(frozen=True)
class Layer:
    """W (k×d) with the biases of hidden units and outputs; x̂ = φ(Wᵀφ(Wx + b) + c)."""

    W: Array
    hidden_bias: Array
    output_bias: Array

    @classmethod
    def of(cls, flat: Array, k: int, d: int) -> Layer:
        return cls(flat[: k * d].reshape(k, d), flat[k * d : k * d + k], flat[k * d + k :])

    def flat(self) -> Array:
        return np.concatenate([self.W.ravel(), self.hidden_bias, self.output_bias])

    def hidden(self, X: Array) -> Array:
        return expit(X @ self.W.T + self.hidden_bias)

    def output(self, Z: Array) -> Array:
        return expit(Z @ self.W + self.output_bias)


@public_estimator
class Autoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Autoencoder with one sigmoid hidden layer and tied weights, trained by L-BFGS.

        minimise  (1/n) Σ_i ‖x_i − φ(Wᵀφ(Wx_i + b) + c)‖² + alpha ‖W‖²        φ(t) = 1/(1 + e⁻ᵗ)

    with every column of x scaled so that the training rows lie in [0.1, 0.9] (a constant column: at 0.5). It is an
    unsupervised non-linear extractor for use with `MaxMarginShift`; the features are the hidden units, in (0, 1).

    Parameters
    ----------
    n_components : int, default=2
        Number of hidden units.
    max_iter: Maximum number of L-BFGS steps; few steps also keep the weights small.
    alpha : float, default=0.0
        Penalty on ‖W‖².
    random_state: Seed of the initial weights.

    Attributes
    ----------
    components_: W.
    intercept_ : array of shape (n_components,)
        b, the biases of the hidden units.
    output_intercept_ : array of shape (n_features,)
        c, the biases of the outputs.
    data_min_ : array of shape (n_features,)
        Minimum of each column.
    data_range_ : array of shape (n_features,)
        Range of each column.
    loss_ : float
        Final value of the objective.
    n_iter_: Number of L-BFGS steps.
    n_features_in_: Number of features seen in fit.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", equation 18.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import Autoencoder
    >>> X, _ = load_iris(return_X_y=True)
    >>> Autoencoder(n_components=2, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": (whole(1),),
        "max_iter": (whole(1),),
        "alpha": (number("a finite number ≥ 0 (the penalty on large weights)", lambda value: 0 <= value < np.inf),),
    }

    def __init__(
        self, n_components: int = 2, *, max_iter: int = 200, alpha: float = 0.0, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.alpha = alpha
        self.random_state = random_state

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on the rows; y is ignored."""
        check_parameters(self)
        table = self._checked(X, reset=True)
        self.data_min_, largest = (f(axis=0).astype(np.float64) for f in (table.min, table.max))
        too_wide = np.flatnonzero(largest / 2 - self.data_min_ / 2 > np.finfo(np.float64).max / 2)
        if len(too_wide):
            raise ValueError(
                f"X must have columns with a range of at most {np.finfo(np.float64).max:.1e}; got a larger one in "
                f"column {too_wide[0]}. Divide it by 2 or more first."
            )
        spread = largest - self.data_min_
        self.data_range_ = np.where(
            spread > CONSTANT * np.maximum(np.abs(largest), np.abs(self.data_min_)), spread, 0.0
        )
        scaled = self._scaled(table)
        # small random weights, biases with half-active hidden units at the mean row, and the mean row as output
        k, d, random = self.n_components, table.shape[1], check_random_state(self.random_state)
        W, mean = random.uniform(-1, 1, (k, d)) * 4 * np.sqrt(6 / (k + d)), scaled.mean(axis=0)
        start = Layer(W, -W @ mean, logit(mean) - 0.5 * W.sum(axis=0))
        found = minimize(
            loss_and_gradient,
            start.flat(),
            (scaled, k, float(self.alpha)),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "ftol": 1e-12, "gtol": 1e-8},
        )
        layer = Layer.of(found.x, k, d)
        self.components_, self.intercept_, self.output_intercept_ = layer.W, layer.hidden_bias, layer.output_bias
        self.loss_, self.n_iter_ = float(found.fun), max(1, int(found.nit))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the hidden units φ(Wx + b)."""
        check_is_fitted(self)
        table = self._checked(X)
        with np.errstate(over="ignore", invalid="ignore"):
            hidden = self._layer().hidden(self._scaled(table))
        require_representable(hidden, table)
        return hidden.astype(table.dtype, copy=False)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the output of the hidden units, in the units of the columns."""
        check_is_fitted(self)
        hidden = np.asarray(X)
        if hidden.ndim != 2 or hidden.shape[1] != len(self.components_):
            raise ValueError(
                f"X must be the output of transform, of shape (n_samples, {len(self.components_)}); got shape "
                f"{hidden.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            output = self._layer().output(hidden)
        require_representable(output, hidden)
        scaled = (output - LOW) / (HIGH - LOW)
        rows = self.data_min_ + np.where(self.data_range_ > 0, scaled, 0.0) * self.data_range_
        return rows.astype(hidden.dtype if hidden.dtype.kind == "f" else np.float64, copy=False)

    def _checked(self, X: ArrayLike, *, reset: bool = False) -> Any:
        if sp.issparse(X):
            raise TypeError(
                "X must be dense for Autoencoder; got a sparse table. Use X.toarray(), or discrim.PCA, which keeps X "
                "sparse."
            )
        table = checked_table(self, X, reset=reset)
        require_finite(table)
        return table

    def _scaled(self, table: NDArray[Any]) -> Array:
        """Return the columns scaled to [0.1, 0.9], constant ones at 0.5."""
        varies = self.data_range_ > 0
        share = (table - self.data_min_) / np.where(varies, self.data_range_, 1.0)
        return LOW + (HIGH - LOW) * np.where(varies, share, 0.5)

    def _layer(self) -> Layer:
        return Layer(self.components_, self.intercept_, self.output_intercept_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def loss_and_gradient(flat: Array, X: Array, k: int, alpha: float) -> tuple[float, Array]:
    """Compute (1/n) Σ‖x̂ − x‖² + alpha ‖W‖² and its derivatives by W, b and c."""
    layer = Layer.of(flat, k, X.shape[1])
    Z = layer.hidden(X)
    output = layer.output(Z)
    gap = output - X
    loss = float(np.vdot(gap, gap)) / len(X) + alpha * float(np.vdot(layer.W, layer.W))
    at_output = gap
    at_output *= output
    at_output *= 1 - output
    at_output *= 2 / len(X)
    at_hidden = (at_output @ layer.W.T) * Z * (1 - Z)
    slope = Layer(Z.T @ at_output + at_hidden.T @ X + 2 * alpha * layer.W, at_hidden.sum(axis=0), at_output.sum(axis=0))
    return loss, slope.flat()
