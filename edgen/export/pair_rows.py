"""What the formats of preferences share: labelled pairs as chosen and rejected messages, whole or one turn of them.

A turn-level pair is a prompt that both conversations share and the trained side's next message in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import msgspec

from edgen.core.pair import Label, Pair
from edgen.export.chat import Chat, Message
from edgen.export.evidence import Evidence, evidence_of
from edgen.export.format import Rows
from edgen.export.rows import Item, LeftOut, SplitName
from edgen.store.run_reader import Compared, RunReader

T = TypeVar("T")

# Reasons why `completions` leaves out a completion, not a pair.
OF_COMPLETIONS = frozenset({"contradictory", "repeated"})


@dataclass(frozen=True, slots=True)
class Preferred:
    """A labelled pair: both whole conversations, which differ somewhere."""

    pair: Pair
    label: Label
    evidence: Evidence
    chosen: list[Message]
    rejected: list[Message]


@dataclass(frozen=True, slots=True)
class TurnPair:
    """A turn-level pair: the messages that both sides share, and the assistant's next one in each.

    `at` is the index of that message; `whole` are both conversations.
    """

    whole: Preferred
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


@dataclass(frozen=True, slots=True)
class Completion:
    """One assistant message after a prompt; `label` is whether it was chosen."""

    id: str
    split: SplitName
    prompt: list[Message]
    completion: Message
    label: bool
    evidence: Evidence


def rows_of_pairs(read: Callable[[Compared, Chat], T | LeftOut], make: Callable[[T], Item]) -> Rows:
    """The rows of a format that makes one of each pair, as `read` reads it."""

    def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
        for compared in run.compared():
            found = read(compared, chat)
            yield found if isinstance(found, LeftOut) else make(found)

    return rows


def read_preferred(compared: Compared, chat: Chat) -> Preferred | LeftOut:
    """A pair with its label as chosen and rejected conversations."""
    pair = compared.pair
    if pair.label is None:
        return LeftOut(pair.left_out or "no_label")
    first, second = compared.a, compared.b
    if pair.label.chosen == "b":
        first, second = second, first
    chosen = chat.messages(first.turns, compared.scenario)
    rejected = chat.messages(second.turns, compared.scenario)
    if say_the_same(chosen, rejected):
        return LeftOut("identical")
    return Preferred(pair, pair.label, evidence_of(compared, pair.label), chosen, rejected)


def read_turn(compared: Compared, chat: Chat) -> TurnPair | LeftOut:
    """A pair with its label as the one message of the trained side at which the conversations part."""
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
    if say_the_same([chosen], [rejected]):
        return LeftOut("identical")
    return TurnPair(whole, at, whole.chosen[:at], chosen, rejected)


def say_the_same(one: list[Message], other: list[Message]) -> bool:
    """Whether two conversations say the same; many chat templates drop white space at a message's ends."""
    return len(one) == len(other) and all(
        x["role"] == y["role"] and x["content"].strip() == y["content"].strip()
        for x, y in zip(one, other, strict=True)
    )


def completions(run: RunReader, chat: Chat) -> Iterator[Completion | LeftOut]:
    """Every completion that turn-level pairs choose or reject, once, in the order of the pairs.

    One that is chosen in one pair and rejected in another after the same prompt says nothing, and is left
    out. The run is read twice; what is remembered of a completion is 16 bytes and a flag.
    """
    chosen, rejected = _verdicts(run, chat)
    given: set[bytes] = set()
    for compared in run.compared():
        found = read_turn(compared, chat)
        if isinstance(found, LeftOut):
            yield found
            continue
        for message, label in ((found.chosen, True), (found.rejected, False)):
            key = digest_of([*found.prompt, message])
            if key in chosen and key in rejected:
                yield LeftOut("contradictory")
            elif key in given:
                yield LeftOut("repeated")
            else:
                given.add(key)
                name = f"{found.id}-{'chosen' if label else 'rejected'}"
                yield Completion(name, found.split, found.prompt, message, label, found.whole.evidence)


def _verdicts(run: RunReader, chat: Chat) -> tuple[set[bytes], set[bytes]]:
    """The completions that are chosen somewhere, and those that are rejected somewhere."""
    chosen: set[bytes] = set()
    rejected: set[bytes] = set()
    for compared in run.compared():
        found = read_turn(compared, chat)
        if isinstance(found, TurnPair):
            chosen.add(digest_of([*found.prompt, found.chosen]))
            rejected.add(digest_of([*found.prompt, found.rejected]))
    return chosen, rejected


def digest_of(messages: Sequence[Message]) -> bytes:
    """16 bytes that stand for what messages say."""
    return blake2b(msgspec.json.encode(messages), digest_size=16).digest()
