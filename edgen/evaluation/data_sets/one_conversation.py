"""One scenario of a run, or one conversation of it, with all that the run knows: what was asked for, what was said,
what it came to, the raw replies, and the pairs it is in.

A run may be at work meanwhile; nothing is locked and nothing is written.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.core.errors import RunError, UsageError
from edgen.core.pair import Pair
from edgen.core.values import Reply, Role, Scenario, Turn
from edgen.families.base import record_id
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

_ID = re.compile(r"(?P<name>.*?)-?(?P<scenario>\d{1,15})(?:-r(?P<replicate>\d{1,7}))?")


class StoredReply(msgspec.Struct, frozen=True):
    """A raw reply, and which call it answers."""

    step: int
    attempt: int
    reply: Reply


class ConversationDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One planned conversation. `status` is accepted, rejected, failed or pending; `turns` and what follows are there
    where it was accepted. `replies` are the latest raw answers to each of its calls."""

    id: str
    arm: str
    replicate: int
    scenario: Scenario
    status: str
    reason: str | None = None
    detail: str | None = None
    turns: tuple[Turn, ...] = ()
    probability: float | None = None
    ended_by: Role | None = None
    simulated: bool = False
    provenance: dict[str, Any] | None = None
    replies: tuple[StoredReply, ...] = ()


class ConversationName(NamedTuple):
    """What somebody named: a scenario, or one conversation of it."""

    scenario: int
    name: str | None = None
    replicate: int | None = None


def find_conversations(
    rundir: RunFolder, named: str
) -> tuple[list[ConversationDetails], list[Pair], list[str]]:
    """The conversation of that id, or all of the scenario of that number: those of the arms side by side; the pairs
    they are in; and notes on what could not be read. Raises UsageError for what the run does not have."""
    rundir.require()
    with contextlib.ExitStack() as stack:
        readers = [(arm, stack.enter_context(RunReader(run.path))) for arm, run in rundir.begun_arms()]
        asked = _parse_name(rundir, named, readers)
        found = [
            _one(reader, arm, asked.scenario, replicate)
            for arm, reader in readers
            for replicate in range(reader.views[""].plan.replicates)
            if asked.name in (None, reader.name) and asked.replicate in (None, replicate)
        ]
    pairs, notes = _pairs(rundir, {one.id for one in found}, asked.scenario)
    return found, pairs, notes


def _parse_name(rundir: RunFolder, named: str, readers: Sequence[tuple[str, RunReader]]) -> ConversationName:
    """What `named` is in this run. Raises UsageError with what is near to it."""
    names = [reader.name for _, reader in readers]
    plan = readers[0][1].views[""].plan
    found = _ID.fullmatch(named.strip())
    scenario = int(found["scenario"]) if found else plan.first
    inside = plan.first <= scenario < plan.scenarios
    if found and inside and named.strip().isdecimal():
        return ConversationName(scenario)
    replicate = int(found["replicate"] or 0) if found else 0
    if found and inside and found["name"] in names and replicate < plan.replicates:
        identifier = record_id(found["name"], scenario, replicate)
        if named.strip() == identifier:
            return ConversationName(scenario, found["name"], replicate)
    raise UsageError(
        f"{rundir.path}: there is no conversation {named} in this run "
        f"(did you mean {_near(named, names, min(max(scenario, plan.first), plan.scenarios - 1), min(replicate, plan.replicates - 1))}?). "
        f"Name an id as the shards have it, or the number of a scenario, from {plan.first} to {plan.scenarios - 1}."
    )


def _near(named: str, names: Sequence[str], scenario: int, replicate: int) -> str:
    name = re.sub(r"-?\d+(-r\d+)?$", "", named.strip())
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.0) or names[:1]
    return record_id(close[0], scenario, replicate)


def _one(reader: RunReader, arm: str, index: int, replicate: int) -> ConversationDetails:
    view = reader.views[""]
    found = ConversationDetails(
        id=record_id(reader.name, index, replicate),
        arm=arm,
        replicate=replicate,
        scenario=reader.scenario(index),
        status="pending",
        replies=tuple(StoredReply(*answer) for answer in view.replies(index, replicate)),
    )
    outcome = view.outcome(index, replicate)
    if outcome is None:
        return found
    status, reason, detail = outcome
    data = view.record(index, replicate)
    if data is None:
        return msgspec.structs.replace(found, status=status, reason=reason, detail=detail)
    record = reader.read(data)
    return msgspec.structs.replace(
        found,
        status=status,
        turns=record.turns,
        probability=record.conversation.probability,
        ended_by=record.conversation.ended_by,
        simulated=record.provenance.simulated,
        provenance=msgspec.to_builtins(record.provenance),
    )


def _pairs(rundir: RunFolder, ids: set[str], scenario: int) -> tuple[list[Pair], list[str]]:
    """The pairs that these conversations are in, and why they cannot be told where they cannot."""
    if not rundir.pairs.exists():
        return [], []
    try:
        with RunReader(rundir.path) as reader:
            own = (pair for pair in reader.pairs() if pair.scenario == scenario)
            return [pair for pair in own if {pair.a.id, pair.b.id} & ids], []
    except RunError as problem:
        return [], [f"Its pairs cannot be told: {problem}"]
