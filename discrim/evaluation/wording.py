"""A comparison in words: the three sentences of a verdict, the ranked table, and the notes below it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import METHODS
from discrim.evaluation.results import ITSELF, Cell
from discrim.evaluation.summary import METRICS, Difference, Line
from discrim.tables.table_error import plural

if TYPE_CHECKING:
    from discrim.evaluation.comparison import Comparison
    from discrim.evaluation.verdict import Contrast, Verdict

HELPS, COSTS, AS_WELL, NOT_SHOWN, NO_SIGNAL = "helps", "costs", "as well", "not shown", "no signal"
MOST_CLASSES = 8  # that are listed one by one
WIDTH = 80
MOST_LINES = 10  # of the table, unless all are asked for
MOST_NAME = 25  # characters of a method's name in the table
BETTER, WORSE, TAKEN = "▲", "▼", "→"
N_NAMES = 3  # the first columns, which hold the mark and names; the others hold figures
DETAILS = ("accuracy", "balanced_accuracy", "f1", "auc", "mcc")
_GAP = "  "
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
    """The verdict in a few words."""
    columns = plural(found.n_features, "column") if found.n_features else "all columns"
    verb = "is" if found.reduction.k == 1 else "are"
    return {
        HELPS: f"Reducing helps: {in_components(found.reduction.k)} instead of {columns}",
        COSTS: f"Keep your {columns}",
        NO_SIGNAL: "No signal: nothing is better than naming the largest class",
    }.get(found.finding, f"{in_components(found.reduction.k)} {verb} as good as {columns}")


def sentences(found: Verdict) -> tuple[str, ...]:
    """Say what to do; against what, by how much and how sure; what it is good for."""
    if found.finding == NO_SIGNAL:
        return _without_signal(found)
    return tuple(filter(None, (_what_to_do(found), _against_all_columns(found), _good_for(found))))


def _without_signal(found: Verdict) -> tuple[str, ...]:
    best, score = found.recommended, found.told[0]
    rows = f"{found.n_rows:,} rows" if found.n_rows else "the rows"
    return (
        f"Nothing is shown to classify better than naming the largest class ({percent(found.majority)}).",
        f"The columns may say nothing about the classes, or {rows} may be too few.",
        f"The simplest of the pipelines that scored alike is {best.method} with {in_components(best.k)}, judged by "
        f"{judge(best)} ({percent(score)}).",
    )


def _what_to_do(found: Verdict) -> str:
    cell, name = found.recommended, METRICS[found.metric]
    score, low, high, _ = found.told
    interval = "" if math.isnan(low) else f" (95 % interval {100 * low:.1f}–{100 * high:.1f})"
    if found.finding == COSTS:
        model = "" if cell.method == "raw" else f"{cell.method}, "
        return (
            f"Keep your {_columns(found)}: {model}{judge(cell)} has {percent(score)} {name}{interval} on held-out rows."
        )
    use = f"Use {in_components(cell.k)} of {cell.method}: {percent(score)} {name}{interval}"
    return f"{use}, judged by {judge(cell)} on held-out rows."


def _against_all_columns(found: Verdict) -> str:
    raw = found.against_raw
    if raw is None:
        return ""
    score = found.told[0] if found.finding != COSTS else found.reduction_score
    gap, sure = in_signed_points(found.over_raw), in_p(raw.p_value)
    theirs = f"{judge(raw.other)} has {percent(raw.score)}"
    subject = "It is" if found.reduction.k == 1 else "They are"
    if raw.finding == COSTS:
        ours = f"{in_components(found.reduction.k)} of {found.reduction.method}"
        return f"The best reduction, {ours}, has {percent(score)} (difference {gap}, {sure})."
    if raw.finding == HELPS:
        return f"Reducing helps: on all {_columns(found)}, {theirs} (difference {gap}, {sure})."
    if raw.finding == AS_WELL:
        return f"{subject} as good as all {_columns(found)}: {theirs} (difference {gap}, {sure})."
    rows = f"{found.n_rows:,} rows" if found.n_rows else "these rows"
    return (
        f"As far as {rows} can tell, {subject[0].lower()}{subject[1:]} as good as all {_columns(found)}: {theirs} "
        f"(difference {gap}, {sure}; {_unnoticed(raw)})."
    )


def _unnoticed(raw: Contrast) -> str:
    if math.isnan(raw.detectable):
        return "it is the same in every split, so nothing can be tested"
    if raw.detectable > 1:
        return "so few splits cannot show any difference"
    return f"one below {in_points(raw.detectable)} would go unnoticed"


def _good_for(found: Verdict) -> str:
    if found.linear is not None:
        cell = found.linear
        take = f"take {cell.method} with {in_components(cell.k)}"
        return f"For a linear model with loadings {take} ({percent(found.linear_score)})."
    pca, ours = found.against_pca, found.reduction
    if found.finding == COSTS:
        return f"For loadings or a picture in few dimensions, {ours.method} is the method to take."
    loadings = "The components are weighted sums of the columns (loadings)" if ours.method in METHODS else ""
    if pca is None:
        return f"{loadings}." if loadings else ""
    best = f"the best PCA, with {in_components(pca.other.k)}, has {percent(pca.score)}"
    told = {
        HELPS: f"{best}, which is worse ({in_p(pca.p_value)})",
        COSTS: f"{best}, which is better ({in_p(pca.p_value)})",
    }
    said = told.get(pca.finding, f"{best} (not significantly different)")
    return f"{loadings}; {said}." if loadings else f"{said[0].upper()}{said[1:]}."


def _columns(found: Verdict) -> str:
    return plural(found.n_features, "column") if found.n_features else "columns"


def judge(cell: Cell) -> str:
    """Its classifier, in words."""
    return _JUDGES.get(cell.classifier, cell.classifier)


def recall_in_words(found: Verdict) -> str:
    """How much of each class is recognised, the worst first, and the score of naming the largest class."""
    worst = sorted(found.recall.items(), key=lambda one: one[1])
    told = ", ".join(f"{_apart(name)} {100 * share:.0f} %" for name, share in worst[:MOST_CLASSES])
    rest = f" and {len(worst) - MOST_CLASSES} classes more" if len(worst) > MOST_CLASSES else ""
    return (
        f"Held-out rows recognised by class: {told}{rest}. Naming the largest class for every row has "
        f"{METRICS[found.metric]} {percent(found.majority)}."
    )


def _apart(label: str) -> str:
    """The label in quotes unless it is a word: a class named 1 before its figure reads as 158 %."""
    return label if label.isalpha() else repr(label)


def in_points(difference: float) -> str:
    return f"{100 * abs(difference):.1f} points"


def in_signed_points(difference: float) -> str:
    return f"{100 * difference:+.1f} points".replace("-", "−")


def in_components(k: int) -> str:
    return plural(k, "component")


def percent(score: float) -> str:
    return f"{100 * score:.1f} %"


def in_p(p_value: float) -> str:
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


# ---------------------------------------------------------------------- the table


def printed(found: Comparison, *, everything: bool = False) -> str:
    """Return the answer, the table and the notes as plain text of at most 80 columns."""
    parts = [*map(wrapped, answer_parts(found)), ""]
    if found.lines:
        parts += [heading(found), *table_lines(found, everything), wrapped(explanation(found, everything))]
    return "\n".join([*parts, *map(wrapped, doubts(found))])


def table_lines(found: Comparison, everything: bool = False) -> list[str]:
    """The ranked table as text; with all lines also a table of every kind of score."""
    table = _plain_table(ranked_columns(found), [ranked_cells(line, found) for line in shown(found, everything)])
    details = ["", *_plain_table(detail_columns(found), detail_rows(found))] if everything else []
    return [line.rstrip() for line in [*table, *details]]


def answer_parts(found: Comparison) -> list[str]:
    """The three sentences, the remarks, and how well each class is recognised: a paragraph each."""
    parts = [*found.sentences, *found.remarks]
    if found.verdict is not None and found.verdict.recall:
        parts.append(recall_in_words(found.verdict))
    return parts


def heading(found: Comparison) -> str:
    """Of which data, and how they were split."""
    grid, table = found.grid, found.grid.table
    splits = max((line.n_splits for line in found.lines), default=0)
    size, classes = rows_times(table.n_samples, table.n_features, "column"), len(table.class_counts())
    return f"{short_name(grid.name)}: {size}, {classes} classes; {grid.protocol.name}, {plural(splits, 'split')}"


def rows_times(n_rows: int, count: int, noun: str) -> str:
    """How large a table is."""
    return f"{plural(n_rows, 'row')} × {plural(count, noun)}"


def shown(found: Comparison, everything: bool = False) -> list[Line]:
    """The lines to print: all, or the best ten, among them the recommended and the best of all columns and of PCA."""
    lines = found.lines
    if everything or len(lines) <= MOST_LINES:
        return lines
    taken = None if found.verdict is None else found.verdict.recommended
    needed = [next((one for one in lines if one.method == name), None) for name in ("raw", "pca")]
    needed.append(next((one for one in lines if one.cell == taken), None))
    kept = [one for one in dict.fromkeys(map(id, needed)) if one != id(None)]
    for line in lines:
        if len(kept) < MOST_LINES and id(line) not in kept:
            kept.append(id(line))
    return [line for line in lines if id(line) in kept]


def ranked_columns(found: Comparison) -> list[str]:
    """Headings of the ranked table."""
    return ["", "method", "judge", "K", f"{METRICS[found.metric]} %"[:19], "vs raw", "vs PCA"]


def ranked_cells(line: Line, found: Comparison) -> list[str]:
    """The line in these columns."""
    taken = found.verdict is not None and line.cell == found.verdict.recommended
    interval = f" ({100 * line.low:.1f}–{100 * line.high:.1f})" if line.n_splits > 1 else ""
    scores = f"{100 * line.mean:.1f}{interval}"
    against = [_difference(one) for one in (line.against_raw, line.against_pca)]
    return [
        TAKEN if taken else "",
        short_name(line.method),
        short_name(line.classifier, 11),
        str(line.k),
        scores,
        *against,
    ]


def short_name(name: str, most: int = MOST_NAME) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def explanation(found: Comparison, everything: bool = False) -> str:
    """How the table is to be read."""
    left = len(found.lines) - len(shown(found, everything))
    more = f" {plural(left, 'more line')}: --all." if left else ""
    return (
        f"{TAKEN} recommended. Means over held-out parts with 95 % intervals; the sentences correct for the choice. "
        f"vs raw, vs PCA: points above the best line of all columns, of PCA; {BETTER} better, {WORSE} worse (p < 0.05)."
        + more
    )


def detail_columns(found: Comparison) -> list[str]:
    return ["", "method", "judge", "K", *(_SHORT[name] for name in _details(found))]


def detail_rows(found: Comparison) -> list[list[str]]:
    """Every kind of score of every line, in percent."""
    return [
        ["", short_name(line.method), short_name(line.classifier, 11), str(line.k)]
        + [f"{100 * line.means[name]:.1f}" if name in line.means else "" for name in _details(found)]
        for line in found.lines
    ]


_SHORT = {"accuracy": "acc.", "balanced_accuracy": "bal. acc.", "f1": "F", "auc": "AUC", "mcc": "MCC"}


def _details(found: Comparison) -> list[str]:
    return [name for name in DETAILS if any(name in line.means for line in found.lines)]


def doubts(found: Comparison) -> list[str]:
    """Failures, doubts, skipped and dropped methods: a line each for what was skipped or dropped of a method."""
    lines = []
    for status, method in dict.fromkeys((one.status, one.method) for one in found.notes):
        notes = [one for one in found.notes if (one.status, one.method) == (status, method)]
        told = notes if status != "skipped" else notes[:1]
        trials = sum(one.trials for one in notes) if status == "skipped" else 0
        lines += [f"{status}: {method}, {plural(trials or one.trials, 'trial')}: {one.reason}" for one in told]
    return lines + dropped_and_joined(found.lines) + _samples(found)


def dropped_and_joined(table: Sequence[Line]) -> list[str]:
    """Which methods were not tried on all splits, and which have no line of their own."""
    lines = []
    gone = sorted({line.method for line in table if line.dropped})
    if gone:
        splits = min(line.n_splits for line in table if line.dropped)
        lines.append(f"dropped after {plural(splits, 'split')}, far behind the best: {', '.join(gone)}")
    same = {line.method: line.same for line in table if line.same}
    return lines + [f"same predictions as {name}: {', '.join(others)}" for name, others in same.items()]


def _samples(found: Comparison) -> list[str]:
    """Which methods and classifiers were fitted on a sample of the training rows."""
    tried = {row.cell.method for row in found.rows} | {row.cell.classifier for row in found.rows}
    noted = [f"note: {name} is {method.note}" for name, method in METHODS.items() if name in tried and method.note]
    rows = found.sizes.get("train", 0)
    return noted + [
        f"note: {name} is {one.note}" for name, one in CLASSIFIERS.items() if name in tried and rows > one.most_rows
    ]


def _difference(found: Difference | None) -> str:
    if found is None:
        return ""
    mark = {"better": BETTER, "worse": WORSE}.get(found.verdict, " ")
    return f"{100 * found.mean:+.1f} {mark}".replace("-", "−")


def _plain_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rows = [columns, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.ljust(width) if at < N_NAMES else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        )
        for row in rows
    ]


def wrapped(text: str) -> str:
    joined = text.replace(" %", "\u00a0%").replace("p = ", "p\u00a0=\u00a0").replace("p < ", "p\u00a0<\u00a0")
    return textwrap.fill(joined, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\u00a0", " ")
