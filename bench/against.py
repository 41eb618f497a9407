"""python -m bench.against CHECKOUT [calls] [rounds]: `edgen generate` here and in the checkout of another commit.

The two take turns, so that what else the machine does meets both. CPU is user and system time of the command and not of
the server; each figure is the median of the rounds. Both run in this environment, with the packages that it has.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench.measure import ROOT, Cost, machine, run, simulator


def generate(checkout: Path, folder: Path, calls: int, *more: str) -> Cost:
    """One run of the checkout's quickstart job."""
    job, command = str(checkout / "jobs" / "quickstart.yaml"), (sys.executable, "-m", "edgen", "generate")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        os.environ["PYTHONPATH"] = str(checkout)
        return run(*command, job, "-n", str(calls), "-o", f"{out}/run", *more, cwd=checkout)


def compare(what: str, other: Path, calls: int, rounds: int, *more: str) -> None:
    """Print CPU and memory of both, and their ratios."""
    costs: dict[Path, list[Cost]] = {other: [], ROOT: []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for checkout, found in costs.items():
                found.append(generate(checkout, Path(folder), calls, *more))
    cpu = {checkout: statistics.median(cost.cpu for cost in found) for checkout, found in costs.items()}
    peak = {checkout: statistics.median(cost.peak_mb for cost in found) for checkout, found in costs.items()}
    print(
        f"{what}, {calls:,} calls: CPU {cpu[other]:.2f} s there, {cpu[ROOT]:.2f} s here, ratio {cpu[ROOT] / cpu[other]:.2f}; "
        f"peak {peak[other]:.0f} MB there, {peak[ROOT]:.0f} MB here, ratio {peak[ROOT] / peak[other]:.2f}",
        flush=True,
    )


def main() -> None:
    other = Path(sys.argv[1]).resolve()
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"{machine()}; {rounds} rounds, {other.name} against {ROOT.name}")
    compare("start", other, 1, rounds)
    compare("embedded simulator", other, calls, rounds)
    with simulator() as url:
        backend = f"backends.default={{type: openai, model: edgen-simulator, base_url: '{url}', seed: auto}}"
        compare("served simulator", other, calls, rounds, "--set", backend)


if __name__ == "__main__":
    main()
