"""One command disturbed again and again, and the state it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import random
import re
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.kills.cases import Case, Words
from bench.kills.people import answer_requests
from edgen.api.status import read_status
from edgen.core.errors import EdgenError
from edgen.core.files import find_target
from edgen.store.ledger.checking import find_ledger_damage
from edgen.store.people.mailbox import Mailbox
from tests import fork_server

KINDS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FAULTS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENOLCK, errno.EACCES)
_LONGEST = 120.0  # seconds of a command
_MOST = 12  # disturbed starts in a row, before one is left undisturbed
_LOG = "calls.log"
_ANSWERS = (
    "SELECT scenario, task, step, attempt, key, finish_reason, text FROM replies ORDER BY 1, 2, 3, 4, 5"
)
_ENDS = "SELECT scenario, task, fingerprint, status, reason FROM outcomes ORDER BY 1, 2"
_HELD = "SELECT count(*) FROM leases"  # spending differs: a call cut off by a kill counts at its most
_ASKED_PEOPLE = "SELECT key, answer FROM requests ORDER BY 1"
_NAMED_ANEW = re.compile(  # by the provider's id of a batch, by the run's own id
    r"(?<=\.results-1)-[0-9a-f]{8}|(?<=edgen-quickstart)-[0-9a-f]{16}"
)
_QUERIES = {"budget.yaml.db": (_HELD,), Mailbox.NAME: (_ASKED_PEOPLE,)}  # of books other than ledgers
_BESIDE_LEDGER = ("-wal", "-shm", "-acked")


def _was_starting(err: str) -> bool:
    """Return whether a traceback ends before the first statement of edgen: Python was still starting."""
    return "edgen/__main__.py" not in err or "    def main() -> None:" in err


class Ended(NamedTuple):
    """The end of a start."""

    code: int
    out: str
    err: str


class Left(NamedTuple):
    """The state that an undisturbed command leaves.

    Its exit code, the digest of each file (None where it differs from time to time), its steps and its
    seconds.
    """

    code: int
    files: dict[str, str | None]
    steps: int
    seconds: float


@dataclass
class Tally:
    """Totals of a campaign.

    Disturbances by case and kind, starts that ended first, steps of the sweep, and faults.
    """

    done: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: int = 0
    swept: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.done.total()


class Bench:
    """A folder for trials, and the words of commands that stand for addresses of servers."""

    def __init__(self, folder: Path, servers: Mapping[str, str], tally: Tally) -> None:
        self._folder = folder
        self._servers = servers
        self.tally = tally
        self._known: dict[str, Left] = {}
        self._ready: dict[str, Path] = {}
        self._count = 0

    def known(self, case: Case) -> Left:
        """Return `left_by` of a case, computed once."""
        return self._known[case.name]

    async def left_by(self, case: Case) -> Left:
        """Return the state that the undisturbed case leaves; run twice, since some files contain times."""
        if case.name not in self._known:
            ready = self._folder / f"ready-{len(self._known)}"
            ready.mkdir()
            for name, text in case.files:
                (ready / name).write_text(text)
            for words in case.before:
                ended = await self._run(words, ready)
                if ended.code not in (0, 4):  # 4: batches are out
                    raise SystemExit(f"{case.name}: {' '.join(words)} ended with {ended.code}: {ended.err}")
            (ready / _LOG).unlink(missing_ok=True)
            found = [await self._calm(case, ready) for _ in range(2)]
            first, second = found
            files = {
                name: digest if second.files.get(name) == digest else None
                for name, digest in first.files.items()
            }
            self._known[case.name] = first._replace(files=files)
            self._ready[case.name] = ready
        return self._known[case.name]

    async def _calm(self, case: Case, ready: Path) -> Left:
        place = self._copy(ready)
        clock = asyncio.get_running_loop().time
        began = clock()
        ended = await self._start(case, place, 0, signal.SIGKILL)
        seconds = clock() - began
        if ended.code not in (0, 3):
            raise SystemExit(f"{case.name} ended with {ended.code} undisturbed: {ended.err}")
        stored, _, steps = _read_log(place / _LOG)
        if stored and max(stored.values()) > 1:
            raise SystemExit(f"{case.name}: calls share a key, so that they cannot be told apart")
        left = Left(ended.code, _files(place), steps, seconds)
        shutil.rmtree(place)
        return left

    def _copy(self, ready: Path) -> Path:
        self._count += 1
        return Path(shutil.copytree(ready, self._folder / f"trial-{self._count}", symlinks=True))

    async def _start(
        self, case: Case, place: Path, at: int, number: int, after: float | None = None
    ) -> Ended:
        """Run the case's command; signal `number` comes at a step, or after seconds."""
        return await self._run(case.command, place, at, number, after, asks_people=case.asks_people)

    async def _run(
        self, words: Words, place: Path, at: int = 0, number: int = signal.SIGKILL, after: float | None = None,
        *, asks_people: bool = False,
    ) -> Ended:  # fmt: skip
        for name, address in self._servers.items():
            words = tuple(word.replace(name, address) for word in words)
        words = tuple(each for word in words for each in _expand(word, place))
        # Ctrl-C before edgen's first statement is handled by Python.
        code = f"import signal; signal.signal(2, signal.SIG_DFL); from bench.kills.hooks import run; run({at}, {int(number)}, {_LOG!r})"
        process = await fork_server.start(*words, code=code, cwd=place)
        reading = asyncio.create_task(process.communicate())
        answering = asyncio.create_task(answer_requests(place / "run")) if asks_people else None
        try:
            if after is not None:
                await asyncio.wait([reading], timeout=after)
                if process.returncode is None:
                    process.send_signal(number)
            out, err = await asyncio.wait_for(reading, _LONGEST)
        except TimeoutError:
            process.kill()
            await process.wait()
            return Ended(-1000, "", f"it did not end within {_LONGEST:g} s")
        finally:
            if answering is not None:
                answering.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await answering
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    async def disturb(self, case: Case, plan: list[tuple[int, int, float | None]], label: str) -> None:
        """Start the case once for each of (step, signal, seconds), then undisturbed.

        The state that it leaves is compared with that of an undisturbed start. `label` says how to repeat the
        trial.
        """
        calm = await self.left_by(case)
        place = self._copy(self._ready[case.name])
        wrong: list[str] = []
        try:
            for at, number, after in plan:
                ended = await self._start(case, place, at, number, after)
                name = name_of(number)
                # A fault counts if the process met it, whether or not it was fatal.
                hit = (
                    ended.code in (-number, 128 + number) if number > 0 else at <= _read_log(place / _LOG)[2]
                )
                if hit:
                    self.tally.done[case.name, name] += 1
                else:
                    self.tally.missed += 1
                wrong += [
                    f"after {name} at {at or after}: {what}"
                    for what in self._look(place, calm, ended, number)
                ]
                if not hit and ended.code == calm.code:
                    break
            ended = await self._start(case, place, 0, signal.SIGKILL)
            wrong += self._compare(place, calm, ended)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        self.tally.wrong += [f"{case.name} {label}: {what}" for what in wrong]

    def _look(self, place: Path, calm: Left, ended: Ended, number: int) -> list[str]:
        """Return the faults after a disturbed start."""
        wrong = []
        if ended.code == 1 and "KeyboardInterrupt" in ended.err and _was_starting(ended.err):
            return []
        # Before edgen handles a signal, and after it is done, the process ends by the signal itself.
        expected = {-number, 128 + number, calm.code} if number > 0 else {calm.code, 2, 4}

        if ended.code not in expected and not _is_done(ended):
            wrong.append(f"exit code {ended.code}: {_shorten(ended.err)}")
        if ("Traceback" in ended.err and "/edgen/" in ended.err) or "Exception ignored" in ended.err:
            wrong.append(f"a traceback: {ended.err[-600:]}")
        for run in sorted(job.parent for job in place.glob("*/job.yaml")):
            if (run / "run.db").exists() or (run / "arms").exists():
                wrong += _conserved(run)
        for ledger in sorted(place.rglob("*.db")):
            if ledger.name not in _QUERIES:
                wrong += [f"validate: {problem}" for problem in find_ledger_damage(ledger)]
        return wrong

    def _compare(self, place: Path, calm: Left, ended: Ended) -> list[str]:
        """Return the differences at the end."""
        wrong = []
        if ended.code != calm.code and not _is_done(ended):
            wrong.append(f"at last exit code {ended.code}: {ended.err[-400:]}")
        found = _files(place)
        if more := sorted(found.keys() - calm.files.keys()):
            wrong.append(f"left over: {', '.join(more[:5])}")
        if missing := sorted(calm.files.keys() - found.keys()):
            wrong.append(f"missing: {', '.join(missing[:5])}")
        if other := [
            name
            for name, digest in calm.files.items()
            if digest is not None and found.get(name, digest) != digest
        ]:
            wrong.append(f"other bytes: {', '.join(sorted(other)[:5])}")
        _, again, _ = _read_log(place / _LOG)
        if again:
            wrong.append(f"{len(again)} stored answers were asked for again")
        return wrong


