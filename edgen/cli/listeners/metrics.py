"""`--metrics FILE`: figures in Prometheus' text format, for a node exporter's textfile collector.

The format is version 0.0.4 of Prometheus' documentation ("Exposition formats"): a family's HELP and TYPE,
then its samples. The file is replaced as a whole, so that a reader never gets half of it.
"""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgen.cli.output import CommandEnd
from edgen.core.errors import UsageError
from edgen.core.files import Part, write_whole
from edgen.execution.progress import Activity, Snapshot

Labels = Mapping[str, str]
_LAST_SUCCESS = "edgen_last_success_time_seconds"
_MARK = b"# HELP edgen_"


class Families:
    """Figures by metric family, in order of first use."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, list[str]]] = {}

    def add(self, name: str, about: str, value: float | None, labels: Labels) -> None:
        """Add one sample; None adds none. The first sample of a family has its description, `about`."""
        if value is not None:
            written = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
            self.add_line(name, about, f"{name}{{{written}}} {_format(value)}")

    def add_each(
        self, name: str, about: str, values: Mapping[str, float], labels: Labels, label: str
    ) -> None:
        """Add a sample for each of the values, distinguished by `label`."""
        for key, value in values.items():
            self.add(name, about, value, {**labels, label: key})

    def add_line(self, name: str, about: str, line: str) -> None:
        """Add a sample that is already written."""
        self._families.setdefault(name, (about, []))[1].append(line)

    def render_text(self) -> str:
        lines: list[str] = []
        for name, (about, samples) in self._families.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            help_ = about.replace("\\", r"\\").replace("\n", r"\n")
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}", *samples]
        return "\n".join(lines) + "\n"


class MetricsFile:
    """The metrics file. Raises UsageError if it cannot be written, or if edgen did not write the existing
    file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._started = time.time()
        self._last_success = self._check()

    def _check(self) -> str | None:
        """Check that the file may be written; return the line about the last success from the existing
        file."""
        path, parent = self.path, self.path.parent
        if path.is_dir():
            raise UsageError(
                f"--metrics {path}: this is a folder; name a file in it, as in {path}/edgen.prom."
            )
        if not parent.is_dir():
            raise UsageError(
                f"--metrics {path}: {parent} is not a folder; make it, or name a file elsewhere."
            )
        try:
            Part(path).discard()
        except OSError as problem:
            raise UsageError(
                f"--metrics {path}: {parent} cannot be written ({problem.strerror}); name a file elsewhere."
            ) from None
        try:
            kind = path.stat().st_mode
            before = path.read_bytes() if stat.S_ISREG(kind) else None  # reading a pipe could block for ever
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise UsageError(f"--metrics {path}: it cannot be read ({problem.strerror}).") from None
        if before is None or (before and not before.startswith(_MARK)):
            raise UsageError(
                f"--metrics {path}: edgen did not write this file and does not replace it; name another file."
            )
        found = re.search(rb"^%s\{[^\n]*$" % _LAST_SUCCESS.encode(), before, re.MULTILINE)
        return None if found is None else found[0].decode(errors="replace")

    def write(
        self, run: str, unit: str, parts: Iterable[Snapshot], state: str, end: CommandEnd | None
    ) -> str | None:
        """Replace the file; return the reason if that fails. `end`: the command's end, None while it runs."""
        found, labels = Families(), {"run": run}
        for part in parts:
            _add_counts(found, part, unit, labels | ({"arm": part.title.arm} if part.title.arm else {}))
        found.add("edgen_start_time_seconds", "When this start began.", self._started, labels)
        states = {name: name == state for name in ("running", "complete", "short", "stopped")}
        about = "1 for the state of the run, 0 for the others."
        found.add_each("edgen_run_state", about, states, labels, "state")
        if end is not None and end.reason:
            about = "1 for the reason, in one word, why the command ended before all was made."
            found.add_each("edgen_stopped", about, {end.reason: 1}, labels, "reason")
        code = None if end is None else end.code
        found.add("edgen_exit_code", "Exit code of the command.", code, labels)
        about = "When a command with this file last ended with exit code 0."
        if code == 0:
            found.add(_LAST_SUCCESS, about, time.time(), labels)
        elif self._last_success is not None:
            found.add_line(_LAST_SUCCESS, about, self._last_success)
        try:
            # The temporary name does not end in .prom, so no exporter reads it.
            write_whole(self.path, found.render_text(), sync=False)
        except OSError as problem:
            return problem.strerror or str(problem)
        return None


