"""A pipeline's score among its scores with permuted labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.summary import METRICS
from discrim.evaluation.wording import in_p
from discrim.report.chart import Axis, Chart, Mark

COLUMNS = 24


def permutation_chart(tested: PermutationTest) -> Chart:
    """Columns for how often permuted labels had a score, a line at the score itself."""
    scores = 100 * tested.permuted[np.isfinite(tested.permuted)]
    ends = np.append(scores, 100 * tested.score) if np.isfinite(tested.score) else scores
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 100.0)
    room = max(high - low, 1.0)
    counts, edges = np.histogram(scores, COLUMNS, (low - 0.02 * room, low + 1.02 * room))
    width = float(edges[1] - edges[0])
    places, drawn = (edges[:-1] + edges[1:]) / 2, counts > 0
    look: dict[str, Any] = {"colour": 5, "size": 0.9 * width, "opacity": 0.7, "tip": "about {x:.1f} %: {y} times"}
    legend = f"permuted {tested.exchanged}"
    marks = [Mark("columns", "permuted", places[drawn], counts[drawn], legend=legend, **look)]
    if np.isfinite(tested.score):
        told = f"labels as they are: {100 * tested.score:.1f} %, {in_p(tested.p_value)}"
        marks.append(Mark("upright", "score", [100 * tested.score], legend=told, colour=1))
    across = Axis(f"{METRICS[tested.metric]} %", limits=(low - 0.05 * room, low + 1.05 * room))
    return Chart(tuple(marks), across, Axis("permutations", limits=(0, 1.08 * max(counts.max(initial=0), 1))))
