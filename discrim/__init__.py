"""Supervised dimensionality reduction: the few components that separate the classes."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from typing import Any

from discrim.registry import MOVED, PUBLIC, load_target

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


class _MovedModules(MetaPathFinder, Loader):
    """Finder of modules under names of an earlier layout, by which pickled models know the classes in them."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in MOVED else None

    def exec_module(self, module: Any) -> None:
        found = vars(import_module(MOVED[module.__name__]))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


sys.meta_path.append(_MovedModules())
