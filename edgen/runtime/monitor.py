"""Monitor of a session at work: reports each change, and the state several times a second."""

from __future__ import annotations

import asyncio
import copy
import os
import socket
import time
from collections import Counter
from typing import Any

import msgspec

from edgen.core.events import Event, Events
from edgen.core.text import round_usd
from edgen.core.version import __version__
from edgen.execution.client.admission import Admission
from edgen.execution.client.server_queue import Lane
from edgen.execution.session import RunSession
from edgen.runtime.snapshot import (
    Activity,
    Flow,
    Snapshot,
    StatusEvent,
    Title,
    UsageCounts,
    add_usage,
    count_usage_before,
)
from edgen.store.ledger import OPEN

_LOOK_EVERY = 0.25  # seconds
_RATE_EVERY = 1.0
_BATCHES_EVERY = 5.0


def start_event(snapshot: Snapshot, kept: int) -> StatusEvent:
    """Return the first event: the amount of work."""
    planned = snapshot.counts.planned
    facts: dict[str, Any] = {"planned": planned, "pending": planned - kept, "kept": kept}
    facts |= {"pid": os.getpid(), "host": socket.gethostname(), "edgen": __version__}
    return StatusEvent("start", facts=_with_arm(snapshot.title.arm, facts), snapshot=snapshot)


def _with_arm(arm: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"arm": arm, **facts} if arm else facts


