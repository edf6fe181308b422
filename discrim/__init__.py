"""Supervised dimensionality reduction: the few components that separate the classes."""

from typing import Any

from discrim.registry import PUBLIC, load_target

__version__ = "0.1.0"
__all__ = sorted(PUBLIC)
__doc__ = (__doc__ or "") + "\n" + "".join(f"\n{name:<26} {entry.gloss}" for name, entry in PUBLIC.items()) + "\n"


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'discrim' has no attribute {name!r}")
    globals()[name] = value = load_target(PUBLIC[name].target)  # imported on first use
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
