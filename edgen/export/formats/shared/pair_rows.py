"""Common parts of the preference formats: labelled pairs as chosen and rejected messages, whole or one turn
of them.

A turn-level pair is a prompt that both conversations share and the trained side's next message in each.
Different pairs of a scenario can be the same row, since replicates can say the same. Such a row is written
once, and not at all if another pair prefers its rejected side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET

from edgen.plugin import Chat, LeftOut, Row, RunReader, Scenario
from edgen.plugin.formats import (
    ComparedPair,
    Evidence,
    Label,
    Message,
    Pair,
    PairSetOptions,
    Rows,
    SplitName,
    digest_of,
    evidence_of,
    rows_from,
    turns_left,
)

if TYPE_CHECKING:
    from edgen.plugin.protocols import Candidate

Preference = tuple[bytes, bytes]
"""Digests of all messages of the chosen and of the rejected side."""


@dataclass(frozen=True, slots=True)
class PreferredPair:
    """A labelled pair: both whole conversations, which differ at some turn."""

    pair: Pair  # as in pairs.jsonl
    label: Label  # label of the pair
    evidence: Evidence  # of the label
    chosen: list[Message]  # messages of the whole conversation
    rejected: list[Message]  # messages of the whole conversation
    scenario: Scenario  # scenario of both conversations

    @property
    def preference(self) -> Preference:
        return digest_of(self.chosen), digest_of(self.rejected)


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A turn-level pair: the messages that both sides share, and the assistant's next message in each.

    `at` is the index of that message; `whole` are both conversations.
    """

    whole: PreferredPair
    at: int
    prompt: list[Message]
    chosen: Message
    rejected: Message

    @property
    def id(self) -> str:
        return self.whole.pair.id

    @property
    def split(self) -> SplitName:
        return self.whole.pair.split

    @property
    def scenario(self) -> Scenario:
        return self.whole.scenario

    @property
    def preference(self) -> Preference:
        return digest_of([*self.prompt, self.chosen]), digest_of([*self.prompt, self.rejected])


T = TypeVar("T", PreferredPair, TurnPair)


def make_rows_of_pairs(
    read: Callable[[ComparedPair, Chat], T | LeftOut],
    make: Callable[[T], Row | LeftOut],
    *,
    of: Callable[[T], TurnPair | PreferredPair] = lambda pair: pair,
) -> Rows:
    """Return the rows of a format with one row per pair, as returned by `read`. `of`: the part of a pair that
    no other row repeats or reverses."""

    def iterate_pairs(run: RunReader, chat: Chat) -> Iterator[T | LeftOut]:
        for pairs in group_by_scenario(run):
            yield from keep_consistent([read(compared, chat) for compared in pairs], of)

    return rows_from(iterate_pairs, make)


def group_by_scenario(run: RunReader) -> Iterator[list[ComparedPair]]:
    """Yield the pairs of each scenario."""
    for _, pairs in groupby(run.compared(), key=lambda compared: compared.pair.scenario):
        yield [*pairs]


def keep_consistent(
    found: Sequence[T | LeftOut], of: Callable[[T], TurnPair | PreferredPair] = lambda pair: pair
) -> Iterator[T | LeftOut]:
    """Yield a scenario's pairs, with an omission for each that another pair reverses or an earlier one
    repeats. `of`: the part of a pair that counts."""
    stated: list[Preference | None] = [
        None if isinstance(pair, LeftOut) else of(pair).preference for pair in found
    ]
    known, given = {*stated}, set[Preference]()
    for pair, preference in zip(found, stated, strict=True):
        if preference is None:
            yield pair
        elif preference[::-1] in known:
            yield LeftOut("contradictory")
        elif preference in given:
            yield LeftOut("repeated")
        else:
            given.add(preference)
            yield pair


def read_preferred(compared: ComparedPair, chat: Chat) -> PreferredPair | LeftOut:
    """Return a labelled pair as chosen and rejected conversations."""
    pair = compared.pair
    if pair.label is None:
        return LeftOut(pair.left_out or "no_label")
    if is_near_end(compared, chat):
        return LeftOut("turns_left")
    first, second = compared.a, compared.b
    if pair.label.chosen == "b":
        first, second = second, first
    chosen, rejected = (list_messages(one, compared, chat) for one in (first, second))
    if isinstance(chosen, LeftOut):
        return chosen
    if isinstance(rejected, LeftOut):
        return rejected
    if of_responses(pair) and chosen[:-1] != rejected[:-1]:
        return LeftOut("actions_differ")
    if have_equal_messages(chosen, rejected):
        return LeftOut("identical")
    return PreferredPair(
        pair, pair.label, evidence_of(compared, pair.label), chosen, rejected, compared.scenario
    )


def of_responses(pair: Pair) -> bool:
    """Return whether a pair is of two responses to one turn."""
    return pair.a.response is not UNSET


def list_messages(side: Candidate, compared: ComparedPair, chat: Chat) -> list[Message] | LeftOut:
    """Return a side of a pair as messages: its conversation, or a single response with its prompt, as in
    `replies`."""
    if not of_responses(compared.pair):
        return chat.messages(side.turns, compared.scenario, side.ended_by)
    *_, response = side.turns
    before = side.turns[:-1]
    if response.role != chat.assistant:
        return LeftOut("differs_at_other_side")
    prompt: list[Message] | None
    if chat.scenes is None:
        prompt = chat.messages(side.turns, compared.scenario)[:-1]
    else:
        scene = chat.scenes.of(chat.assistant, compared.scenario, side.turns, side.outcome)[len(before)]
        prompt = chat.prompt_in(scene, before)
    prompt = chat.tell(prompt, response)
    if prompt is None:
        return LeftOut("no_actions")
    return [*prompt, {"role": "assistant", "content": response.text}]


def is_near_end(compared: ComparedPair, chat: Chat) -> bool:
    """Return whether fewer turns than required follow the one at which a pair parts."""
    least, prefix = chat.options.of(PairSetOptions).min_turns_left, compared.pair.prefix_turns
    return least is not None and turns_left(compared.a, compared.b, prefix) < least


def read_turn(compared: ComparedPair, chat: Chat) -> TurnPair | LeftOut:
    """Return a labelled pair as the trained side's messages at which the conversations part."""
    whole = read_preferred(compared, chat)
    if isinstance(whole, LeftOut):
        return whole
    both = zip(whole.chosen, whole.rejected, strict=False)
    at = next((i for i, (one, other) in enumerate(both) if one != other), None)
    if at is None:
        return LeftOut("one_ends")
    chosen, rejected = whole.chosen[at], whole.rejected[at]
    if chosen["role"] != "assistant" or rejected["role"] != "assistant":
        return LeftOut("differs_at_other_side")
    if have_equal_messages([chosen], [rejected]):
        return LeftOut("identical")
    if not at:
        return LeftOut("no_prompt")
    return TurnPair(whole, at, whole.chosen[:at], chosen, rejected)


def have_equal_messages(one: list[Message], other: list[Message]) -> bool:
    """Return whether two conversations are equal, ignoring white space at messages' ends, which many chat
    templates drop."""
    return len(one) == len(other) and all(
        x["role"] == y["role"] and x["content"].strip() == y["content"].strip()
        for x, y in zip(one, other, strict=True)
    )
