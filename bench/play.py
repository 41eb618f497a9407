"""Conversations between people at once: `python -m bench.play`.

As many pairs of people (50) talk over the pages of one `edgen web`, in a run of one `edgen generate`; each is a
thread with a browser of its own that polls as the page's script does. Prints how long pages and answers took,
and whether an answer was lost or anybody was asked twice.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import edgen
from tests.web.players import SELFPLAY, Pages, Player, generate

_TURNS = 6
_POLLED = 0.4  # seconds between two looks, as the page's script has it


class Played(NamedTuple):
    """Result of a number of conversations between people: seconds of each request by kind, answers sent,
    answers missing from the records, and keys that were asked twice."""

    looks: list[float]
    answers: list[float]
    sent: int
    missing: int
    twice: int
    seconds: float


def play(folder: Path, pairs: int, pause: float = 1.0) -> Played:
    """Let pairs of people talk at once; each thinks for `pause` seconds on average before an answer."""
    run = folder / "run"
    settings = (
        f"conversations={pairs}",
        "replicates=1",
        "branch=null",
        f"selfplay.max_turns={_TURNS}",
        "selfplay.closing=null",
    )
    making = generate(SELFPLAY, run, *settings, people=("teacher", "student"))
    while not (run / "people" / "waiting.db").exists():
        time.sleep(0.1)
    problems: list[BaseException] = []
    looks: list[float] = []
    answers: list[float] = []
    keys: list[str] = []
    with Pages(run) as pages:
        links = {
            role: pages.invite(role, *(f"{role}{number}" for number in range(pairs)))
            for role in ("teacher", "student")
        }
        players = [
            Player.enter(name, pages.port, link) for one in links.values() for name, link in one.items()
        ]
        began = time.monotonic()

        def work(player: Player, rng: random.Random) -> None:
            try:
                while (state := player.look()) != "over":
                    looks.append(player.browser.times[-1])
                    if state != "answer":
                        time.sleep(_POLLED)
                        continue
                    keys.append(player.form()["key"])
                    time.sleep(rng.uniform(0, 2 * pause))
                    before = len(player.browser.times)
                    player.say(
                        f"{player.name} says sentence {len(player.sent)} of this conversation, {rng.random():.6f}."
                    )
                    answers.append(player.browser.times[before])
            except BaseException as problem:  # noqa: BLE001 - raised below
                problems.append(problem)

        threads = [
            threading.Thread(target=work, args=(player, random.Random(number)))
            for number, player in enumerate(players)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        assert not problems, problems[0]
        assert making.wait(120) == 0
    said = {turn.text for record in edgen.open(run).conversations() for turn in record.turns}
    sent = [text for player in players for text in player.sent]
    missing = sum(text not in said for text in sent)
    return Played(looks, answers, len(sent), missing, len(keys) - len(set(keys)), seconds)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share of the values lies, in milliseconds."""
    return 1000 * sorted(values)[int(share * (len(values) - 1))]


def main(pairs: int = 50) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = play(Path(folder), pairs)
    print(f"{pairs} conversations between people at once, {made.sent} answers in {made.seconds:.0f} s")
    print(f"lost {made.missing}, asked twice {made.twice}")
    for name, times in (("a page", made.looks), ("an answer", made.answers)):
        print(
            f"{name}: p50 {percentile(times, 0.5):.0f} ms, p95 {percentile(times, 0.95):.0f} ms, n {len(times)}"
        )


if __name__ == "__main__":
    main()
