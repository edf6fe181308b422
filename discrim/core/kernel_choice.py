"""Classifier of a posterior map, and the choice of its kernel, ridge and temperature by held-out rows.

    a_c(x) = Σ_l B_lc k(x, l) + b_c ,    with landmarks l; the columns themselves for a linear rule

Among the candidates and ridges within one standard error of the best held-out accuracy, the one with the smallest
held-out log loss is chosen, each at its own best temperature. A candidate that is three standard errors behind the best
after two or more folds is not tried on the remaining folds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import KERNEL_PARAMS

from discrim.core.coordinates.basis import Basis
from discrim.core.coordinates.choose import Plan
from discrim.core.cross_validation import Folds, TrainingSet, best_temperature, standard_error
from discrim.core.explanation import two_classes
from discrim.core.landmarks import FeatureSpace, LandmarkKernel, drawn_landmarks, relevance
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ridge_rules import RidgeRules
from discrim.core.spread import Margins
from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.threads import computed_once

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
RIDGES = 1 / (1 + 10.0 ** np.linspace(4, -1, 11))  # γ with γ/(1−γ) = 1e-4, 10^−3.5, …, 10
WIDTHS = (0.25, 1.0, 4.0)
HOPELESS = 3.0  # standard errors behind the best
FOLDS_BEFORE_DROPPING = 2
ROUNDS = 3  # of refining the scales of the columns
REFINING_LANDMARKS = 300


@dataclass(frozen=True)
class Candidate:
    """Feature space: the rows themselves ("linear"), or the features of a kernel at landmarks.

    width : f in exp(−2f‖x−l‖²/median squared distance)
    scaled : True if columns are multiplied by the root of their relevance
    refined : ridge of the rule whose gradients then rescale the columns (see `column_scales`); None if not rescaled
    """

    kernel: str
    width: float | None = None
    scaled: bool = False
    params: tuple[tuple[str, Any], ...] = ()
    refined: float | None = None
    landmarks_only: bool = False  # linear kernel of a table too large for its own statistics

    @property
    def is_linear(self) -> bool:
        return self.kernel == "linear" and not self.landmarks_only

    @property
    def label(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.params)
        width = "" if self.width is None else f", width {self.width:g}"
        columns = ", refined columns" if self.refined is not None else ", scaled columns" if self.scaled else ""
        return self.kernel + (f"({given})" if given else "") + width + columns

    def seen_from(self, base: LandmarkKernel) -> LandmarkKernel:
        """Return the kernel of this candidate, with the landmarks and scales of `base`."""
        if self.width is not None:
            return base.with_gamma(2 * self.width / base.median_square)
        params = dict(self.params)
        if self.kernel == "rbf":
            return base.with_gamma_in_columns(params["gamma"])
        return replace(base, name=self.kernel, params=params)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of held-out rows: γ×n×C, with the rows' classes and weights."""

    scores: Array
    codes: Indices
    weights: Array

    @classmethod
    def of(cls, rows: LabelledRows, scores: Array) -> HeldOutScores:
        """Build from scores in the layout of the rules, γ×C×n."""
        weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
        return cls(np.ascontiguousarray(scores.mT), rows.codes, weights)

    @property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    @computed_once
    def accuracies(self) -> Array:
        """Accuracy for every γ."""
        return (self.scores.argmax(axis=2) == self.codes) @ self.weights / self.total_weight

    @classmethod
    def joined(cls, parts: Sequence[HeldOutScores]) -> HeldOutScores:
        return cls(
            np.concatenate([part.scores for part in parts], axis=1),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )


@dataclass(frozen=True)
class TriedKernel:
    """Result of a candidate at its best ridge: accuracy and log loss of held-out rows, and the number of folds."""

    label: str
    accuracy: float
    log_loss: float
    shrinkage: float
    n_folds: int


@dataclass(frozen=True, eq=False)
class Choice:
    """Chosen candidate, ridge and temperature, with the held-out scores and the results of all candidates."""

    candidate: Candidate
    shrinkage: float
    temperature: float
    log_loss: float
    held_out: HeldOutScores
    tried: tuple[TriedKernel, ...] = field(repr=False)
    why: str

    @property
    def accuracy(self) -> float:
        return float(self.held_out.accuracies[0])


