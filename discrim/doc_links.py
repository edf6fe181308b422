"""Documentation of an estimator: its docstring, and the link to its page in scikit-learn's HTML diagram."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from typing import Any, TypeVar

from discrim.docstrings import fill_estimator
from discrim.registry import PUBLIC
from discrim.threads import on_one_blas_thread_throughout

Kind = TypeVar("Kind", bound=type)


@lru_cache
def documentation_site() -> str:
    """Return the URL of the documentation site in the package metadata, or "" if there is none."""
    try:
        entries = metadata.metadata("discrim").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # not installed, e.g. run from its folder or a zip file
        return ""
    addresses = (entry.split(", ", 1) for entry in entries)
    return {name: address.rstrip("/") for name, address in addresses}.get("Documentation", "")


def public_estimator(cls: Kind) -> Kind:
    """Decorate a class: fill in its docstrings, link its diagram to its page, run its methods on one BLAS thread."""
    fill_estimator(cls)
    cls._get_doc_link = _doc_link  # type: ignore[attr-defined]
    on_one_blas_thread_throughout(cls)
    return cls


def _doc_link(estimator: Any) -> str:
    name, site = type(estimator).__name__, documentation_site()
    return f"{site}/api/{name}.html" if site and name in PUBLIC else ""
