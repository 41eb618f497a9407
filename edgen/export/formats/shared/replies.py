"""Replies of the trained side with their contexts, for formats of single responses.

A trainer imitates the reply, or has the policy reply to its prompt; then the run's own reply is the judge's
reference. If the family has scenes, a prompt holds only the scene and the trained side's knowledge of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from edgen.plugin import Chat, LeftOut, Row, RunReader, Scenario, Turn
from edgen.plugin.families import Role
from edgen.plugin.formats import (
    AcceptedConversation,
    ActionOptions,
    Message,
    Repeats,
    ResponseOptions,
    Rows,
    SplitName,
    rows_from,
)

# The source of `describe`'s result, for cards.
DESCRIBED = (
    "what edgen's reward needs: index (the number of the scenario), id (the conversation), turn (which reply "
    "of the trained side comes next, from 0), role (of the policy), and as JSON texts before (the turns so "
    "far) and scenario (its values); split"
)


# A note about the reward, for cards.
REWARDED = (
    "JOB is the absolute path of a job about the same scenarios, such as the run's own job.yaml; its judge "
    "and its `limits` count. The reward is how probably the judge prefers the policy's reply to the "
    "reference: 1 or 0 where both orders agree, 0.5 where they do not. Any text that is not a reply of that "
    "role gets 0."
)


@dataclass(frozen=True, slots=True)
class TrainedReply:
    """A place where the trained side speaks."""

    id: str  # id of the conversation
    split: SplitName  # train or test
    role: Role  # the trained role
    turn: int  # number of the place, from 0
    prompt: list[Message]
    """The context as messages."""
    before: tuple[Turn, ...]
    """The context as turns."""
    reference: str | None
    """The run's reply at the place, or one of its alternatives; None if the conversation only ends there."""
    scenario: Scenario
    """The scenario with the values of the scene."""
    drawn: Scenario
    """The scenario as drawn."""
    labels: tuple[str, ...] = ()
    """The acts of the reply."""
    flagged: bool = False
    """The other side called it nonsense."""
    served: bool = False
    """The reply was given to another turn and is repeated here."""

    def describe(self) -> dict[str, Any]:
        """Return the facts on the place for `edgen.env.replies`."""
        return {
            "index": self.drawn.index,
            "id": self.id,
            "turn": self.turn,
            "role": self.role,
            "before": msgspec.json.encode(self.before).decode(),
            "scenario": msgspec.json.encode(self.drawn.values).decode(),
            "split": self.split,
        }


def iterate_replies(run: RunReader, chat: Chat) -> Iterator[TrainedReply | LeftOut]:
    """Yield every place where the trained side speaks, with each prompt once per scenario.

    Conversations of one scenario share their beginnings, which would otherwise be overweighted.
    """
    repeats = Repeats()
    for found in iterate_responses(run, chat):
        if isinstance(found, TrainedReply) and repeats.has(found.drawn.index, found.prompt):
            yield LeftOut("repeated")
        else:
            yield found


def iterate_responses(run: RunReader, chat: Chat) -> Iterator[TrainedReply | LeftOut]:
    """Yield every reply of the trained side, with its alternatives if the chat includes those; prompts may
    repeat."""
    for conversation in run.conversations():
        one = conversation.candidate
        if chat.scenes is None:
            yield from _list_message_replies(conversation, chat)
            continue
        scenes = chat.scenes.of(chat.assistant, conversation.scenario, one.turns, one.outcome)
        for turn, (at, scene) in enumerate(scenes.items()):
            prompt = chat.prompt_in(scene, one.turns[:at])
            said = one.turns[at]
            given = chat.scenes.responses(said)
            place = ReplyPlace(conversation, turn, one.turns[:at], scene.scenario)
            for response in (
                (said, *said.alternatives) if chat.options.of(ResponseOptions).alternatives else (said,)
            ):
                found = _make_reply(place, chat, prompt, response)
                served = isinstance(found, TrainedReply) and response not in given
                yield replace(found, served=True) if isinstance(found, TrainedReply) and served else found


class ReplyPlace(NamedTuple):
    """The place of a reply: its number among the trained side's, and the turns before it."""

    conversation: AcceptedConversation
    turn: int
    before: tuple[Turn, ...]
    scenario: Scenario


def _make_reply(
    place: ReplyPlace, chat: Chat, prompt: list[Message], said: Turn | None
) -> TrainedReply | LeftOut:
    """Return the reply of a turn; `said` is None if the trained side only ends the conversation."""
    told: list[Message] | None
    if said is not None:
        told = chat.tell(prompt, said)
    else:
        told = prompt if chat.options.of(ActionOptions).actions is None else None
    if told is None:
        return LeftOut("no_actions")
    if not told:
        return LeftOut("no_prompt")
    conversation = place.conversation
    return TrainedReply(
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


def _list_message_replies(conversation: AcceptedConversation, chat: Chat) -> Iterator[TrainedReply | LeftOut]:
    """Yield the replies of a whole conversation, one per message of the trained side: consecutive turns form
    one."""
    one = conversation.candidate
    messages = chat.messages(one.turns, conversation.scenario, one.ended_by)
    spoken = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    own = _find_own_turns(one.turns, chat.assistant)
    for turn, at in enumerate(spoken):
        # After its last turn, the trained side may only have ended the conversation.
        speaks = turn < len(own)
        before = one.turns[: own[turn]] if speaks else one.turns
        place = ReplyPlace(conversation, turn, before, conversation.scenario)
        said = msgspec.structs.replace(one.turns[own[turn]], text=messages[at]["content"]) if speaks else None
        yield _make_reply(place, chat, messages[:at], said)


def make_rows_of_replies(make: Callable[[TrainedReply], dict[str, Any]]) -> Rows:
    """Return the rows of a format with one row per prompt with a reference, the run's own reply."""

    def make_row(found: TrainedReply) -> Row | LeftOut:
        if found.reference is None:
            return LeftOut("only_ends")
        return Row(found.split, make(found), scenario=found.scenario)

    return rows_from(iterate_replies, make_row)


def _find_own_turns(turns: Sequence[Turn], role: Role) -> list[int]:
    """Return the index at which each run of consecutive turns of a role begins. Each run is one message."""
    runs = groupby(range(len(turns)), key=lambda at: turns[at].role == role)
    return [next(places) for own, places in runs if own]