@dataclass(frozen=True)
class ChosenKernel:
    """Kernel of a fitted map, the reason for its choice, and the results of all candidates."""

    name: str
    params: dict[str, Any]
    scaled: bool
    n_landmarks: int
    why: str
    tried: tuple[TriedKernel, ...]

    @classmethod
    def of(cls, kernel: LandmarkKernel | None, first: Choice, name: str) -> ChosenKernel:
        """Describe the kernel of a chosen rule."""
        if kernel is None:
            return cls(name, {}, False, 0, first.why, first.tried)
        params = {"gamma": kernel.gamma} if kernel.name == "rbf" else dict(kernel.params)
        return cls(name, params, kernel.scales is not None, kernel.landmarks.shape[0], first.why, first.tried)


def require_known_kernel_params(kernel: str, params: dict[str, Any] | None) -> None:
    """Raise if the kernel does not have these parameters."""
    known = KERNEL_PARAMS.get(kernel, ())
    strange = sorted(set(params or {}) - set(known))
    if strange:
        allowed = f"only {', '.join(sorted(known))}" if known else "nothing"
        raise ValueError(f"kernel_params must contain {allowed} for kernel={kernel!r}; got {', '.join(strange)}.")
    gamma = (params or {}).get("gamma", 1.0)
    if kernel == "rbf" and not (isinstance(gamma, Real) and 0 < float(gamma) < np.inf):
        raise ValueError(f"kernel_params['gamma'] must be a finite number above 0; got {gamma!r}.")


@dataclass(frozen=True, eq=False)
class PosteriorRule:
    """Scores of the classes; `kernel` is None for a linear rule, which subtracts `centre` from the rows."""

    kernel: LandmarkKernel | None
    centre: Array
    coefficients: Array  # (m or d)×C
    offsets: Array

    @classmethod
    def from_features(cls, space: FeatureSpace, moments: ClassMoments, shrinkage: float) -> PosteriorRule:
        """Return the ridge rule of class moments in the features of a kernel."""
        rules = RidgeRules.of(moments, np.array([shrinkage]))
        weights = moments.scaled(rules.weights[0])
        return cls(space.kernel, np.empty(0), space.factor @ weights.T, rules.offsets[0] - weights @ moments.mean)

    def scores(self, X: Any) -> Array:
        """Compute a_c(x), n×C."""
        if self.kernel is None and sp.issparse(X):
            return np.asarray(X @ self.coefficients) + (self.offsets - self.centre @ self.coefficients)
        result = np.empty((X.shape[0], len(self.offsets)))
        for part in block_slices(X.shape[0], len(self.coefficients)):
            if self.kernel is None:
                features = np.subtract(X[part], self.centre, dtype=np.float64)
            else:
                features = self.kernel(X[part])
            result[part] = features @ self.coefficients + self.offsets
        return result

    @property
    def name(self) -> str:
        """Kernel and number of landmarks."""
        if self.kernel is None:
            return "linear ridge rule"
        return f"ridge rule of a kernel ({self.kernel.name}) with {self.kernel.landmarks.shape[0]} landmarks"

    @property
    def label(self) -> str:
        """Kernel."""
        return "linear" if self.kernel is None else self.kernel.name

    def gradients(self, X: Any, weights: Array) -> Array:
        """Compute Σ_c w_nc ∂a_c(x_n)/∂x for every row (n×d), where `weights` is n×C."""
        if self.kernel is None:
            return weights @ self.coefficients.T
        result = np.empty(X.shape)
        for part in block_slices(X.shape[0], len(self.coefficients)):
            result[part] = self.kernel.gradients(X[part], weights[part] @ self.coefficients.T)
        return result


# ---------------------------------------------------------------------- held-out scores


