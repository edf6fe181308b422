"""Documentation of an estimator: its docstring, and the link to its page in scikit-learn's HTML diagram."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from typing import Any

from discrim.docstrings import SHARED, fill
from discrim.registry import PUBLIC


@lru_cache
def documentation_site() -> str:
    """Return the address of the documentation site in the package metadata, or an empty text if there is none."""
    try:
        entries = metadata.metadata("discrim").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # run from its folder, or from one packed file
        return ""
    addresses = (entry.split(", ", 1) for entry in entries)
    return {name: address.rstrip("/") for name, address in addresses}.get("Documentation", "")


class DocLinkMixin:
    """Mixin for estimators whose diagram links to their page, and whose docstring has its shared paragraphs."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = fill(cls.__doc__, SHARED)

    def _get_doc_link(self) -> str:
        name, site = type(self).__name__, documentation_site()
        return f"{site}/api/{name}.html" if site and name in PUBLIC else ""
