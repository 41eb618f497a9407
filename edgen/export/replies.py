"""Replies of the trained side with what stands before them: what the formats for online methods share.

A trainer shows the policy a prompt and has it reply; the run's own reply at that place is the reference that a judge
compares with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec

from edgen.core.values import Role, Scenario, Turn
from edgen.export.chat import Chat, Message
from edgen.export.conversation_rows import Repeats
from edgen.export.rows import LeftOut, SplitName
from edgen.store.run_reader import RunReader

# What `describe` gives, for cards.
DESCRIBED = (
    "what edgen's reward needs: index (the number of the scenario), id (the conversation), turn (which reply of the "
    "trained side comes next, from 0), role (whom the policy plays), and as JSON texts before (the turns so far) and "
    "scenario (its values)"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A place where the trained side speaks: `prompt` and `before` are what was said so far, as messages and as turns.
    `reference` is what the run's conversation says there; None where it only ends there."""

    id: str
    split: SplitName
    role: Role
    turn: int
    prompt: list[Message]
    before: tuple[Turn, ...]
    reference: str | None
    scenario: Scenario

    def describe(self) -> dict[str, Any]:
        """What `edgen.env.replies` is told of the place."""
        return {
            "index": self.scenario.index,
            "id": self.id,
            "turn": self.turn,
            "role": self.role,
            "before": msgspec.json.encode(self.before).decode(),
            "scenario": msgspec.json.encode(self.scenario.values).decode(),
        }


def replies(run: RunReader, chat: Chat) -> Iterator[Reply | LeftOut]:
    """Every place where the trained side speaks, each prompt once a scenario.

    Conversations of one scenario share their beginnings, which would otherwise weigh more than the rest.
    """
    repeats = Repeats()
    for conversation in run.conversations():
        one = conversation.candidate
        messages = chat.messages(one.turns, conversation.scenario, one.ended_by)
        spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        own = _own_turns(one.turns, chat.assistant)
        for turn, at in enumerate(spoken):
            if repeats.has(conversation.scenario.index, messages[:at]):
                yield LeftOut("repeated")
                continue
            # Behind the last of its turns the trained side may only have ended the conversation.
            before = one.turns[: own[turn]] if turn < len(own) else one.turns
            yield Reply(
                id=one.id,
                split=conversation.split,
                role=chat.assistant,
                turn=turn,
                prompt=messages[:at],
                before=before,
                reference=messages[at]["content"] if turn < len(own) else None,
                scenario=conversation.scenario,
            )


def replies_with_reference(run: RunReader, chat: Chat) -> Iterator[tuple[Reply, str] | LeftOut]:
    """Those at which the run's conversation says something that a reply can be compared with."""
    for found in replies(run, chat):
        if isinstance(found, LeftOut):
            yield found
        elif found.reference is None:
            yield LeftOut("only_ends")
        else:
            yield found, found.reference


def _own_turns(turns: Sequence[Turn], role: Role) -> list[int]:
    """Where runs of a role's turns begin, which are one message each."""
    runs = groupby(range(len(turns)), key=lambda at: turns[at].role == role)
    return [next(places) for own, places in runs if own]
