"""Malformed files: read correctly, or rejected with file and position."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from discrim.tables.read import read_table
from discrim.tables.table_error import TableError
from torture.outcome import Outcome

PIECES = [b",", b"\n", b"\r", b'"', b"\x00", b"\xff", b";", b"nan", b"1e999", b"=1+1", b"\t", b"1,5", b"\xef\xbb\xbf"]


def malformed(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("CSV files with changed, removed or inserted bytes", "read, or an error that names the file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        while time.monotonic() < until:
            path.write_bytes(changed(whole(rng), rng))
            with outcome.run(of=f"{path.read_bytes()[:80]!r}: "):
                try:
                    read_table(path, target="kind")
                except TableError as error:
                    if "rows.csv" not in str(error):
                        raise
    return outcome


def whole(rng: np.random.Generator) -> bytes:
    rows = [
        f"{a:.3f},{b:.3f},{kind}" for (a, b), kind in zip(rng.random((8, 2)), rng.choice(list("xyz"), 8), strict=True)
    ]
    return "\n".join(["length,width,kind", *rows, ""]).encode()


def changed(content: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(content) + 1))
        piece = PIECES[rng.integers(len(PIECES))]
        how = rng.integers(3)
        content = content[:at] + (piece if how else b"") + content[at + (how != 1) * int(rng.integers(1, 6)) :]
    return content
