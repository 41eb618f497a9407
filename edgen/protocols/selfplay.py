"""Two agents talk, turn by turn, each blind to the other's secrets.

A turn that is none, or that a detector rejects, is asked for again. Replicates beyond the first may
leave replicate 0 at a turn: they ask its requests, which the ledger answers, up to there, and their own
from there on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from edgen.config import Branch
from edgen.model import Conversation, Rejection, RejectionReason, Scenario
from edgen.protocols.base import Conversing, Prompting, Rules
from edgen.protocols.stage import Entry, Played, Stage


def selfplay(
    scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
) -> Conversing:
    """Yields a turn's request at a time; returns the conversation, or why it is none."""
    stage = Stage(scenario, prompts, rules)
    start: list[Entry] = []
    branch = None
    if replicate > 0 and rules.branch is not None:
        chosen = _chosen(rules.branch, stage)
        base = yield from stage.play(0, [], until=chosen)
        branch = _drawn(rules, scenario, base) if chosen is None else _reached(chosen, base, rules)
        if branch is None:
            if base.rejection is not None:
                return base.rejection
            detail = f"replicate 0 has {len(base.entries)} turns, and ended before the one to branch at"
            return Rejection(RejectionReason.NO_BRANCH, detail)
        start = base.entries[:branch]
    played = yield from stage.play(replicate, start)
    if played.rejection is not None:
        return played.rejection
    if (none := _no_conversation(played)) is not None:
        return none
    probability = yield from stage.close(replicate, played)
    return Conversation(
        tuple(played.turns),
        probability,
        played.ended_by,
        repairs=_names(entry.repairs for entry in played.entries),
        flags=_names(entry.flags for entry in played.entries),
        branch=branch,
    )


def _names(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def _no_conversation(played: Played) -> Rejection | None:
    roles = {entry.turn.role for entry in played.entries}
    if len(played.entries) < 2:
        return Rejection(RejectionReason.TOO_SHORT, f"it has {len(played.entries)} turns")
    return Rejection(RejectionReason.ONE_SPEAKER, "only one side speaks") if len(roles) < 2 else None


def _chosen(branch: Branch, stage: Stage) -> int | None:
    """The turn, from 0, at which the job has replicate 0 left; None if it is to be drawn."""
    if branch.at == "sampled":
        return None
    opens = stage.first == branch.role.capitalize()
    return 2 * (branch.at - 1) + (0 if opens else 1)


def _reached(turn: int, base: Played, rules: Rules) -> int | None:
    """The turn, if replicate 0 came to it."""
    goes_on = base.ended_by is None and base.rejection is None
    return turn if goes_on and turn == len(base.entries) < rules.selfplay.max_turns else None


def _drawn(rules: Rules, scenario: Scenario, base: Played) -> int | None:
    """One of the turns that replicate 0 has, None if it has none of that role: the same for all
    replicates of a scenario, so that each can be compared with each."""
    assert rules.branch is not None
    role = rules.branch.role.capitalize()
    turns = [i for i, entry in enumerate(base.entries) if entry.turn.role == role]
    rng = random.Random(f"{rules.seed}/{scenario.index}/branch")  # noqa: S311 - reproducible, not secret
    return rng.choice(turns) if turns else None
