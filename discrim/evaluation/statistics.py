"""Statistical tests and intervals for scores of overlapping splits.

Random splits of one data set share rows, so score differences are not independent, and the usual tests find a winner
among equal methods too often: at a nominal 5 % the sign test over 50 random 80/20 splits rejects about 28 % of the
time. The corrected resampled test increases the variance by the shared part,

    t = d̄ / √( (1/J + n_test/n_train) · s² ),     J − 1 degrees of freedom

(Nadeau and Bengio 2003). The tests of the papers are here as well. Values per split are along the first axis; further
axes are separate comparisons.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Figure = Any  # a float for one comparison, an array for several at once


@dataclass(frozen=True)
class TTest:
    """Result of a t test: mean difference over its standard error."""

    statistic: Figure
    p_value: Figure
    mean: Figure
    standard_error: Figure
    degrees_of_freedom: int


@dataclass(frozen=True)
class SignTest:
    """Result of a sign test: splits won, lost and tied; ties do not count in the p value."""

    wins: Figure
    losses: Figure
    ties: Figure
    p_value: Figure


@dataclass(frozen=True)
class Interval:
    """Mean with the limits of its interval."""

    mean: Figure
    low: Figure
    high: Figure


@dataclass(frozen=True)
class Friedman:
    """Result of Friedman's test that methods differ over data sets: χ² and the F of Iman and Davenport."""

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    mean_ranks: NDArray[np.float64]


def corrected_t_test(differences: ArrayLike, ratio: float, *, one_sided: bool = False) -> TTest:
    """Test per-split differences by the corrected resampled t test.

    ratio : n_test/n_train of the splits (`Protocol.ratio`)
    one_sided : whether only a positive difference counts
    """
    if not ratio >= 0:
        raise ValueError(f"ratio must be n_test/n_train of the splits, a number ≥ 0; got {ratio}.")
    values = _per_split(differences)
    mean, deviation = values.mean(axis=0), np.asarray(values.std(axis=0, ddof=1))
    # values that are equal except for rounding do not deviate (0.9−0.8 ≠ 0.8−0.7 in doubles)
    deviation = np.where(deviation <= 1e-12 * np.abs(values).max(axis=0), 0.0, deviation)
    error = np.sqrt(1.0 / len(values) + ratio) * deviation
    statistic, freedom = _over(mean, error), len(values) - 1
    p_value = above = stats.t.sf(statistic, freedom)
    if not one_sided:
        p_value = np.minimum(1.0, 2.0 * np.minimum(stats.t.cdf(statistic, freedom), above))
    return TTest(_plain(statistic), _plain(p_value), _plain(mean), _plain(error), freedom)


def paired_t_test(differences: ArrayLike) -> TTest:
    """Test per-split differences by Student's paired t test, which assumes independent splits: t = d̄ / √(s²/J)."""
    return corrected_t_test(differences, 0.0)


def sign_test(differences: ArrayLike) -> SignTest:
    """Test per-split differences by the sign test: wins are binomial(wins + losses, ½) if methods are equal.

    Differences of at most 1e-12 are ties and are dropped. One-sided, as in the papers.
    """
    values = _per_split(differences, least=1)
    wins, losses = (values > 1e-12).sum(axis=0), (values < -1e-12).sum(axis=0)
    decided = wins + losses
    p_value = stats.binom.sf(wins - 1, decided, 0.5)
    return SignTest(_plain(wins), _plain(losses), _plain(len(values) - decided), _plain(p_value))


