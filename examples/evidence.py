"""Computation of all figures of the documentation: `make evidence`, or of one page: `make evidence PAGE=study`.

    DISCRIM_DATA=folder python examples/evidence.py [--only PAGE …] [--jobs 2]

Each page has a script that also runs alone. Results are stored in build/evidence, in a folder for each version and
commit, so an interrupted run continues and figures of different code are never mixed. Every table that is written ends
with the version and the date.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import discrim

REPOSITORY = Path(__file__).parents[1]


class Page(NamedTuple):
    """Script of a page: its arguments ({store} is a file of results, {stores} a folder), and its time in minutes."""

    script: str
    arguments: str
    minutes: int  # budget on two free cores; all together stay below three hours


# The papers' own numbers of splits if these take minutes; data shifting has 10 splits for each printed table.
PAGES = {
    "reproduce": [
        Page("reproduce_study.py", "--stores {stores} --only lda-refinement --into docs/reproduce.md", 6),
        Page("reproduce_study.py", "--stores {stores} --only maximum-margin-pca --into docs/reproduce.md", 6),
        Page("reproduce_study.py", "--stores {stores} --only pca-lda-lecture --into docs/reproduce.md", 2),
        Page("reproduce_study.py", "--stores {stores} --only bayes-error-pca --splits 20 --into docs/reproduce.md", 25),
        Page(
            "reproduce_study.py",
            "--stores {stores} --only max-margin-data-shifting --splits 10 --into docs/reproduce.md",
            50,
        ),
    ],
    "max_margin_shift": [
        Page(
            "shift_study.py",
            "--store {stores}/max-margin-data-shifting.sqlite --splits 10 --into docs/max_margin_shift.md",
            10,
        ),
        Page("max_margin_pca_study.py", "--into docs/max_margin_shift.md", 3),
        Page("corruption_study.py", "--into docs/max_margin_shift.md", 2),
    ],
    "refinement": [
        Page("refinement_study.py", "--into docs/refinement.md", 9),
        Page("selection_study.py", "--into docs/refinement.md", 1),
    ],
    "study": [Page("default_reducer_study.py", "--store {store} --into docs/study.md", 12)],
    "posterior_map": [
        Page("nonlinear_study.py", "--store {store} --splits 10 --rows 600 --into docs/posterior_map.md", 15),
        Page("posterior_map_study.py", "--store {stores}/map.json --into docs/posterior_map.md", 3),
    ],
    "bayes_error_lda": [
        Page("linear_default_study.py", "--into docs/bayes_error_lda.md", 2),
        Page("bayes_error_digits.py", "--into docs/bayes_error_lda.md", 2),
    ],
    "related_methods": [
        Page("related_methods_study.py", "--store {store} --splits 5 --rows 400 --into docs/related_methods.md", 25)
    ],
}


def identity() -> str:
    """Return a name of the code that runs: version and commit."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=REPOSITORY)
    return f"{discrim.__version__}-{found.stdout.strip() or 'unknown'}"


def command_of(name: str, page: Page, stores: Path, jobs: int) -> list[str]:
    """Return the command line of a page's script."""
    given = page.arguments.format(store=stores / f"{name}.sqlite", stores=stores).split()
    takes_jobs = "jobs=False" not in (REPOSITORY / "examples" / page.script).read_text(encoding="utf-8")
    return [sys.executable, f"examples/{page.script}", *given, *(["--jobs", str(jobs)] if takes_jobs else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", action="append", choices=PAGES, help="this page; may be given again")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--fresh", action="store_true", help="remove the results of this version first")
    options = parser.parse_args()
    stores = REPOSITORY / "build" / "evidence" / identity()
    if options.fresh:
        shutil.rmtree(stores, ignore_errors=True)
    stores.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.only or PAGES:
        for page in PAGES[name]:
            print(f"{name}: {page.script}, up to {page.minutes} minutes on two free cores", flush=True)
            started = time.monotonic()
            ended = subprocess.run(command_of(name, page, stores, options.jobs), cwd=REPOSITORY)
            print(f"    {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
            if ended.returncode:
                failed.append(f"{name}: {page.script}")
    if failed:
        raise SystemExit(f"Failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
