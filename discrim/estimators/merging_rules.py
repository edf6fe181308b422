"""Rules for merging terms of a hyperplane: from weights a and rows of two classes to a grouping of the features.

A hyperplane Σ_i a_i x_i = c is refined by adding some of its terms into groups, u_k = Σ_{i∈I_k} a_i x_i, and separating
the classes again in the space of u. A rule proposes the groups. Most rules merge one set I and keep all other terms
separate; the exhaustive ones propose many groupings, of which the one with the largest margin is used.

A grouping is an array with the group number of each feature.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Grouping = NDArray[np.intp]

MAX_FEATURES_TO_SPLIT = 16  # 2¹⁵ − 1 splits, each with an SVM: about a minute for a hundred rows
SLACK = 1e-9  # relative tolerance when comparing sums, or a discriminant with itself: rounding must not decide
ROUNDING = 1e-12  # relative error of a mean of equal values
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True)
class Terms:
    """Terms a_i x_i of a hyperplane for the rows of two classes."""

    weights: Floats  # a
    rows: Floats  # x, n×d
    positive: NDArray[np.bool_]  # rows of the class T+
    row_weights: Floats


def groupings(rule: str, terms: Terms) -> Iterator[Grouping]:
    """Yield the groupings that a rule proposes, at least one."""
    d = len(terms.weights)
    if rule in MERGED_SET:
        yield one_merged(MERGED_SET[rule](terms), d)
    elif rule == "exhaustive-splits":
        yield from two_group_splits(d)
    else:
        yield from merged_pairs(d)


def heavier_sign(terms: Terms) -> Indices:
    """Return the features whose terms a_i(μ_−i − μ_+i) have the sign with the larger sum (Algorithm 2).

    With rows standardised to T+ this is a_i μ_−i; the difference of the means does not depend on the standardisation. A
    feature whose class means are equal up to rounding has no sign and stays separate.
    """
    apart = _class_mean(terms, ~terms.positive) - _class_mean(terms, terms.positive)
    apart[np.abs(apart) <= ROUNDING * np.abs(terms.rows).max(axis=0)] = 0.0
    gaps = terms.weights * apart
    positive, negative = gaps[gaps > 0].sum(), -gaps[gaps < 0].sum()
    return np.flatnonzero(gaps > 0 if positive > (1 + SLACK) * negative else gaps < 0)


# Features that each rule merges. The runs are those of Algorithm 1: as long as the sum discriminates best.
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
    """Compute D = (μ₊ − μ₋)² / (σ₊² + σ₋²) for each column; infinite if both classes are constant and different.

    It does not depend on the column's scale and origin (equation 6 of the paper says that it grows with |s|).
    """
    of_class = positive.astype(np.intp)
    shares = np.zeros((2, len(values)))  # two matrix products process all columns at once
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
    """Return the grouping with the merged features as group 0 and each other feature as its own group, in order."""
    grouping = np.zeros(d, dtype=np.intp)
    alone = np.ones(d, dtype=bool)
    alone[merged] = len(merged) < 2
    first = 0 if alone.all() else 1
    grouping[alone] = np.arange(first, first + alone.sum())
    return grouping


def two_group_splits(d: int) -> Iterator[Grouping]:
    """Yield all 2^(d−1) − 1 splits of d features into two groups."""
    if d == 1:
        yield np.zeros(1, dtype=np.intp)
    for code in range(1, 2 ** (d - 1)):
        yield code >> np.arange(d)[::-1] & 1


def merged_pairs(d: int) -> Iterator[Grouping]:
    """Yield all d(d−1)/2 groupings that merge two of d features."""
    if d == 1:
        yield np.zeros(1, dtype=np.intp)
    for pair in itertools.combinations(range(d), 2):
        yield one_merged(np.array(pair), d)


def grouping_of(groups: Sequence[Sequence[int]], d: int) -> Grouping:
    """Return the grouping for given lists of features; features in none of them stay separate."""
    grouping = np.full(d, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        for feature in group:
            if not -1 < feature < d:
                raise ValueError(f"rule must contain feature indices from 0 to {d - 1}; got {feature}.")
            if grouping[feature] >= 0:
                raise ValueError(f"rule must contain every feature at most once; got feature {feature} twice.")
            grouping[feature] = number
    alone = grouping < 0
    grouping[alone] = np.arange(len(groups), len(groups) + alone.sum())
    return renumbered(grouping)


def renumbered(grouping: Grouping) -> Grouping:
    """Return the same groups numbered 0, 1, … without gaps."""
    return np.unique(grouping, return_inverse=True)[1].astype(np.intp)


def groups_of(grouping: Grouping, features: Indices) -> list[list[int]]:
    """Return the groups as lists of features; `features` maps positions of the grouping to features."""
    order = np.argsort(grouping, kind="stable")
    cuts = [0, *(np.flatnonzero(np.diff(grouping[order])) + 1).tolist(), len(order)]
    named = features[order].tolist()
    return [named[start:stop] for start, stop in itertools.pairwise(cuts)]


def merged(values: Floats, grouping: Grouping) -> Floats:
    """Return the columns summed by group: u_k = Σ_{i∈I_k} values_i."""
    n_groups = int(grouping.max()) + 1
    order = np.argsort(grouping, kind="stable")
    if n_groups == len(grouping):
        return values[:, order]
    starts = np.searchsorted(grouping[order], np.arange(n_groups))
    return np.add.reduceat(values[:, order], starts, axis=1)


def _sizes(weights: Floats) -> Floats:
    """Return |a_i| to ten digits, because duplicate columns have equal weights up to rounding and must tie."""
    sizes = np.abs(weights)
    return np.round(sizes / sizes.max(), 10)


def _two_first(sizes: Floats) -> Indices:
    """Return the indices of the two smallest values; ties go to the lower index."""
    first = int(np.argmin(sizes))
    others = sizes.copy()
    others[first] = np.inf
    return np.array([first, int(np.argmin(others))][: len(sizes)], dtype=np.intp)


def _class_mean(terms: Terms, of_class: NDArray[np.bool_]) -> Floats:
    weights = np.where(of_class, terms.row_weights, 0.0)
    return weights @ terms.rows / weights.sum()


def _discriminating_run(terms: Terms, order: Indices) -> Indices:
    """Return the longest prefix of `order` in which D(Σ_{i∈I} a_i x_i) ≥ D(x_i) for all i in I, at every step.

    Running sums require one pass over the rows. Zero weights are skipped, because they add nothing.
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
