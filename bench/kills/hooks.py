"""Hooks in a disturbed process of `edgen`: they count its steps, and send a signal at one of them.

A step is a moment at which the files on the disk may change: a file opened for writing, a rename, a link, an
unlink, a folder, a sync, a lock, a commit of a ledger. A signal at the n-th step comes before the step. So a
sweep over n finds the windows that signals at random moments miss.

Each request and each stored answer is noted in a file, a line each, so that the note outlives the process.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import runpy
import signal
import sqlite3
import sys
from typing import Any

_STEPS = frozenset(
    {
        "os.rename",
        "os.link",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "fcntl.flock",
        "sqlite3.connect",
    }
)
_WORKING = frozenset({"os.remove", "os.rmdir", "sqlite3.connect"})  # also on a disk that is full
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(at: int, number: int, log: str) -> None:
    """Run edgen with the arguments of this process.

    `at`: the step at which signal `number` comes; 0 for never. A negative `number`: from that step on, the
    disk fails with error -`number` (with ENOLCK, its locks alone). `log`: the file for requests (A), stored
    answers (S), and the number of steps (N).
    """
    faulthandler.enable()
    noted = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    steps = 0

    def step(path: object = None, *, fails: bool = True) -> None:
        nonlocal steps
        steps += 1
        if steps == at and number > 0:
            os.kill(os.getpid(), number)
        if steps >= at and number < 0 and fails:
            raise (
                OSError(-number, os.strerror(-number), path)
                if path
                else OSError(-number, os.strerror(-number))
            )

    def hear(event: str, about: tuple[Any, ...]) -> None:
        if event == "fcntl.flock":
            step()
        elif event in _STEPS or (event == "open" and _writes(about)):
            step(about[0], fails=event not in _WORKING and number != -errno.ENOLCK)

    if "batch" in sys.argv:
        _settle_soon()
    _watch_calls(noted)
    _watch_disk(step, fails=number != -errno.ENOLCK)
    sys.addaudithook(hear)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        runpy.run_module("edgen", run_name="__main__", alter_sys=True)
    finally:
        os.write(noted, f"N {steps}\n".encode())


def _settle_soon() -> None:
    """Treat a create without an answer as settled after two seconds, not after the provider's ten minutes."""
    from edgen.providers.anthropic.batches import AnthropicBatches

    AnthropicBatches.settles = 2.0


def _writes(about: tuple[Any, ...]) -> bool:
    """Return whether a file is opened for writing."""
    path, mode, flags = about
    writes = bool(flags & _WRITING) if mode is None else any(letter in mode for letter in "wax+")
    return writes and isinstance(path, str | os.PathLike) and str(path) != os.devnull


def _watch_disk(step: Any, *, fails: bool) -> None:
    """Count syncs and commits as steps: Python has no hook for these.

    A commit has a step before and one after it. `fails`: where the disk fails, these do.
    """
    from edgen.store.ledger.writer import Writer

    sync, commit = os.fsync, Writer._commit

    def fsync(number: int) -> None:
        step(fails=fails)
        sync(number)

    def commit_counted(self: Any, connection: Any, group: Any, stored: int) -> int:
        try:
            step(fails=fails)
        except OSError:
            raise sqlite3.OperationalError("disk I/O error") from None
        stored = commit(self, connection, group, stored)
        step(fails=False)
        return stored

    os.fsync = fsync  # type: ignore[assignment]
    Writer._commit = commit_counted  # type: ignore[method-assign]


def _watch_calls(noted: int) -> None:
    """Note the key of each call before it is made, and of each answer once it is on the disk."""
    from edgen.execution.client.model_client import ModelClient
    from edgen.store.ledger import Ledger

    ask, store = ModelClient._attempt_when_admitted, Ledger.store

    async def ask_noted(self: Any, call: Any) -> Any:
        os.write(noted, b"A " + self.make_key(call.request).hex().encode() + b"\n")
        return await ask(self, call)

    async def store_noted(self: Any, answers: Any, *how: Any, **held: Any) -> None:
        await store(self, answers, *how, **held)
        os.write(noted, b"".join(b"S " + answer[1].hex().encode() + b"\n" for answer in answers))

    ModelClient._attempt_when_admitted = ask_noted  # type: ignore[method-assign]
    Ledger.store = store_noted  # type: ignore[method-assign,assignment]
