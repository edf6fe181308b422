"""An estimator's docstring, and its page of the reference: the link in scikit-learn's HTML of a fitted model."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from typing import Any

from discrim.docstrings import IN_COMMON, filled
from discrim.registry import PUBLIC


@lru_cache
def documentation_site() -> str:
    """The address of the site that the installed package names; empty where it names none, or is not installed."""
    try:
        entries = metadata.metadata("discrim").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # run from its folder, or packed into one file
        return ""
    addresses = (entry.split(", ", 1) for entry in entries)
    return {name: address.rstrip("/") for name, address in addresses}.get("Documentation", "")


class DocLinkMixin:
    """An estimator whose diagram in a notebook links to its page, and whose docstring is whole."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = filled(cls.__doc__, IN_COMMON)

    def _get_doc_link(self) -> str:
        name, site = type(self).__name__, documentation_site()
        return f"{site}/api/{name}.html" if site and name in PUBLIC else ""
