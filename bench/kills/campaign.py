"""A campaign that kills and interrupts commands at every step and at random moments.

python -m bench kills [--kills N] [--seconds S] [--seed S] [--only CASE…] [--faults] (--help: all of them)

First, every step of every command is hit by SIGKILL, and the resumed command is disturbed twice more; then
steps and moments are drawn. With --each N, the sweep hits every N-th step, beginning at one that the seed
chooses, so that N processes with seeds 0 to N - 1 share it. With --faults the disk fails from each step on
instead.

After each disturbance: the run's equation holds, no ledger is damaged, and an error is a sentence. At the end
of each trial, an undisturbed start must leave the bytes of an undisturbed run, the same files, the same
answers, and no call for an answer that was already stored.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.kills.cases import Case, cases
from bench.kills.trial import FAULTS, KINDS, Bench, Tally, draw, name_of
from tests import fork_server

Trial = tuple[Case, list[tuple[int, int, float | None]]]

_IN_A_ROW = 8  # disturbed starts before the last one, at most


def kills(arguments: list[str]) -> int:
    """Run the campaign; return how many faults it found."""
    parser = argparse.ArgumentParser(prog="python -m bench kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="these cases, by their names")
    parser.add_argument("--skip-sweep", action="store_true", help="draw all steps and moments")
    parser.add_argument("--faults", action="store_true", help="have the disk fail, instead of signals")
    parser.add_argument(
        "--each", type=int, default=1, help="in the sweep, every so many steps; the seed chooses which"
    )
    parser.add_argument("--whole", action="store_true", help="finish the sweep, also after --kills kills")
    given = parser.parse_args(arguments)
    options = Options(
        given.kills, given.seconds, given.seed, given.only, not given.skip_sweep, given.faults, given.each,
        given.whole,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="edgen-kills-") as folder:
        tally = asyncio.run(campaign(options, Path(folder)))
    _print_tally(tally, options)
    return len(tally.wrong)


class Options(NamedTuple):
    """Options of the campaign.

    How many disturbances, for how many seconds at most, drawn from which seed. `only`: the cases, by their
    names; `sweep`: first every `each`-th step of each; `faults`: the disk fails, instead of signals; `whole`:
    finish the sweep even if it takes more than `kills`.
    """

    kills: int
    seconds: float = float("inf")
    seed: int = 1
    only: Sequence[str] | None = None
    sweep: bool = True
    faults: bool = False
    each: int = 1
    whole: bool = False


async def campaign(options: Options, folder: Path) -> Tally:
    """Disturb commands in a folder until the number or the time is reached."""
    tally, rng = Tally(), random.Random(options.seed)
    until = time.monotonic() + options.seconds
    chosen = [case for case in cases() if options.only is None or case.name in options.only]
    async with _servers(any(case.served for case in chosen)) as servers:
        bench = Bench(folder, servers, tally)
        for case in chosen:
            calm = await bench.left_by(case)
            print(f"  {case.name}: {calm.steps} steps, {calm.seconds:.2f} s", flush=True)
        planned = _sweep(bench, chosen, options, rng) if options.sweep else iter(())
        shown = 0
        while time.monotonic() < until:
            enough = tally.total >= options.kills
            trial = next(planned, None) if options.whole or not enough else None
            tally.swept += trial is not None
            if trial is None and not enough:
                trial = await _draw(bench, chosen, options, rng)
            if trial is None:
                break
            case, plan = trial
            await bench.disturb(
                case, plan, repr([(at, name_of(number), after) for at, number, after in plan])
            )
            for problem in tally.wrong[shown:]:
                print(f"  WRONG {problem}", flush=True)
            shown = len(tally.wrong)
            if tally.total % 200 < len(plan):
                print(f"  {tally.total} so far, {len(tally.wrong)} wrong", file=sys.stderr, flush=True)
    return tally


async def _draw(bench: Bench, chosen: list[Case], options: Options, rng: random.Random) -> Trial | None:
    """Disturb a random case several times in a row; return None with `faults`, which are swept alone."""
    if options.faults:
        return None
    case = rng.choice(chosen)
    calm = await bench.left_by(case)
    return case, [draw(rng, calm) for _ in range(rng.randint(1, _IN_A_ROW))]


def _sweep(bench: Bench, chosen: list[Case], options: Options, rng: random.Random) -> Iterator[Trial]:
    """Kill each case at each step, then resume and disturb it twice more: by another signal, and a kill.

    Cases take turns.
    """
    first = 1 + options.seed % options.each
    steps = {case: list(range(first, bench.known(case).steps + 1, options.each)) for case in chosen}
    for case in chosen:
        rng.shuffle(steps[case])
    while any(steps.values()):
        for case in chosen:
            if steps[case] and options.faults:
                at = steps[case].pop()
                yield case, [(at, -rng.choice(FAULTS), None)]
            elif steps[case]:
                at = steps[case].pop()
                rest = max(1, bench.known(case).steps - at)
                again = [(rng.randint(1, rest), kind, None) for kind in (rng.choice(KINDS[1:]), KINDS[0])]
                yield case, [(at, KINDS[0], None), *again]


@contextlib.asynccontextmanager
async def _servers(wanted: bool) -> AsyncIterator[dict[str, str]]:
    """Start the simulator's servers, where a case needs them; yield their addresses.

    FAST ends a batch at once, SLOW after an hour. REFUSING refuses or breaks off a third of the attempts.
    """
    servers, addresses = [], {}
    kinds = {
        "FAST": ("--batch-seconds", "0"),
        "SLOW": ("--batch-seconds", "3600"),
        "REFUSING": ("--faults", "429=0.25:0.05,503=0.05,reset=0.05"),
    }
    try:
        for name, options in kinds.items() if wanted else ():
            servers.append(await fork_server.start("simulator", "--port", "0", *options))
            line = (await servers[-1].stderr.readline()).decode()
            addresses[name] = "http://" + line.partition("http://")[2].split("/")[0]
        yield addresses
    finally:
        for process in servers:
            process.kill()
            await process.wait()


def _print_tally(tally: Tally, options: Options) -> None:
    names = list(dict.fromkeys(name for name, _ in tally.done))
    kinds = [name_of(-one) for one in FAULTS] if options.faults else [kind.name for kind in KINDS]
    print(f"  {'':28}" + "".join(f"{kind:>9}" for kind in kinds))
    for name in names:
        print(f"  {name:28}" + "".join(f"{tally.done[name, kind]:9}" for kind in kinds))
    sums: Counter[str] = Counter()
    for (_, kind), count in tally.done.items():
        sums[kind] += count
    print(f"  {'all':28}" + "".join(f"{sums[kind]:9}" for kind in kinds))
    print(
        f"  {tally.total} disturbances (seed {options.seed}), {tally.swept} steps of the sweep, "
        f"{tally.missed} starts ended before theirs, "
        f"{len(tally.wrong)} faults"
    )