def _expand(word: str, place: Path) -> list[str]:
    """Return the files that a word with an asterisk matches, as a shell expands it; else the word itself."""
    return sorted(str(path.relative_to(place)) for path in place.glob(word)) if "*" in word else [word]


def _shorten(text: str) -> str:
    """Return the end of a text; for a crash of the interpreter, its whole report."""
    return text[text.find("Fatal Python error") :][:4000] if "Fatal Python error" in text else text[-300:]


def _is_done(ended: Ended) -> bool:
    """Return whether a start was refused because an earlier one had finished: its output exists."""
    words = ("already", "is there", "holds files", "not empty")
    return ended.code == 2 and any(word in ended.err for word in words)


def _conserved(run: Path) -> list[str]:
    """Return the faults in a run's status: planned = accepted + rejected + failed + pending."""
    try:
        facts = msgspec.to_builtins(read_status(run))
    except EdgenError as problem:
        return (
            []
            if "empty" in str(problem) or "none of this run's arms" in str(problem)
            else [f"status: {problem}"]
        )
    parts = facts["arms"].values() if facts.get("arms") else [facts]
    wrong = []
    for part in parts:
        ended = part["accepted"] + sum(part["rejected"].values()) + sum(part["failed"].values())
        if part["planned"] != ended + part["pending"] or part["pending"] < 0:
            wrong.append(f"the equation does not hold: {part}")
    return wrong


