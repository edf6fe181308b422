"""Partial least squares of one-hot labels, from what the rows' scatter does to a few vectors.

    maximise  cov(X_h w, Y v)²  subject to  ‖w‖ = ‖v‖ = 1 ,    t_h = X_h w_h ,    X_{h+1} = X_h − t_h p_hᵀ

Neither rows nor scatter are ever deflated: with r_h = w_h − Σ_j (p_jᵀw_h) r_j the scores are t_h = X r_h of the rows as
they are, p_h = Sr_h / r_hᵀSr_h, and only the small M = XᵀY loses tᵀt p_h q_hᵀ (Dayal and MacGregor 1997). A sparse w is
Mv with its least entries thresholded away, in turn with v = Mᵀw, until neither changes (Lê Cao et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.ratio import Ratio
from discrim.decompositions import svd

Array = NDArray[np.float64]
EXPLAINED = 1e-10  # share of the covariance with the labels below which nothing is left to explain
TIED = 1e-12  # entries closer than this, beside the largest, are thresholded together
ROUNDING = 1e-12  # share of the largest below which a weight is rounding: such a feature is not selected
CHANGE, TURNS = 1e-13, 2_000  # when a sparse weight is found: it no longer changes, or after so many turns


@dataclass(frozen=True, eq=False)
class LeastSquaresComponents:
    """The components so far (rows), in the coordinates of a ratio, and the covariance with the labels that is left."""

    ratio: Ratio
    left: Array  # M/n: r×C
    weights: Array  # w_h
    rotations: Array  # r_h
    loadings: Array  # p_h
    label_loadings: Array  # q_h
    variances: Array  # t_hᵀt_h / n

    @classmethod
    def of(cls, ratio: Ratio) -> LeastSquaresComponents:
        """No component yet."""
        cross = ratio.means.T * np.sqrt(ratio.shares)
        none = np.empty((0, len(cross)))
        return cls(ratio, cross, none, none, none, np.empty((0, cross.shape[1])), np.empty(0))

    @property
    def is_exhausted(self) -> bool:
        """Whether the labels have no covariance left with what is left of the rows."""
        whole = self.ratio.means.T * np.sqrt(self.ratio.shares)
        return bool(la.norm(self.left) <= EXPLAINED * la.norm(whole)) or len(self.weights) >= self.ratio.rank

    @property
    def explained(self) -> Array:
        """SS_h/n = (t_hᵀt_h/n) ‖q_h‖²: the labels' variance that each component accounts for."""
        return self.variances * np.einsum("kc,kc->k", self.label_loadings, self.label_loadings)

    def extended(self, keep: int | None = None) -> LeastSquaresComponents:
        """One component more, with at most `keep` weights that are not 0 (None: all)."""
        weight = leading_weight(self.left, keep)
        rotation = weight.copy()
        for _ in range(2):  # the second time for what rounding left of the first
            rotation -= (self.loadings @ rotation) @ self.rotations
        along = self.ratio.total_along(rotation[None])[0]
        variance = float(along @ rotation)
        loading, of_labels = along / variance, (weight @ self.left) / variance
        return replace(
            self,
            left=self.left - variance * np.outer(loading, of_labels),
            weights=np.vstack([self.weights, weight]),
            rotations=np.vstack([self.rotations, rotation]),
            loadings=np.vstack([self.loadings, loading]),
            label_loadings=np.vstack([self.label_loadings, of_labels]),
            variances=np.append(self.variances, variance),
        )

    def centroids(self) -> Array:
        """The classes' mean scores, C×k."""
        return self.ratio.means @ self.rotations.T / np.sqrt(self.ratio.shares)[:, None]


def leading_weight(cross: Array, keep: int | None = None) -> Array:
    """The unit w of largest ‖Mᵀw‖; with `keep`, the fixed point of w ∝ soft(Mv), v ∝ Mᵀw from there."""
    cross = cross / np.abs(cross).max()
    if keep is not None:  # a feature without covariance with the labels has rounding for it
        cross = np.where(np.abs(cross).max(axis=1, keepdims=True) > ROUNDING, cross, 0.0)
    left, _, right = svd(cross)
    weight, of_labels = left[:, 0], right[0]
    if keep is not None:
        weight = np.where(np.abs(weight) > ROUNDING, weight, 0.0)
    if keep is None or keep >= np.count_nonzero(cross.any(axis=1)):
        return weight
    for _ in range(TURNS):
        before = weight
        weight = soft_thresholded(cross @ of_labels, keep)
        weight /= la.norm(weight)
        of_labels = weight @ cross
        of_labels /= la.norm(of_labels)
        if np.abs(weight - before).max() <= CHANGE:
            break
    return weight


def soft_thresholded(vector: Array, keep: int) -> Array:
    """sign(a)(|a| − δ)₊ with δ the largest size that is not among the `keep` largest: at most so many are not 0.

    Sizes equal to δ go with it. Where that would leave nothing, the largest stay as they are.
    """
    sizes = np.abs(vector)
    if keep >= len(sizes):
        return vector
    least = TIED * sizes.max()
    rest = np.partition(sizes, -keep - 1)[-keep - 1]
    kept = sizes > rest + least
    if not kept.any():
        return np.where(sizes >= sizes.max() - least, vector, 0.0)
    return np.where(kept, np.sign(vector) * (sizes - rest), 0.0)
