"""A run on a Ray cluster and in partitions, against one process, on the same server in the same round.

`python -m bench cluster`: CPU per reply of the process of the command (the head), and calls a second, for one
process, for workers and for partitions; a model of the throughput of more workers, fitted to the CPU times; and the
same calls by plain Ray Data actors, one in flight each, as `ray.data.llm` makes them for an HTTP endpoint.
`--conversations N`: see `cluster_memory`. `--kills`: see `cluster_kills`.

CPU is counted as the difference between a long and a short run, so that starts do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.canned_server import canned
from bench.cluster_memory import make_many
from bench.measure import ROOT

SHORT, LONG, IN_FLIGHT, PORT = 500, 2_500, 256, 6421
_JOB = str(ROOT / "jobs" / "quickstart.yaml")
_TICK = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def ray_cluster(folder: Path, cores: int = 8) -> Iterator[str]:
    """A cluster of this machine; yields its address as `--on` takes it."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    from ray.util import get_node_ip_address

    head = subprocess.Popen(
        [
            *(
                Path(sys.executable).with_name("ray"),
                "start",
                "--head",
                f"--port={PORT}",
                f"--num-cpus={cores}",
            ),
            *("--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=100000000"),
            *(f"--temp-dir={folder}", "--block"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert head.stdout is not None
    for line in head.stdout:
        if "Ray runtime started" in line:
            break
    else:
        raise RuntimeError("ray did not start")
    try:
        yield f"ray://{get_node_ip_address()}:{PORT}"
    finally:
        head.terminate()
        head.wait(60)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _workers() -> dict[int, float]:
    """Return the CPU seconds of edgen's workers and partitions."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            said = (folder / "cmdline").read_bytes()
            if said.startswith(b"ray::Worker") or b"partition_process" in said:
                found[int(folder.name)] = _cpu(int(folder.name))
    return found


def make(run: Path, url: str, count: int, *more: str) -> dict[str, float]:
    """Make conversations; return the CPU seconds of the command's process (`head`) and of all workers
    (`others`), and the seconds from the first to the last answer (`span`)."""
    shutil.rmtree(run, ignore_errors=True)
    backend = f"backends.default={{type: openai, model: m, base_url: '{url}/0/v1', seed: auto}}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "edgen", "generate", _JOB, "-n", str(count), "-o", str(run), "--json"),
            *("--set", backend, "--set", f"limits.in_flight={IN_FLIGHT}", *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    others: dict[int, float] = {}
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.25):
            others.update(_workers())

    looking = threading.Thread(target=look)
    looking.start()
    out = process.stdout
    assert out is not None
    said = out.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    done.set()
    looking.join()
    assert process.returncode == 0, said
    assert json.loads(said)["accepted"] == count
    times = _answer_times(run)
    # That of the partitions is in it, too, which the command has waited for.
    own = usage.ru_utime + usage.ru_stime
    others = {} if "--partitions" in more else others
    return {"head": own, "others": sum(others.values()), "span": times[-1] - times[0]}


def _answer_times(run: Path) -> tuple[float, float]:
    import sqlite3

    with sqlite3.connect(run / "run.db") as ledger:
        first, last = ledger.execute("SELECT min(answered_at), max(answered_at) FROM replies").fetchone()
    return float(first), float(last)


def _per_reply(folder: Path, url: str, *more: str) -> tuple[float, float, float]:
    """Return microseconds of CPU per reply, of the command's process and of the others, and replies a
    second."""
    short, long = (make(folder / "run", url, count, *more) for count in (SHORT, LONG))
    head, others = ((long[name] - short[name]) / (LONG - SHORT) * 1e6 for name in ("head", "others"))
    return head, others, LONG / long["span"]


def _ray_data(address: str, url: str, count: int, actors: int) -> float:
    """Return the calls a second of plain Ray Data actors that post one chat request after the other."""
    code = f"""
import ray, time, urllib.request, json
ray.init(address={address.removeprefix("ray://")!r}, log_to_driver=False, logging_level="ERROR")
ray.data.DataContext.get_current().enable_progress_bars = False
class Ask:
    def __call__(self, row):
        body = json.dumps({{"model": "m", "messages": [{{"role": "user", "content": row["prompt"]}}]}}).encode()
        made = urllib.request.Request("{url}/0/v1/chat/completions", body, {{"Content-Type": "application/json"}})
        return {{"reply": urllib.request.urlopen(made).read().decode()}}
rows = ray.data.from_items([{{"prompt": "Write a lesson. " * 60}}] * {count}, override_num_blocks={actors * 4})
began = time.time()
rows.map(Ask, concurrency={actors}, num_cpus=0.5).materialize()
print("RATE", {count} / (time.time() - began))
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    lines = [line for line in made.stdout.splitlines() if line.startswith("RATE")]
    return float(lines[0].split()[1]) if lines else float("nan")


class Point(NamedTuple):
    """One measurement: microseconds of CPU a reply of the head and of all workers, and replies a second."""

    workers: int
    head: float
    others: float
    rate: float


class Model(NamedTuple):
    """CPU a reply in microseconds: of the head without messages, of a frame of messages, of the workers.

    Messages wait 5 ms for others, so a worker sends and gets at most 200 frames a second, and a reply costs the
    head `head` + `frame` * min(1, 200 * workers / rate).
    """

    head: float
    frame: float
    others: float

    @classmethod
    def fit(cls, points: Sequence[Point]) -> Model:
        """Fit the model to points, by least squares with no negative part."""
        shares = [_frames(one.workers, one.rate) for one in points]
        heads = [one.head for one in points]
        mean, middle = sum(shares) / len(shares), sum(heads) / len(heads)
        spread = sum((share - mean) ** 2 for share in shares)
        slope = sum((s - mean) * (h - middle) for s, h in zip(shares, heads, strict=True))
        frame = min(max(0.0, slope / spread if spread else 0.0), middle)
        return cls(middle - frame * mean, frame, sum(one.others for one in points) / len(points))

    def head_cpu(self, workers: int, rate: float) -> float:
        """Return the head's CPU a reply."""
        return self.head + self.frame * _frames(workers, rate)

    def rate(self, workers: int) -> float:
        """Return the replies a second of so many workers, each with a core, and a head with one."""
        most = rate = workers * 1e6 / self.others
        for _ in range(100):
            rate = min(most, 1e6 / self.head_cpu(workers, rate))
        return rate


def _frames(workers: int, rate: float) -> float:
    return min(1.0, 200 * workers / rate)


# Workers, seconds an answer, calls in flight.
_POINTS = ((1, 0.1, 256), (2, 0.1, 256), (4, 0.1, 256), (2, 0.5, 256), (4, 0.02, 64))


def cluster(folder: Path) -> None:
    """Workers and partitions against one process: CPU per reply, throughput, and what more workers would do."""
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True))
        urls = {latency: stack.enter_context(canned(latency)) for latency in {one[1] for one in _POINTS}}
        address = stack.enter_context(ray_cluster(Path(scratch)))
        one, _, rate = _per_reply(folder, urls[0.1])
        print(f"  one process: {one:.0f} µs a reply, {rate:.0f}/s", flush=True)
        points = []
        for workers, latency, calls in _POINTS:
            more = ("--on", address, "--workers", str(workers), "--set", f"limits.in_flight={calls}")
            point = Point(workers, *_per_reply(folder, urls[latency], *more))
            points.append(point)
            print(
                f"  {workers} workers, {latency} s an answer: head {point.head:.0f} µs ({point.head / one:.2f} of one process), "
                f"workers {point.others:.0f} µs a reply, {point.rate:.0f}/s",
                flush=True,
            )
        _predict(Model.fit(points), points, one)
        parts, _, rate_p = _per_reply(folder, urls[0.1], "--partitions", "2")
        print(
            f"  2 partitions: {parts:.0f} µs a reply by all processes, {rate_p:.0f}/s ({rate_p / rate:.2f} of one process)",
            flush=True,
        )
        data = _ray_data(address, urls[0.1], 200, 4)
        print(f"  plain Ray Data, 4 actors, one call in flight each, 0.1 s a call: {data:.1f}/s")


def _predict(model: Model, points: Sequence[Point], one: float) -> None:
    """Print the model, how far it is from the points, and what it says of more workers."""
    away = [abs(model.head_cpu(p.workers, p.rate) / p.head - 1) for p in points]
    print(
        f"  model: head {model.head:.0f} µs and {model.frame:.0f} µs a frame, workers {model.others:.0f} µs a reply; "
        f"head within {max(away):.0%} of every point"
    )
    for count in (8, 32, 128):
        rate = model.rate(count)
        bound = "the workers" if rate >= count * 1e6 / model.others * 0.999 else "the head"
        parts = math.ceil(count * model.head_cpu(count, rate) / model.others)
        print(
            f"  {count} workers, a core each and one for the head: {rate:,.0f}/s, {rate * one / 1e6:.1f} times one process; "
            f"{bound} at its most; enough for all workers: {parts} partitions"
        )


def main(arguments: list[str]) -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster", description=__doc__)
    parser.add_argument("--conversations", type=int, help="make so many, in partitions or under kills")
    parser.add_argument(
        "--kills", action="store_true", help="kill nodes and heads; see bench/cluster_kills.py"
    )
    parser.add_argument("--workers", type=int, default=20, help="worker nodes to kill")
    parser.add_argument("--heads", type=int, default=10, help="heads to kill")
    parser.add_argument("--selfplay", type=int, default=0, help="with --kills: so many in self-play, too")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    if asked.kills:
        from bench.cluster_kills import kill_nodes

        count = asked.conversations or (asked.workers + asked.heads + 1) * 60
        kill_nodes(asked.workers, asked.heads, count, asked.selfplay, asked.seed)
        return
    folder = Path(tempfile.mkdtemp(prefix="edgen-bench-"))
    try:
        if asked.conversations:
            make_many(folder, asked.conversations, asked.partitions)
        else:
            cluster(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
