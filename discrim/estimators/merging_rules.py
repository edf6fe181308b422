"""Which terms of a hyperplane to merge: from weights a and two classes of rows to a grouping of the features.

A hyperplane Σ_i a_i x_i = c is refined by adding some of its terms into groups, u_k = Σ_{i∈I_k} a_i x_i,
and separating the classes anew in the space of u. A rule proposes the groups. Most rules merge one set I and
leave every other term alone; the exhaustive ones propose many groupings, and the largest margin decides.

A grouping is an array that holds, for each feature, the number of its group.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Grouping = NDArray[np.intp]

MOST_FEATURES_TO_SPLIT = 16  # 2¹⁵ − 1 splits, each with an SVM: about a minute for a hundred rows
SLACK = 1e-9  # of two sums, or of a discriminant that Algorithm 1 compares with itself: rounding must not decide
ROUNDING = 1e-12  # a mean of equal values is off by this share of them at most
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True)
class Terms:
    """The terms a_i x_i of a hyperplane over the rows of two classes."""

    weights: Floats  # a
    rows: Floats  # x, n×d
    positive: NDArray[np.bool_]  # which rows are of the class T+
    row_weights: Floats


def groupings(rule: str, terms: Terms) -> Iterator[Grouping]:
    """Return the groupings a rule proposes, at least one."""
    d = len(terms.weights)
    if rule in MERGED_SET:
        yield one_merged(MERGED_SET[rule](terms), d)
    elif rule == "exhaustive-splits":
        yield from two_group_splits(d)
    else:
        yield from merged_pairs(d)


def heavier_sign(terms: Terms) -> Indices:
    """Compute sign: the terms a_i(μ_−i − μ_+i) of one sign, the sign of the larger sum (Algorithm 2).

    With rows standardised to T+ this is a_i μ_−i; the difference of the means makes it free of that. A feature whose
    class means are equal but for rounding speaks for no class and stays alone.
    """
    apart = _class_mean(terms, ~terms.positive) - _class_mean(terms, terms.positive)
    apart[np.abs(apart) <= ROUNDING * np.abs(terms.rows).max(axis=0)] = 0.0
    gaps = terms.weights * apart
    positive, negative = gaps[gaps > 0].sum(), -gaps[gaps < 0].sum()
    return np.flatnonzero(gaps > 0 if positive > (1 + SLACK) * negative else gaps < 0)


# Which features each rule merges; a run is of Algorithm 1: as long as the sum discriminates best
MERGED_SET: dict[str, Callable[[Terms], Indices]] = {
    "sign": heavier_sign,
    "discriminant-min": lambda terms: _discriminating_run(terms, np.argsort(_sizes(terms.weights), kind="stable")),
    "discriminant-max": lambda terms: _discriminating_run(terms, np.argsort(-_sizes(terms.weights), kind="stable")),
    "min": lambda terms: _two_first(_sizes(terms.weights)),
    "max": lambda terms: _two_first(-_sizes(terms.weights)),
    "none": lambda terms: np.empty(0, dtype=np.intp),  # the features are only rescaled, x_i → a_i x_i
}
RULES = (*MERGED_SET, "exhaustive-splits", "exhaustive-pairs")


def discriminant(values: Floats, positive: NDArray[np.bool_], row_weights: Floats) -> Floats:
    """Compute D = (μ₊ − μ₋)² / (σ₊² + σ₋²) of each column; infinite where both classes are constant and apart.

    Free of the column's scale and origin (the paper's equation 6 says it grows with |s|; it does not).
    """
    of_class = positive.astype(np.intp)
    shares = np.zeros((2, len(values)))  # two matrix products take all columns at once
    shares[of_class, np.arange(len(values))] = row_weights
    shares /= shares.sum(axis=1, keepdims=True)
    means = shares @ values
    away = values - means[of_class]
    gap, spread = means[1] - means[0], (shares @ np.square(away, out=away)).sum(axis=0)
    squared, rounding = np.square(gap), np.square(ROUNDING * np.abs(values).max(axis=0))
    squared[squared <= rounding] = 0.0
    spread[spread <= rounding] = 0.0
    return np.divide(squared, spread, out=np.where(squared > 0, np.inf, 0.0), where=spread > 0)


def one_merged(merged: Indices, d: int) -> Grouping:
    """Return the merged features as group 0, every other one a group of its own, in order."""
    grouping = np.zeros(d, dtype=np.intp)
    alone = np.ones(d, dtype=bool)
    alone[merged] = len(merged) < 2
    first = 0 if alone.all() else 1
    grouping[alone] = np.arange(first, first + alone.sum())
    return grouping


def two_group_splits(d: int) -> Iterator[Grouping]:
    """Return all 2^(d−1) − 1 ways to part d features into two groups."""
    if d == 1:
        yield np.zeros(1, dtype=np.intp)
    for code in range(1, 2 ** (d - 1)):
        yield code >> np.arange(d)[::-1] & 1


def merged_pairs(d: int) -> Iterator[Grouping]:
    """Return all d(d−1)/2 ways to merge two of d features."""
    if d == 1:
        yield np.zeros(1, dtype=np.intp)
    for pair in itertools.combinations(range(d), 2):
        yield one_merged(np.array(pair), d)


def grouping_of(groups: Sequence[Sequence[int]], d: int) -> Grouping:
    """Return the grouping of given lists of features; a feature in none of them stays alone."""
    grouping = np.full(d, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        for feature in group:
            if not -1 < feature < d:
                raise ValueError(f"rule names feature {feature}, but there are {d}. Pass indices 0 to {d - 1}.")
            if grouping[feature] >= 0:
                raise ValueError(f"rule names feature {feature} twice. Put every feature into one group only.")
            grouping[feature] = number
    alone = grouping < 0
    grouping[alone] = np.arange(len(groups), len(groups) + alone.sum())
    return renumbered(grouping)


def renumbered(grouping: Grouping) -> Grouping:
    """Return the same groups numbered 0, 1, … without gaps."""
    return np.unique(grouping, return_inverse=True)[1].astype(np.intp)


def groups_of(grouping: Grouping, features: Indices) -> list[list[int]]:
    """Return the groups as lists of features, `features` naming each place of the grouping."""
    order = np.argsort(grouping, kind="stable")
    cuts = [0, *(np.flatnonzero(np.diff(grouping[order])) + 1).tolist(), len(order)]
    named = features[order].tolist()
    return [named[start:stop] for start, stop in itertools.pairwise(cuts)]


def merged(values: Floats, grouping: Grouping) -> Floats:
    """Return columns added up group by group: u_k = Σ_{i∈I_k} values_i."""
    n_groups = int(grouping.max()) + 1
    order = np.argsort(grouping, kind="stable")
    if n_groups == len(grouping):
        return values[:, order]
    starts = np.searchsorted(grouping[order], np.arange(n_groups))
    return np.add.reduceat(values[:, order], starts, axis=1)


def _sizes(weights: Floats) -> Floats:
    """Compute |a_i| to ten digits: twin columns share their weight up to rounding, and that is a tie."""
    sizes = np.abs(weights)
    return np.round(sizes / sizes.max(), 10)


def _two_first(sizes: Floats) -> Indices:
    """Return indices of the two smallest, ties to the lower index, in one pass each."""
    first = int(np.argmin(sizes))
    others = sizes.copy()
    others[first] = np.inf
    return np.array([first, int(np.argmin(others))][: len(sizes)], dtype=np.intp)


def _class_mean(terms: Terms, of_class: NDArray[np.bool_]) -> Floats:
    weights = np.where(of_class, terms.row_weights, 0.0)
    return weights @ terms.rows / weights.sum()


def _discriminating_run(terms: Terms, order: Indices) -> Indices:
    """Return the longest start of `order` along which D(Σ_{i∈I} a_i x_i) ≥ D(x_i) for all i in I, at every step.

    Running sums make it one pass over the rows. Weights of zero are left out: they add nothing.
    """
    order = order[_sizes(terms.weights)[order] > 0]
    total = np.zeros(len(terms.rows))
    best_alone = 0.0
    for start in range(0, len(order), COLUMNS_AT_ONCE):
        columns = order[start : start + COLUMNS_AT_ONCE]
        features = terms.rows[:, columns]
        sums = total[:, None] + np.cumsum(features * terms.weights[columns], axis=1)
        alone = discriminant(features, terms.positive, terms.row_weights)
        alone = np.maximum(np.maximum.accumulate(alone), best_alone)
        holds = discriminant(sums, terms.positive, terms.row_weights) >= alone * (1 - SLACK)
        if not holds.all():
            return order[: start + int(np.argmin(holds))]
        total, best_alone = sums[:, -1], alone[-1]
    return order
