"""People who vote at once, and a server that is killed meanwhile.

python -m bench voting [--people N] [--kills N] [--votes N] [--think S]

Each person opens a personal link and votes with pauses. Afterwards each confirmed vote must be stored exactly
once. Requests that find no server are sent again, with the same form, as a browser's reload does.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench.measure import ROOT, edgen
from edgen.store.people import People
from edgen.web.options import PeopleOptions
from edgen.web.people.inviting import set_up

_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')
_TICKS = os.sysconf("SC_CLK_TCK")


class Observed(NamedTuple):
    """Observations of the people: seconds of each answered request, and the votes that were confirmed."""

    seconds: list[float]
    confirmed: list[tuple[str, str]]


class Server:
    """A server of one run on one port, which can be killed and started again."""

    def __init__(self, run: Path) -> None:
        self._run = run
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.cpu = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "edgen",
            "web",
            str(self._run),
            "--no-browser",
            "--port",
            str(self.port),
        ]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        """Kill the server at once, and count its CPU time."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        self.cpu += (int(fields[11]) + int(fields[12])) / _TICKS
        self._process.kill()
        self._process.wait()

    def is_up(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.2).close()
        except OSError:
            return False
        return True


async def _person(
    url: str, key: str, name: str, asked: argparse.Namespace, killing: asyncio.Task[None], observed: Observed
) -> None:
    """Vote the requested number of times, and continue while the server is being killed."""
    rng = random.Random(name)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(60)) as session:
        await asyncio.sleep(rng.uniform(0, asked.think))
        page = await _ask(session, "GET", f"{url}/enter?key={key}", observed)
        given = 0
        while given < asked.votes or not killing.done():
            page = await _ask(session, "GET", f"{url}/vote", observed)
            form = page[page.find('class="answers') :].partition("</form>")[0]
            fields = {one: html.unescape(value) for one, value in _HIDDEN.findall(form)}
            if "unit" not in fields:
                return
            await asyncio.sleep(rng.uniform(0.5, 1.5) * asked.think)
            choice = rng.choice(("first", "second", "tie"))
            await _ask(session, "POST", f"{url}/vote", observed, {**fields, "choice": choice})
            observed.confirmed.append((name, fields["form"]))
            given += 1


async def _ask(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    observed: Observed,
    data: dict[str, str] | None = None,
) -> str:
    """Send a request until it is answered."""
    while True:
        began = time.perf_counter()
        try:
            async with session.request(method, url, data=data, allow_redirects=False) as answer:
                text = await answer.text()
                if answer.status not in (200, 303):
                    raise SystemExit(f"{method} {url}: {answer.status} {text[:300]}")
                observed.seconds.append(time.perf_counter() - began)
                return text
        except (aiohttp.ClientError, OSError, TimeoutError):
            await asyncio.sleep(0.2)


async def _kill(server: Server, kills: int, pause: float) -> None:
    """Kill the server again and again, each time after it has answered for a while."""
    rng = random.Random(0)
    for _ in range(kills):
        await asyncio.sleep(rng.uniform(0.2, 1.0) * pause)
        server.kill()
        server.start()
        while not server.is_up():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


async def _vote(server: Server, keys: dict[str, str], asked: argparse.Namespace, kills: int) -> Observed:
    observed = Observed([], [])
    url = f"http://127.0.0.1:{server.port}"
    killing = asyncio.create_task(_kill(server, kills, asked.pause))
    people = [_person(url, key, name, asked, killing, observed) for name, key in keys.items()]
    await asyncio.gather(*people)
    await killing
    return observed


def voting(arguments: list[str]) -> int:
    """Run both phases, with and without kills; return the number of votes not stored exactly once."""
    parser = argparse.ArgumentParser(prog="python -m bench voting", description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--votes", type=int, default=20, help="votes of each person in each phase")
    parser.add_argument("--think", type=float, default=4.0, help="seconds between two votes of a person")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds that a server lives, at most")
    asked = parser.parse_args(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        edgen(
            "generate",
            str(ROOT / "jobs" / "quickstart.yaml"),
            "-n",
            "500",
            "--set",
            "replicates=2",
            "-o",
            str(run),
        )
        for phase, kills in (("undisturbed", 0), (f"{asked.kills} kills", asked.kills)):
            names = [f"{phase.partition(' ')[0]}-{number}" for number in range(asked.people)]
            keys: dict[str, str] = {}
            for start in range(0, len(names), 100):
                chosen = ",".join(names[start : start + 100])
                keys |= set_up([run], PeopleOptions(vote=True, invite=chosen, per_unit=1000))
            server = Server(run)
            server.start()
            while not server.is_up():
                time.sleep(0.05)
            began = time.perf_counter()
            observed = asyncio.run(_vote(server, keys, asked, kills))
            took = time.perf_counter() - began
            server.kill()
            wrong += _report(phase, observed, took, server.cpu, run, names)
    return wrong


def _report(phase: str, observed: Observed, took: float, cpu: float, run: Path, names: list[str]) -> int:
    seconds = sorted(observed.seconds)
    p50, p95 = (1000 * seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.95))
    with People(run) as people:
        given = [one for one in people.list_answers("vote") if one.person in {*names}]
    units = [(one.person, one.unit) for one in given]
    lost = len(observed.confirmed) - len(given)
    twice = len(units) - len({*units})
    print(
        f"  {phase}: {len(observed.confirmed):,} votes confirmed in {took:.0f} s, {len(seconds) / took:.0f} requests/s; "
        f"p50 {p50:.0f} ms, p95 {p95:.0f} ms; {1000 * cpu / len(seconds):.1f} ms CPU a request, starts included; "
        f"{len(given):,} stored, lost {max(lost, 0)}, twice {twice}"
    )
    return abs(lost) + twice
