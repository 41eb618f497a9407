"""A conversation of agents, from its start or from the turn at which it leaves replicate 0.

A turn that is none, or that a detector rejects, is asked for again. Replicates beyond the first may
leave replicate 0 at a turn: they ask its requests, which the ledger answers, up to there, and their own
from there on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import islice

from edgen.config import Branch
from edgen.core.values import Conversation, Rejection, RejectionReason
from edgen.protocols.base import Conversing
from edgen.protocols.selfplay import MOST_TURNS
from edgen.protocols.stage import Played, PlayedTurn, Stage


def play(stage: Stage, replicate: int) -> Conversing:
    """Yields a turn's request at a time; returns the conversation, or why it is none."""
    start: list[PlayedTurn] = []
    branch = None
    if replicate > 0 and stage.rules.branch is not None:
        turn = _chosen_turn(stage.rules.branch, stage)
        base = yield from stage.play(0, [], until=turn)
        branch = _drawn_turn(stage, base) if turn is None else _reached_turn(turn, base, stage)
        if branch is None:
            if base.rejection is not None:
                return base.rejection
            detail = f"replicate 0 has {len(base.entries)} turns, and ended before the one to branch at"
            return Rejection(RejectionReason.NO_BRANCH, detail)
        start = base.entries[:branch]
    played = yield from stage.play(replicate, start)
    if played.rejection is not None:
        return played.rejection
    if (rejection := _too_little(played)) is not None:
        return rejection
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


def _too_little(played: Played) -> Rejection | None:
    """Why what was played is no conversation, None if it is one."""
    if len(played.entries) < 2:
        return Rejection(RejectionReason.TOO_SHORT, f"it has {len(played.entries)} turns")
    if len({entry.turn.role for entry in played.entries}) < 2:
        return Rejection(RejectionReason.ONE_SPEAKER, "only one side speaks")
    return None


def _chosen_turn(branch: Branch, stage: Stage) -> int | None:
    """The turn, from 0, at which the job has replicate 0 left; None if it is to be drawn."""
    if branch.at == "sampled":
        return None
    turns = (number for number in range(MOST_TURNS) if stage.speaker(number).lower() == stage.branch_role)
    return next(islice(turns, branch.at - 1, None), MOST_TURNS)


def _reached_turn(turn: int, base: Played, stage: Stage) -> int | None:
    """The turn, if replicate 0 came to it."""
    goes_on = base.ended_by is None and base.rejection is None
    return turn if goes_on and turn == len(base.entries) < stage.settings.max_turns else None


def _drawn_turn(stage: Stage, base: Played) -> int | None:
    """One of the turns that replicate 0 has, None if it has none of that role: the same for all
    replicates of a scenario, so that each can be compared with each."""
    turns = [i for i, entry in enumerate(base.entries) if entry.turn.role.lower() == stage.branch_role]
    rng = random.Random(f"{stage.rules.seed}/{stage.scenario.index}/branch")  # noqa: S311 - reproducible, not secret
    return rng.choice(turns) if turns else None