class Monitor:
    """One session's. What a ledger does not keep (retries by kind, pauses) is this start's."""

    def __init__(self, session: RunSession, title: Title, events: Events) -> None:
        self.session = session
        self._title = title
        self._events = events
        self._status = session.ledger.read_status()
        self._before = count_usage_before(self._status)
        self._began = self._looked = time.monotonic()
        self._ended_before = session.counts.ended - session.counts.kept
        self._seen = 0  # answers
        self._open: set[tuple[str, str]] = set()  # role and server
        self._rates: dict[tuple[str, str], tuple[int, str]] = {}
        self._retries: Counter[str] = Counter()
        self._next_rate = self._next_batches = 0.0
        self._activity = Activity()
        session.events.listen(lambda event: self._tell(event.name, event.text, **event.facts))

    def start(self) -> None:
        """Report the amount of work."""
        status, tally = self._status, self.session.counts
        known = status.accepted + sum(status.rejected.values())
        same = status.plan.fingerprint == self.session.fingerprint
        self._events.send(start_event(self._make_snapshot(), min(known, tally.planned) if same else 0))
        if count := self.session.ledger.damaged_outcomes:
            self.note(
                f"{self.session.ledger.path}: what was made of stored answers was damaged in {count:,} "
                "places. It is made again from these answers, without a call."
            )

    async def watch(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._look()
            self._send("progress")

    def finish(self) -> None:
        """Look for the last time, while the ledger is open."""
        self._next_rate = self._next_batches = 0.0
        self._look()
        self._send("finish")

    def say_stage(self, stage: str) -> None:
        """Report a stage after the last answer."""
        self._tell("stage", stage)
        self._send("progress")

    def note(self, text: str) -> None:
        """Report a remark."""
        self._tell("note", text)

    def _tell(self, event: str, text: str = "", /, **facts: Any) -> None:
        self._events.send(Event(event, text, _with_arm(self._title.arm, facts)))

    def _send(self, name: str) -> None:
        self._events.send(StatusEvent(name, snapshot=self._make_snapshot()))

    def _look(self) -> None:
        """Find the changes since the last look, and report them."""
        now, tally, admissions = time.monotonic(), self.session.counts, self.session.admissions
        paused = self._activity.paused_seconds
        for role, admission in admissions.items():
            paused += now - self._looked if admission.paused_for > 0 else 0.0
            for server, lane in _name_lanes(admission):
                self._look_at_circuit(role, server, admission, lane)
        last_answer = time.time() if tally.made > self._seen else self._activity.last_answer
        self._seen, self._looked = tally.made, now
        self._activity = msgspec.structs.replace(
            self._activity, paused_seconds=paused, last_answer=last_answer
        )
        if now >= self._next_batches:
            self._next_batches = now + _BATCHES_EVERY
            self._count_batches()
        if now >= self._next_rate:
            self._next_rate = now + _RATE_EVERY
            self._tell_rates(admissions)

    def _look_at_circuit(self, role: str, server: str, admission: Admission, lane: Lane) -> None:
        pause, name = admission.pause_of(lane), (role, server)
        named = {"role": role} | ({"server": server} if server else {})
        left_out = not lane.usable if server else pause > 0
        if left_out and name not in self._open:
            self._open.add(name)
            if server:
                text = f"{server} does not answer; its calls go to the other servers, and it is tried again."
            else:
                text = f"The service asks to wait {pause:.0f} s; nothing is sent to it meanwhile."
            self._tell("circuit_opened", text, **named, seconds=round(pause, 1))
        elif not left_out and name in self._open and lane.usable:
            self._open.discard(name)
            self._tell("circuit_closed", f"Calls go to {server or 'the service'} again.", **named)

    def _tell_rates(self, admissions: dict[str, Admission]) -> None:
        for role, admission in admissions.items():
            for server, lane in _name_lanes(admission):
                rate = (lane.window.size, admission.find_circuit_state(lane))
                if self._rates.get((role, server)) != rate:
                    self._rates[role, server] = rate
                    self._tell(
                        "rate",
                        role=role,
                        **({"server": server} if server else {}),
                        window=lane.window.size,
                        in_flight=lane.running,
                        circuit=rate[1],
                        paused_seconds=round(admission.pause_of(lane), 1),
                    )
        if new := self.session.counts.retried_by - self._retries:
            self._retries = self.session.counts.retried_by.copy()
            self._tell("retries", **dict(new))

    def _count_batches(self) -> None:
        """Count the sent batches in the ledger, which must be open."""
        out = self.session.ledger.out
        try:
            batches = out.list_batches(*OPEN)
            requests = sum(out.read_sums(batch.number)[0] for batch in batches)
        except Exception:  # noqa: BLE001 - a ledger that cannot be read stops the run, not its figures
            return
        self._activity = msgspec.structs.replace(
            self._activity, batches_out=len(batches), batch_requests_out=requests
        )

    def _make_snapshot(self) -> Snapshot:
        session, tally = self.session, self.session.counts
        flows = tuple(
            Flow(role, server, lane.running, min(lane.window.size, admission.window), not lane.usable)
            for role, admission in session.admissions.items()
            for server, lane in _name_lanes(admission)
        )
        passed = time.monotonic() - self._began
        made = tally.ended - tally.kept - self._ended_before
        return Snapshot(
            title=self._title,
            counts=copy.deepcopy(tally),
            total=add_usage([UsageCounts.of(tally), self._before]),
            activity=msgspec.structs.replace(
                self._activity,
                in_flight=session.scheduler.in_flight,
                timeouts=session.timeouts,
                per_second=made / passed if passed > 0 else 0.0,
                wait=session.scheduler.paused_for,
                flows=flows,
                workers=session.scheduler.workers,
                **self._compute_budget_left(),
            ),
        )

    def _compute_budget_left(self) -> dict[str, Any]:
        """Return the part of the budget that is neither spent nor reserved for calls under way."""
        budget, limits = self.session.budget, self.session.limits
        if budget is None:
            return {}
        cost, tokens = limits.max_cost, limits.max_tokens
        spent, aside = budget.spent, budget.reserved
        return {
            "budget_left_usd": None if cost is None else round_usd(max(0.0, cost - spent.cost - aside.cost)),
            "budget_left_tokens": None if tokens is None else max(0, tokens - spent.tokens - aside.tokens),
        }


def _name_lanes(admission: Admission) -> list[tuple[str, Lane]]:
    """Return the lanes of a service, by address if it has several; the name of a single one is empty."""
    several = len(admission.lanes) > 1
    return [(address if several else "", lane) for address, lane in admission.lanes.items()]
