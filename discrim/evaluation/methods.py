"""The reductions that can be compared, by name: ours, which the registry lists, and scikit-learn's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from discrim.evaluation.baselines import MOST_NCA_ROWS
from discrim.registry import (
    OUR_METHODS,
    Method,
    Sizes,
    directions_of_rows,
    fewer_than_classes,
    fewer_than_columns,
    never,
)

__all__ = [
    "DEFAULT_METHODS",
    "METHODS",
    "RAW",
    "Method",
    "Sizes",
    "directions_of_rows",
    "entries_named",
    "named",
    "named_methods",
]

_baseline = partial(Method, ours=False)
_BASELINES = (
    _baseline("raw", "the features as they are, not reduced", default=True),
    _baseline(
        "lsi",
        "truncated singular value decomposition",
        "sklearn.decomposition:TruncatedSVD",
        options={"algorithm": "arpack"},
        most_components=fewer_than_columns,
        seeded=True,
    ),
    _baseline(
        "ica",
        "independent components (FastICA)",
        "sklearn.decomposition:FastICA",
        options={"whiten": "unit-variance", "max_iter": 500},
        nested_from=never,
        seeded=True,
        takes_sparse=False,
    ),
    _baseline(
        "cca",
        "canonical correlations with the class indicators",
        "discrim.evaluation.baselines:CanonicalCorrelations",
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _baseline(
        "pls",
        "partial least squares on the class indicators",
        "discrim.evaluation.baselines:PartialLeastSquares",
        takes_sparse=False,
    ),
    _baseline(
        "lasso",
        "columns chosen along the lasso path",
        "discrim.evaluation.baselines:LassoSelection",
        nested_from=never,
        takes_sparse=False,
    ),
    _baseline(
        "lda",
        "scikit-learn's linear discriminant analysis",
        "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        most_components=fewer_than_classes,
        takes_sparse=False,
    ),
    _baseline(
        "nca",
        "neighbourhood components analysis",
        "discrim.evaluation.baselines:NeighborhoodComponents",
        nested_from=never,
        seeded=True,
        takes_sparse=False,
        note=f"fitted on at most {MOST_NCA_ROWS:,} training rows",
    ),
    _baseline(
        "random-projection",
        "Gaussian random directions",
        "sklearn.random_projection:GaussianRandomProjection",
        seeded=True,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in (*OUR_METHODS, *_BASELINES)}
RAW = METHODS["raw"]
DEFAULT_METHODS = tuple(name for name, method in METHODS.items() if method.default)


def named_methods(names: Iterable[str], n_rows: int = 0) -> tuple[Method, ...]:
    """The methods of these names, in this order, each once; "all" stands for all, "default" for the short list.

    n_rows : of the table: those that take long on many rows are not in the short list for it
    """
    return entries_named(
        names, METHODS, [name for name in DEFAULT_METHODS if METHODS[name].default_rows >= n_rows], "method"
    )


def entries_named(names: Iterable[str], known: Mapping[str, Any], short: Iterable[str], noun: str) -> tuple[Any, ...]:
    """The entries of these names, in this order, each once; "all" stands for all, "default" for the short list."""
    groups = {"all": known, "default": short}
    every = dict.fromkeys(one for name in names for one in groups.get(name, (name,)))
    return tuple(named(name, known, noun) for name in every)


def named(name: str, known: Mapping[str, Any], noun: str) -> Any:
    """The entry of that name, or an error that says which names there are."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"No {noun} is named {name!r}. {meant}There are: {', '.join(known)}.")
