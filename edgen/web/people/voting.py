"""The pages of people who vote: two conversations of one scenario, or two responses to one turn, without
their origins. People choose the better one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import UsageError
from edgen.core.pair import digest_texts
from edgen.core.values import Turn
from edgen.preferences.vote_units import (
    VotePair,
    VoteTexts,
    choose_first_side,
    has_vote_pairs,
    list_vote_pairs,
    read_texts,
)
from edgen.store.run_reader import RunReader
from edgen.store.votes import VOTE, is_vote, make_vote_unit, read_votes_of_file
from edgen.web.people.answering import TaskKind
from edgen.web.people.invited_pages import InvitedTask
from edgen.web.people.tasks import RunUnits, Setup, read_setup
from edgen.web.sources import IndexedRun

_CHOICES = ("first", "second", "tie")
_LOOKED_AT = 200  # most conversations in which a page looks for several responses to a turn


def _list_tasks(run: IndexedRun) -> Sequence[str]:
    people = run.open_people()
    known = [] if people is None else [task for task in people.list_tasks_set() if is_vote(task)]
    if VOTE in known:
        return known
    with RunReader(run.path) as reader:
        return [VOTE, *known] if has_vote_pairs(reader, most=_LOOKED_AT) else known


def _list_units(reader: RunReader) -> Iterator[tuple[str, VotePair]]:
    return ((pair.unit, pair) for pair in list_vote_pairs(reader))


def _make_units(runs: Sequence[IndexedRun], _setup: Setup) -> RunUnits[VotePair, VoteTexts]:
    return RunUnits(runs, _list_units, read_texts)


def _show_unit(unit: str, texts: VoteTexts, person: str, _setup: Setup) -> Mapping[str, Any]:
    roles = list(dict.fromkeys(turn.role for turn in (*texts.before, *texts.a, *texts.b)))
    sides = {"a": texts.a, "b": texts.b}
    first = choose_first_side(unit, person)
    second = "b" if first == "a" else "a"
    return {
        "before": _describe_turns(texts.before, roles),
        "sides": [_describe_turns(sides[first], roles), _describe_turns(sides[second], roles)],
    }


def _describe_turns(turns: Sequence[Turn], roles: list[str]) -> list[dict[str, Any]]:
    return [{"role": turn.role, "side": roles.index(turn.role) % 4, "text": turn.text} for turn in turns]


def _read(
    fields: Mapping[str, Any], unit: str, person: str, _setup: Setup, _several: list[str]
) -> tuple[Any, Any]:
    first = choose_first_side(unit, person)
    shown = {"first": first}
    if fields["skip"]:
        return None, shown
    chosen = fields["choice"]
    if chosen not in _CHOICES:
        raise UsageError("Choose the first, the second, or neither.")
    second = "b" if first == "a" else "a"
    return {"choice": {"first": first, "second": second, "tie": "tie"}[chosen]}, shown


def set_up(reader: RunReader, before: Setup, known: Path | None) -> Setup:
    """Return the settings of voting on a run. `known`: a file of votes with the right choices. Raises
    UsageError for a run without pairs, DataError for the file."""
    if not has_vote_pairs(reader):
        raise UsageError(
            f"{reader.rundir.path}: there are no pairs to vote on. A pair is two accepted conversations of "
            "one scenario, or "
            "two responses to one turn: generate with `replicates: 2` or more, with `arms`, or with several "
            "responses; or name two runs of the same scenarios."
        )
    if known is None:
        return before
    right: dict[str, Any] = {}
    for (one, other), votes in read_votes_of_file(known, reader.scenario_of).items():
        a, b = sorted((reader.named(one), reader.named(other)), key=reader.place)
        for vote in votes:
            choice = vote.choice
            if a.id != one and choice != "tie":
                choice = "b" if choice == "a" else "a"
            texts = (vote.texts or "") if one == other else digest_texts(a, b)
            right[make_vote_unit(a.id, b.id, texts)] = choice
    return msgspec.structs.replace(before, known=right)


VOTING = TaskKind("vote", "vote.html.j2", _make_units, _show_unit, _read)


def _describe_hint(run: IndexedRun, task: str) -> str:
    named = " ".join((str(run.path), *read_setup(run.open_people(), task).against))
    return f"edgen pairs {named} --signal human makes labels of these votes."


FACE = InvitedTask("vote", _list_tasks, VOTING.routes, _describe_hint)
