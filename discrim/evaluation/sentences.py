"""A verdict in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discrim.evaluation.summary import METRICS
from discrim.tables.table_error import plural

if TYPE_CHECKING:
    from discrim.evaluation.verdict import Contrast, Verdict

HELPS, COSTS, AS_WELL, NOT_SHOWN, NO_SIGNAL = "helps", "costs", "as well", "not shown", "no signal"
MOST_CLASSES = 8  # that are told one by one


def sentences(found: Verdict, n_features: int) -> tuple[str, ...]:
    """The first says whether reducing helps, the second compares with PCA, the third says what to take."""
    pca = "" if found.finding == NO_SIGNAL else _about_pca(found.against_pca)
    return tuple(filter(None, (_first_sentence(found, n_features), pca, recommendation(found), _linear(found))))


def _first_sentence(found: Verdict, n_features: int) -> str:
    raw = found.against_raw
    if found.finding == NO_SIGNAL:
        return (
            f"No reduction is shown to do better than naming the largest class ({percent(found.majority)}): the "
            "features may say nothing of the classes, or the rows may be too few."
        )
    if raw is None:
        return ""
    ours = f"{in_components(found.recommended.k)} by {found.recommended.method}"
    classify = "classifies" if found.recommended.k == 1 else "classify"
    theirs = f"the {plural(n_features, 'raw feature')} (with {raw.other.classifier})"
    gap = in_points(raw.difference)
    shown = f"; a difference of {in_points(raw.detectable)} could have been shown."
    return {
        HELPS: f"Reducing helps: {ours} {classify} {gap} better than {theirs} ({in_p(raw.p_value)}).",
        COSTS: f"Reducing to {ours} costs {gap}: {theirs} classify better ({in_p(raw.p_value)}).",
        AS_WELL: f"Raw features do as well: {ours} {_beside(raw)} {theirs}"
        + (", in every split." if math.isnan(raw.detectable) else shown),
        NOT_SHOWN: f"No difference to {theirs} can be shown with this many rows and splits ({_could_be_shown(raw)}): "
        f"{ours} {_beside(raw)} them.",
    }[raw.finding]


def _about_pca(pca: Contrast | None) -> str:
    if pca is None:
        return ""
    theirs = f"PCA ({in_components(pca.other.k)}, with {pca.other.classifier})"
    gap = in_points(pca.difference)
    return {
        HELPS: f"It is {gap} better than the best of {theirs}, {in_p(pca.p_value)}.",
        COSTS: f"The best of {theirs} is {gap} better, {in_p(pca.p_value)}.",
        AS_WELL: f"The best of {theirs}, which uses no labels, does as well ({gap} apart).",
        NOT_SHOWN: f"No difference to the best of {theirs} is shown: it {_beside(pca)} that, and "
        f"{_could_be_shown(pca)}.",
    }[pca.finding]


def _beside(found: Contrast) -> str:
    """How the recommended one scored, up to the other's name."""
    gap = in_points(found.difference)
    if gap == in_points(0.0):
        return "scored the same as"
    return f"scored {gap} {'higher' if found.difference > 0 else 'lower'} than"


def _could_be_shown(found: Contrast) -> str:
    """How large a difference would have been shown, in words that fit behind one that was not."""
    if math.isnan(found.detectable):  # nothing varies, so nothing can be judged
        return "the difference is the same in every split, which leaves nothing to test it by"
    if found.detectable > 1:
        return "with these splits none could have been, however large"
    return f"one of {in_points(found.detectable)} could have been"


def recommendation(found: Verdict) -> str:
    """What to take, its score, and what had the highest."""
    cell = found.recommended
    name = METRICS[found.metric]
    # where nothing is shown to help there is nothing to advise, only something to start from
    begin = "The simplest of those that scored alike" if found.finding == NO_SIGNAL else "Recommended"
    score, _, _, how = found.told
    text = f"{begin}: {cell.method} with {in_components(cell.k)}, judged by {cell.judge}: {name} {percent(score)} {how}"
    if found.best == cell:
        return f"{text}; no reduction with results on every split scored higher."
    best = found.best
    return (
        f"{text}; the highest score of a reduction, {percent(found.best_score)}, is {best.method}'s with "
        f"{in_components(best.k)} and {best.judge}, and this one, {percent(found.score)} there, "
        "is not shown to be worse."
    )


def _linear(found: Verdict) -> str:
    """What to take where components are wanted as weights of the features."""
    if found.linear is None:
        return ""
    cell = found.linear
    return (
        f"{found.recommended.method} is not linear: where every component is to be a sum of weighted features, take "
        f"{cell.method} with {in_components(cell.k)}, {percent(found.linear_score)} with {cell.judge}."
    )


def recall_in_words(found: Verdict) -> str:
    """How much of each class is recognised, the worst first, beside naming the largest class."""
    worst = sorted(found.recall.items(), key=lambda one: one[1])
    told = ", ".join(f"{_apart(name)} {100 * share:.0f} %" for name, share in worst[:MOST_CLASSES])
    rest = f" and {len(worst) - MOST_CLASSES} classes more" if len(worst) > MOST_CLASSES else ""
    return (
        f"Of held-out rows, on the splits it was chosen on, it recognises: {told}{rest}. Naming the largest class for "
        f"every row has {METRICS[found.metric]} {percent(found.majority)}."
    )


def _apart(label: str) -> str:
    """The label in quotes unless it is a word: a class named 1 beside its figure reads as 158 %."""
    return label if label.isalpha() else repr(label)


def in_points(difference: float) -> str:
    return f"{100 * abs(difference):.1f} points"


def in_components(k: int) -> str:
    return plural(k, "component")


def percent(score: float) -> str:
    return f"{100 * score:.1f} %"


def in_p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
