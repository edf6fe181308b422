"""Random stress tests: `python -m torture [--minutes 20] [--seed N] [trial …]`.

They are not part of the test suite: each run draws new cases (it prints its seed, which repeats the run) and takes a
given number of minutes. `--into FILE` writes the table of outcomes, for docs/reliability.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from torture import damage, estimators, ill_conditioned, kills, layouts, pages, tables
from torture.outcome import Outcome

TRIALS = {
    "estimators": (estimators.fuzzed, 0.3),
    "ill-conditioned": (ill_conditioned.against_many_digits, 0.2),
    "tables": (tables.malformed, 0.15),
    "layouts": (layouts.ways_in, 0.1),
    "models": (damage.flipped_models, 0.03),
    "forged": (damage.forged_models, 0.1),
    "stores": (damage.flipped_stores, 0.1),
    "kills": (kills.killed_runs, 0.12),
    "pages": (pages.hostile_names, 0.08),
}
BEGIN, END = "<!-- torture begin -->", "<!-- torture end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trials", nargs="*", metavar="trial", help=f"some of: {', '.join(TRIALS)}")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--into", type=Path, help="write the table between the two markers in this file")
    options = parser.parse_args()
    if unknown := set(options.trials) - set(TRIALS):
        parser.error(f"trial must be one of {', '.join(TRIALS)}; got {', '.join(sorted(unknown))}")
    seed = int(np.random.SeedSequence().entropy % 2**32) if options.seed is None else options.seed
    chosen = {name: TRIALS[name] for name in options.trials or TRIALS}
    print(f"seed {seed}, {options.minutes:g} minutes", flush=True)
    share = options.minutes * 60 / sum(part for _, part in chosen.values())
    outcomes = []
    for name, (trial, part) in chosen.items():
        outcome = trial(np.random.default_rng([seed, sum(name.encode())]), time.monotonic() + part * share)
        outcomes.append(outcome)
        print(outcome.line(), flush=True)
        for fault in outcome.faults[:20]:
            print(f"    {fault}", flush=True)
    if options.into:
        write_table(options.into, outcomes, seed)
    raise SystemExit(1 if any(outcome.faults for outcome in outcomes) else 0)


def write_table(page: Path, outcomes: list[Outcome], seed: int) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    lines = ["| case | runs | expected | faults |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.case} | {one.runs:,} | {one.expected} | {len(one.faults):,} |" for one in outcomes]
    table = "\n".join([BEGIN, "", *lines, "", f"Seed {seed}. `make torture` draws a new seed.", "", END])
    page.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    main()
