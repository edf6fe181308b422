"""Class scores of any scikit-learn classifier for the posterior map; a random forest, alone and with the kernel rule.

    a_c(x) = log((1 − 1/n) p_c(x) + 1/(nC)) ,   or the decision function if there are no probabilities

The temperature turns both into probabilities. p is that of a classifier, or the mean of the calibrated probabilities of
the kernel rule and a forest: they err on different rows, so their mean is often better than either. Equal rows are
merged and sorted by content, so neither the order nor the repetition of rows affects the forest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import has_fit_parameter

from discrim.core.cross_validation import ANY_TEMPERATURES, Folds, any_class, best_temperature, standard_error
from discrim.core.explanation import two_classes
from discrim.core.kernel_choice import Candidate, Choice, HeldOutScores, PosteriorRule, TriedKernel
from discrim.core.landmarks import GRADIENTS, drawn_landmarks
from discrim.tables.rows import LabelledRows, block_slices

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
FOREST_ROWS = 5_000  # above this number of rows, no forest is tried
FOREST_WEIGHT = 200  # below this total weight of the rows, none is either
TREES, FIRST_TREES = 100, 20  # the first ones show whether growing the others is worthwhile
FOLD_TREES = 30  # trees in each fold
GAIN_OF_TREES = 0.3  # largest share of the first trees' error that more trees are expected to remove
FOREST = "random forest"
IMPORTANCE_ROWS = 1_000  # training rows over which effects of columns are averaged


@dataclass(frozen=True, eq=False)
class ClassifierRule:
    """Scores of all classes by a fitted classifier.

    known : numbers of the classes that the classifier knows
    total_weight : total weight of its training rows
    centre, exponent : centre and unit (2^exponent) subtracted and divided out for a forest, which works in float32
    """

    classifier: Any
    known: Indices
    n_classes: int
    total_weight: float
    centre: Array | None = None
    exponent: int = 0
    kernel: None = None

    @classmethod
    def fit(cls, classifier: Any, rows: LabelledRows) -> ClassifierRule:
        """Train a copy of a classifier."""
        options: dict[str, Any] = {}
        if rows.weights is not None:
            if not has_fit_parameter(classifier, "sample_weight"):
                kind = type(classifier).__name__
                raise ValueError(f"sample_weight must be None for classifier={kind}, whose fit takes no weights.")
            options["sample_weight"] = rows.weights
        fitted = clone(classifier).fit(rows.X, rows.classes[rows.codes], **options)
        known = np.searchsorted(rows.classes, fitted.classes_)
        return cls(fitted, known, rows.n_classes, float(rows.class_totals.sum()))

    @property
    def name(self) -> str:
        """Name of the classifier."""
        return type(self.classifier).__name__

    label = name

    @property
    def offsets(self) -> Array:
        """Constants of the scores, −inf for unknown classes."""
        known = np.full(self.n_classes, -np.inf)
        known[self.known] = 0.0
        return known

    def scores(self, X: Any) -> Array:
        """Compute a_c(x), n×C."""
        if sp.issparse(X) and self.centre is not None:  # the forest knows dense rows: a block of them at a time
            return np.concatenate([self.scores(X[part].toarray()) for part in block_slices(*X.shape)])
        X = rescaled(X, self.centre, self.exponent)
        if not hasattr(self.classifier, "predict_proba"):
            values = np.asarray(self.classifier.decision_function(X), dtype=np.float64)
            return self._for_all_classes(np.c_[-values / 2, values / 2] if values.ndim == 1 else values, -np.inf)
        return log_scores(self._for_all_classes(self.classifier.predict_proba(X), 0.0), self.total_weight)

    def _for_all_classes(self, values: Array, otherwise: float) -> Array:
        """Return values for all classes, with `otherwise` for unknown ones."""
        if len(self.known) == self.n_classes:
            return np.asarray(values, dtype=np.float64)
        found = np.full((len(values), self.n_classes), otherwise)
        found[:, self.known] = values
        return found


@dataclass(frozen=True, eq=False)
class MeanRule:
    """Scores log((1 − 1/n) p + 1/(nC)) of the mean p of several rules' probabilities softmax(a/T).

    rules, temperatures : the rules, and the T of each
    total_weight : total weight of their training rows
    """

    rules: tuple[PosteriorRule | ClassifierRule, ...]
    temperatures: tuple[float, ...]
    total_weight: float

    @property
    def name(self) -> str:
        """Names of the rules."""
        return f"mean of {' and '.join(rule.name for rule in self.rules)}"

    @property
    def label(self) -> str:
        """Kernel and classifier."""
        return " + ".join(rule.label for rule in self.rules)

    @property
    def kernel(self) -> Any:
        """Kernel of the first rule."""
        return self.rules[0].kernel

    @property
    def offsets(self) -> Array:
        """Constants of the scores: none, because all scores are finite."""
        return np.zeros(len(self.rules[0].offsets))

    def scores(self, X: Any) -> Array:
        """Compute a_c(x), n×C."""
        return mean_scores([rule.scores(X) for rule in self.rules], self.temperatures, self.total_weight)


AnyRule = PosteriorRule | ClassifierRule | MeanRule


def column_effects(rule: AnyRule, X: Any, weights: Sequence[Array], spread: Array) -> list[Array]:
    """Compute Σ_c w_nc ∂a_c(x_n)/∂x_j s_j for all j (n×d) and each of the weights (n×C), where s is the spread.

    For a classifier or a mean these are differences Σ_c w_nc (a_c(x + ½ s_j e_j) − a_c(x − ½ s_j e_j)).
    """
    if isinstance(rule, PosteriorRule):
        return [rule.gradients(X, one) * spread for one in weights]
    X = X.toarray() if sp.issparse(X) else X
    found = [np.zeros(X.shape) for _ in weights]
    for column in np.flatnonzero(spread):
        up, down = (np.array(X, dtype=np.float64) for _ in range(2))
        up[:, column] += spread[column] / 2
        down[:, column] -= spread[column] / 2
        change = rule.scores(up) - rule.scores(down)
        for one, weight in zip(found, weights, strict=True):
            one[:, column] = np.where(weight == 0, 0.0, weight * change).sum(axis=1)
    return found


def odds_weights(n_classes: int, temperature: float, first: Indices, second: Indices) -> Array:
    """Return weights (n×C) of the scores that give log p(first) − log p(second)."""
    chosen = np.eye(n_classes) / temperature
    return chosen[first] - chosen[second]


def mean_effects(
    rule: AnyRule, rows: LabelledRows, priorities: Indices, temperature: float, spread: Array
) -> Array | None:
    """Compute the mean absolute effect of each column on the log odds over distinct rows; None without gradients.

    A forest has importances of its own. For a mean of rules it is the mean of their shares.
    """
    if isinstance(rule, MeanRule):
        found = [mean_effects(one, rows, priorities, temperature, spread) for one in rule.rules]
        known = [one / (one.sum() or 1.0) for one in found if one is not None]
        return np.mean(known, axis=0) if len(known) == len(found) else None
    if isinstance(rule, ClassifierRule) or not (rule.kernel is None or rule.kernel.name in GRADIENTS):
        own = getattr(getattr(rule, "classifier", None), "feature_importances_", None)
        return None if own is None else np.asarray(own)
    picked = drawn_landmarks(priorities, np.arange(rows.shape[0]), IMPORTANCE_ROWS)
    weights = np.bincount(priorities, rows.weights)[priorities[picked]]
    total = np.zeros(rows.shape[1])
    for part in block_slices(len(picked), rows.shape[1]):
        table = rows.X[picked[part]]
        first, second = two_classes(rule.scores(table), rows.classes, None)
        (effects,) = column_effects(rule, table, [odds_weights(rows.n_classes, temperature, first, second)], spread)
        total += weights[part] @ np.abs(effects)
    return total / weights.sum()


def mean_scores(scores: Sequence[Array], temperatures: Sequence[float], total_weight: float) -> Array:
    """Compute the scores of the mean of the probabilities softmax(a/T)."""
    shares = [softmax(one / temperature, axis=1) for one, temperature in zip(scores, temperatures, strict=True)]
    return log_scores(np.mean(shares, axis=0), total_weight)


def rescaled(X: Any, centre: Array | None, exponent: int) -> Any:
    """Return the rows minus a centre, in units of 2^exponent."""
    if centre is None:
        return X
    with np.errstate(over="ignore"):
        moved = np.ldexp(np.subtract(X, centre, dtype=np.float64), -exponent)
    return moved.clip(-1e30, 1e30)


def log_scores(probabilities: Array, total_weight: float) -> Array:
    """Compute log((1 − 1/n) p + 1/(nC)), which is always finite."""
    share = any_class(total_weight)
    return np.log((1 - share) * probabilities + share / probabilities.shape[1])


def choose_classifier(classifier: Any, folds: Folds) -> tuple[Choice, ClassifierRule]:
    """Choose the temperature of a given classifier by the folds, and fit it to all rows."""
    parts = []
    for training, test in folds.splits.pairs:
        rows, others = folds.points.select(training), folds.points.select(test)
        scores = ClassifierRule.fit(classifier, rows).scores(others.X)
        parts.append(HeldOutScores.of(others, scores.T[None]))
    rule = ClassifierRule.fit(classifier, folds.points)
    return _choice(rule.name, HeldOutScores.joined(parts), len(parts)), rule


def suits_forest(rows: LabelledRows) -> bool:
    """Return True if a forest may be tried: on dense rows, not too many, and enough to tell which rule is better."""
    return not rows.is_sparse and rows.shape[0] <= FOREST_ROWS and rows.class_totals.sum() >= FOREST_WEIGHT


def choose_forest(
    folds: Folds, priorities: Indices, seed: int, rival: Choice, fit_rival: Callable[[], PosteriorRule]
) -> tuple[Choice, PosteriorRule | ClassifierRule | MeanRule]:
    """Choose between the best other rule, a forest, and the mean of both; return the choice and the rule.

    A forest is dropped if out-of-bag scores show that neither it nor the mean is better. Otherwise the folds decide,
    which may hold out more than single rows (later rows of a time series, say). The choice lists all that was tried.
    """
    grove = _Grove.of(folds.points, priorities, seed)
    order = np.concatenate([test for _, test in folds.splits.pairs])
    for n_trees in (FIRST_TREES, TREES):
        forest, seen = grove.grow(n_trees)
        scores = log_scores(seen[order], grove.total_weight)
        alone, both = _forest_choices(rival, f"{FOREST}, {n_trees} trees", scores, 1)
        hopeful = alone.accuracy + (GAIN_OF_TREES * (1 - alone.accuracy) if n_trees < TREES else 0.0)
        is_within_reach = hopeful >= rival.accuracy - standard_error(rival.accuracy, grove.total_weight)
        best = _best([rival, alone, both])
        if best is rival and not (n_trees < TREES and is_within_reach):
            return replace(rival, tried=(*rival.tried, *alone.tried, *both.tried)), fit_rival()
    scores = grove.held_out_scores(folds, priorities)
    alone, both = _forest_choices(rival, f"{FOREST}, {FOLD_TREES} trees", scores, len(folds.splits.pairs))
    best, tried = _best([rival, alone, both]), (*rival.tried, *alone.tried, *both.tried)
    if best is rival:
        return replace(rival, tried=tried), fit_rival()
    why = (
        f"{best.why}; the best other rule ({rival.candidate.label}) has {100 * rival.accuracy:.1f} % and a log loss "
        f"of {rival.log_loss:.3f}"
    )
    trees, best = grove.rule(forest), replace(best, tried=tried, why=why)
    if best.candidate == both.candidate:
        return best, MeanRule((fit_rival(), trees), (rival.temperature, alone.temperature), grove.total_weight)
    return best, trees


def _forest_choices(rival: Choice, name: str, scores: Array, n_folds: int) -> tuple[Choice, Choice]:
    """Return the choices of a forest and of its mean with another rule, from scores in the order of the rule's."""
    others = rival.held_out
    alone = _choice(name, replace(others, scores=scores[None]), n_folds)
    given = (others.scores[0], scores), (rival.temperature, alone.temperature), others.total_weight
    mean = replace(others, scores=mean_scores(*given)[None])
    return alone, _choice(f"mean of {rival.candidate.label} and {name}", mean, n_folds)


