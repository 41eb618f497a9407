"""A session that is being watched: what the log is told of it, and its figures for the metrics file."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from edgen import __version__
from edgen.cli.metrics import LAST_SUCCESS, Families
from edgen.engine.tally import Tally
from edgen.ledger import OPEN, RunStatus

if TYPE_CHECKING:
    from edgen.cli.log import Log
    from edgen.cli.watch import Watch
    from edgen.engine.session import Session
    from edgen.events import Event
    from edgen.limits import Admission

LOOK_EVERY = 0.25  # seconds
_RATE_EVERY = 1.0
_METRICS_EVERY = 5.0


class Figures:
    """How a run stands, in figures: those that its ledger has. `arm` is None where the run has none.

    `tally` counts the outcomes of the run, and what this start has done; `before` is what other starts did."""

    def __init__(
        self, status: RunStatus, arm: str | None, log: Log | None, tally: Tally | None = None
    ) -> None:
        self.arm = arm
        self._log = log
        self.before = status.counts
        if tally is None:
            tally = Tally(planned=status.planned)
            tally.take(status.accepted, status.rejected, status.failed)
        self.tally = tally

    def begun(self) -> None:
        """Tell the log what there is to do."""
        self._tell_start(self.tally.kept)

    def _tell_start(self, kept: int) -> None:
        planned = self.tally.planned
        facts = {"planned": planned, "pending": planned - kept, "kept": kept}
        self._tell("start", **facts, pid=os.getpid(), host=socket.gethostname(), edgen=__version__)

    def _tell(self, event: str, text: str | None = None, /, **facts: Any) -> None:
        if self._log is not None:
            self._log.tell(event, text, **({} if self.arm is None else {"arm": self.arm}), **facts)

    def figures(self) -> dict[str, Any]:
        """As JSON: those of the run, and under `now` what this start did."""
        tally, before = self.tally, self.before
        now: dict[str, Any] = {
            "calls": {"made": tally.made, "replayed": tally.replayed, "retried": tally.retried},
            "tokens": {"prompt": tally.prompt_tokens, "completion": tally.completion_tokens},
            "cost_usd": tally.cost_usd,
        }
        return {
            "planned": tally.planned,
            "accepted": tally.accepted,
            "rejected": dict(tally.rejected),
            "failed": dict(tally.failed),
            "pending": tally.pending,
            "calls": {
                **now["calls"],
                "made": before.made + tally.made,
                "retried": before.retried + tally.retried,
            },
            "tokens": self._tokens(),
            "cost_usd": self._cost(),
            "now": now,
        }

    def _tokens(self) -> dict[str, int]:
        return {
            "prompt": self.before.prompt_tokens + self.tally.prompt_tokens,
            "completion": self.before.completion_tokens + self.tally.completion_tokens,
        }

    def _cost(self) -> float | None:
        known = [cost for cost in (self.before.cost_usd, self.tally.cost_usd) if cost is not None]
        return round(sum(known), 12) if known else None

    def add_to(self, found: Families, labels: dict[str, str], things: str) -> None:
        """Add them to a metrics file's."""
        tally, before = self.tally, self.before
        add = found.add
        ended = {
            "accepted": tally.accepted,
            "rejected": tally.rejected.total(),
            "failed": tally.failed.total(),
        }
        for outcome, count in (*ended.items(), ("pending", tally.pending)):
            add(
                f"edgen_{things}",
                "gauge",
                f"{things.capitalize()} by outcome.",
                count,
                labels | {"outcome": outcome},
            )
        add("edgen_planned", "gauge", f"{things.capitalize()} planned.", tally.planned, labels)
        add(
            "edgen_calls_total", "counter", "Calls answered, of all starts.", before.made + tally.made, labels
        )
        add("edgen_retried_total", "counter", "Attempts beyond a call's first, of all starts.",
            before.retried + tally.retried, labels)  # fmt: skip
        for kind, count in self._tokens().items():
            add(
                "edgen_tokens_total",
                "counter",
                "Tokens of answers, of all starts.",
                count,
                labels | {"kind": kind},
            )
        add(
            "edgen_cost_usd_total",
            "counter",
            "US dollars that answers cost, of all starts.",
            self._cost(),
            labels,
        )


