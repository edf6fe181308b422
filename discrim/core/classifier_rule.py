"""Class scores of any scikit-learn classifier for the posterior map, and a random forest as a candidate of its own.

    a_c(x) = log((1 − 1/n) p_c(x) + 1/(nC)) ,   or the decision function where there are no probabilities

The temperature makes probabilities of both. A forest's held-out scores are those of the trees that did not see a row.
Its rows are merged where they are equal and put in the order of their content, so that neither the order of the rows
nor repetition plays a part.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import has_fit_parameter

from discrim.core.calibration import ANY_TEMPERATURES, any_class, best_temperature, standard_error
from discrim.core.cross_validation import Folds
from discrim.core.kernel_choice import FOLDS_BEFORE_DROPPING, HOPELESS, Candidate, Choice, HeldOutScores, TriedKernel
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
FOREST_ROWS = 5_000  # above, no forest is tried
TREES, FIRST_TREES = 100, 20  # the first ones show whether the others are worth growing
FOLD_TREES = 30  # of the forests that folds judge
GAIN_OF_TREES = 0.3  # of the first trees' error, at most, vanishes with the others
FOREST = "random forest"


@dataclass(frozen=True, eq=False)
class ClassifierRule:
    """Scores of all classes by a fitted classifier.

    known : numbers of the classes that the classifier knows; total_weight : of its training rows
    centre, exponent : taken off the columns, and their unit as a power of 2: a forest's numbers are short
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
        """The classifier's name."""
        return type(self.classifier).__name__

    @property
    def offsets(self) -> Array:
        """Constants of the scores, −inf for classes that are not known."""
        known = np.full(self.n_classes, -np.inf)
        known[self.known] = 0.0
        return known

    has_gradients = False

    def scores(self, X: Any) -> Array:
        """Compute a_c(x), n×C."""
        X = placed(X, self.centre, self.exponent)
        if not hasattr(self.classifier, "predict_proba"):
            values = np.asarray(self.classifier.decision_function(X), dtype=np.float64)
            return self._among(np.c_[-values / 2, values / 2] if values.ndim == 1 else values, -np.inf)
        return log_scores(self._among(self.classifier.predict_proba(X), 0.0), self.total_weight)

    def _among(self, values: Array, otherwise: float) -> Array:
        """Put the known classes' values among all classes."""
        if len(self.known) == self.n_classes:
            return np.asarray(values, dtype=np.float64)
        found = np.full((len(values), self.n_classes), otherwise)
        found[:, self.known] = values
        return found

    def effects(self, X: Any, weights: Sequence[Array], spread: Array) -> list[Array]:
        """Compute Σ_c w_nc (a_c(x + ½ s_j e_j) − a_c(x − ½ s_j e_j)) of every column j, n×d, for all of the weights."""
        X = X.toarray() if sp.issparse(X) else X
        found = [np.zeros(X.shape) for _ in weights]
        for column in np.flatnonzero(spread):
            up, down = (np.array(X, dtype=np.float64) for _ in range(2))
            up[:, column] += spread[column] / 2
            down[:, column] -= spread[column] / 2
            change = self.scores(up) - self.scores(down)
            for one, weight in zip(found, weights, strict=True):
                one[:, column] = np.where(weight == 0, 0.0, weight * change).sum(axis=1)
        return found


def placed(X: Any, centre: Array | None, exponent: int) -> Any:
    """Return the rows around a centre, in units of 2^exponent."""
    if centre is None:
        return X
    with np.errstate(over="ignore"):
        moved = np.ldexp(np.subtract(X, centre, dtype=np.float64), -exponent)
    return moved.clip(-1e30, 1e30)


def log_scores(probabilities: Array, total_weight: float) -> Array:
    """Compute log((1 − 1/n) p + 1/(nC)), which is finite."""
    share = any_class(total_weight)
    return np.log((1 - share) * probabilities + share / probabilities.shape[1])


def choose_classifier(classifier: Any, folds: Folds) -> tuple[Choice, ClassifierRule]:
    """Choose the temperature of a given classifier by the folds, and train it on all rows."""
    parts = []
    for training, test in folds.splits.pairs:
        rows, others = folds.points.some(training), folds.points.some(test)
        scores = ClassifierRule.fit(classifier, rows).scores(others.X)
        parts.append(HeldOutScores.of(others, scores.T[None]))
    rule = ClassifierRule.fit(classifier, folds.points)
    return _choice(rule.name, HeldOutScores.joined(parts), len(parts)), rule