def _read_log(path: Path) -> tuple[Counter[str], set[str], int]:
    """Return the answers and the steps in a log.

    How often each answer was stored; the calls made after their answer had been stored; the steps of the
    last start that was not killed.
    """
    stored: Counter[str] = Counter()
    again: set[str] = set()
    steps = 0
    for line in path.read_text().splitlines() if path.exists() else []:
        kind, _, value = line.partition(" ")
        if kind == "A":
            if value in stored:
                again.add(value)
        elif kind == "S":
            stored[value] += 1
        elif kind == "N":
            steps = int(value)
    return stored, again, steps


def _files(place: Path) -> dict[str, str | None]:
    """Return the digest of each file below a folder, by its path; for a ledger, that of its content."""
    found: dict[str, str | None] = {}
    for path in place.rglob("*"):
        name = _NAMED_ANEW.sub("-ID", str(path.relative_to(place)))
        if name == _LOG or name.endswith(_BESIDE_LEDGER):
            continue
        if path.is_dir():
            if find_target(path.name) is not None:
                found[name] = None
            continue
        found[name] = _digest(path)
    return found


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    if path.suffix == ".db":
        book = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        try:
            for query in _QUERIES.get(path.name, (_ANSWERS, _ENDS)):
                for row in book.execute(query):
                    digest.update(repr(row).encode())
        finally:
            book.close()
    elif not path.name.endswith(".lock"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def name_of(number: int) -> str:
    """Return the name of a signal, or of an error as a negative number."""
    return signal.Signals(number).name if number > 0 else errno.errorcode[-number]


def draw(rng: random.Random, calm: Left) -> tuple[int, int, float | None]:
    """Return a disturbance: at a step that the command has, or at a moment while it runs."""
    number = rng.choice(KINDS)
    if rng.random() < 0.6:
        return rng.randint(1, max(1, calm.steps)), number, None
    return 0, number, rng.uniform(0.0, 0.8 * calm.seconds)