class FeatureSpaces(NamedTuple):
    """Feature spaces of candidates that share landmarks and scales, so distances are computed once."""

    base: LandmarkKernel
    spaces: Sequence[FeatureSpace]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], landmarks: Any, scales: Array | None) -> FeatureSpaces:
        """Return the spaces; `scales` are those of the columns."""
        base = LandmarkKernel(landmarks, "rbf", {}, scales)
        kernels = [candidate.seen_from(base) for candidate in candidates]
        grams = [one.from_squares(base.landmark_squares) if one.name == "rbf" else one(landmarks) for one in kernels]
        return cls(base, [FeatureSpace.of(*pair) for pair in zip(kernels, grams, strict=True)])

    def features(self, X: Any) -> list[Array]:
        """Return the features of the rows in each space."""
        squares = self.base.squares(X) if self.spaces[0].kernel.name == "rbf" else None
        return [space.features(X, squares) for space in self.spaces]

    def parts(self, n_rows: int) -> Iterator[slice]:
        """Return blocks of rows whose features fit into memory."""
        return block_slices(n_rows, len(self.spaces[0].factor))

    def moments(self, rows: LabelledRows) -> list[ClassMoments]:
        """Return class statistics of the rows in each space."""
        found: list[ClassMoments] = []
        for part in self.parts(rows.shape[0]):
            weights = None if rows.weights is None else rows.weights[part]
            added = [
                ClassMoments.from_rows(LabelledRows(features, rows.codes[part], rows.classes, weights))
                for features in self.features(rows.X[part])
            ]
            found = added if not found else list(map(operator.add, found, added))
        return found


def column_scales(candidate: Candidate, rows: LabelledRows, landmarks: Any) -> Array | None:
    """Return the factors of the columns in a kernel: the roots of their relevance, if refined the gradients of a rule.

    To refine them, a rule is fitted with the factors so far; the new ones are the mean absolute gradients of the log
    odds of the two most probable classes of each row, the largest as 1. A column without effect leaves the kernel.
    """
    scales = np.sqrt(relevance(rows)) if candidate.scaled else None
    if candidate.refined is None:
        return scales
    few = landmarks[:REFINING_LANDMARKS]
    for _ in range(ROUNDS):
        spaces = FeatureSpaces.of([candidate], few, scales)
        rule = PosteriorRule.from_features(spaces.spaces[0], spaces.moments(rows)[0], candidate.refined)
        total, of_classes = np.zeros(few.shape[1]), np.eye(len(rule.offsets))
        for part in block_slices(*few.shape):
            first, second = two_classes(rule.scores(few[part]), np.empty(0), None)
            with np.errstate(all="ignore"):
                total += np.abs(rule.gradients(few[part], of_classes[first] - of_classes[second])).sum(axis=0)
        scales = total / total.max() if 0 < total.max() < np.inf else scales
    return scales


def rule_scores(
    rules: Sequence[RidgeRules], test: LabelledRows, features: Callable[[Any], list[Array]], parts: Iterable[slice]
) -> list[HeldOutScores]:
    """Return the scores of held-out rows for each rule.

    features : function that computes the features of some rows, one table for each rule
    """
    blocks = [list(map(RidgeRules.scores, rules, features(test.X[part]))) for part in parts]
    return [HeldOutScores.of(test, np.concatenate(scores, axis=2)) for scores in zip(*blocks, strict=True)]


def linear_scores(folds: Iterable[TrainingSet]) -> Iterator[HeldOutScores]:
    """Yield the held-out scores of the linear candidate, fold by fold."""
    for fold in folds:
        if (shape := fold.test.shape)[0]:
            rules = RidgeRules.of(fold.training, RIDGES)
            yield from rule_scores([rules], fold.test, lambda X: [dense_block(X, slice(None))], block_slices(*shape))


def in_few_columns(points: LabelledRows) -> Basis:
    """Return coordinates of the rows with at most as many columns as rows."""
    n, d = points.shape
    return Plan("rows" if n < d else "features", f"n={n}, d={d}").build(points, Margins())