def corrected_interval(values: ArrayLike, ratio: float) -> Interval:
    """Return the 95 % interval of a mean score over overlapping splits: x̄ ± t · √((1/J + n_test/n_train) s²)."""
    test = corrected_t_test(values, ratio)
    half = stats.t.ppf(0.975, test.degrees_of_freedom) * test.standard_error
    return Interval(test.mean, _plain(test.mean - half), _plain(test.mean + half))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p values adjusted for the number of comparisons (Holm 1979); NaN (no test) stays and is not counted."""
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = given.ravel().copy()
    tested = np.flatnonzero(~np.isnan(adjusted))
    ascending = tested[np.argsort(adjusted[tested], kind="stable")]
    stepped = adjusted[ascending] * np.arange(len(ascending), 0, -1)
    adjusted[ascending] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted.reshape(given.shape)


def ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the rank of each method (column) on each data set (row); 1 is the highest score, ties get mean ranks."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(f"scores must be data sets × methods, at least 1 × 2; got shape {table.shape}.")
    if np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise ValueError(f"scores must not be NaN; got NaN at [{row}, {column}]. Leave out data sets without a score.")
    # Means that are equal except for rounding are ties.
    settled = np.round(table / (np.abs(table).max() or 1.0), 12)
    return np.asarray(stats.rankdata(-settled, axis=1), dtype=np.float64)


def friedman_test(scores: ArrayLike) -> Friedman:
    """Apply Friedman's test to data sets × methods, corrected for ties.

    χ² = N Σ_j (R̄_j − m)² / [ Σ_ij (r_ij − m)² / (N(k−1)) ], m = (k+1)/2, k−1 degrees of freedom;
    F = (N−1)χ² / (N(k−1) − χ²), with k−1 and (k−1)(N−1).
    """
    table = ranks(scores)
    n_datasets, n_methods = table.shape
    middle, freedom = (n_methods + 1) / 2, n_methods - 1
    between = n_datasets * ((table.mean(axis=0) - middle) ** 2).sum()
    within = ((table - middle) ** 2).sum() / (n_datasets * freedom)
    chi_square = float(between / within) if within > 0 else 0.0
    f_statistic = float(_over((n_datasets - 1) * chi_square, n_datasets * freedom - chi_square))
    return Friedman(
        chi_square,
        float(stats.chi2.sf(chi_square, freedom)),
        f_statistic,
        float(stats.f.sf(f_statistic, freedom, freedom * (n_datasets - 1))) if n_datasets > 1 else float("nan"),
        table.mean(axis=0),
    )


def nemenyi_critical_difference(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Return the difference of two mean ranks that is significant: q_α/√2 · √(k(k+1)/(6N)).

    q_α is the quantile of the studentized range for k methods and infinite degrees of freedom. The range is divided by
    the deviation of one mean, and a difference of two means has √2 times that deviation.
    """
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(
            f"scores must have at least 2 methods and 1 data set; got {n_methods} methods and {n_datasets} data sets."
        )
    quantile = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)
    return float(quantile / np.sqrt(2) * _rank_error(n_methods, n_datasets))


def nemenyi_p_values(scores: ArrayLike) -> NDArray[np.float64]:
    """Return p values of Nemenyi's test for every pair of methods (columns), as a symmetric matrix."""
    table = ranks(scores)
    n_datasets, n_methods = table.shape
    gaps = np.abs(np.subtract.outer(table.mean(axis=0), table.mean(axis=0)))
    studentized = gaps * np.sqrt(2) / _rank_error(n_methods, n_datasets)
    p_values = np.ones((n_methods, n_methods))
    pairs = np.triu_indices(n_methods, k=1)  # the tail is an integral, computed once for each pair
    p_values[pairs] = stats.studentized_range.sf(studentized[pairs], n_methods, np.inf)
    return np.minimum(p_values, p_values.T).clip(0.0, 1.0)


def _per_split(values: ArrayLike, least: int = 2) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or len(array) < least:
        raise ValueError(f"values must have at least {least} splits along the first axis; got shape {array.shape}.")
    return array


def _over(mean: ArrayLike, error: ArrayLike) -> NDArray[np.float64]:
    """Return mean/error with 0/0 = 0 (no difference) and x/0 = ±inf (an equal difference every time)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.true_divide(mean, error)
    return np.where((np.asarray(error) == 0) & (np.asarray(mean) == 0), 0.0, quotient)


def _rank_error(n_methods: int, n_datasets: int) -> float:
    """Return the deviation of the difference of two mean ranks if methods are equal: √(k(k+1)/(6N))."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def _plain(figure: Any) -> Figure:
    array = np.asarray(figure)
    return array.item() if array.ndim == 0 else array
