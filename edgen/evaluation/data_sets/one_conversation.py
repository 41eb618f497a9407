"""One scenario or conversation of a run, with everything in the run about it: scenario, turns, outcome, raw
replies, labels and pairs.

The run may be at work: this module locks and writes nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from edgen.core.errors import InputError, RunError, UsageError
from edgen.core.pair import Pair
from edgen.core.values import Event, Reply, Role, Scenario, Turn
from edgen.families.base import make_record_id
from edgen.preferences.rollout_evidence import RolloutOutcome, find_rollouts
from edgen.store.layers import LabelsByLayer, LayerJoin
from edgen.store.pairs_file import list_pair_sets, list_places_of_pairs, read_pairs_of_scenario, use_pair_set
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

MOST_REPLICATES = 1_000  # replicates of a scenario that are shown even without an outcome
_ID = re.compile(r"(?P<name>.*?)-?(?P<scenario>\d{1,15})(?:-r(?P<replicate>\d{1,7}))?")


class StoredReply(msgspec.Struct, frozen=True):
    """A raw reply, and the call that it answers."""

    step: int
    attempt: int
    reply: Reply


class ConversationDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One planned conversation."""

    id: str  # as in the shards
    arm: str  # empty without arms
    replicate: int  # from 0
    scenario: Scenario  # its values
    status: str  # accepted, rejected, failed or pending
    reason: str | None = None  # why it was not accepted
    detail: str | None = None  # the reason's details, for people
    turns: tuple[Turn, ...] = ()  # this and all fields up to `events` are set for accepted ones
    probability: float | None = None  # of the family's event; None if unknown
    ended_by: Role | None = None  # the speaker of the end marker
    simulated: bool = False  # no model wrote it
    provenance: dict[str, Any] | None = None  # how it was made
    outcome: dict[str, Any] | None = None  # its result, if its protocol states one
    events: tuple[Event, ...] = ()  # events other than turns
    replies: tuple[StoredReply, ...] = ()  # the latest raw reply to each call
    labels: LabelsByLayer = {}  # labels of each layer


def find_conversations(
    rundir: RunFolder, named: str
) -> tuple[list[ConversationDetails], list[Pair], dict[str, list[RolloutOutcome]], list[str]]:
    """Return the conversation with the id `named`, or all conversations of the scenario with this number, in
    all arms; their pairs; the pairs' rollouts by pair's id; and notes on unreadable parts.

    Raises UsageError for an unknown name.
    """
    rundir.require()
    with contextlib.ExitStack() as stack:
        readers = [(arm, stack.enter_context(RunReader(run.path))) for arm, run in rundir.list_begun_arms()]
        scenario, name, only = _parse_name(rundir, named.strip(), readers)
        found = [
            _read_details(reader, arm, scenario, replicate)
            for arm, reader in readers
            if name in (None, reader.name)
            for replicate in _list_replicates(reader, scenario, only)
        ]
    found, notes = _with_labels(rundir, found)
    pairs, rollouts, more = _find_pairs(rundir, {one.id for one in found}, scenario)
    return found, pairs, rollouts, notes + more


def _parse_name(
    rundir: RunFolder, named: str, readers: Sequence[tuple[str, RunReader]]
) -> tuple[int, str | None, int | None]:
    """Return the named scenario; for a conversation also the run's name and the replicate, else None for
    both. Raises UsageError, which suggests an id."""
    names = [reader.name for _, reader in readers]
    plan = readers[0][1].views[""].plan
    scenario, replicate = plan.first, 0
    if found := _ID.fullmatch(named):
        scenario, replicate = int(found["scenario"]), int(found["replicate"] or 0)
        if plan.first <= scenario < plan.scenarios:
            if named.isdecimal():
                return scenario, None, None
            whole = named == make_record_id(found["name"], scenario, replicate)
            if whole and found["name"] in names and replicate < plan.replicates:
                return scenario, found["name"], replicate
    name = re.sub(r"-?\d+(-r\d+)?$", "", named)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.0) or names[:1]
    scenario, replicate = (
        min(max(scenario, plan.first), plan.scenarios - 1),
        min(replicate, plan.replicates - 1),
    )
    raise UsageError(
        f"{rundir.path}: there is no conversation {named} in this run "
        f"(did you mean {make_record_id(close[0], scenario, replicate)}?). "
        f"Name an id as the shards have it, or the number of a scenario, from {plan.first} to "
        f"{plan.scenarios - 1}."
    )


