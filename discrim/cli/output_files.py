"""Files that are written are not those that are read, nor each other."""

from __future__ import annotations

from pathlib import Path


def require_apart(read: dict[str, Path | str | None], written: dict[str, Path | str | None]) -> None:
    """Refuse to write over what is read or written besides; both by what they are called on the command line."""
    taken = {_place(path): name for name, path in read.items() if path is not None and Path(path).exists()}
    for name, path in written.items():
        if path is None:
            continue
        if (other := taken.get(_place(path))) is not None:
            raise ValueError(f"{name} {path} would write over {other}. Name another file.")
        taken[_place(path)] = name


def _place(path: Path | str) -> Path:
    return Path(path).resolve()
