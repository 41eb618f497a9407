"""Progress on stderr: a bar or a line that changes where a person looks, plain lines where a log is kept."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

from edgen.cli.output import note
from edgen.core.events import Event
from edgen.core.text import escape_hidden, format_span
from edgen.runtime.snapshot import Snapshot, StatusEvent, describe_progress

_UNREADABLE = (OSError, ValueError)  # stderr is closed, full or gone
_LINE_EVERY = 10.0  # seconds


def make_display() -> Display:
    """Make the display that fits stderr."""
    return _Bar() if sys.stderr.isatty() else Display()


class Display:
    """Lines, now and then one for each part of the work. A terminal that went away is no reason to stop the
    work."""

    def __init__(self) -> None:
        self._parts: dict[str, Snapshot] = {}  # those at work, as they stood last
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
            f"{format_span(snapshot.counts.pending / speed)} left"
            if speed > 0 and snapshot.counts.pending
            else ""
        )


class _Bar(Display):
    """A bar for each part of the work, and below them the figures of each, so that both fit a narrow
    terminal."""

    def begin(self, snapshot: Snapshot) -> None:
        if self._unfinished == 1:
            self._open()
        name = escape_hidden(snapshot.title.name)
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
        self._tasks: dict[str, Any] = {}  # of the bars, by part
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

    def finish(self, snapshot: Snapshot) -> None:  # noqa: ARG002 - all of them are shown
        self._stage = ""
        self.show()
        if not self._unfinished:
            self._live.stop()

    def print(self, text: str) -> None:
        if self._parts:
            self._live.console.print(escape_hidden(text), markup=False, highlight=False)
        else:
            note(text)

    def show_stage(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{escape_hidden(text)}")
        sys.stderr.flush()
