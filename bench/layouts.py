"""The cost of a layout: of reading it, and of all of `generate` from a server that writes in it."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from bench.canned_server import canned
from bench.measure import ROOT, edgen, run
from bench.replies import LAYOUTS
from edgen.reading import read

CALLS, IN_FLIGHT, ROUNDS = 20_000, 256, 3
READ = 300  # replies of a layout, each read once a round


def microseconds(layout: str) -> float:
    """Return the CPU of one reading in µs, at the median of many replies."""
    texts = [LAYOUTS[layout](number) for number in range(READ)]
    times: list[int] = []
    for _ in range(ROUNDS):
        for text in texts:
            started = time.thread_time_ns()
            read(text)
            times.append(time.thread_time_ns() - started)
    return statistics.median(times) / 1000


def whole(folder: Path, url: str, number: int) -> tuple[float, float]:
    """Return the CPU of `generate` and its rate, each over the bare loop's: medians of the rounds."""
    cpu, rate = [], []
    base = f"{url}/{number}/v1"
    backend = f"backends.default={{type: openai, model: canned-1, base_url: '{base}', seed: auto}}"
    for turn in range(ROUNDS):
        loop = json.loads(
            run(sys.executable, "-m", "bench.bare_loop", base, str(CALLS), str(IN_FLIGHT)).output
        )
        ours = edgen(
            *("generate", str(ROOT / "jobs" / "quickstart.yaml"), "-n", str(CALLS)),
            *("-o", str(folder / f"{number}-{turn}")),
            *("--set", backend, "--set", f"limits.in_flight={IN_FLIGHT}", "--json"),
        )
        assert json.loads(ours.output)["accepted"] == CALLS
        cpu.append(ours.cpu / loop["cpu"])
        rate.append(loop["wall"] / ours.wall)
    return statistics.median(cpu), statistics.median(rate)


def layouts(folder: Path) -> None:
    """Measure ten layouts of a reply of 16 turns.

    Reading the reply, and all of `edgen generate` against a bare loop, from a server that is not edgen's.
    """
    with canned() as url:
        for number, name in enumerate(LAYOUTS):
            reading = microseconds(name)
            cpu, rate = whole(folder, url, number)
            print(
                f"  {name}: {reading:.0f} µs a reading (at most 40); generate {cpu:.2f} times the loop's CPU (at most 2.5, aim 2), "
                f"{rate:.0%} of its rate (at least 85%)",
                flush=True,
            )
