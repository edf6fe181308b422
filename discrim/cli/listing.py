"""Commands `discrim methods` and `discrim datasets`."""

from __future__ import annotations

from discrim.cli.screen import out, print_list
from discrim.evaluation.classifiers import CLASSIFIERS, DEFAULT_CLASSIFIERS
from discrim.evaluation.methods import DEFAULT_METHODS, METHODS
from discrim.tables import catalogue

_PLACES = {"scikit-learn": "scikit-learn", "folder": "DISCRIM_DATA", "cache": "cache", "openml": "download"}


def methods() -> None:
    """List the reductions and the classifiers that judge them. A star marks the defaults.

    Example:

    - `discrim methods`
    """
    print_list(
        ("method", "", "description", "source"),
        (
            (
                method.name,
                "*" if method.name in DEFAULT_METHODS else "",
                f"{method.gloss} ({method.note})" if method.note else method.gloss,
                "discrim" if method.ours else "scikit-learn" if method.build else "",
            )
            for method in METHODS.values()
        ),
    )
    out.print()
    print_list(
        ("classifier", "", "description"),
        (
            (classifier.name, "*" if classifier.name in DEFAULT_CLASSIFIERS else "", classifier.gloss)
            for classifier in CLASSIFIERS.values()
        ),
    )


def datasets() -> None:
    """List the data sets that are known by name, and where each is found.

    Places are scikit-learn, the folder DISCRIM_DATA, the cache, and OpenML (downloaded at first use).

    Examples:

    - `discrim datasets`

    - `DISCRIM_DATA=~/data discrim compare leukemia`
    """
    kinds = [*_PLACES, "absent"]  # those that can be used at once are first
    print_list(
        ("name", "rows", "features", "classes", "where", "description; source"),
        (
            (
                ", ".join((one.name, *one.aliases)),
                _number(one.n_samples),
                _number(one.n_features),
                _number(len(one.classes) or None),
                _PLACES.get(catalogue.where(one.name).kind, "–"),
                f"{one.title}; {one.origin}",
            )
            for one in sorted(catalogue.entries(), key=lambda one: kinds.index(catalogue.where(one.name).kind))
        ),
    )
    out.print(
        "\n– : not on this machine. Save it as NAME.csv.gz, with the labels in the last column, in the folder "
        "that the\nenvironment variable DISCRIM_DATA names.",
        style="dim",
    )


def _number(count: int | None) -> str:
    return "" if count is None else str(count)
