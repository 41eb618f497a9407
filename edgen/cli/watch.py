"""How a command's work is bounded and watched: its deadline, its log, its metrics file."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edgen.cli.ending import at_end
from edgen.cli.output import note, send_notes
from edgen.errors import LockedError, ShortError

if TYPE_CHECKING:
    from edgen.cli.deadline import Deadline
    from edgen.cli.log import Log
    from edgen.cli.metrics import MetricsFile
    from edgen.cli.watched import Figures, Watched
    from edgen.engine.session import Session
    from edgen.rundir import RunDir

UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="HH:MM", help="Stop cleanly at that time, local; exit code 4, resumable."
    ),
]
ForOption = Annotated[
    str | None,
    typer.Option("--for", metavar="SPAN", help="Stop cleanly after that long, as in 3h or 45m; exit code 4."),
]
LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="What goes to stderr: lines for people, or one JSON event a line."),
]
MetricsOption = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Keep figures there in Prometheus' text format (*.prom)."),
]


class Watch:
    """As the options say; one for a command, over all that it does. To be made before anything else is, so that
    what goes wrong then is logged as well.

    Raises UsageError for options that cannot be followed.
    """

    def __init__(
        self,
        until: str | None = None,
        for_: str | None = None,
        log_format: Literal["text", "json"] = "text",
        metrics: Path | None = None,
    ) -> None:
        self.deadline: Deadline | None = None
        self.log: Log | None = None
        self.run: str | None = None
        self.things: Literal["conversations", "pairs"] = "conversations"
        self.started = time.time()
        self._metrics: MetricsFile | None = None
        self._unwritten = False  # the metrics file, when last tried
        self._parts: dict[str, Figures] = {}
        self._stack = contextlib.ExitStack()  # closed at the command's end
        if log_format == "json":
            from edgen.cli.log import Log

            self.log = Log()
            send_notes(self.log.note)
            self._stack.enter_context(self.log.heard())
        at_end(self._ended)
        if metrics is not None:
            from edgen.cli.metrics import MetricsFile

            self._metrics = MetricsFile(metrics)
        if until is not None or for_ is not None:
            from edgen.cli.deadline import Deadline

            self.deadline = Deadline(until, for_)

    def begin(self, run: str, things: Literal["conversations", "pairs"] = "conversations") -> None:
        """The run's name, and what is made of it."""
        self.run, self.things = run, things
        if self.log is not None:
            self.log.run = run

    def check_deadline(self) -> None:
        """Raise StoppedError where it has gone by; to be asked once something is known to be left to do."""
        if self.deadline is not None:
            self.deadline.check()

    def keep(self, rundir: RunDir, arm: str | None) -> None:
        """Tell of a run, or of an arm, at which nothing is done, as it stands."""
        if self.log is not None or self._metrics is not None:
            from edgen.cli.watched import Figures
            from edgen.ledger import run_status

            self._parts[arm or ""] = part = Figures(run_status(rundir.ledger), arm, self.log)
            part.begun()

    def part(self, session: Session, name: str) -> Watched:
        """What is watched of a session: the run's one, or an arm's, whose name goes on behind the run's."""
        from edgen.cli.watched import Watched

        part = self._parts.get(name)
        if not isinstance(part, Watched):
            arm = name.removeprefix(f"{self.run}.") if name.startswith(f"{self.run}.") else None
            self._parts[name] = part = Watched(session, arm, self.log)
            part.begun()
        return part

    def write_metrics(self, state: str = "running", code: int | None = None) -> None:
        """Bring the metrics file up to date, if there is to be one; `code`: the command's exit code, at its end."""
        if self._metrics is None:
            return
        from edgen.cli.watched import families

        written = families(self, self._parts.values(), self._metrics.last_success, state, code)
        problem = self._metrics.write(written)
        if problem is not None and not self._unwritten:
            note(
                f"edgen: {self._metrics.path}: the metrics file cannot be written ({problem}); the run goes on."
            )
        self._unwritten = problem is not None

    def _ended(self, code: int, text: str | None, trace: str | None) -> bool:
        """The command's end: the last line of the log, the last figures; whether there is a log."""
        state = {ShortError.exit_code: "short", LockedError.exit_code: "running"}.get(code, "stopped")
        if code == 0 and text is None:  # an end that needs a sentence is no end of the run
            state = "complete"
        if code != LockedError.exit_code:  # else the figures are those of whoever holds the run
            self.write_metrics(state, code)
        if self.log is None:
            return False
        send_notes(None)
        self._stack.close()
        facts: dict[str, Any] = {
            "state": state,
            "exit_code": code,
            "seconds": round(time.time() - self.started, 3),
        }
        if len(self._parts) == 1:
            facts |= next(iter(self._parts.values())).figures()
        elif self._parts:
            facts["arms"] = {part.arm or name: part.figures() for name, part in self._parts.items()}
        if trace is not None:
            facts["traceback"] = trace
        self.log.tell("end", text, **facts)
        return True