def _add_counts(found: Families, part: Snapshot, unit: str, labels: Labels) -> None:
    """Add calls, tokens and cost: totals over all starts of the run."""
    counts = part.counts
    outcomes = {"accepted": counts.accepted, "rejected": counts.rejected.total()}
    outcomes |= {"failed": counts.failed.total(), "pending": counts.pending}
    tokens = {"prompt": part.total.tokens.prompt, "completion": part.total.tokens.completion}
    things, calls, cost = unit.capitalize(), part.total.calls, part.total.cost_usd
    found.add_each(f"edgen_{unit}", f"{things} by outcome.", outcomes, labels, "outcome")
    found.add("edgen_planned", f"{things} planned.", counts.planned, labels)
    found.add("edgen_calls_total", "Calls answered, of all starts.", calls.made, labels)
    found.add("edgen_retried_total", "Attempts beyond a call's first, of all starts.", calls.retried, labels)
    found.add_each("edgen_tokens_total", "Tokens of answers, of all starts.", tokens, labels, "kind")
    found.add("edgen_cost_usd_total", "US dollars that answers cost, of all starts.", cost, labels)
    if part.activity is not None:
        _add_activity(found, part.activity, counts.retried_by, labels)


def _add_activity(found: Families, now: Activity, retried_by: Mapping[str, int], labels: Labels) -> None:
    """Add the work under way, its speed limits, and the remaining budget."""
    about = "Calls made again, of this start, by how one failed or why an answer was not usable."
    found.add_each("edgen_retries_total", about, dict(sorted(retried_by.items())), labels, "kind")
    found.add(
        "edgen_timeouts_total", "Attempts without an answer in time, of this start.", now.timeouts, labels
    )
    about = "When this start last got an answer."
    found.add("edgen_last_answer_time_seconds", about, now.last_answer, labels)
    for flow in now.flows:
        own = {**labels, "role": flow.role} | ({"server": flow.server} if flow.server else {})
        found.add("edgen_in_flight", "Calls that a service works on.", flow.in_flight, own)
        about = "Calls that may be in flight, by how the service answers."
        found.add("edgen_window", about, flow.window, own)
        about = "1 while a service had asked to wait and has not answered since."
        found.add("edgen_circuit_open", about, flow.circuit_open, own)
    for name, worker in now.workers.items():
        own = {**labels, "worker": name}
        found.add("edgen_worker_in_flight", "Calls that a worker makes.", worker.running, own)
        found.add("edgen_worker_answers_total", "Answers that a worker brought.", worker.answers, own)
        found.add("edgen_worker_tasks_total", "Tasks that a worker brought to an end.", worker.ended, own)
        found.add("edgen_worker_lost", "1 once a worker was lost.", worker.lost, own)
    about = "Seconds of this start in which a service had asked to wait."
    found.add("edgen_paused_seconds_total", about, now.paused_seconds, labels)
    found.add("edgen_batches_out", "Provider batch jobs that are out.", now.batches_out, labels)
    about = "Requests in batches that have no answer."
    found.add("edgen_batch_requests_out", about, now.batch_requests_out, labels)
    about = "of the budget that are neither spent nor set aside for what is under way."
    found.add("edgen_budget_left_usd", f"US dollars {about}", now.budget_left_usd, labels)
    found.add("edgen_budget_left_tokens", f"Tokens {about}", now.budget_left_tokens, labels)


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _format(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
