"""Throughput of a fleet: three simulators, one of them slow; and one that dies midway.

Each server works on a few calls at once, so it can make slots / latency calls a second. In turns, each is
measured alone and then all together; the ratio is the fleet's rate over the sum of what they made alone. The
median over the rounds is printed, since other programs share the machine.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import ROOT

SLOTS, LATENCIES = 8, (1000, 1000, 4000)  # milliseconds
ALONE, TOGETHER, ROUNDS = 96, 270, 3
_JOB = str(ROOT / "jobs" / "quickstart.yaml")


@contextlib.contextmanager
def _simulator(latency: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a simulator; yield its address and its process."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "edgen", "simulator", "--port", "0"),
            *("--latency-ms", str(latency), "--slots", str(SLOTS)),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[2], process
    finally:
        process.kill()
        process.wait()


def _times(run: Path) -> list[float]:
    with sqlite3.connect(run / "run.db") as ledger:
        return [time for (time,) in ledger.execute("SELECT answered_at FROM replies ORDER BY 1")]


def _rate(times: list[float]) -> float:
    """Return the answers a second, without the first and the last tenth."""
    tenth = len(times) // 10
    return (len(times) - 2 * tenth) / (times[-1 - tenth] - times[tenth])


def _make(
    run: Path, urls: list[str], count: int, kill: subprocess.Popen[str] | None = None
) -> dict[str, int]:
    """Make conversations with these servers, and kill one when a third is answered.

    Return the number of answers by server.
    """
    backend = json.dumps({"type": "openai", "model": "m", "base_url": urls, "seed": "auto"})
    making = subprocess.Popen(
        [
            *(sys.executable, "-m", "edgen", "generate", _JOB, "-n", str(count), "-o", str(run), "--json"),
            *("--set", f"backends.default={backend}", "--set", "limits.in_flight=64"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    while kill is not None and kill.poll() is None:
        time.sleep(0.2)
        if (run / "run.db").exists() and len(_times(run)) > count / 3:
            kill.send_signal(signal.SIGKILL)
            kill.wait()
    facts = json.loads(making.communicate()[0])
    assert (making.returncode, facts["accepted"]) == (0, count)
    return {url: one["answers"] for url, one in facts.get("servers", {}).items()}


def fleet(folder: Path) -> None:
    """Compare a fleet of three servers, one slow, with the sum of their own rates; then kill one midway."""
    ratios, without = [], []
    for number in range(ROUNDS):
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(_simulator(latency)) for latency in LATENCIES]
            urls, alone = [url for url, _ in servers], []
            for place, url in enumerate(urls):
                run = folder / f"alone{number}{place}"
                _make(run, [url], ALONE * min(LATENCIES) // LATENCIES[place])
                alone.append(_rate(_times(run)))
            run = folder / f"fleet{number}"
            shares = _make(run, urls, TOGETHER)
            ratios.append(_rate(_times(run)) / sum(alone))
            run = folder / f"dying{number}"
            _make(run, urls, TOGETHER, kill=servers[1][1])
            without.append(_rate(_times(run)[TOGETHER // 2 :]) / (alone[0] + alone[2]))
            print(
                f"  round {number + 1}: alone {', '.join(f'{rate:.0f}' for rate in alone)}/s; together "
                f"{ratios[-1]:.2f} of their sum (calls: {', '.join(map(str, shares.values()))}); after a death "
                f"{without[-1]:.2f} of the other two",
                flush=True,
            )
    print(
        f"  median: {statistics.median(ratios):.2f} of the sum (at least 0.90), {statistics.median(without):.2f} after a death"
    )
