"""`edgen annotate` at scale: speed, memory, resume, kills, and recovery of planted confusions.

python -m bench annotate: 10,000 conversations, some minutes. python -m bench.annotate CONVERSATIONS [KILLS]:
another size.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import ROOT, edgen
from bench.planted_labels import CONFUSIONS, SEEDS, repeat
from edgen.store.run_reader import RunReader

CONVERSATIONS, KILLS = 10_000, 10
_LABELS = Path("layers") / "teacher_moves" / "labels.jsonl"
_PLANTED = 60  # conversations of which each seed labels every turn
_BACKENDS = {name: {"type": "simulator", "confusion": confusion} for name, confusion in CONFUSIONS.items()}
_OPTIONS = [
    *("--labels", "teacher_moves"),
    *(argument for name in CONFUSIONS for argument in ("--by", name)),
    *(
        argument
        for name, one in _BACKENDS.items()
        for argument in ("--set", f"backends.{name}={json.dumps(one)}")
    ),
    "--json",
]


def annotate(folder: Path, conversations: int = CONVERSATIONS, kills: int = KILLS) -> None:
    """Label 10,000 conversations turn by turn with three annotators, then the same with kills.

    A tenth of the conversations is labelled for comparison; the command is started again, and killed ten
    times.
    """
    peaks, run = {}, folder / "run"
    for count in (conversations // 10, conversations):
        shutil.rmtree(run, ignore_errors=True)
        edgen("generate", str(ROOT / "jobs" / "quickstart.yaml"), "-n", str(count), "-o", str(run))
        if count == conversations:
            shutil.copytree(run, folder / "killed")
        ours = edgen("annotate", str(run), *_OPTIONS)
        annotators, peaks[count] = json.loads(ours.output)["annotators"], ours.peak_mb
        requests = sum(one["calls"]["made"] for one in annotators)
        print(
            f"  {count:,} conversations, {requests:,} requests: {ours.wall:.1f} s, CPU {ours.cpu:.1f} s, {requests / ours.wall:,.0f}/s, "
            f"peak {ours.peak_mb:.0f} MB",
            flush=True,
        )
    small, large = peaks.values()
    print(f"  ten times as many: {large / small - 1:+.1%} memory (within 10%)")
    again = edgen("annotate", str(run), *_OPTIONS)
    assert sum(one["calls"]["made"] for one in json.loads(again.output)["annotators"]) == requests
    print(
        f"  started again: {again.wall:.1f} s, CPU {again.cpu:.1f} s, peak {again.peak_mb:.0f} MB", flush=True
    )
    dry = edgen("annotate", str(run), *_OPTIONS, "--sample", "1000", "--layer", "other", "--dry-run")
    print(f"  --dry-run of 1,000: {dry.wall:.1f} s, peak {dry.peak_mb:.0f} MB", flush=True)
    _kill(folder / "killed", run, kills, ours.wall)
    _planted(run)


def _kill(killed: Path, calm: Path, kills: int, seconds: float) -> None:
    """Kill the command at random times and compare its end with the undisturbed one.

    The equation is checked after each kill.
    """
    rng, pending = random.Random(1), []
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-m", "edgen", "annotate", str(killed), *_OPTIONS],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
        )  # fmt: skip
        time.sleep(1 + rng.uniform(0, 1.6 * seconds / kills))
        process.kill()
        process.wait()
        stand = json.loads(edgen("status", str(killed), "--json").output).get("annotators", [])
        assert all(map(_equal, stand)), stand
        pending.append(sum(one["pending"] for one in stand))
    ended = json.loads(edgen("annotate", str(killed), *_OPTIONS).output)["annotators"]
    made = sum(one["calls"]["made"] for one in ended)
    assert sum(one["pending"] for one in ended) == 0
    assert all(map(_equal, ended))
    same = (killed / _LABELS).read_bytes() == (calm / _LABELS).read_bytes()
    left = ", ".join(f"{one:,}" for one in pending)
    print(
        f"  killed {kills} times, with {left} requests pending; {made:,} answers in the end, the same bytes: {same}"
    )


def _equal(one: dict[str, Any]) -> bool:
    """Return whether planned = labelled + rejected + failed + pending."""
    ended = one["labelled"] + sum(one["rejected"].values()) + sum(one["failed"].values())
    return bool(one["planned"] == ended + one["pending"])


def _planted(run: Path) -> None:
    """Print figures of three annotators with planted confusions, turn by turn, over seeds."""
    with RunReader(run) as reader:
        turns = [one.candidate.turns for one, _ in zip(reader.conversations(), range(_PLANTED), strict=False)]
    found = [figure for seed in repeat(turns, together=False) for figure in seed]
    covered = [figure.covered for figure in found if figure.covered is not None]
    print(
        f"  planted confusions, {_PLANTED} conversations and {SEEDS} seeds: {sum(one.near for one in found) / len(found):.1%} of "
        f"{len(found):,} figures where 95% are predicted; {sum(covered) / len(covered):.1%} of the reported intervals contain the prediction"
    )


if __name__ == "__main__":
    size, times = (
        int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((1, CONVERSATIONS), (2, KILLS))
    )
    with tempfile.TemporaryDirectory(prefix="edgen-bench-") as scratch:
        annotate(Path(scratch), size, times)
