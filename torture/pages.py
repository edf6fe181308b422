"""Hostile names in a report, opened in a real browser: no dialog, no request, no error."""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from torture.damage import run
from torture.outcome import Outcome

PIECES = ["<script>alert(1)</script>", "{{7*7}}", "\"'><img src=x onerror=alert(1)>", "</script>", "<!--", "%{x}",
          "&lt;", "\u202e", "\u2028", "${1}", "`", "=cmd()", "javascript:alert(1)", "\\u003c",
          "'); alert(1); ('"]  # fmt: skip


def hostile_names(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("reports with hostile names, opened in a browser", "no dialog, no request, no error")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        outcome.case += " (not run: no browser is installed)"
        return outcome
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        while time.monotonic() < until or not outcome.runs:
            page_file = written_report(Path(folder), rng)
            outcome.runs += 1
            seen: list[str] = []
            page = browser.new_page()
            page.on("dialog", lambda dialog, seen=seen: (seen.append(f"dialog {dialog.message}"), dialog.dismiss()))
            page.on("pageerror", lambda error, seen=seen: seen.append(str(error)))
            page.on("request", lambda one, seen=seen: seen.append(one.url))
            page.goto(page_file.as_uri())
            page.wait_for_timeout(500)
            page.close()
            outcome.faults += [one for one in seen if not one.startswith(("file:", "data:", "blob:"))]
        browser.close()
    return outcome


def written_report(folder: Path, rng: np.random.Generator) -> Path:
    def name() -> str:
        return "".join(rng.choice(PIECES, size=rng.integers(1, 4))) + str(rng.integers(1000))

    table, page = folder / "rows.csv", folder / "report.html"
    page.unlink(missing_ok=True)
    classes, columns = [name(), name()], [name() for _ in range(4)]
    with table.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow([*columns, "kind"])
        for at in range(40):
            writer.writerow([*(rng.standard_normal(4) + at % 2), classes[at % 2]])
    options = ["--target", "kind", "--delimiter", ",", "--methods", "fisher-lda,pca", "--splits", "2", "--html"]
    output = run("compare", str(table), *options, str(page))
    if not page.exists():
        raise RuntimeError(output.stderr[-500:])
    return page
