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
        base = yield from stage.play(0, [], until=_as_far_as(rules.branch, stage))
        branch = _leaves(rules, scenario, base)
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


def _as_far_as(branch: Branch, stage: Stage) -> int | None:
    """How many turns of replicate 0 must be known to tell where to leave it; None: all it has."""
    if branch.at == "sampled":
        return None
    own_first = stage.first == branch.role.capitalize()
    return 2 * (branch.at - 1) + (1 if own_first else 2)


def _leaves(rules: Rules, scenario: Scenario, base: Played) -> int | None:
    """The turn, from 0, at which replicates leave replicate 0; None where it has none such."""
    branch = rules.branch
    assert branch is not None
    role = branch.role.capitalize()
    turns = [i for i, entry in enumerate(base.entries) if entry.turn.role == role]
    if branch.at != "sampled":
        return turns[branch.at - 1] if len(turns) >= branch.at else None
    # One turn for all replicates of a scenario, so that each can be compared with each.
    rng = random.Random(f"{rules.seed}/{scenario.index}/branch")  # noqa: S311 - reproducible, not secret
    return rng.choice(turns) if turns else None
