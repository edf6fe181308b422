"""Text of a comparison: the three sentences of a verdict, the ranked table and the notes below it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import METHODS
from discrim.evaluation.results import ITSELF, Cell
from discrim.evaluation.summary import METRICS, Line
from discrim.tables.table_error import plural

if TYPE_CHECKING:
    from discrim.evaluation.comparison import Comparison
    from discrim.evaluation.verdict import Contrast, Verdict

HELPS, COSTS, AS_WELL, NOT_SHOWN, NO_SIGNAL = "helps", "costs", "as well", "not shown", "no signal"
MOST_CLASSES = 8  # listed one by one
WIDTH = 80
MOST_LINES = 10  # of the table, unless all are requested
LONG_METRIC = 18  # characters of a score's name, from which the head of its column is abbreviated
MOST_NAME = 25  # characters of a method's name in the table
BETTER, WORSE, TAKEN = "▲", "▼", "→"
N_NAMES = 3  # columns with the mark and names; the others have figures
_NAMES = ("", "method", "judge", "K")
_KINDS = {"accuracy": "acc.", "balanced_accuracy": "bal. acc.", "f1": "F", "auc": "AUC", "mcc": "MCC"}
_JUDGES = {
    "logistic": "logistic regression",
    "svm": "a linear SVM",
    "rbf-svm": "an RBF SVM",
    "forest": "a random forest",
    "5-nn": "5-NN",
    "1-nn": "1-NN",
    "naive-bayes": "naive Bayes",
    "kernel-naive-bayes": "kernel naive Bayes",
    "tree": "a decision tree",
    "fisher": "the nearest class mean",
    ITSELF: "its own prediction",
}


# ---------------------------------------------------------------------- the verdict


def headline(found: Verdict) -> str:
    """Return the verdict in a few words."""
    columns = plural(found.n_features, "column") if found.n_features else "all columns"
    components = in_components(found.reduction.k)
    not_shown = f"No difference between {components} and {columns} can be shown with {_rows(found)}"
    return {
        HELPS: f"Reducing helps: {components} instead of {columns}",
        COSTS: f"Keep your {columns}",
        AS_WELL: f"{components} {'is' if found.reduction.k == 1 else 'are'} as good as {columns}",
        NOT_SHOWN: not_shown if found.against_raw is not None else f"{components}, not compared with {columns}",
        NO_SIGNAL: "No signal: nothing is better than predicting the largest class",
    }[found.finding]


def sentences(found: Verdict) -> tuple[str, ...]:
    """Return what to do; compared with what, by how much and how sure; what it is good for."""
    cell, (score, low, high, _) = found.recommended, found.shown_score
    if found.finding == NO_SIGNAL:
        return (
            f"Nothing is significantly better than predicting the largest class ({percent(found.majority)}).",
            f"The columns may hold no information about the classes, or {_rows(found, 'the rows')} may be too few.",
            f"The simplest of the pipelines with similar scores is {cell.method} with {in_components(cell.k)}, judged "
            f"by {judge(cell)} ({percent(score)}).",
        )
    reached = f"{percent(score)} {METRICS[found.metric]}"
    reached += "" if math.isnan(low) else f" (95 % interval {between(low, high)})"
    columns = plural(found.n_features, "column") if found.n_features else "columns"
    to_do = f"Use {in_components(cell.k)} of {cell.method}: {reached}, judged by {judge(cell)} on held-out rows."
    if found.finding == COSTS:
        to_do = f"Keep your {columns}: {_partner(cell)} has {reached} on held-out rows."
    return tuple(filter(None, (to_do, _against_all_columns(found, columns), _good_for(found))))


def _against_all_columns(found: Verdict, columns: str) -> str:
    raw = found.against_raw
    if raw is None:
        why = "no classifier of all columns has a result on every split"
        if found.n_splits < 2:
            why = f"{plural(found.n_splits, 'split')} cannot show whether they differ"
        return f"There is no comparison with all {columns}: {why}."
    gap, sure = f"{signed(found.over_raw)} points", in_p(raw.p_value)
    theirs = f"{_partner(raw.other)} has {percent(raw.score)}"
    if raw.finding == COSTS:
        ours = f"{in_components(found.reduction.k)} of {found.reduction.method}"
        return f"The best reduction, {ours}, has {percent(found.reduction_score)} (difference {gap}, {sure})."
    if raw.finding == HELPS:
        return f"Reducing helps: on all {columns}, {theirs} (difference {gap}, {sure})."
    if raw.finding == AS_WELL:
        subject = "It is" if found.reduction.k == 1 else "They are"
        return f"{subject} as good as all {columns}: {theirs} (difference {gap}, {sure})."
    return (
        f"No difference from all {columns} can be shown with {_rows(found)}: {theirs} (difference {gap}, "
        f"{_range(raw)}, {sure})."
    )


def _range(raw: Contrast) -> str:
    """Return the interval of a difference, adjusted as its p value is, so that it contains 0 if p ≥ 0.05."""
    if math.isnan(raw.detectable):
        return "equal in every split, so it cannot be tested"
    if raw.detectable > 1:
        return "too few splits for an interval"
    low, high = (raw.difference + sign * raw.detectable for sign in (-1, 1))
    return f"95 % interval {signed(max(low, -1))} to {signed(min(high, 1))}"


def _good_for(found: Verdict) -> str:
    if found.linear is not None:
        cell = found.linear
        use = f"use {cell.method} with {in_components(cell.k)}"
        return f"For components with loadings {use} ({percent(found.linear_score)}, judged by {judge(cell)})."
    pca, ours = found.against_pca, found.reduction
    if found.finding == COSTS:
        return f"For loadings or a picture in few dimensions use {ours.method}."
    loadings = "The components are weighted sums of the columns (loadings)" if ours.method in METHODS else ""
    if pca is None:
        return f"{loadings}." if loadings else ""
    differs = {HELPS: "which is worse", COSTS: "which is better"}.get(pca.finding)
    best = f"the best PCA, with {in_components(pca.other.k)}, has {percent(pca.score)}"
    best += f", {differs} ({in_p(pca.p_value)})" if differs else " (not significantly different)"
    return f"{loadings}; {best}." if loadings else f"{best[0].upper()}{best[1:]}."


def _rows(found: Verdict, otherwise: str = "these rows") -> str:
    return f"{found.n_rows:,} rows" if found.n_rows else otherwise


def _partner(cell: Cell) -> str:
    """Return a pipeline of all columns in words: a classifier, or a caller's estimator."""
    return judge(cell) if cell.method == "raw" else cell.method


