"""A progress bar where the caller is: in a notebook, or on a line of a terminal."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from edgen.api.objects.html import progress_html
from edgen.api.supervision.snapshot import StatusEvent, describe_progress
from edgen.core.events import Event, Listener
from edgen.core.safe_text import safe

_NOTES = 5  # of the last remarks that a notebook shows


def find_progress(wanted: bool | None) -> list[Listener]:
    """What shows the progress: one where `wanted`, or where a person looks and None was said; else none."""
    if wanted is False:
        return []
    if _is_notebook():
        return [NotebookProgress()]
    return [TerminalProgress()] if wanted or sys.stderr.isatty() else []


def _is_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


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
        if self._event is not None:
            self._show(progress_html(self._event.snapshot, self._notes))

    def _show(self, text: str) -> None:
        ipython = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = ipython.display(ipython.HTML(text), display_id=True)
        else:
            self._handle.update(ipython.HTML(text))


class TerminalProgress:
    """A line that changes, on stderr."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, StatusEvent) and event.snapshot.activity is not None:
            snapshot = event.snapshot
            end = "\n" if event.name == "finish" else ""
            self._write(
                f"\r\x1b[K{snapshot.name}: {snapshot.ended}/{snapshot.planned} · {describe_progress(snapshot)}{end}"
            )
        elif event.name == "note":
            self._write(f"\r\x1b[K{safe(event.text)}\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
