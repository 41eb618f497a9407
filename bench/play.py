"""Conversations between people at once: `python -m bench.play [--pairs N] [--turns N] [--kills N]`.

As many pairs of people (50) talk over the pages of one `edgen web`, in a run of one `edgen generate`; each is
a thread with a browser of its own that polls as the page's script does. Prints how long pages and answers
took, and whether an answer was lost or any person was asked twice. With kills, the server or the run is ended
by SIGKILL at random moments and started again; browsers send unanswered requests again.
"""

from __future__ import annotations

import argparse
import http.client
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import edgen
from tests.web.players import SELFPLAY, Browser, Pages, Player

_POLLED = 0.4  # seconds between two polls, as in the page's script


class Played(NamedTuple):
    """Result of a number of conversations between people.

    Seconds of each request by kind, answers sent, answers that are not exactly once in the records, keys that
    were asked again after their answer was confirmed, and kills.
    """

    looks: list[float]
    answers: list[float]
    sent: int
    missing: int
    twice: int
    kills: int
    seconds: float


class _World:
    """The server and the run that people play in, which can be killed and started again."""

    def __init__(self, run: Path, pairs: int, turns: int) -> None:
        self._run = run
        self._settings = (
            f"conversations={pairs}",
            "replicates=1",
            "branch=null",
            f"selfplay.max_turns={turns}",
            "selfplay.closing=null",
        )
        self.making = self._generate()
        while not (run / "people" / "waiting.db").exists():
            time.sleep(0.1)
        self.pages = Pages(run)
        self.over = threading.Event()

    def _generate(self) -> subprocess.Popen[str]:
        people = (f"backends.{role}={{type: human}}" for role in ("teacher", "student"))
        options = [part for setting in (*people, *self._settings) for part in ("--set", setting)]
        command = [sys.executable, "-m", "edgen", "generate", str(SELFPLAY), "-o", str(self._run), *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def kill(self, rng: random.Random, kills: int) -> int:
        """Kill the server or the run at random moments; return how often."""
        done = 0
        while done < kills and not self.over.wait(rng.uniform(0.2, 3)):
            if rng.random() < 0.6 or self.making.poll() is not None:
                self.pages = self.pages.again()
            else:
                self.making.kill()
                self.making.wait()
                self.making = self._generate()
            done += 1
        return done


class _Patient(Browser):
    """A browser that sends a request again when it gets no answer."""

    def _send(self, method: str, path: str, body: str | None) -> str:
        end = time.monotonic() + 120
        while True:
            try:
                return super()._send(method, path, body)
            except (OSError, http.client.HTTPException):
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)


def play(
    folder: Path, pairs: int, pause: float = 1.0, kills: int = 0, seed: int = 0, turns: int = 6
) -> Played:
    """Let pairs of people talk at once; each thinks for `pause` seconds on average before an answer."""
    world = _World(folder / "run", pairs, turns)
    links = {
        role: world.pages.invite(role, *(f"{role}{number}" for number in range(pairs)))
        for role in ("teacher", "student")
    }
    port = world.pages.port
    players = [Player(name, _Patient(port)) for one in links.values() for name in one]
    for player, link in zip(players, [link for one in links.values() for link in one.values()], strict=True):
        player.browser.get(link)
    looks: list[float] = []
    answers: list[float] = []
    twice: list[str] = []

    def work(player: Player, rng: random.Random) -> None:
        confirmed: set[str] = set()
        while not world.over.is_set() and (state := player.look()) != "over":
            looks.append(player.browser.times[-1])
            if state != "answer":
                time.sleep(_POLLED)
                continue
            key = player.form()["key"]
            twice.extend([key] * (key in confirmed))
            time.sleep(rng.uniform(0, 2 * pause))
            before = len(player.browser.times)
            player.say(
                f"{player.name} says sentence {len(player.sent)} of this conversation, {rng.random():.6f}."
            )
            confirmed.add(key)
            answers.append(player.browser.times[before])

    began = time.monotonic()
    with ThreadPoolExecutor(len(players) + 1) as pool:
        killing = pool.submit(world.kill, random.Random(seed), kills)
        working = [pool.submit(work, player, random.Random(seed + n)) for n, player in enumerate(players)]
        wait(working, return_when=FIRST_EXCEPTION)
        world.over.set()
        for one in working:
            one.result()
        killed = killing.result()
    seconds = time.monotonic() - began
    try:
        _, stderr = world.making.communicate(timeout=240)
        assert world.making.returncode == 0, f"{world.making.returncode}: {stderr[-2_000:]}"
    finally:
        world.making.kill()
        world.pages.end()
    said = Counter(
        turn.text for record in edgen.open(folder / "run").conversations() for turn in record.turns
    )
    sent = [text for player in players for text in player.sent]
    missing = sum(said[text] != 1 for text in sent)
    return Played(looks, answers, len(sent), missing, len(twice), killed, seconds)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share of the values lies, in milliseconds."""
    return 1000 * sorted(values)[int(share * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = play(Path(folder), given.pairs, kills=given.kills, seed=given.seed, turns=given.turns)
    print(f"{given.pairs} conversations between people at once, {made.sent} answers in {made.seconds:.0f} s")
    print(f"{made.kills} kills; lost {made.missing}, asked twice {made.twice}")
    for name, times in (("a page", made.looks), ("an answer", made.answers)):
        print(
            f"{name}: p50 {percentile(times, 0.5):.0f} ms, p95 {percentile(times, 0.95):.0f} ms, n {len(times)}"
        )


if __name__ == "__main__":
    main()
