"""`python -m bench cluster --conversations N [--partitions P]`: a large run through Ray, and what is made of
it.

N conversations of the simulator in P partitions whose workers run on a Ray cluster of this machine, then
`edgen stats` and `edgen export --to hf`, each in one process and in two. A million: `python -m bench cluster
--conversations 1000000`, some 25 minutes and 15 GB of disk (TMPDIR). Printed are the seconds, and the memory
(MB, proportional set size) of every process at 10%, 50% and 100% of the time of each step, with the most of
any: processes of one kind in one column.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

from bench.measure import ROOT

_EVERY = 1.0  # seconds between two looks
_KINDS = (
    ("partition", "partition_process"),
    ("worker", "ray::"),
    ("other process", "runtime.processes"),
    ("command", "-m edgen"),
    ("ray", "ray/"),
)
Memory = dict[str, list[int]]  # megabytes by kind of process


def _kind_of(said: str) -> str | None:
    return next((kind for kind, mark in _KINDS if mark in said), None)


def _look(root: int) -> Memory:
    """Return the memory of a process and of all its descendants."""
    parents, found = {}, defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    family = [root]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    for pid in family:
        with contextlib.suppress(OSError, StopIteration):
            said = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            size = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            if (kind := _kind_of(said)) is not None:
                found[kind].append(size // 1024)
    return {kind: sorted(sizes) for kind, sizes in found.items()}


def _run(name: str, *arguments: str | Path) -> tuple[float, int]:
    """Run a command of edgen, and print the memory of its processes.

    Return its seconds, and the largest memory of any process except Ray's own.
    """
    began = time.monotonic()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process
    process = subprocess.Popen(
        [sys.executable, "-m", "edgen", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=ROOT,
    )
    seen: list[Memory] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(_EVERY):
            seen.append(_look(process.pid))

    looking = threading.Thread(target=look)
    looking.start()
    out = process.communicate()[0]
    done.set()
    looking.join()
    errors.seek(0)
    assert process.returncode == 0, (name, process.returncode, out[-500:], errors.read()[-2000:])
    seconds = time.monotonic() - began
    print(f"  {name}: {seconds:.0f} s", flush=True)
    whole = [one for one in seen if one] or [{}]
    for share in (0.1, 0.5, 1.0):
        moment = whole[min(len(whole) - 1, int(len(whole) * share))]
        shown = "; ".join(f"{kind} {' '.join(map(str, sizes))}" for kind, sizes in moment.items())
        print(f"    at {share:4.0%}: {shown}", flush=True)
    most = {
        kind: max(size for one in whole for size in one.get(kind, [0]))
        for kind in {k for one in whole for k in one}
    }
    print(f"    most:    {'; '.join(f'{kind} {size}' for kind, size in most.items())}", flush=True)
    return seconds, max((size for kind, size in most.items() if kind != "ray"), default=0)


def make_many(folder: Path, count: int, partitions: int) -> None:
    """Make this many conversations in partitions on Ray, measure and export them."""
    print(f"  {count:,} conversations, {partitions} partitions; memory in MB", flush=True)
    run = folder / "large"
    job = ("generate", ROOT / "jobs" / "quickstart.yaml", "-n", str(count), "-o", run, "--json")
    where = ("--on", "ray", "--workers", str(partitions), "--partitions", str(partitions))
    seconds, _ = _run("generate", *job, *where)
    status = subprocess.run(
        [sys.executable, "-m", "edgen", "status", run, "--json"], capture_output=True, check=True
    )
    facts = json.loads(status.stdout)
    done = facts["accepted"] + sum(facts["rejected"].values())
    assert done == count, facts
    print(f"    {count / seconds:.0f} conversations a second, merge included", flush=True)
    most = max(
        _run("stats", "stats", run, "--json")[1],
        _run("stats in 2 processes", "stats", run, "--json", "--workers", "2")[1],
        _run("export --to hf", "export", run, "--to", "hf", "-o", folder / "one" / "hf")[1],
        _run(
            "export in 2 processes",
            "export",
            run,
            "--to",
            "hf",
            "-o",
            folder / "two" / "hf",
            "--workers",
            "2",
        )[1],
    )
    same = subprocess.run(["diff", "-r", folder / "one", folder / "two"], capture_output=True, check=False)
    assert not same.returncode, same.stdout[:500]
    print(f"  the most of any process of stats and export: {most} MB (under 2,000)", flush=True)