def judge(cell: Cell) -> str:
    """Return the classifier of a cell in words."""
    return _JUDGES.get(cell.classifier, cell.classifier)


def recall_in_words(found: Verdict) -> str:
    """Return the recall of each class, the worst first, and the score of predicting the largest class."""
    worst = sorted(((name, share) for name, share in found.recall.items() if share >= 0), key=lambda one: one[1])
    never = [_apart(name) for name, share in found.recall.items() if math.isnan(share)]
    shares = ", ".join(f"{_apart(name)} {100 * share:.0f} %" for name, share in worst[:MOST_CLASSES])
    rest = f" and {len(worst) - MOST_CLASSES} more classes" if len(worst) > MOST_CLASSES else ""
    if never:
        more = ", …" if len(never) > MOST_CLASSES else ""
        rest += f"; no row of {', '.join(never[:MOST_CLASSES])}{more} was held out"
    return (
        f"Recall on held-out rows: {shares}{rest}. Predicting the largest class for every row has "
        f"{METRICS[found.metric]} {percent(found.majority)}."
    )


def _apart(label: str) -> str:
    """Return the label, in quotes unless it is a word: a class 1 with 58 % would read as 158 %."""
    return label if label.isalpha() else repr(label)


def signed(difference: float) -> str:
    """Return a difference in points with its sign; a difference that rounds to zero has a plus."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}".replace("-", "−")


def in_components(k: int) -> str:
    return plural(k, "component")


def pipeline_name(cell: Cell) -> str:
    """Return method, number of components and classifier of a pipeline in words."""
    reduced = "all columns" if cell.method == "raw" else f"{cell.method} with {in_components(cell.k)}"
    return f"{reduced} and {judge(cell)}"


def percent(score: float) -> str:
    return f"{hundred(score)} %"


def hundred(score: float) -> str:
    """Return a score in percent; one that rounds to zero has no sign."""
    return f"{round(100 * score, 1) + 0.0:.1f}".replace("-", "−")


def between(low: float, high: float) -> str:
    """Return the ends of an interval in percent, with a word between them if one is negative."""
    return f"{hundred(low)}{' to ' if low < 0 else '–'}{hundred(high)}"


def in_p(p_value: float) -> str:
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


# ---------------------------------------------------------------------- the table


def printed(found: Comparison) -> str:
    """Return the answer, the table and the notes as plain text of at most 80 columns."""
    parts = [*map(wrapped, answer_parts(found)), ""]
    if found.lines:
        parts += [heading(found), *table_lines(found), wrapped(explanation(found))]
    return "\n".join([*parts, *map(wrapped, doubts(found))])


def table_lines(found: Comparison, everything: bool = False) -> list[str]:
    """Return the ranked table as text; with all lines also a table of every kind of score."""
    lines, taken = shown(found, everything), None if found.verdict is None else found.verdict.recommended
    marks = {"better": BETTER, "worse": WORSE}
    names, ranked = [], []
    for line in lines:
        names.append([short_name(line.method), short_name(line.classifier, 11), str(line.k)])
        interval = f" ({between(line.low, line.high)})" if line.n_splits > 1 else ""
        gaps = [
            "" if one is None else f"{signed(one.mean)} {marks.get(one.verdict, ' ')}"
            for one in (line.against_raw, line.against_pca)
        ]
        ranked.append([TAKEN if line.cell == taken else "", *names[-1], f"{hundred(line.mean)}{interval}", *gaps])
    metric = METRICS[found.metric] if len(METRICS[found.metric]) < LONG_METRIC else _KINDS[found.metric]
    table = _plain_table([*_NAMES, f"{metric} %", "vs raw", "vs PCA"], ranked)
    if everything:
        kinds = [kind for kind in _KINDS if any(kind in line.means for line in lines)]
        scores = [[f"{100 * line.means[kind]:.1f}" if kind in line.means else "" for kind in kinds] for line in lines]
        rows = [["", *name, *score] for name, score in zip(names, scores, strict=True)]
        table += ["", *_plain_table([*_NAMES, *map(_KINDS.__getitem__, kinds)], rows)]
    return [line.rstrip() for line in table]


def answer_parts(found: Comparison) -> list[str]:
    """Return the three sentences, the remarks and the recall of each class, as paragraphs."""
    parts = [*found.sentences, *found.remarks]
    if found.verdict is not None and found.verdict.recall:
        parts.append(recall_in_words(found.verdict))
    return parts


def heading(found: Comparison) -> str:
    """Return the size of the data and the splits in one line."""
    splits, sizes = max((line.n_splits for line in found.lines), default=0), found.sizes
    size = f"{rows_times(sizes['rows'], sizes['features'], 'column')}, {sizes['classes']} classes"
    return f"{short_name(found.label)}: {size}; {found.setting['protocol']}, {plural(splits, 'split')}"


def rows_times(n_rows: int, count: int, noun: str) -> str:
    """Return the size of a table."""
    return f"{plural(n_rows, 'row')} × {plural(count, noun)}"


def shown(found: Comparison, everything: bool = False) -> list[Line]:
    """Return the lines to print: all, or ten that were tried on all splits.

    The recommended line and the best of all columns and of PCA are among the ten.
    """
    if everything:
        return found.lines
    lines = [line for line in found.lines if not line.dropped]
    best = {line.method: line.cell for line in reversed(lines)}
    needed = {best.get("raw"), best.get("pca"), None if found.verdict is None else found.verdict.recommended}
    kept = [line.cell for line in sorted(lines, key=lambda line: line.cell not in needed)[:MOST_LINES]]
    return [line for line in lines if line.cell in kept]


def short_name(name: str, most: int = MOST_NAME) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def explanation(found: Comparison, everything: bool = False) -> str:
    """Return how to read the table."""
    left = len(found.lines) - len(shown(found, everything))
    more = f" {plural(left, 'more line')}: --all." if left else ""
    taken = "" if found.verdict is None else f"{TAKEN} recommended. "
    return (
        f"{taken}Scores are means over held-out rows with 95 % intervals, not corrected for "
        f"choosing the best line. vs raw, vs PCA: points above the best raw or PCA line at any K; {BETTER} better, "
        f"{WORSE} worse (p < 0.05).{more}"
    )


def doubts(found: Comparison) -> list[str]:
    """Return failures, doubts, skipped and dropped methods, and methods that were fitted on a sample, a line each."""
    lines = [f"{one.status}: {one.method}, {plural(one.trials, 'trial')}: {one.reason}" for one in found.notes]
    tried = {row.cell.method for row in found.rows} | {row.cell.classifier for row in found.rows}
    samples: list[Any] = [one for one in METHODS.values() if one.note]
    samples += [one for one in CLASSIFIERS.values() if found.sizes.get("train", 0) > one.most_rows]
    notes = [f"note: {one.name} is {one.note}" for one in samples if one.name in tried]
    return lines + dropped_and_joined(found.lines) + notes


def dropped_and_joined(table: Sequence[Line]) -> list[str]:
    """Return which methods were not tried on all splits, and which lines are those of several methods."""
    lines = []
    gone = sorted((line for line in table if line.dropped), key=lambda line: (line.method, line.classifier))
    if gone:
        left = {line.method for line in table if not line.dropped}
        # of a method with other lines, only these judges were given up
        names = [line.method + f" ({line.classifier})" * (line.method in left) for line in gone]
        listed, splits = ", ".join(dict.fromkeys(names)), min(line.n_splits for line in gone)
        lines.append(f"Dropped after {plural(splits, 'split')}, far behind the best: {listed}.")
    same: dict[tuple[str, ...], dict[int, list[str]]] = {}
    for line in table:
        if line.same:
            same.setdefault((line.method, *line.same), {}).setdefault(line.k, []).append(line.classifier)
    for methods, judges in same.items():
        places = [f"{in_components(k)} ({_in_a_row(of_k)})" for k, of_k in judges.items()]
        shared = "one line" if sum(map(len, judges.values())) == 1 else "these lines"
        which = f"{_in_a_row(methods)} predict the same labels with {_in_a_row(places)}"
        lines.append(f"{which}; they share {shared} of the table.")
    return lines


def _in_a_row(names: Iterable[str]) -> str:
    """Return names as in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _plain_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rows = [columns, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at < N_NAMES else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        )
        for row in rows
    ]


def wrapped(text: str) -> str:
    joined = text.replace(" %", "\u00a0%").replace("p = ", "p\u00a0=\u00a0").replace("p < ", "p\u00a0<\u00a0")
    return textwrap.fill(joined, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\u00a0", " ")
