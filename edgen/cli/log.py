"""`--log-format json`: what happens, on stderr, one JSON object a line and nothing else.

Each has `time` (ISO 8601, UTC), `run`, `event` and, where there is one, `text`, a sentence that says the same as
the keys behind it. Events are start · progress · rate · retries · circuit_opened · circuit_closed · batch · note ·
end; `end` is the last line, once, whatever happened. No key, no prompt and no answer is in any of them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from edgen.cli.output import safe_json


class Log:
    """Writes events. `run` is the run's name, None until the job was read."""

    def __init__(self) -> None:
        self.run: str | None = None

    def tell(self, event: str, text: str | None = None, **facts: Any) -> None:
        """Write one event. ASCII alone, so that no terminal obeys it; where nobody reads, nothing is lost."""
        line: dict[str, Any] = {"time": _now(), "run": self.run, "event": event}
        if text is not None:
            line["text"] = text
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(safe_json(json.dumps(line | facts)) + "\n")
            sys.stderr.flush()

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """While the body runs, what this or another package says by way of `logging` or `warnings` is a note."""
        handler = _Notes(self)
        logging.getLogger().addHandler(handler)
        logging.captureWarnings(True)
        try:
            yield
        finally:
            logging.captureWarnings(False)
            logging.getLogger().removeHandler(handler)

    def note(self, text: str) -> None:
        """A remark that would be a line for a person."""
        self.tell("note", text)


class _Notes(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.note(f"{record.name}: {record.getMessage()}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
