"""A progress bar for the caller: in a notebook, or on a line of a terminal."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from edgen.api.objects.html import escape
from edgen.core.text import escape_for_terminal
from edgen.execution.progress import Event, Listener, Snapshot, StatusEvent, describe_progress

_NOTES = 5  # most remarks that a notebook shows, the last ones


def find_progress(wanted: bool | None) -> list[Listener]:
    """Return a progress display if `wanted`; for None, in a terminal or notebook only."""
    if wanted is False:
        return []
    ipython: Any = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        return [NotebookProgress()]
    return [TerminalProgress()] if wanted or sys.stderr.isatty() else []


class NotebookProgress:
    """A bar in the output of a cell."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._event: StatusEvent | None = None
        self._notes: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, StatusEvent) and event.snapshot.activity is not None:
            self._event = event
        elif event.name == "note":
            self._notes = [*self._notes, event.text][-_NOTES:]
        else:
            return
        if self._event is None:
            return
        ipython = importlib.import_module("IPython.display")
        shown = ipython.HTML(_render_bar(self._event.snapshot, self._notes))
        if self._handle is None:
            self._handle = ipython.display(shown, display_id=True)
        else:
            self._handle.update(shown)


def _render_bar(snapshot: Snapshot, notes: list[str]) -> str:
    """Return a bar with its figures, and the remarks."""
    bar = f'<progress value="{snapshot.counts.ended}" max="{max(snapshot.counts.planned, 1)}"></progress>'
    count = f"{snapshot.counts.ended:,}/{snapshot.counts.planned:,}"
    remarks = "".join(f"<br>{escape(note)}" for note in notes)
    figures = escape(describe_progress(snapshot))
    return f"<div><b>{escape(snapshot.title.name)}</b> {bar} {count} <small>{figures}</small>{remarks}</div>"


class TerminalProgress:
    """A line that changes, on stderr."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, StatusEvent) and event.snapshot.activity is not None:
            now, end = event.snapshot, "\n" if event.name == "finish" else ""
            text = (
                f"{now.title.name}: {now.counts.ended:,}/{now.counts.planned:,} · "
                f"{describe_progress(now)}{end}"
            )
        elif event.name == "note":
            text = f"{escape_for_terminal(event.text)}\n"
        else:
            return
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
