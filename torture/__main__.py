"""Try to break discrim for a while, and print what came of it: `python -m torture [--minutes 20] [--seed N] [trial …]`.

Apart from the tests: it draws anew each time (the seed is printed, and repeats a run), takes as long as it is given,
and its table stands in docs/reliability.md (`--into FILE`).
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
    parser.add_argument("--into", type=Path, help="write the table between its two marks in this file")
    options = parser.parse_args()
    if unknown := set(options.trials) - set(TRIALS):
        parser.error(f"no trial is named {', '.join(sorted(unknown))}; there are: {', '.join(TRIALS)}")
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
    lines = ["| what was tried | times | held | faults |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.what} | {one.times:,} | {one.held} | {len(one.faults):,} |" for one in outcomes]
    table = "\n".join([BEGIN, "", *lines, "", f"Seed {seed}. `make torture` draws anew.", "", END])
    page.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    main()
