"""Where an estimator's page of the reference stands: the link in scikit-learn's HTML of a fitted model."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata

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
    """An estimator whose diagram in a notebook links to its page."""

    def _get_doc_link(self) -> str:
        name, site = type(self).__name__, documentation_site()
        return f"{site}/api/{name}.html" if site and name in PUBLIC else ""
