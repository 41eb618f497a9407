"""Runs that are started, stopped and resumed from the page of all runs.

A run is a process of its own (`job_process`), so that the server stays small, and the run continues if the
server ends. The page shows its questions. Any run that a process of this machine works on can be stopped: the
process gets the signal that Ctrl-C sends, and stops cleanly.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from edgen.config import load_job
from edgen.core import resources
from edgen.core.errors import EdgenError, UsageError
from edgen.core.system import interrupt
from edgen.store.locks import Holder
from edgen.store.run_folder import RunFolder
from edgen.web.answers import redirect, run_of
from edgen.web.guard import Route
from edgen.web.job_process import ProcessLine

_MOST_STARTED = 20  # most processes at once
_MOST_COUNT = 10**7  # most conversations


class StartedRun:
    """A process that makes a run. `question` waits for an answer; `ended` is the sentence at its end;
    `was_stopped`: the owner stopped it here."""

    def __init__(self, number: int, folder: Path, command: list[str]) -> None:
        self.number, self.folder, self.name = number, folder, folder.name
        self.was_stopped = False
        self.question: str | None = None
        self.ended: str | None = None
        self.ok = False
        # a command of edgen's own; the paths and the number are arguments, not words of a shell
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for data in self._process.stdout:
            line = msgspec.json.decode(data, type=ProcessLine)
            self.question = line.question
            if line.ended is not None:
                self.ended, self.ok = line.ended, line.ok or self.was_stopped
        self._process.wait()
        self.question = None
        if self.ended is None:
            self.ended = (
                "Its process ended without a message; resume the run, or start it in a terminal to see why."
            )

    def answer(self, *, agreed: bool) -> None:
        """Answer the question."""
        assert self._process.stdin is not None
        self.question = None
        try:
            self._process.stdin.write(b"yes\n" if agreed else b"no\n")
            self._process.stdin.flush()
        except OSError:  # the process ended in the meantime
            return

    @property
    def is_at_work(self) -> bool:
        """True until the process ends."""
        return self.ended is None


class RunStarter:
    """The runs that pages have started, and the jobs that they can start."""

    def __init__(self, folder: Path) -> None:
        """Use the jobs in `folder`/jobs, and shipped ones."""
        self._folder = folder
        self._started: list[StartedRun] = []
        self._lock = threading.Lock()

    def list_jobs(self) -> dict[str, Path]:
        """Return the jobs that can be started, by name: the project's own, and shipped ones."""
        own = sorted((self._folder / "jobs").glob("*.y*ml"))
        shipped = sorted(resources.find_shipped_files("jobs").values())
        found = {path.stem: path for path in (*shipped, *own)}
        return dict(sorted(found.items()))

    def list_shown_runs(self) -> list[dict[str, Any]]:
        """Return the started runs that a page shows: those with a question, and those that ended
        incomplete."""
        return [
            {"number": one.number, "name": one.name, "question": one.question, "ended": one.ended}
            for one in self._started
            if one.question is not None or (one.ended is not None and not one.ok)
        ]

    def start(self, job: Path, folder: Path, count: int | None = None) -> None:
        """Start a run. Raises UsageError for too many at once."""
        command = [sys.executable, "-P", "-m", "edgen.web.job_process", str(job), str(folder)]
        command += [] if count is None else [f"conversations={count}"]
        with self._lock:
            if any(one.is_at_work and one.folder.resolve() == folder.resolve() for one in self._started):
                raise UsageError(f"{folder}: this run was started here and is running.")
            if sum(one.is_at_work for one in self._started) >= _MOST_STARTED:
                raise UsageError(
                    f"{_MOST_STARTED} runs that were started here are running; wait for one, or stop one."
                )
            number = self._started[-1].number + 1 if self._started else 1
            self._started = [one for one in self._started if one.is_at_work or not one.ok][-100:]
            self._started.append(StartedRun(number, folder, command))

    def find(self, number: str) -> StartedRun | None:
        """Return the started run of that number."""
        return next((one for one in self._started if str(one.number) == number), None)

    def note_stop(self, folder: Path) -> None:
        """Note that the owner stopped the run of a folder. The run's page says so, so no card is needed."""
        for one in self._started:
            one.was_stopped |= one.is_at_work and one.folder.resolve() == folder.resolve()

    def dismiss(self, one: StartedRun) -> None:
        """Forget a run that has ended."""
        with self._lock:
            if not one.is_at_work:
                self._started.remove(one)


STARTER = web.AppKey("starter", RunStarter)


def stop_run(run: RunFolder) -> None:
    """Ask the process that works on a run to stop, as Ctrl-C does. Raises UsageError if there is none on this
    machine."""
    holder = Holder.read(run.lock) if run.is_locked() else None
    if holder is None:
        raise UsageError(f"{run.path}: no process works on this run.")
    if holder.host != socket.gethostname():
        raise UsageError(f"{run.path}: {holder} works on it; stop it there.")
    try:
        interrupt(holder.pid)
    except OSError as problem:
        raise UsageError(f"{run.path}: {holder} cannot be stopped ({problem.strerror}).") from None


async def change_start(request: web.Request) -> web.StreamResponse:
    """Start the run of a listed job."""
    form = await request.post()
    starter = request.app[STARTER]
    job = starter.list_jobs().get(str(form.get("job", "")))
    if job is None:
        raise UsageError("Choose one of the jobs that are listed.")
    given = str(form.get("count", "")).strip()
    if given and not (given.isascii() and given.isdecimal() and 0 < int(given[:9]) <= _MOST_COUNT):
        raise UsageError(
            f"The number of conversations has to be 1 to {_MOST_COUNT:,}; leave it empty for the job's own."
        )
    try:
        name = (await asyncio.to_thread(load_job, job)).name
    except EdgenError as problem:
        raise UsageError(str(problem)) from None
    folder = Path("outputs") / name
    await asyncio.to_thread(starter.start, job, folder, int(given) if given else None)
    return redirect("/")


async def change_resume(request: web.Request) -> web.StreamResponse:
    """Resume a run from its own copy of the job."""
    run = await asyncio.to_thread(run_of, request)
    rundir = RunFolder(run.path)
    await asyncio.to_thread(request.app[STARTER].start, rundir.job, run.path)
    return redirect("/")


async def change_stop(request: web.Request) -> web.StreamResponse:
    """Stop a run cleanly."""
    run = await asyncio.to_thread(run_of, request)
    request.app[STARTER].note_stop(run.path)
    await asyncio.to_thread(stop_run, RunFolder(run.path))
    return redirect("/")


async def change_answer(request: web.Request) -> web.StreamResponse:
    """Answer the question of a started run, or forget a run that has ended."""
    form = await request.post()
    starter = request.app[STARTER]
    one = starter.find(request.match_info["number"])
    if one is None:
        raise UsageError("This run was started by another server, or its question was answered.")
    if one.question is not None:
        await asyncio.to_thread(one.answer, agreed=form.get("agree") == "yes")
    else:
        starter.dismiss(one)
    return redirect("/")


ROUTES = (
    Route("POST", "/start", change_start),
    Route("POST", "/started/{number}", change_answer),
    Route("POST", "/run/{run}/resume", change_resume),
    Route("POST", "/run/{run}/stop", change_stop),
)
