"""A command's `Control`: its options, questions on the terminal, signals, and listeners (a log, a metrics
file, progress on stderr).

Progress is a bar or a changing line in a terminal, plain lines in a log.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.cli.output import CommandEnd, call_at_end, list_ending_signals, note
from edgen.core.errors import LockedError, ShortError
from edgen.core.system import handle_signals
from edgen.core.text import escape_for_terminal, format_compact_duration
from edgen.execution.progress import Event, Snapshot, StatusEvent, describe_progress
from edgen.runtime.control import Control, Trust
from edgen.runtime.deadline import Deadline
from edgen.runtime.options import WorkOptions

_METRICS_EVERY = 5.0  # seconds


def make_control(
    work: WorkOptions | None = None, *, trust_code: Sequence[Path] = (), yes: bool = False
) -> Control:
    """Make the control of a command.

    Call it first, so that later errors are logged as well. Raises UsageError for options that cannot be
    followed.
    """
    work = work or WorkOptions()
    recorder = _Recorder(work.log_format)
    call_at_end(recorder.end)
    recorder.keep_metrics(work.metrics)
    recorder.keep_notifier(work.notify)
    person = _ask if _can_person_answer() else None
    control = Control(
        deadline=None if work.until is None and work.span is None else Deadline(work.until, work.span),
        trusting=partial(Trust, work.trust_hosts, confirm=person, code=trust_code),
        agree=(lambda _question: True) if yes else person,
        interrupts=_forward_signals,
    )
    control.events.listeners.append(recorder)
    recorder.find_keys = lambda: control.trust.variables
    if work.trust_hosts:
        _ = control.trust  # which refuses invalid hosts
    return control


class _Recorder:
    """A listener to all events: it passes them on to a log or a display, and updates the metrics file."""

    def __init__(self, log_format: str) -> None:
        self._run, self._unit, self._started = "", "conversations", time.time()
        self._folder: str | None = None
        self._notifier: Any = None
        self.find_keys: Callable[[], Collection[str]] = tuple  # returns the variables that hold keys
        self._parts: dict[str, Snapshot] = {}  # latest snapshot of each part: the run, or its arms
        self._metrics: Any = None
        self._next_metrics = 0.0
        self._unwritten = False  # True if the last attempt to write the metrics file failed
        self._log: Any = None
        if log_format == "json":
            from edgen.cli.listeners.json_log import JsonLog

            self._log = JsonLog()
        self._show: Callable[[Event], None] = self._log or make_display()

    def keep_metrics(self, path: Path | None) -> None:
        if path is not None:
            from edgen.cli.listeners.metrics import MetricsFile

            self._metrics = MetricsFile(path)

    def keep_notifier(self, target: str | None) -> None:
        if target is not None:
            from edgen.cli.listeners.notifier import Notifier

            self._notifier = Notifier(target)

    def __call__(self, event: Event) -> None:
        if event.name == "run":
            self._folder = event.facts.get("folder")
            self._run, self._unit = event.facts["run"], event.facts["unit"]
        elif isinstance(event, StatusEvent):
            self._parts[event.snapshot.title.arm] = event.snapshot
            if event.snapshot.activity is not None and time.monotonic() >= self._next_metrics:
                self._next_metrics = time.monotonic() + _METRICS_EVERY
                self._write_metrics("running", None)
        self._show(event)

    def end(self, end: CommandEnd) -> bool:
        """End the command: write the last figures and the last line of the log; return whether there is a
        log."""
        state = "short" if end.reason == ShortError.reason else "stopped"
        if end.code == LockedError.exit_code:
            state = "running"
        elif end.code == 0 and end.text is None:  # a command that ends with a sentence is not complete
            state = "complete"
        if end.code != LockedError.exit_code:  # else the figures belong to the process that holds the run
            self._write_metrics(state, end)
        self._notify(state, end)
        if self._log is None:
            return False
        seconds = round(time.time() - self._started, 3)
        facts: dict[str, Any] = {"state": state, "exit_code": end.code, "seconds": seconds}
        facts |= {"reason": end.reason} if end.reason else {}
        self._log.end(end.text, facts, self._parts, end.trace)
        return True

    def _notify(self, state: str, end: CommandEnd) -> None:
        """Notify of the command's end, with the status of its run if there is one."""
        if self._notifier is None:
            return
        facts: dict[str, Any] = {"run": self._folder or self._run, "state": state}
        with contextlib.suppress(Exception):  # send the rest even if the run is unreadable
            from edgen.api.status import read_status

            if self._folder is not None:
                facts |= msgspec.to_builtins(read_status(Path(self._folder)))
        facts |= {"exit_code": end.code, "reason": end.reason, "message": end.text or ""}
        problem = self._notifier.send(facts, self.find_keys())
        if problem is not None:
            self._show(Event("note", f"--notify: {problem}; the exit code stays {end.code}."))

    def _write_metrics(self, state: str, end: CommandEnd | None) -> None:
        if self._metrics is None:
            return
        problem = self._metrics.write(self._run, self._unit, self._parts.values(), state, end)
        if problem is not None and not self._unwritten:
            text = f"{self._metrics.path}: the metrics file cannot be written ({problem}); the run continues."
            self._show(Event("note", text))
        self._unwritten = problem is not None


