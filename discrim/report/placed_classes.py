"""Where a classifier's view places the classes, and which of them held-out rows confuse: drawn among its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discrim.report.chart import Mark
from discrim.report.fitted import Array, reducer_of

MOST_PAIRS = 5
LEAST_SHARE = 0.005  # of the rows' probability: pairs that are confused less are not spoken of
MEANING = "a row lies between the classes it may belong to, nearest to the most probable; grey lines join confused ones"
BEYOND = 1.13  # names stand so far out, beside the rows
ROUND = (-1.3, 1.3)  # limits of both axes around places at 1, and their names


@dataclass(frozen=True, eq=False)
class PlacedClasses:
    """The classes' places (C×k), and the pairs that are confused most: two class numbers and the share, most first."""

    classes: tuple[str, ...]
    places: Array
    pairs: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(cls, estimator: Any, classes: Sequence[str]) -> PlacedClasses | None:
        """Of a fitted map that has places; None for any other, and for a row of places, which needs no telling."""
        model = reducer_of(estimator)
        places = getattr(model, "places_", None)
        if places is None or places.shape[1] < 2:
            return None
        known = [str(label) for label in model.classes_.tolist()]
        seen = [number for number, name in enumerate(classes) if name in known]
        order = [known.index(classes[number]) for number in seen]
        confusions = model.confusions_[np.ix_(order, order)]
        shares = np.triu((confusions + confusions.T) / 2, 1)
        most = np.argsort(-shares, axis=None, kind="stable")[:MOST_PAIRS].tolist()
        found = [(*(seen[one] for one in divmod(at, len(shares))), float(shares.flat[at])) for at in most]
        pairs = tuple(pair for pair in found if pair[2] >= LEAST_SHARE)
        placed = np.full((len(classes), places.shape[1]), np.nan)  # of classes that were not fitted
        placed[seen] = places[order]
        return cls(tuple(classes), placed, pairs)

    @property
    def told(self) -> str:
        """The confused pairs by name, with how probable, not how often taken, one is for the other."""
        named = [f"{self.classes[a]} and {self.classes[b]} ({100 * share:.1f} %)" for a, b, share in self.pairs]
        if not named:
            return ""
        return f"mean probability of the one class on held-out rows of the other, most of all: {', '.join(named)}"

    def lines(self, means: Array) -> list[Mark]:
        """A line between the rows (C×2, their means) of each confused pair, the broader the more they are confused."""
        broad = max((share for *_, share in self.pairs), default=1.0)
        return [
            Mark(
                "line",
                "confused",
                x=means[[a, b], 0],
                y=means[[a, b], 1],
                name=f"{self.classes[a]} and {self.classes[b]}",
                colour="soft",
                size=1 + 4 * share / broad,
                opacity=0.35,
            )
            for a, b, share in self.pairs
        ]

    def names(self, chosen: tuple[int, ...], shown: Sequence[int]) -> Mark:
        """The classes' names, beside their places."""
        shown = [number for number in shown if np.isfinite(self.places[number]).all()]
        x, y = BEYOND * self.places[shown][:, chosen].T
        return Mark("text", "names", x, y, texts=[self.classes[number] for number in shown])