class Watched(Figures):
    """A session's. Calls, tokens and cost are those of all starts of the run together; what the ledger does not
    keep (retries by kind, pauses) is this start's."""

    def __init__(self, session: Session, arm: str | None, log: Log | None) -> None:
        self.session = session
        self._status = session.ledger.status()
        super().__init__(self._status, arm, log, session.tally)
        self.paused = 0.0  # seconds in which a service had asked to wait
        self.last_answer: float | None = None
        self._made = 0
        self._looked = time.monotonic()
        self._open: set[str] = set()
        self._rates: dict[str, tuple[int, str]] = {}
        self._retries: Counter[str] = Counter()
        self._next_rate = 0.0
        self._out = (0, 0)

    # -- for the log

    def begun(self) -> None:
        status = self._status
        known = status.accepted + sum(status.rejected.values())
        same = status.plan.fingerprint == self.session.fingerprint
        self._tell_start(min(known, self.tally.planned) if same else 0)

    def look(self) -> None:
        """Note what has changed since the last look, and tell of it."""
        now = time.monotonic()
        tally = self.session.tally
        if tally.made > self._made:
            self._made, self.last_answer = tally.made, time.time()
        for role, admission in self.session.admissions.items():
            self._look_at(role, admission, now - self._looked)
        self._looked = now
        if now < self._next_rate:
            return
        self._next_rate = now + _RATE_EVERY
        for role, admission in self.session.admissions.items():
            rate = (admission.window, admission.circuit)
            if self._rates.get(role) != rate:
                self._rates[role] = rate
                self._tell(
                    "rate",
                    role=role,
                    window=admission.window,
                    in_flight=admission.running,
                    circuit=admission.circuit,
                    paused_seconds=round(admission.paused_for, 1),
                )
        if new := tally.retried_by - self._retries:
            self._retries = tally.retried_by.copy()
            self._tell("retries", **dict(new))

    def close(self) -> None:
        """The last look, while the ledger is open."""
        self._next_rate = 0.0
        self.look()
        self.count_batches()

    def _look_at(self, role: str, admission: Admission, passed: float) -> None:
        pause = admission.paused_for
        if pause > 0:
            self.paused += passed
            if role not in self._open:
                self._open.add(role)
                self._tell(
                    "circuit_opened",
                    f"The service asks to wait {pause:.0f} s; nothing is sent to it meanwhile.",
                    role=role,
                    seconds=round(pause, 1),
                )
        elif role in self._open and admission.circuit == "closed":
            self._open.discard(role)
            self._tell("circuit_closed", "Calls go to the service again.", role=role)

    @property
    def logged(self) -> bool:
        """Whether there is a log to tell."""
        return self._log is not None

    def pass_on(self, event: Event) -> None:
        """Tell what the engine says."""
        self._tell(event.name, event.text, **event.facts)

    def progress(self, per_second: float) -> None:
        """Tell how it stands."""
        self._tell("progress", **self.figures(), per_second=round(per_second, 2))

    def figures(self) -> dict[str, Any]:
        return {**super().figures(), "in_flight": self.session.driver.in_flight}

    # -- for the metrics file

    def count_batches(self) -> None:
        """Look in the ledger, which is to be open, what batches are out."""
        out = self.session.ledger.out
        try:
            batches = out.batches(*OPEN)
            self._out = len(batches), sum(out.sums(batch.number)[0] for batch in batches)
        except Exception:  # noqa: BLE001 - a ledger that cannot be read stops the run, not its figures
            return

    def add_to(self, found: Families, labels: dict[str, str], things: str) -> None:
        super().add_to(found, labels, things)
        for kind, count in sorted(self.tally.retried_by.items()):
            found.add("edgen_retries_total", "counter", "Attempts beyond a call's first, of this start, by what went wrong.",
                count, labels | {"kind": kind})  # fmt: skip
        found.add("edgen_last_answer_time_seconds", "gauge", "When this start last got an answer.",
            self.last_answer, labels)  # fmt: skip
        self._add_flow(found, labels)

    def _add_flow(self, found: Families, labels: dict[str, str]) -> None:
        """What is under way, how fast it may go, and what is left to spend."""
        add, session = found.add, self.session
        for role, admission in session.admissions.items():
            own = labels | {"role": role}
            add("edgen_in_flight", "gauge", "Calls that a service works on.", admission.running, own)
            add("edgen_window", "gauge", "Calls that may be in flight, by how the service answers.",
                admission.window, own)  # fmt: skip
            add("edgen_circuit_open", "gauge", "1 while a service had asked to wait and has not answered since.",
                admission.circuit != "closed", own)  # fmt: skip
        add("edgen_paused_seconds_total", "counter", "Seconds of this start in which a service had asked to wait.",
            self.paused, labels)  # fmt: skip
        batches, requests = self._out
        add("edgen_batches_out", "gauge", "Provider batch jobs that are out.", batches, labels)
        add("edgen_batch_requests_out", "gauge", "Requests in batches that have no answer.", requests, labels)
        if session.budget is not None:
            spent, aside, limits = session.budget.spent, session.budget.reserved, session.limits
            about = "of the budget that are neither spent nor set aside for what is under way."
            if limits.max_cost is not None:
                left = max(0.0, limits.max_cost - spent.cost - aside.cost)
                add("edgen_budget_left_usd", "gauge", f"US dollars {about}", left, labels)
            if limits.max_tokens is not None:
                left = max(0, limits.max_tokens - spent.tokens - aside.tokens)
                add("edgen_budget_left_tokens", "gauge", f"Tokens {about}", left, labels)


def families(
    watch: Watch, parts: Iterable[Figures], last_success: str | None, state: str, code: int | None
) -> Families:
    """All there is to tell, of all parts of the run. `code`: the exit code, once the command has ended."""
    found = Families()
    labels = {"run": watch.run or ""}
    for part in parts:
        part.add_to(found, labels if part.arm is None else labels | {"arm": part.arm}, watch.things)
    found.add("edgen_start_time_seconds", "gauge", "When this start began.", watch.started, labels)
    for name in ("running", "complete", "short", "stopped"):
        about = "1 for the state in which the run is, 0 for the others."
        found.add("edgen_run_state", "gauge", about, name == state, labels | {"state": name})
    found.add("edgen_exit_code", "gauge", "What the command ended with.", code, labels)
    about = "When a command with this file last ended with exit code 0."
    if code == 0:
        found.add(LAST_SUCCESS, "gauge", about, time.time(), labels)
    elif last_success is not None:
        found.add_line(LAST_SUCCESS, "gauge", about, last_success)
    return found


async def watching(watch: Watch, part: Watched) -> None:
    """Look again and again, and keep the metrics file up to date, until cancelled."""
    next_metrics = 0.0
    while True:
        part.look()
        if time.monotonic() >= next_metrics:
            part.count_batches()
            watch.write_metrics()
            next_metrics = time.monotonic() + _METRICS_EVERY
        await asyncio.sleep(LOOK_EVERY)
