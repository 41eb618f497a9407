"""Replies of the trained side with what stands before them: what formats of single responses share.

A trainer imitates the reply, or shows the policy its prompt and has it reply; the run's own is then the reference that a
judge compares with. Where the family knows scenes, as exercises, a prompt holds the scene alone and what the trained side
knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from edgen.core.values import Role, Scenario, Turn
from edgen.export.chat import Chat, Message
from edgen.export.conversation_rows import Repeats
from edgen.export.format import Rows, rows_from
from edgen.export.rows import Item, LeftOut, Row, SplitName
from edgen.store.run_reader import AcceptedConversation, RunReader

# What `describe` gives, for cards.
DESCRIBED = (
    "what edgen's reward needs: index (the number of the scenario), id (the conversation), turn (which reply of the "
    "trained side comes next, from 0), role (whom the policy plays), and as JSON texts before (the turns so far) and "
    "scenario (its values)"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A place where the trained side speaks: `prompt` and `before` are what was said so far, as messages and as turns.
    `reference` is what the run's conversation says there, or one of the alternatives to it; None where it only ends
    there. `labels` are what it does by that; `flagged`: the other side said that it makes no sense; `served`: it
    was given to another turn, and said here again. `scenario` is with the values of the scene, `drawn` as it was drawn."""

    id: str
    split: SplitName
    role: Role
    turn: int
    prompt: list[Message]
    before: tuple[Turn, ...]
    reference: str | None
    scenario: Scenario
    drawn: Scenario
    labels: tuple[str, ...] = ()
    flagged: bool = False
    served: bool = False

    def describe(self) -> dict[str, Any]:
        """What `edgen.env.replies` is told of the place."""
        return {
            "index": self.drawn.index,
            "id": self.id,
            "turn": self.turn,
            "role": self.role,
            "before": msgspec.json.encode(self.before).decode(),
            "scenario": msgspec.json.encode(self.drawn.values).decode(),
        }


def replies(run: RunReader, chat: Chat) -> Iterator[Reply | LeftOut]:
    """Every place where the trained side speaks, each prompt once a scenario.

    Conversations of one scenario share their beginnings, which would otherwise weigh more than the rest.
    """
    repeats = Repeats()
    for found in responses(run, chat):
        if isinstance(found, Reply) and repeats.has(found.drawn.index, found.prompt):
            yield LeftOut("repeated")
        else:
            yield found


def responses(run: RunReader, chat: Chat) -> Iterator[Reply | LeftOut]:
    """Every reply of the trained side, with the alternatives to it where the chat has those; prompts may repeat."""
    for conversation in run.conversations():
        one = conversation.candidate
        if chat.scenes is None:
            yield from _by_message(conversation, chat)
            continue
        scenes = chat.scenes.of(chat.assistant, conversation.scenario, one.turns, one.outcome)
        for turn, (at, scene) in enumerate(scenes.items()):
            prompt = chat.prompt_in(scene, one.turns[:at])
            said = one.turns[at]
            given = chat.scenes.responses(said)
            place = Place(conversation, turn, one.turns[:at], scene.scenario)
            for response in (said, *said.alternatives) if chat.alternatives else (said,):
                found = _reply(place, chat, prompt, response)
                served = isinstance(found, Reply) and response not in given
                yield replace(found, served=True) if isinstance(found, Reply) and served else found


class Place(NamedTuple):
    """Where a reply stands: which of the trained side's in its conversation, and what was said before."""

    conversation: AcceptedConversation
    turn: int
    before: tuple[Turn, ...]
    scenario: Scenario


def _reply(place: Place, chat: Chat, prompt: list[Message], said: Turn | None) -> Reply | LeftOut:
    """The reply that a turn is; `said` is None where the trained side only ends the conversation."""
    told = (
        prompt if said is None and chat.actions is None else None if said is None else chat.tell(prompt, said)
    )
    if told is None:
        return LeftOut("no_actions")
    conversation = place.conversation
    return Reply(
        id=conversation.candidate.id,
        split=conversation.split,
        role=chat.assistant,
        turn=place.turn,
        prompt=told,
        before=place.before,
        reference=None if said is None else said.text,
        scenario=place.scenario,
        drawn=conversation.scenario,
        labels=() if said is None else said.labels,
        flagged=said is not None and said.data.get("nonsense") is True,
    )


def _by_message(conversation: AcceptedConversation, chat: Chat) -> Iterator[Reply | LeftOut]:
    """The replies of a whole conversation, a message of the trained side each: turns running are one."""
    one = conversation.candidate
    messages = chat.messages(one.turns, conversation.scenario, one.ended_by)
    spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    own = _own_turns(one.turns, chat.assistant)
    for turn, at in enumerate(spoken):
        # Behind the last of its turns the trained side may only have ended the conversation.
        speaks = turn < len(own)
        before = one.turns[: own[turn]] if speaks else one.turns
        place = Place(conversation, turn, before, conversation.scenario)
        said = msgspec.structs.replace(one.turns[own[turn]], text=messages[at]["content"]) if speaks else None
        yield _reply(place, chat, messages[:at], said)


def rows_of_replies(make: Callable[[Reply], dict[str, Any]]) -> Rows:
    """The rows of a format that makes one of each prompt at which the run's conversation says something that a reply can be
    compared with: the reference."""

    def row(found: Reply) -> Item:
        if found.reference is None:
            return LeftOut("only_ends")
        return Row(found.split, make(found), scenario=found.scenario)

    return rows_from(replies, row)


def _own_turns(turns: Sequence[Turn], role: Role) -> list[int]:
    """Where runs of a role's turns begin, which are one message each."""
    runs = groupby(range(len(turns)), key=lambda at: turns[at].role == role)
    return [next(places) for own, places in runs if own]
