"""Rule of the posterior map for tables with many rows: kernel and landmarks from a sample, then moments of all rows.

    sample → Look: kernel, landmarks
    all rows → class moments of φ(x) of each fold → ridge, temperature, rule

With fixed landmarks φ is a fixed map, so the moments of any parts of a table add up. Folds are derived from the
contents of the rows and are scored on rows of the sample.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Features
from discrim.core.cross_validation import Folds, gathered_folds, splits_of
from discrim.core.kernel_choice import RIDGES, Candidate, Choice, FeatureSpaces, HeldOutScores, best_choice
from discrim.core.kernel_rule import PosteriorRule
from discrim.core.landmarks import FixedFeatures, content_priorities, drawn_landmarks
from discrim.core.moments.gather import Statistics
from discrim.core.moments.row_sample import RowSample
from discrim.core.posterior_rule import (
    CHOICE_LANDMARKS,
    FINAL_LANDMARKS,
    HeldOutRows,
    choose_kernel,
    choose_linear_rule,
    linear_rule,
)
from discrim.core.ridge_rules import RidgeRules
from discrim.core.row_hash import hash_folds
from discrim.tables.rows import LabelledRows, block_slices

Array = NDArray[np.float64]
LARGE_ROWS = 5_000  # above this number of distinct rows, landmarks are fixed and moments of all rows are summed
ROWS_PER_LANDMARK = 10
MAX_LANDMARKS = 4_000
SCORED_ROWS = 5_000  # held-out rows that suffice to choose ridge and temperature


def landmark_count(n_rows: int, n_landmarks: int | None, n_folds: int, max_memory: int) -> int:
    """Return the number of landmarks: a tenth of the rows, between 1,000 and 4,000, limited by memory for the folds."""
    if n_landmarks is not None:
        return n_landmarks
    fitting = int(np.sqrt(max_memory / (8 * (n_folds + 4))))  # matrices held at once
    return max(2, min(max(n_rows // ROWS_PER_LANDMARK, FINAL_LANDMARKS), MAX_LANDMARKS, fitting))


def needs_landmarks(sample: RowSample) -> bool:
    """Return True if a table has more distinct rows than a map is fitted to directly."""
    return len(sample) > LARGE_ROWS or not sample.is_whole


@dataclass(frozen=True, eq=False)
class Look:
    """Choice of a kernel on a sample, and the features whose moments are summed.

    features : None for the columns themselves
    """

    choice: Choice | None  # None if only the ridge of a linear rule is to be chosen
    features: FixedFeatures | None

    @classmethod
    def at_sample(
        cls,
        sample: LabelledRows,
        candidates: Sequence[Candidate],
        cv: Any,
        seed: int,
        n_landmarks: int,
        units: tuple[Array, Array] | None = None,
    ) -> Look:
        """Choose on a sample of rows.

        units : shift and scale of a scaler that was applied to the sample
        """
        priorities = content_priorities(sample.X, seed)
        folds = Folds(sample, splits_of(sample, cv, None))
        choice = choose_kernel(folds, priorities, candidates, min(n_landmarks, CHOICE_LANDMARKS))
        if choice.candidate.is_linear:
            return cls(choice, None)
        landmarks = sample.X[drawn_landmarks(priorities, np.arange(sample.shape[0]), n_landmarks)]
        (space,) = FeatureSpaces.of([choice.candidate], sample, landmarks).spaces
        return cls(choice, FixedFeatures.of(space, *(units or ())))

    def rule(self, total: Statistics) -> tuple[Choice, PosteriorRule, HeldOutRows]:
        """Choose ridge and temperature by the folds, and fit the rule to all rows."""
        if self.features is None:
            choice = choose_linear_rule(gathered_folds(total))
            rule = linear_rule(Features.from_moments(total.moments), total.moments, choice.shrinkage)
            return choice, rule, HeldOutRows.from_sample(total, choice)
        assert self.choice is not None
        choice = best_choice({self.choice.candidate: list(self._held_out(total))})
        space, moments = self.features.space, total.moments
        assert space is not None
        rule = PosteriorRule.from_features(space, moments, choice.shrinkage)
        return choice, rule, HeldOutRows.from_sample(total, choice)

    def _held_out(self, total: Statistics) -> Iterator[HeldOutScores]:
        """Yield scores of the sample's rows by rules of all other folds, fold by fold until they suffice."""
        asked, classes, features = total.gathering, total.moments.classes, self.features
        assert total.sample is not None
        assert features is not None
        assert features.space is not None
        rows = total.sample.with_classes(classes)
        drawn, scored = hash_folds(total.sample.hashes, asked.n_folds, asked.seed), 0
        for fold in range(asked.n_folds):
            test = rows.select(np.flatnonzero(drawn == fold))
            if test.shape[0] == 0 or scored >= SCORED_ROWS:
                continue
            others = [part.with_classes(classes) for at, part in enumerate(total.fold_moments) if at != fold]
            rules = RidgeRules.of(functools.reduce(operator.add, others), RIDGES)
            parts = block_slices(test.shape[0], len(features.space.factor))
            scores = [rules.scores(features(test.X[part])) for part in parts]
            yield HeldOutScores.of(test, np.concatenate(scores, axis=2))
            scored += test.shape[0]

    def how(self, total: Statistics, choice: Choice, rule: PosteriorRule) -> str:
        """Describe how the rule was fitted."""
        scored, n_folds = len(choice.held_out.codes), total.gathering.n_folds
        drawn = "" if self.features is None or total.sample is None else f", drawn from {len(total.sample)} rows"
        return (
            f"{rule.name}{drawn}; moments of all {total.n_rows} rows; ridge and temperature by {scored} rows, held out "
            f"in {n_folds} folds by content"
        )
