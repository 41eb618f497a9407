"""`--log-format json`: events on stderr, one JSON object per line and nothing else.

Each object has `time` (ISO 8601, UTC), `run`, `event` and perhaps `text`, a sentence with the content of the
keys after it. Events are start · progress · rate · retries · circuit_opened · circuit_closed · batch · note ·
end; `end` is always the last line. No line holds a key, a prompt or an answer.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from edgen.core.text import escape_json_for_terminal
from edgen.execution.progress import Event, Snapshot, StatusEvent

_PROGRESS_EVERY = 10.0  # seconds


class JsonLog(logging.Handler):
    """A writer of events, and of messages that edgen or another package sends through `logging` or
    `warnings`."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._out = sys.stderr  # a plugin may replace it
        self._run: str | None = None
        self._next_progress = 0.0
        logging.getLogger().addHandler(self)
        logging.captureWarnings(True)

    def __call__(self, event: Event) -> None:
        if event.name == "run":
            self._run = event.facts["run"]
        elif isinstance(event, StatusEvent) and event.name != "start":
            if event.name == "progress":
                self._write_progress(event.snapshot)
        elif event.text or event.name not in ("stage", "note"):
            if event.name == "start":
                self._next_progress = time.monotonic() + _PROGRESS_EVERY
            self._write("note" if event.name == "stage" else event.name, event.text, event.facts)

    def end(
        self, text: str | None, facts: dict[str, Any], parts: Mapping[str, Snapshot], trace: str | None
    ) -> None:
        """Write the last line; `parts` are the last snapshots of the run, or of its arms."""
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(self)
        if len(parts) == 1:
            facts |= next(iter(parts.values())).as_json()
        elif parts:
            facts["arms"] = {arm: part.as_json() for arm, part in parts.items()}
        if trace is not None:
            facts["traceback"] = trace
        self._write("end", text or "", facts)

    def emit(self, record: logging.LogRecord) -> None:
        self._write("note", f"{record.name}: {record.getMessage()}", {})

    def _write_progress(self, snapshot: Snapshot) -> None:
        if time.monotonic() < self._next_progress or snapshot.activity is None:
            return
        self._next_progress = time.monotonic() + _PROGRESS_EVERY
        arm = {"arm": snapshot.title.arm} if snapshot.title.arm else {}
        speed = {"per_second": round(snapshot.activity.per_second, 2)}
        self._write("progress", "", arm | snapshot.as_json() | speed)

    def _write(self, event: str, text: str, facts: dict[str, Any]) -> None:
        """Write one line in ASCII, which no terminal interprets. Without a reader, the work continues."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "run": self._run, "event": event, **({"text": text} if text else {}), **facts}
        with contextlib.suppress(OSError, ValueError):
            self._out.write(escape_json_for_terminal(json.dumps(line)) + "\n")
            self._out.flush()
