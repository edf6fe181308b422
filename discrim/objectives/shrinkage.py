"""How much of a ridge the within-class covariance gets.

    Σ_γ = (1−γ) S_w/n + γ τ I ,    τ = tr(S_w/n) / rank of the centred rows ,    0 ≤ γ ≤ 1

One unit for all: Ledoit–Wolf's and OAS's own g belongs to the target tr(S_w/n)/p with p the columns that vary, so
γ/(1−γ) = g/(1−g) · rank/p describes the same matrix up to a factor.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows, block_slices
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio

Array = NDArray[np.float64]


def oas(within: Array, n: float, p: int) -> float:
    """Oracle approximating shrinkage (Chen et al. 2010, equation 23), g of a covariance over n rows of p columns."""
    squared, of_trace = float(np.vdot(within, within)), float(np.trace(within)) ** 2
    spread = (n + 1 - 2 / p) * (squared - of_trace / p)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squared + of_trace) / spread)


def ledoit_wolf(within: Array, fourth: float, n: float, p: int) -> float:
    """Ledoit and Wolf (2004), g from Σ_i w_i ‖x_i − μ_{y_i}‖⁴ = `fourth`."""
    squared, trace = float(np.vdot(within, within)), float(np.trace(within))
    apart = squared - trace**2 / p
    noise = (fourth / n - squared) / n
    return 1.0 if apart <= 0 else min(1.0, max(0.0, noise) / apart)


def in_our_unit(g: float, rank: int, p: int) -> float:
    """γ with γ/(1−γ) = g/(1−g) · rank/p."""
    return g * rank / (g * rank + (1 - g) * p) if g > 0 else 0.0


def chosen_shrinkage(
    rule: str | float, ratio: Ratio, moments: ClassMoments, points: LabelledRows, n_columns: int
) -> float:
    """γ by a rule; `n_columns` counts the features that vary."""
    if not isinstance(rule, str):
        return float(rule)
    unit = float(np.trace(ratio.within)) or 1.0  # g has none, and fourth powers leave the range of the numbers early
    if rule == "oas":
        g = oas(ratio.within / unit, ratio.weight, n_columns)
    else:
        g = ledoit_wolf(ratio.within / unit, fourth_moment(points, moments, unit), ratio.weight, n_columns)
    return in_our_unit(g, ratio.rank, n_columns)


def fourth_moment(points: LabelledRows, moments: ClassMoments, unit: float = 1.0) -> float:
    """Σ_i w_i (‖x_i − μ_{y_i}‖² / unit)², in the moments' own units."""
    total = 0.0
    for part in block_slices(*points.shape):
        codes = points.codes[part]
        block = points.X[part].toarray() if sp.issparse(points.X) else points.X[part]
        scaled = np.ldexp(block.astype(np.float64, copy=False), -moments.exponent)
        centred = (scaled - moments.pilots[codes]) - moments.remainders[codes]
        squares = (np.einsum("ij,ij->i", centred, centred) / unit) ** 2
        total += float(squares.sum() if points.weights is None else points.weights[part] @ squares)
    return total