def held_out_scores(
    folds: Folds,
    priorities: Indices,
    candidates: Sequence[Candidate],
    n_landmarks: int,
    rivals: Mapping[Candidate, list[HeldOutScores]] = MappingProxyType({}),
) -> dict[Candidate, list[HeldOutScores]]:
    """Return the held-out scores of the candidates; those far behind the best, or behind a rival, are dropped."""
    found: dict[Candidate, list[HeldOutScores]] = {candidate: [] for candidate in candidates}
    if any(candidate.is_linear for candidate in candidates):
        linear = linear_scores(Folds(in_few_columns(folds.points).points, folds.splits))
    running = list(candidates)
    for number, (training, test) in enumerate(folds.splits.pairs):
        rows, others = folds.points.select(training), folds.points.select(test)
        landmarks = folds.points.X[drawn_landmarks(priorities, training, n_landmarks)]
        for _, sharing in groupby(running, key=lambda one: (one.is_linear, one.scaled, one.refined)):
            group = list(sharing)
            if group[0].is_linear:
                found[group[0]].append(next(linear))
                continue
            spaces = FeatureSpaces.of(group, landmarks, column_scales(group[0], rows, landmarks))
            rules = [RidgeRules.of(moments, RIDGES) for moments in spaces.moments(rows)]
            scores = rule_scores(rules, others, spaces.features, spaces.parts(others.shape[0]))
            for candidate, part in zip(group, scores, strict=True):
                found[candidate].append(part)
        if number + 1 >= FOLDS_BEFORE_DROPPING:
            known = {one: parts for one, parts in {**rivals, **found}.items() if len(parts) > number}
            upto = {one: HeldOutScores.joined(parts[: number + 1]) for one, parts in known.items()}
            best = max(float(scores.accuracies.max()) for scores in upto.values())
            weight = next(iter(upto.values())).total_weight / folds.splits.repeats
            # shrunk towards ½, because no error in two folds does not mean that there are none
            error = standard_error((best * weight + 1) / (weight + 2), weight)
            least = best - (0.0 if rivals else HOPELESS) * error - 1e-12
            running = [one for one in running if upto[one].accuracies.max() >= least]
    return found


# ---------------------------------------------------------------------- the choice


def best_choice(found: dict[Candidate, list[HeldOutScores]], repeats: float = 1.0) -> Choice:
    """Return the choice: the smallest log loss among all rules within one standard error of the best accuracy.

    repeats : number of times each row was held out
    """
    n_folds = max(len(parts) for parts in found.values())
    joined = {one: HeldOutScores.joined(parts) for one, parts in found.items()}
    whole = {one: scores for one, scores in joined.items() if len(found[one]) == n_folds}
    best = max(float(scores.accuracies.max()) for scores in whole.values())
    error = standard_error(best, next(iter(whole.values())).total_weight / repeats)
    rivals: list[tuple[float, float, Candidate, int]] = []
    for candidate, scores in whole.items():
        for number in np.flatnonzero(scores.accuracies >= best - error - 1e-12):
            temperature, loss = best_temperature(scores.scores[number], scores.codes, scores.weights)
            rivals.append((loss, temperature, candidate, int(number)))
    loss, temperature, candidate, best_ridge = min(rivals, key=lambda rival: rival[0])
    why = (
        f"{candidate.label} with shrinkage {RIDGES[best_ridge]:.2g}: the least log loss, {loss:.3f}, of {len(rivals)} "
        f"rules within one standard error ({100 * error:.1f} points) of the best held-out accuracy, {100 * best:.1f} %"
    )
    tried = tuple(_tried(one, scores, len(found[one])) for one, scores in joined.items())
    held_out = replace(whole[candidate], scores=whole[candidate].scores[best_ridge, None])
    return Choice(candidate, float(RIDGES[best_ridge]), temperature, loss, held_out, tried, why)


def _tried(candidate: Candidate, scores: HeldOutScores, n_folds: int) -> TriedKernel:
    best = int(scores.accuracies.argmax())
    _, loss = best_temperature(scores.scores[best], scores.codes, scores.weights)
    return TriedKernel(candidate.label, float(scores.accuracies[best]), loss, float(RIDGES[best]), n_folds)