def choose_forest(folds: Folds, priorities: Indices, seed: int, rival: Choice) -> tuple[Choice, ClassifierRule | None]:
    """Try a forest against the best other rule; return the winner, which lists the forest, and the forest if it won.

    Trees that did not see a row screen it: a forest that is behind there is dropped. Otherwise the folds decide, which
    may hold out more than single rows (rows in the order of time, say).
    """
    grove = _Grove.of(folds.points, priorities, seed)
    for n_trees in (FIRST_TREES, TREES):
        forest, seen = grove.grown(n_trees)
        held_out = HeldOutScores.of(folds.points, log_scores(seen, grove.total_weight).T[None])
        found = _choice(f"{FOREST}, {n_trees} trees", held_out, 1)
        if n_trees < TREES:
            error = standard_error(rival.accuracy, grove.total_weight)
            hopeful = found.accuracy + GAIN_OF_TREES * (1 - found.accuracy)
            is_behind = hopeful < rival.accuracy - HOPELESS * error
        else:
            is_behind = not _is_better(found, rival)
        if is_behind:
            return replace(rival, tried=(*rival.tried, *found.tried)), None
    found = grove.judged(folds, priorities, rival)
    tried = (*rival.tried, *found.tried)
    if not _is_better(found, rival):
        return replace(rival, tried=tried), None
    why = (
        f"{found.why}; the best other rule ({rival.candidate.label}) has {100 * rival.accuracy:.1f} % and a log loss "
        f"of {rival.log_loss:.3f}"
    )
    n_classes = folds.points.n_classes
    rule = ClassifierRule(forest, np.arange(n_classes), n_classes, grove.total_weight, grove.centre, grove.exponent)
    return replace(found, tried=tried, why=why), rule


def _is_better(one: Choice, other: Choice) -> bool:
    """Return True for the more accurate of two, or the one of less log loss within one standard error."""
    best = max(one.accuracy, other.accuracy)
    if abs(one.accuracy - other.accuracy) <= standard_error(best, one.held_out.total_weight) + 1e-12:
        return one.log_loss < other.log_loss
    return one.accuracy > other.accuracy


@dataclass(frozen=True, eq=False)
class _Grove:
    """Rows for forests: each different row of a class once, in the order of the content, in short numbers."""

    rows: LabelledRows
    group: Indices  # the place of every given row among them
    seed: int
    total_weight: float
    centre: Array
    exponent: int
    forest: RandomForestClassifier

    @classmethod
    def of(cls, rows: LabelledRows, priorities: Indices, seed: int) -> _Grove:
        """Merge and place the rows."""
        merged, group = _merged(rows, priorities)
        centre = np.median(rows.X.astype(np.float64) / 2, axis=0) * 2
        with np.errstate(over="ignore"):
            gaps = np.abs(np.subtract(rows.X, centre, dtype=np.float64))
        exponent = int(np.frexp(gaps[np.isfinite(gaps)].max(initial=0.0))[1])
        short = replace(merged, X=placed(merged.X, centre, exponent))
        forest = RandomForestClassifier(oob_score=True, warm_start=True, random_state=seed, n_jobs=1)
        return cls(short, group, seed, float(rows.class_totals.sum()), centre, exponent, forest)

    def grown(self, n_trees: int) -> tuple[RandomForestClassifier, Array]:
        """Return a forest of so many trees, and the probabilities of the given rows by trees that did not see them."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that every one of few trees has seen
            self.forest.set_params(n_estimators=n_trees)
            self.forest.fit(self.rows.X, self.rows.codes, sample_weight=self.rows.weights)
        seen = np.nan_to_num(self.forest.oob_decision_function_, nan=1 / self.rows.n_classes)[self.group]
        plain = copy(self.forest).set_params(oob_score=False, warm_start=False)
        del plain.oob_decision_function_, plain.oob_score_
        return plain, seen

    def judged(self, folds: Folds, priorities: Indices, rival: Choice) -> Choice:
        """Choose the temperature by the folds; a forest that is far behind after two of them is left there."""
        parts: list[HeldOutScores] = []
        for training, test in folds.splits.pairs:
            rows, _ = _merged(folds.points.some(training), priorities[training])
            others = folds.points.some(test)
            forest = RandomForestClassifier(FOLD_TREES, random_state=self.seed, n_jobs=1)
            forest.fit(placed(rows.X, self.centre, self.exponent), rows.codes, sample_weight=rows.weights)
            known, n_classes = forest.classes_, rows.n_classes
            rule = ClassifierRule(forest, known, n_classes, self.total_weight, self.centre, self.exponent)
            parts.append(HeldOutScores.of(others, rule.scores(others.X).T[None]))
            joined = HeldOutScores.joined(parts)
            error = standard_error(rival.accuracy, joined.total_weight)
            if len(parts) >= FOLDS_BEFORE_DROPPING and joined.accuracies[0] < rival.accuracy - HOPELESS * error:
                break
        return _choice(f"{FOREST}, {FOLD_TREES} trees", joined, len(parts))


def _choice(name: str, held_out: HeldOutScores, n_folds: int) -> Choice:
    temperature, loss = best_temperature(held_out.scores[0], held_out.codes, held_out.weights, ANY_TEMPERATURES)
    accuracy = float(held_out.accuracies[0])
    why = f"{name}: {100 * accuracy:.1f} % of held-out rows, with a log loss of {loss:.3f}"
    tried = (TriedKernel(name, accuracy, loss, 0.0, n_folds),)
    return Choice(Candidate(name), 0.0, temperature, loss, held_out, tried, why)


def _merged(rows: LabelledRows, priorities: Indices) -> tuple[LabelledRows, Indices]:
    """Return each different row of a class once, in the order of the content, and the place of every row among them."""
    order = np.lexsort((rows.codes, priorities))
    first = (np.diff(priorities[order], prepend=-1) != 0) | (np.diff(rows.codes[order], prepend=-1) != 0)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(first) - 1
    merged = rows.some(order[first])
    return replace(merged, weights=np.bincount(group, rows.weights).astype(np.float64)), group