def _list_replicates(reader: RunReader, scenario: int, only: int | None) -> Iterable[int]:
    """Return the replicates to show: `only` or, if None, all. If more than MOST_REPLICATES are planned, only
    those with an outcome, or the first."""
    view = reader.views[""]
    if only is not None:
        return range(only, min(only + 1, view.plan.replicates))
    if view.plan.replicates <= MOST_REPLICATES:
        return range(view.plan.replicates)
    known = (task for task in view.read_outcomes(scenario) if isinstance(task, int))
    return sorted(task for task in known if task < view.plan.replicates) or [0]


def _read_details(reader: RunReader, arm: str, index: int, replicate: int) -> ConversationDetails:
    view = reader.views[""]
    found = ConversationDetails(
        id=make_record_id(reader.name, index, replicate),
        arm=arm,
        replicate=replicate,
        scenario=reader.scenario(index),
        status="pending",
        replies=tuple(StoredReply(*answer) for answer in view.read_replies(index, replicate)),
    )
    outcome, data = view.read_outcome(index, replicate), view.read_record(index, replicate)
    if outcome is None:
        return found
    status, reason, detail = outcome
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
        outcome=record.conversation.outcome,
        events=record.conversation.events,
    )


def _with_labels(
    rundir: RunFolder, found: Sequence[ConversationDetails]
) -> tuple[list[ConversationDetails], list[str]]:
    """Return the conversations of one scenario with their labels, and notes on missing labels."""
    labelled = []
    try:
        for arm in dict.fromkeys(one.arm for one in found):
            with LayerJoin(rundir.arm(arm)) as layers:
                for one in (one for one in found if one.arm == arm):
                    labels = layers.of(one.scenario.index, one.id, one.turns) if one.turns else {}
                    labelled.append(msgspec.structs.replace(one, labels=labels))
    except InputError as problem:
        return list(found), [f"Its labels cannot be read: {problem}"]
    return labelled, []


def _find_pairs(
    rundir: RunFolder, ids: set[str], scenario: int
) -> tuple[list[Pair], dict[str, list[RolloutOutcome]], list[str]]:
    """Return the pairs with these conversations, their rollouts, and notes on missing pairs. A pair in
    several sets is listed once for each label."""
    found: list[Pair] = []
    said: list[str] = []
    for place in list_places_of_pairs(rundir):
        for name in list_pair_sets(place):
            use_pair_set(place, name)
            try:
                pairs = [pair for pair in read_pairs_of_scenario(place, scenario) if _list_ids(pair) & ids]
            except RunError as problem:
                said.append(f"Its pairs cannot be read: {problem}")
                continue
            known = [(pair.id, pair.label) for pair in found]
            found += [pair for pair in pairs if (pair.id, pair.label) not in known]
    rollouts: dict[str, list[RolloutOutcome]] = {}
    try:
        if any(pair.signals.rollouts is not UNSET for pair in found):
            with RunReader(rundir.path) as reader:
                rollouts = {pair.id: played for pair in found if (played := find_rollouts(reader, pair))}
    except RunError as problem:
        said.append(f"Its rollouts cannot be read: {problem}")
    return found, rollouts, said


def _list_ids(pair: Pair) -> set[str]:
    """Return the ids of a pair's conversations. In pairs between runs of one name, the run precedes a side's
    id; it is removed."""
    return {side.id.rpartition("/")[2] for side in (pair.a, pair.b)}
