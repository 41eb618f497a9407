"""`python -m bench cluster --kills`: a campaign against a real cluster, on one-shot conversations and
self-play.

`--workers` and `--heads` say how many are killed, `--conversations` and `--selfplay` how much is made
meanwhile: `--kills --workers 20 --heads 10 --conversations 20000 --selfplay 2000` is the size that takes an
hour or more.

Nodes are processes of `ray start` on this machine: a head node without cores, and two worker nodes. Worker
nodes are killed with all their processes (SIGKILL) at random moments, and new ones are added; one is frozen
and resumed; the command is killed and started again. A server counts every request by its seed, which names
the call.

Checked: the bytes are those of a local run; repeated calls are at most those in flight on what was killed;
the server never had more calls at once than `limits.in_flight`; at every look of `edgen status`, planned =
accepted + rejected + failed + pending.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.conftest import Node, family
from tests.execution.service import equation, files, job_text, serve
from tests.execution.slotted import SlottedServer

IN_FLIGHT = 16
LATENCY, SLOW = 0.3, 5.0  # seconds a call, and while a node starts
SELFPLAY = {
    "protocol": "selfplay", "prompt": None, "prompts": {"teacher": "selfplay_teacher", "student": "selfplay_student"},
    "selfplay": {"max_turns": 6},
}  # fmt: skip


class Job(NamedTuple):
    """The size of one run: conversations, and how many worker nodes and heads are killed meanwhile."""

    workers: int
    heads: int
    conversations: int
    selfplay: bool


class _Campaign:
    """One run under attack."""

    def __init__(self, folder: Path, server: SlottedServer, address: str, job: Path) -> None:
        self.folder, self.server, self.address, self.job = folder, server, address, job
        self.looks = self.runs = self.repeated = 0
        self.head: subprocess.Popen[bytes] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a run."""
        self.runs += 1
        self.run = self.folder / f"run{self.runs}"
        self.server.asked.clear()

    async def finish(self) -> None:
        """Let the run end, and compare its bytes."""
        assert self.head is not None
        await asyncio.to_thread(self.head.communicate)
        assert self.head.returncode == 0, (self.folder / "err").read_text()[-2000:]
        assert files(self.run) == files(self.folder / "local"), "the bytes differ"
        assert min(self.server.asked.values()) == 1
        self.repeated += self.server.asked.total() - len(self.server.asked)

    def start(self) -> None:
        """Start the command."""
        self.head = subprocess.Popen(
            [
                *(sys.executable, "-m", "edgen", "generate", str(self.job), "-o", str(self.run), "--json"),
                *("--on", f"ray://{self.address}", "--workers", "2"),
            ],
            stdout=subprocess.PIPE,
            stderr=(self.folder / "err").open("ab"),
            start_new_session=True,
        )

    async def answers(self, more: int) -> bool:
        """Wait for this many further calls; return whether they came before the end."""
        assert self.head is not None
        aim = self.server.asked.total() + more
        while self.server.asked.total() < aim:
            if self.head.poll() is not None:
                return False
            await asyncio.sleep(0.02)
        return True

    async def look(self) -> None:
        """Check the conservation equation."""
        made = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "edgen", "status", str(self.run), "--json"],
            capture_output=True,
            check=False,
        )
        if made.returncode == 0:
            self.looks += 1
            facts: dict[str, Any] = json.loads(made.stdout)
            assert equation(facts), facts


def _signal_family(node: Node, number: int) -> None:
    for pid in family(node.process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


async def _attack(
    one: _Campaign, scratch: Path, workers: int, heads: int, gap: int, rng: random.Random
) -> None:
    """Kill worker nodes and heads, about `gap` calls apart, then let the run end."""
    nodes = [Node(scratch, address=one.address, cores=1) for _ in range(2)]
    acts = ["worker"] * workers + ["head"] * heads + ["freeze"]
    rng.shuffle(acts)
    one.start()
    try:
        for number, act in enumerate(acts):
            if not await one.answers(rng.randint(gap // 2, gap * 3 // 2)):
                await one.finish()
                one.begin()
                one.start()
                await one.answers(rng.randint(10, 40))
            one.server.latency = SLOW  # starting a node takes longer than the run would
            if act == "worker":
                victim = nodes.pop(rng.randrange(len(nodes)))
                await asyncio.to_thread(victim.kill)
                nodes.append(await asyncio.to_thread(Node, scratch, address=one.address, cores=1))
            elif act == "head":
                assert one.head is not None
                os.killpg(one.head.pid, signal.SIGKILL)
                one.head.communicate()
                one.start()
            else:
                frozen = nodes[0]
                _signal_family(frozen, signal.SIGSTOP)
                await asyncio.sleep(15)
                _signal_family(frozen, signal.SIGCONT)
            one.server.latency = LATENCY
            await one.look()
            print(
                f"  {number + 1:2}. {act}: {one.server.asked.total()} calls so far, most at once {one.server.most}",
                flush=True,
            )
        await one.finish()
    finally:
        if one.head is not None and one.head.poll() is None:
            os.killpg(one.head.pid, signal.SIGKILL)
        for node in nodes:
            node.end()


async def _campaign(folder: Path, scratch: Path, job: Job, rng: random.Random) -> None:
    async with serve(SlottedServer(slots=200, latency=LATENCY)) as server:
        path = folder / "job.yaml"
        shape: dict[str, Any] = SELFPLAY if job.selfplay else {}
        path.write_text(
            job_text(server.url, conversations=job.conversations, limits={"in_flight": IN_FLIGHT}, **shape)
        )
        server.latency = 0.0
        local = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "edgen", "generate", str(path), "-o", str(folder / "local"), "--json"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert await local.wait() == 0
        calls, server.latency, server.most = server.asked.total(), LATENCY, 0
        server.asked.clear()
        head = await asyncio.to_thread(Node, scratch, cores=0)
        try:
            one = _Campaign(folder, server, head.address, path)
            gap = max(20, calls // (job.workers + job.heads + 2))
            await _attack(one, scratch, job.workers, job.heads, gap, rng)
        finally:
            head.end()
        most = (job.workers + job.heads + 1) * IN_FLIGHT
        print(
            f"  same bytes in {one.runs} runs of {calls:,} calls; {one.repeated} calls repeated, at most {most} in flight on "
            f"what was killed; at most {server.most} calls at once (cap {IN_FLIGHT}); the equation held at {one.looks} looks",
            flush=True,
        )
        assert one.repeated <= most
        assert server.most <= IN_FLIGHT


def kill_nodes(workers: int, heads: int, count: int, selfplay: int, seed: int) -> None:
    """Kill this many worker nodes and heads during this many conversations, a fifth of them in self-play."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    share = 5 if selfplay else workers + heads + 1
    jobs = [Job(workers - workers // share, heads - heads // share, count, selfplay=False)]
    if selfplay:
        jobs.append(Job(workers // share, heads // share, selfplay, selfplay=True))
    rng = random.Random(seed)
    for job in jobs:
        print(
            f"  {job.conversations:,} {'self-play' if job.selfplay else 'one-shot'} conversations: {job.workers} worker nodes and "
            f"{job.heads} heads killed, one node frozen",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch) / "bench"
            folder.mkdir()
            asyncio.run(_campaign(folder, Path(scratch), job, rng))
