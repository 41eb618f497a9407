"""A conversation played on from turns that it has: a rollout.

What an outcome is worth as credit for one turn is estimated by playing on from it several times and taking
the mean, as Monte Carlo methods do (Sutton and Barto 2018, chapter 5). Math-Shepherd (Wang et al. 2024, arXiv
2312.08935) does so for the steps of a proof, VinePPO (Kazemnejad et al. 2024, arXiv 2410.01679) for those of
any long answer; REFUEL (Gao et al. 2024, arXiv 2410.04612) draws two responses at a turn and plays on from
each.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.values import Conversation, Role, TaskId, Turn
from edgen.protocols.base import Conversing
from edgen.protocols.stage import Played, PlayedTurn, Stage


def play_on(stage: Stage, task: TaskId, turns: Sequence[Turn], ended_by: Role | None) -> Conversing:
    """Yield the requests of the turns after `turns`, then that of the closing question if there is one;
    return the whole conversation, or a rejection.

    `ended_by`: who ended it with the last of `turns`, None if it continues. Each role gets the same brief and
    history as before.
    """
    played = Played([PlayedTurn(turn) for turn in turns], ended_by)
    if ended_by is None:
        played = yield from stage.play(task, played.entries)
    if played.rejection is not None:
        return played.rejection
    probability = yield from stage.close(task, played)
    return Conversation(tuple(played.turns), probability, played.ended_by)
