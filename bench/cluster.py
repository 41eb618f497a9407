"""A run on a Ray cluster and in partitions, against one process, on the same server in the same round.

`python -m bench cluster`: CPU per reply of the process of the command (the head), and calls a second, for one
process, for workers and for partitions; a model of the throughput of more workers, fitted to the CPU times;
and the same calls by `ray.data.llm` with its processor for HTTP endpoints. `--conversations N`: see
`cluster_memory`. `--kills`: see `cluster_kills`.

CPU is counted as the difference between a long and a short run, so that starts do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
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
from edgen.execution.cluster.wire import compute_frame_interval
from tests.cluster.conftest import free_port

SHORT, LONG, IN_FLIGHT = 1_000, 9_000, 256
_JOB = str(ROOT / "jobs" / "quickstart.yaml")
_TICK = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def ray_cluster(folder: Path, cores: int = 8) -> Iterator[str]:
    """Run a cluster on this machine; yield its address for `--on`."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    from ray.util import get_node_ip_address

    port = free_port()
    head = subprocess.Popen(
        [
            *(
                Path(sys.executable).with_name("ray"),
                "start",
                "--head",
                f"--port={port}",
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
        yield f"ray://{get_node_ip_address()}:{port}"
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
    """Make conversations; return figures of them.

    `head`: CPU seconds of the command's process. `others`: CPU seconds of all workers. `span`: seconds from
    the first to the last answer.
    """
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
    # It includes the CPU of the partitions, which the command has waited for.
    own = usage.ru_utime + usage.ru_stime
    others = {} if "--partitions" in more else others
    return {"head": own, "others": sum(others.values()), "span": times[-1] - times[0]}


def _answer_times(run: Path) -> tuple[float, float]:
    import sqlite3

    with sqlite3.connect(run / "run.db") as ledger:
        first, last = ledger.execute("SELECT min(answered_at), max(answered_at) FROM replies").fetchone()
    return float(first), float(last)


def _per_reply(folder: Path, url: str, *more: str) -> tuple[float, float, float]:
    """Return µs of CPU per reply of the command's process and of the others, and replies a second."""
    short, long = (make(folder / "run", url, count, *more) for count in (SHORT, LONG))
    head, others = ((long[name] - short[name]) / (LONG - SHORT) * 1e6 for name in ("head", "others"))
    return head, others, LONG / long["span"]


def _ray_data_llm(address: str, url: str, count: int, actors: int) -> float:
    """Return the calls a second of `ray.data.llm` with its processor for HTTP endpoints."""
    code = f"""
import time, ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor
ray.init(address={address.removeprefix("ray://")!r}, log_to_driver=False, logging_level="ERROR")
ray.data.DataContext.get_current().enable_progress_bars = False
config = HttpRequestProcessorConfig(
    url="{url}/0/v1/chat/completions", headers={{"Content-Type": "application/json"}}, qps=None,
    concurrency={actors}, batch_size=64)
ask = build_processor(
    config,
    preprocess=lambda row: dict(payload=dict(model="m", messages=[dict(role="user", content=row["prompt"])])),
    postprocess=lambda row: dict(reply=row["http_response"]["choices"][0]["message"]["content"]))
rows = ray.data.from_items([{{"prompt": "Write a lesson. " * 60}}] * {count}, override_num_blocks={actors * 4})
began = time.time()
done = len(ask(rows).take_all())
print("RATE", done / (time.time() - began), flush=True)
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    lines = [line for line in made.stdout.splitlines() if line.startswith("RATE")]
    if not lines:
        print(f"  ray.data.llm ended without a result: {made.stderr.strip()[-500:]}", flush=True)
        return float("nan")
    return float(lines[0].split()[1])


class Point(NamedTuple):
    """One measurement: microseconds of CPU a reply of the head and of all workers, and replies a second."""

    workers: int
    head: float
    others: float
    rate: float


_SPREAD = 0.2  # frames a reply by which points have to differ


class Line(NamedTuple):
    """Microseconds of CPU a reply: a part for the reply itself, and one for a frame of messages."""

    reply: float
    frame: float

    @classmethod
    def fit(cls, shares: Sequence[float], costs: Sequence[float]) -> Line:
        """Fit to costs by their frames a reply, by least squares with no negative part.

        Points with about the same frames give no estimate of the part for frames.
        """
        if max(shares) - min(shares) < _SPREAD:
            return cls(sum(costs) / len(costs), 0.0)
        mean, middle = sum(shares) / len(shares), sum(costs) / len(costs)
        spread = sum((share - mean) ** 2 for share in shares)
        slope = sum((s - mean) * (c - middle) for s, c in zip(shares, costs, strict=True))
        frame = min(max(0.0, slope / spread if spread else 0.0), middle)
        return cls(middle - frame * mean, frame)

    def at(self, share: float) -> float:
        """Return the cost of a reply with this many frames."""
        return self.reply + self.frame * share


class Model(NamedTuple):
    """A model of the CPU a reply of the head and of the workers.

    Frames of messages are some time apart (`compute_frame_interval`), so a reply costs each side its own part
    and that of min(1, workers / apart / rate) frames.
    """

    head: Line
    others: Line

    @classmethod
    def fit(cls, points: Sequence[Point]) -> Model:
        """Fit both lines to points."""
        shares = [_frames(one.workers, one.rate) for one in points]
        return cls(
            Line.fit(shares, [one.head for one in points]), Line.fit(shares, [one.others for one in points])
        )

    def rate(self, workers: int) -> float:
        """Return the replies per second of this many workers, each with a core, and a head with one."""
        rate = workers * 1e6 / self.others.reply
        for _ in range(100):
            share = _frames(workers, rate)
            rate = min(workers * 1e6 / self.others.at(share), 1e6 / self.head.at(share))
        return rate


def _frames(workers: int, rate: float) -> float:
    return min(1.0, workers / compute_frame_interval(workers) / rate)


# Workers and seconds an answer: fast answers give the rate of the workers, slow ones that of the service.
_POINTS = tuple((workers, latency) for latency in (0.1, 0.5) for workers in (1, 2, 3, 4))


def cluster(folder: Path, rounds: int) -> None:
    """Compare workers and partitions with one process, and predict figures for more workers.

    Printed are CPU per reply and throughput; each figure is the median of this many rounds.
    """
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True))
        urls = {latency: stack.enter_context(canned(latency)) for latency in {one[1] for one in _POINTS}}
        address = stack.enter_context(ray_cluster(Path(scratch)))

        def measure(url: str, *more: str) -> list[float]:
            tries = [_per_reply(folder, url, *more) for _ in range(rounds)]
            return [statistics.median(one) for one in zip(*tries, strict=True)]

        one, _, rate = measure(urls[0.1])
        print(f"  one process: {one:.0f} µs a reply, {rate:.0f}/s", flush=True)
        points = []
        for workers, latency in _POINTS:
            point = Point(workers, *measure(urls[latency], "--on", address, "--workers", str(workers)))
            points.append(point)
            print(
                f"  {workers} workers, {latency} s an answer: head {point.head:.0f} µs ({point.head / one:.2f} of one process), "
                f"workers {point.others:.0f} µs a reply, {point.rate:.0f}/s ({point.rate / rate:.2f} of one process)",
                flush=True,
            )
        _predict(Model.fit(points), points, one)
        parts, _, rate_p = measure(urls[0.1], "--partitions", "2")
        print(
            f"  2 partitions: {parts:.0f} µs a reply by all processes, {rate_p:.0f}/s ({rate_p / rate:.2f} of one process)",
            flush=True,
        )
        data = _ray_data_llm(address, urls[0.1], LONG, 4)
        print(f"  ray.data.llm, 4 actors, 0.1 s a call: {data:.1f}/s ({data / rate:.3f} of one process)")


def _predict(model: Model, points: Sequence[Point], one: float) -> None:
    """Print the model, its residuals, and its prediction for more workers."""
    for name, line, costs in (
        ("head", model.head, [p.head for p in points]),
        ("workers", model.others, [p.others for p in points]),
    ):
        fitted = [line.at(_frames(p.workers, p.rate)) for p in points]
        away = [cost / fit - 1 for cost, fit in zip(costs, fitted, strict=True)]
        error = math.sqrt(sum(part**2 for part in away) / len(away))
        print(
            f"  model of the {name}: {line.reply:.0f} µs a reply and {line.frame:.0f} µs a frame; residuals "
            f"{' '.join(f'{part:+.0%}' for part in away)}, root mean square {error:.0%}"
        )
    for count in (8, 32, 128):
        rate = model.rate(count)
        share = _frames(count, rate)
        bound = "the workers" if rate >= count * 1e6 / model.others.at(share) * 0.999 else "the head"
        parts = math.ceil(count * model.head.at(share) / model.others.at(share))
        print(
            f"  {count} workers, a core each and one for the head: {rate:,.0f}/s, {rate * one / 1e6:.1f} times one process; "
            f"{bound} at its most; enough for all workers: {parts} partitions"
        )


def main(arguments: list[str]) -> None:
    """Run the benchmark that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster", description=__doc__)
    parser.add_argument(
        "--conversations", type=int, help="number of conversations, in partitions or with --kills"
    )
    parser.add_argument(
        "--kills", action="store_true", help="kill nodes and heads; see bench/cluster_kills.py"
    )
    parser.add_argument("--workers", type=int, default=20, help="worker nodes to kill")
    parser.add_argument("--heads", type=int, default=10, help="heads to kill")
    parser.add_argument(
        "--selfplay", type=int, default=0, help="with --kills: number of further conversations in self-play"
    )
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each point; the median counts")
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
            cluster(folder, asked.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
