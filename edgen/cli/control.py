"""A command's `Control`: what the options say, questions on the terminal, signals, and who hears what happens."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from edgen.api.supervision.control import Control
from edgen.api.supervision.deadline import Deadline
from edgen.api.supervision.snapshot import Snapshot, StatusEvent
from edgen.api.supervision.trust import Trust
from edgen.cli.errors import at_end, ending_signals
from edgen.cli.listeners.display import make_display
from edgen.core.errors import LockedError, ShortError
from edgen.core.events import Event
from edgen.core.safe_text import safe

_METRICS_EVERY = 5.0  # seconds


def make_control(
    *,
    trust_host: list[str] | None = None,
    yes: bool = False,
    until: str | None = None,
    for_: str | None = None,
    log_format: Literal["text", "json"] = "text",
    metrics: Path | None = None,
) -> Control:
    """To be made before anything else is, so that what goes wrong then is logged as well. Raises UsageError for
    options that cannot be followed."""
    recorder = _Recorder(log_format)
    at_end(recorder.end)
    recorder.keep_metrics(metrics)
    person = _ask if _is_somebody_there() else None
    control = Control(
        deadline=None if until is None and for_ is None else Deadline(until, for_),
        trust=Trust(trust_host, confirm=person),
        agree=(lambda _question: True) if yes else person,
        interrupts=_signals,
    )
    control.events.listen(recorder)
    return control


class _Recorder:
    """Hears everything: passes it on to a log or a display, and keeps the metrics file up to date."""

    def __init__(self, log_format: str) -> None:
        self._run, self._unit, self._started = "", "conversations", time.time()
        self._parts: dict[str, Snapshot] = {}  # how the run or its arms stood last
        self._metrics: Any = None
        self._next_metrics = 0.0
        self._unwritten = False  # the metrics file, when last tried
        self._log: Any = None
        if log_format == "json":
            from edgen.cli.listeners.json_log import JsonLog

            self._log = JsonLog()
        self._show: Callable[[Event], None] = self._log or make_display()

    def keep_metrics(self, path: Path | None) -> None:
        if path is not None:
            from edgen.cli.listeners.metrics import MetricsFile

            self._metrics = MetricsFile(path)

    def __call__(self, event: Event) -> None:
        if event.name == "run":
            self._run, self._unit = event.facts["run"], event.facts["unit"]
        elif isinstance(event, StatusEvent):
            self._parts[event.snapshot.title.arm] = event.snapshot
            if event.snapshot.activity is not None and time.monotonic() >= self._next_metrics:
                self._next_metrics = time.monotonic() + _METRICS_EVERY
                self._write_metrics("running", None)
        self._show(event)

    def end(self, code: int, text: str | None, trace: str | None) -> bool:
        """The command's end: the last figures, the last line of the log; whether there is a log."""
        state = {ShortError.exit_code: "short", LockedError.exit_code: "running"}.get(code, "stopped")
        if code == 0 and text is None:  # an end that needs a sentence is no end of the run
            state = "complete"
        if code != LockedError.exit_code:  # else the figures are those of whoever holds the run
            self._write_metrics(state, code)
        if self._log is None:
            return False
        seconds = round(time.time() - self._started, 3)
        facts: dict[str, Any] = {"state": state, "exit_code": code, "seconds": seconds}
        self._log.end(text, facts, self._parts, trace)
        return True

    def _write_metrics(self, state: str, code: int | None) -> None:
        if self._metrics is None:
            return
        problem = self._metrics.write(self._run, self._unit, self._parts.values(), state, code)
        if problem is not None and not self._unwritten:
            text = f"{self._metrics.path}: the metrics file cannot be written ({problem}); the run goes on."
            self._show(Event("note", text))
        self._unwritten = problem is not None


@contextlib.contextmanager
def _signals(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Signals go to the work that a loop does now."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}
    for number in before:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _is_somebody_there() -> bool:
    """Whether a person can be asked: they see what is asked, and can type."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or taken away
        return False


def _ask(question: str) -> bool:
    """A person's yes or no. An interrupt ends the command, also where a loop runs that would wait for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(f"{safe(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)