def _best(choices: Sequence[Choice]) -> Choice:
    """Return the choice with the smallest log loss among those within one standard error of the best accuracy."""
    best = max(one.accuracy for one in choices)
    error = standard_error(best, choices[0].held_out.total_weight)
    return min((one for one in choices if one.accuracy >= best - error - 1e-12), key=lambda one: one.log_loss)


@dataclass(frozen=True, eq=False)
class _Grove:
    """Rows for forests: the distinct rows of each class, sorted by content, in units suitable for float32."""

    rows: LabelledRows
    group: Indices  # index of every given row among the distinct ones
    seed: int
    total_weight: float
    centre: Array
    exponent: int
    forest: RandomForestClassifier

    @classmethod
    def of(cls, rows: LabelledRows, priorities: Indices, seed: int) -> _Grove:
        """Merge equal rows and change their unit."""
        merged, group = _merged(rows, priorities)
        centre = np.median(merged.X.astype(np.float64) / 2, axis=0) * 2
        with np.errstate(over="ignore"):
            gaps = np.abs(np.subtract(merged.X, centre, dtype=np.float64))
        exponent = int(np.frexp(gaps[np.isfinite(gaps)].max(initial=0.0))[1])
        short = replace(merged, X=rescaled(merged.X, centre, exponent))
        forest = RandomForestClassifier(oob_score=True, warm_start=True, random_state=seed, n_jobs=1)
        return cls(short, group, seed, float(rows.class_totals.sum()), centre, exponent, forest)

    def grow(self, n_trees: int) -> tuple[RandomForestClassifier, Array]:
        """Return a forest with this many trees, and the out-of-bag probabilities of the given rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows that are in every bag of few trees
            self.forest.set_params(n_estimators=n_trees)
            self.forest.fit(self.rows.X, self.rows.codes, sample_weight=self.rows.weights)
        seen = np.nan_to_num(self.forest.oob_decision_function_, nan=1 / self.rows.n_classes)[self.group]
        plain = copy(self.forest).set_params(oob_score=False, warm_start=False)
        del plain.oob_decision_function_, plain.oob_score_
        return plain, seen

    def rule(self, forest: RandomForestClassifier) -> ClassifierRule:
        """Return the rule of a forest."""
        n_classes = self.rows.n_classes
        return ClassifierRule(forest, forest.classes_, n_classes, self.total_weight, self.centre, self.exponent)

    def held_out_scores(self, folds: Folds, priorities: Indices) -> Array:
        """Return the scores of the held-out rows, fold by fold."""
        parts = []
        for training, test in folds.splits.pairs:
            rows, _ = _merged(folds.points.select(training), priorities[training])
            forest = RandomForestClassifier(FOLD_TREES, random_state=self.seed, n_jobs=1)
            forest.fit(rescaled(rows.X, self.centre, self.exponent), rows.codes, sample_weight=rows.weights)
            parts.append(self.rule(forest).scores(folds.points.select(test).X))
        return np.concatenate(parts)


def _choice(name: str, held_out: HeldOutScores, n_folds: int) -> Choice:
    temperature, loss = best_temperature(held_out.scores[0], held_out.codes, held_out.weights, ANY_TEMPERATURES)
    accuracy = float(held_out.accuracies[0])
    why = f"{name}: {100 * accuracy:.1f} % of held-out rows, with a log loss of {loss:.3f}"
    tried = (TriedKernel(name, accuracy, loss, 0.0, n_folds),)
    return Choice(Candidate(name), 0.0, temperature, loss, held_out, tried, why)


def _merged(rows: LabelledRows, priorities: Indices) -> tuple[LabelledRows, Indices]:
    """Return the distinct rows of each class, sorted by content, and the index of every row among them."""
    order = np.lexsort((rows.codes, priorities))
    first = (np.diff(priorities[order], prepend=-1) != 0) | (np.diff(rows.codes[order], prepend=-1) != 0)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(first) - 1
    merged = rows.select(order[first])
    return replace(merged, weights=np.bincount(group, rows.weights).astype(np.float64)), group
