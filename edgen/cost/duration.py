"""Estimated duration of a job, from the estimated calls, its limits, and the service's speed.

The seconds of a call are taken from earlier runs of the same model; else from the call that `edgen doctor`
timed, scaled by tokens; else from usual values. Concurrent calls are limited by `limits.in_flight`, by the
server's slots, and to one per conversation, because turns are sequential. Limits per minute apply, too.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from edgen.config import BackendConfig, Job
from edgen.core.errors import EdgenError
from edgen.core.text import format_compact_duration
from edgen.cost.history import EarlierRun
from edgen.cost.usage import CallUse, UsageRange, find_asked_backends
from edgen.protocols.base import find_rounds
from edgen.providers import find_calls
from edgen.store.call_times import CallTime, read_call_time
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder

# Low, expected and high: seconds until the first token, then tokens a second.
FIRST_TOKEN = (0.2, 0.6, 3.0)
TOKENS_A_SECOND = (120.0, 50.0, 15.0)
# Low, expected and high share of a timed call's seconds before its first token, at most the usual seconds.
WAITED = (0.6, 0.3, 0.0)
BUSIER = (0.7, 1.0, 2.0)  # low, expected and high factor on latencies measured earlier
OWN_WORK = 0.0005  # seconds of edgen's own work per call, on one core
START = 1.0  # seconds to start and to write the files
_CALLS = 2_000  # maximum examined calls of an earlier run


class Duration(NamedTuple):
    """Low, expected and high seconds, and the basis in words."""

    low: float
    expected: float
    high: float
    basis: str

    def plus(self, other: Duration) -> Duration:
        """Return the sum of two successive durations."""
        return Duration(
            self.low + other.low, self.expected + other.expected, self.high + other.high, self.basis
        )


def estimate_duration(
    job: Job,
    uses: UsageRange,
    conversations: float,
    runs: Sequence[EarlierRun],
) -> Duration:
    """Return the duration of `uses` by single calls, for this many conversations. Reads the calls that `edgen
    doctor` timed."""
    if not uses.high.calls:
        return Duration(0.0, 0.0, 0.0, "time: no call is left")
    seen, backends = _compute_mean_latency(runs), find_asked_backends(job).values()
    timed = _find_timed(backends)
    if seen is not None:
        latencies = [seen * factor for factor in BUSIER]
        basis = (
            f"time: a call took {seen:.2g} s in those runs, and may take from {BUSIER[0]:g} to "
            f"{BUSIER[2]:g} times that"
        )
    elif all(find_calls(backend).simulated for backend in backends):
        told = max(float(getattr(backend, "latency_ms", 0.0)) for backend in backends)
        latencies = [told / 1000] * 3
        basis = "time: the simulator's own latency"
    elif timed:
        latencies = [
            sum(_scale(one, level, share) for one in timed) / len(timed) * factor
            for level, share, factor in zip(uses, WAITED, BUSIER, strict=True)
        ]
        basis = f"time: {_describe_timed(timed)}, so {latencies[0]:.2g} to {latencies[2]:.2g} s a call"
    else:
        latencies = [
            first + level.completion / level.calls / speed if level.calls else 0.0
            for level, first, speed in zip(uses, FIRST_TOKEN, TOKENS_A_SECOND, strict=True)
        ]
        basis = (
            "time: assumed, "
            f"{latencies[0]:.2g} to {latencies[2]:.2g} s a call; `edgen doctor` times one call to your "
            "service"
        )
    rounds = find_rounds(job).total
    slots = [one.slots for one in timed if one.slots is not None]
    at_once = max(1.0, min(float(job.limits.in_flight), conversations / rounds, *map(float, slots)))
    low, expected, high = (
        _estimate_seconds(job, level, latency, at_once)
        for level, latency in zip(uses, latencies, strict=True)
    )
    return Duration(low, expected, high, f"{basis}; up to {at_once:,.0f} calls at once")


def _find_timed(backends: Iterable[BackendConfig]) -> list[CallTime]:
    """Return the timed call of each backend; an empty list unless all have one."""
    found = []
    for backend in backends:
        each = [read_call_time(server, os.environ) for server in backend.each_server]
        known = [one for one in each if one is not None]
        if len(known) < len(each):
            return []
        slots = [one.slots for one in known if one.slots is not None]
        worst = max(known, key=lambda one: one.seconds)
        found.append(msgspec.structs.replace(worst, slots=sum(slots) if len(slots) == len(each) else None))
    return found


def _scale(timed: CallTime, used: CallUse, waited: float) -> float:
    """Scale a timed call to the mean answer of `used`; return the seconds. `waited`: share of the timed
    seconds before the first token."""
    if not used.calls:
        return 0.0
    first = min(timed.seconds * waited, FIRST_TOKEN[1])
    return first + used.completion / used.calls * (timed.seconds - first) / max(1, timed.completion)


def _describe_timed(timed: Sequence[CallTime]) -> str:
    slowest = max(timed, key=lambda one: one.seconds)
    ago = max(0.0, time.time() - min(one.at for one in timed))
    when = "just now" if ago < 60 else f"{format_compact_duration(ago)} ago"
    return f"a call of {slowest.completion:,} tokens took {slowest.seconds:.2g} s with `edgen doctor` {when}"


def _estimate_seconds(job: Job, used: CallUse, latency: float, at_once: float) -> float:
    limits = job.limits
    needed = [used.calls * latency / at_once, latency, used.calls * OWN_WORK]
    if limits.requests_per_minute is not None:
        needed.append(used.calls / limits.requests_per_minute * 60)
    if limits.tokens_per_minute is not None:
        needed.append(used.tokens / limits.tokens_per_minute * 60)
    return START + max(needed)


def _compute_mean_latency(runs: Sequence[EarlierRun]) -> float | None:
    """Return the mean seconds per call in earlier runs of the same models; None without any."""
    latencies: list[float] = []
    for run in runs:
        if run.other_model is not None:
            continue
        try:
            with LedgerReader(RunFolder(run.path).ledger) as view:
                latencies += itertools.islice(view.iterate_latencies(), _CALLS)
        except EdgenError:  # it was readable a moment ago
            continue
    return sum(latencies) / len(latencies) if latencies else None
