"""Which kernel, which ridge, which temperature: chosen by rows held out of the ridge rule's training.

Among the candidates and ridges within one standard error of the best held-out accuracy, the least held-out log loss,
each at its own best temperature. A candidate that falls behind by three standard errors after two folds or more is
not tried on the others.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import KERNEL_PARAMS

from discrim.core.calibration import best_temperature, standard_error
from discrim.core.cross_validation import Folds, TrainingSet
from discrim.core.landmarks import FeatureSpace, LandmarkKernel, drawn_landmarks, relevance
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.threads import computed_once

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
RIDGES = 1 / (1 + 10.0 ** np.linspace(4, -1, 11))  # γ with γ/(1−γ) = 1e-4, 10^−3.5, …, 10
WIDTHS = (0.25, 1.0, 4.0)
HOPELESS = 3.0  # standard errors behind the best
FOLDS_BEFORE_DROPPING = 2


@dataclass(frozen=True)
class Candidate:
    """A feature space: the rows themselves ("linear"), or those of a kernel seen from landmarks.

    A width f stands for exp(−2f‖x−l‖²/median squared distance); `scaled`: the columns by the root of their relevance.
    """

    kernel: str
    width: float | None = None
    scaled: bool = False
    params: tuple[tuple[str, Any], ...] = ()
    landmarks_only: bool = False  # a linear kernel of a table too large for its own statistics

    @property
    def is_linear(self) -> bool:
        return self.kernel == "linear" and not self.landmarks_only

    @property
    def label(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.params)
        width = "" if self.width is None else f", width {self.width:g}"
        return self.kernel + (f"({given})" if given else "") + width + (", scaled columns" if self.scaled else "")

    def seen_from(self, base: LandmarkKernel) -> LandmarkKernel:
        """Return the kernel with these landmarks and scales."""
        if self.width is not None:
            return base.with_gamma(2 * self.width / base.median_square)
        params = dict(self.params)
        if self.kernel == "rbf":
            return base.with_gamma_in_columns(params["gamma"])
        return replace(base, name=self.kernel, params=params)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of rows by rules that were trained without them: γ×n×C, with the rows' classes and weights."""

    scores: Array
    codes: Indices
    weights: Array

    @classmethod
    def of(cls, rows: LabelledRows, scores: Array) -> HeldOutScores:
        """Scores as the rules give them, γ×C×n."""
        weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
        return cls(np.ascontiguousarray(scores.mT), rows.codes, weights)

    @property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    @computed_once
    def accuracies(self) -> Array:
        """Share of the rows predicted rightly, for every γ."""
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
    """What came of a candidate at its best ridge: accuracy and log loss of held-out rows, in so many folds."""

    label: str
    accuracy: float
    log_loss: float
    shrinkage: float
    n_folds: int


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate, ridge and temperature chosen, the held-out scores there, and what else was tried."""

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
    """The kernel of a fitted map, why it was chosen, and what came of every candidate tried."""

    name: str
    params: dict[str, Any]
    scaled: bool
    n_landmarks: int
    why: str
    tried: tuple[TriedKernel, ...]

    @classmethod
    def of(cls, kernel: LandmarkKernel | None, first: Choice, otherwise: str = "linear") -> ChosenKernel:
        """Describe the kernel of a rule that was chosen so; without one, the rule has another name."""
        if kernel is None:
            return cls(otherwise, {}, False, 0, first.why, first.tried)
        params = {"gamma": kernel.gamma} if kernel.name == "rbf" else dict(kernel.params)
        scaled, size = kernel.scales is not None, kernel.landmarks.shape[0]
        return cls(kernel.name, params, scaled, size, first.why, first.tried)


def require_known_kernel_params(kernel: str, params: dict[str, Any] | None) -> None:
    """Raise unless a kernel has these parameters."""
    known = KERNEL_PARAMS.get(kernel, ())
    strange = sorted(set(params or {}) - set(known))
    if strange:
        there = f"those of {kernel!r} are {', '.join(sorted(known))}" if known else f"{kernel!r} has none"
        raise ValueError(f"kernel_params names {', '.join(strange)}; {there}.")
    gamma = (params or {}).get("gamma", 1.0)
    if kernel == "rbf" and not (isinstance(gamma, Real) and 0 < float(gamma) < np.inf):
        raise ValueError(f"kernel_params has gamma={gamma!r}; possible is a finite number above 0.")


# ---------------------------------------------------------------------- held-out scores


class FeatureSpaces(NamedTuple):
    """Those of candidates which share landmarks and scales: their distances are taken once."""

    base: LandmarkKernel
    spaces: Sequence[FeatureSpace]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], rows: LabelledRows, landmarks: Any) -> FeatureSpaces:
        scales = np.sqrt(relevance(rows)) if candidates[0].scaled else None
        base = LandmarkKernel(landmarks, "rbf", {}, scales)
        kernels = [candidate.seen_from(base) for candidate in candidates]
        grams = [one.of_squares(base.landmark_squares) if one.name == "rbf" else one(landmarks) for one in kernels]
        return cls(base, [FeatureSpace.of(*pair) for pair in zip(kernels, grams, strict=True)])

    def features(self, X: Any) -> list[Array]:
        """Of some rows, in each space."""
        squares = self.base.squares(X) if self.spaces[0].kernel.name == "rbf" else None
        return [space.features(X, squares) for space in self.spaces]

    def parts(self, n_rows: int) -> Iterator[slice]:
        """Blocks of rows whose features fit into memory."""
        return block_slices(n_rows, len(self.spaces[0].factor))

    def moments(self, rows: LabelledRows) -> list[ClassMoments]:
        """Class statistics of the rows in each space."""
        found: list[ClassMoments] = []
        for part in self.parts(rows.shape[0]):
            weights = None if rows.weights is None else rows.weights[part]
            added = [
                ClassMoments.of_rows(LabelledRows(features, rows.codes[part], rows.classes, weights))
                for features in self.features(rows.X[part])
            ]
            found = added if not found else list(map(operator.add, found, added))
        return found


def _kernel_scores(
    candidates: Sequence[Candidate], training: LabelledRows, test: LabelledRows, landmarks: Any
) -> Iterator[Array]:
    """Scores of the test rows by rules of the training rows, for each of the candidates that share scales."""
    spaces = FeatureSpaces.of(candidates, training, landmarks)
    rules = [RidgeRules.of(moments, RIDGES) for moments in spaces.moments(training)]
    scores = [
        [rule.scores(features) for rule, features in zip(rules, spaces.features(test.X[part]), strict=True)]
        for part in spaces.parts(test.shape[0])
    ]
    yield from (np.concatenate(of_one, axis=2) for of_one in zip(*scores, strict=True))


def linear_scores(folds: Iterable[TrainingSet]) -> Iterator[HeldOutScores]:
    """Return the same for the rows themselves, fold after fold."""
    for fold in folds:
        if fold.test.shape[0] == 0:
            continue
        rules = RidgeRules.of(fold.training, RIDGES)
        blocks = (dense_block(fold.test.X, part) for part in block_slices(*fold.test.shape))
        yield HeldOutScores.of(fold.test, np.concatenate([rules.scores(block) for block in blocks], axis=2))


def held_out_scores(
    folds: Folds, coordinates: LabelledRows, priorities: Indices, candidates: Sequence[Candidate], most: int
) -> dict[Candidate, list[HeldOutScores]]:
    """Fold by fold; candidates out of reach of the best are dropped on the way.

    coordinates : the rows in coordinates of no more columns than rows, for the linear candidate
    most : landmarks
    """
    found: dict[Candidate, list[HeldOutScores]] = {candidate: [] for candidate in candidates}
    linear = linear_scores(Folds(coordinates, folds.splits))
    running = list(candidates)
    for number, (training, test) in enumerate(folds.splits.pairs):
        rows, others = folds.points.some(training), folds.points.some(test)
        landmarks = folds.points.X[drawn_landmarks(priorities, training, most)]
        for group in _sharing_scales(running):
            if group[0].is_linear:
                found[group[0]].append(next(linear))
                continue
            for candidate, scores in zip(group, _kernel_scores(group, rows, others, landmarks), strict=True):
                found[candidate].append(HeldOutScores.of(others, scores))
        if number + 1 >= FOLDS_BEFORE_DROPPING:
            running = _in_reach({one: HeldOutScores.joined(found[one]) for one in running}, folds.splits.repeats)
    return found


def _sharing_scales(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    for key in dict.fromkeys((one.is_linear, one.scaled) for one in candidates):
        yield [one for one in candidates if (one.is_linear, one.scaled) == key]


def _in_reach(found: dict[Candidate, HeldOutScores], repeats: float) -> list[Candidate]:
    best = max(float(scores.accuracies.max()) for scores in found.values())
    weight = next(iter(found.values())).total_weight / repeats
    likely = (best * weight + 1) / (weight + 2)  # that no row was wrong in two folds does not say that none ever is
    least = best - HOPELESS * standard_error(likely, weight) - 1e-12
    return [one for one, scores in found.items() if scores.accuracies.max() >= least]


# ---------------------------------------------------------------------- the choice


def chosen(found: dict[Candidate, list[HeldOutScores]], repeats: float = 1.0) -> Choice:
    """Among all within one standard error of the best accuracy the least log loss, each at its best temperature.

    repeats : how often each row was held out
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