@contextlib.contextmanager
def _forward_signals(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Pass signals to the work that a loop does now."""
    with handle_signals(asyncio.get_running_loop(), (signal.SIGINT, *list_ending_signals()), on_signal):
        yield


def _can_person_answer() -> bool:
    """Return whether a person can answer: they see the question, and can type."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or taken away
        return False


def _ask(question: str) -> bool:
    """Return a person's yes or no. An interrupt ends the command, also inside a loop that would wait for
    it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(f"{escape_for_terminal(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)


_UNREADABLE = (OSError, ValueError)  # stderr is closed, full or gone
_LINE_EVERY = 10.0  # seconds


def make_display() -> Display:
    """Make the display that fits stderr."""
    return _Bar() if sys.stderr.isatty() else Display()


class Display:
    """Progress as lines, at intervals one for each part of the work. The work continues if the terminal goes
    away."""

    def __init__(self) -> None:
        self._parts: dict[str, Snapshot] = {}  # latest snapshot of each part at work
        self._unfinished = 0
        self._stage = ""
        self._next_line = self._next_batch = time.monotonic() + _LINE_EVERY

    def __call__(self, event: Event) -> None:
        with contextlib.suppress(*_UNREADABLE):
            if isinstance(event, StatusEvent):
                self._hear_status(event)
            elif event.name == "stage" and self._parts:
                self._stage = event.text
            elif event.name == "stage":
                self.show_stage(event.text)
            elif event.name == "note":
                self.print(f"edgen: {event.text}")
            elif event.name == "batch" and self._is_due(event):
                self.print(event.text)

    def _hear_status(self, event: StatusEvent) -> None:
        if event.snapshot.activity is None:
            return
        self._parts[event.snapshot.title.arm] = event.snapshot
        if event.name == "start":
            self._unfinished += 1
            self._stage = ""
            self.begin(event.snapshot)
        elif event.name == "progress":
            self.show()
        else:
            self._unfinished -= 1
            self.finish(event.snapshot)
            if not self._unfinished:
                self._parts.clear()

    def _is_due(self, event: Event) -> bool:
        """Return whether a line on the progress of batches is due."""
        now = time.monotonic()
        if "done" in event.facts and now < self._next_batch:
            return False
        if "done" in event.facts:
            self._next_batch = now + _LINE_EVERY
        return True

    def print(self, text: str) -> None:
        """Print a permanent line."""
        note(text)

    def begin(self, snapshot: Snapshot) -> None:
        self._print_status(snapshot)

    def show(self) -> None:
        if time.monotonic() >= self._next_line or self._stage:
            for snapshot in self._parts.values():
                self._print_status(snapshot)
            self._stage = ""

    def finish(self, snapshot: Snapshot) -> None:
        self._print_status(snapshot)
        self._stage = ""

    def show_stage(self, text: str) -> None:
        """Show the present stage of work without counts; an empty text ends it."""
        if text and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_EVERY
            note(text)

    def _print_status(self, snapshot: Snapshot) -> None:
        self._next_line = time.monotonic() + _LINE_EVERY
        parts = [
            f"{snapshot.title.name}: {snapshot.counts.ended:,}/{snapshot.counts.planned:,}",
            describe_progress(snapshot),
        ]
        self.print(" · ".join(filter(None, [*parts, self.describe_rest(snapshot)])))

    def describe_rest(self, snapshot: Snapshot) -> str:
        """Describe the remaining time, or the stage after the last answer."""
        speed = 0.0 if snapshot.activity is None else snapshot.activity.per_second
        if self._stage:
            return self._stage
        return (
            f"{format_compact_duration(snapshot.counts.pending / speed)} left"
            if speed > 0 and snapshot.counts.pending
            else ""
        )


class _Bar(Display):
    """Progress as a bar for each part, with the figures below the bars, so that both fit a narrow
    terminal."""

    def begin(self, snapshot: Snapshot) -> None:
        if self._unfinished == 1:
            self._open()
        name = escape_for_terminal(snapshot.title.name)
        self._tasks[snapshot.title.arm] = self._progress.add_task(name, total=None, left="")
        self.show()

    def _open(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self._tasks: dict[str, Any] = {}  # the bar of each part
        self._live = Live(console=Console(stderr=True), auto_refresh=False)
        self._live.start()

    def show(self) -> None:
        from rich.console import Group
        from rich.text import Text

        for arm, task in self._tasks.items():
            snapshot = self._parts[arm]
            total, left = snapshot.counts.planned or None, self.describe_rest(snapshot)
            self._progress.update(task, total=total, completed=snapshot.counts.ended, left=left)
        figures = [Text(describe_progress(one), overflow="fold") for one in self._parts.values()]
        self._live.update(Group(self._progress, *figures), refresh=True)

    def finish(self, snapshot: Snapshot) -> None:  # noqa: ARG002 - every part is shown
        self._stage = ""
        self.show()
        if not self._unfinished:
            self._live.stop()

    def print(self, text: str) -> None:
        if self._parts:
            self._live.console.print(escape_for_terminal(text), markup=False, highlight=False)
        else:
            note(text)

    def show_stage(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{escape_for_terminal(text)}")
        sys.stderr.flush()
