"""What the preference formats share: labelled pairs as chosen and rejected, whole or one turn of them.

A turn-level pair is a prompt that both conversations share and the trained side's next message in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from edgen.exporters.base import Run, SplitName, Unfit
from edgen.exporters.evidence import Evidence, evidence
from edgen.exporters.voice import Message, Voice
from edgen.pairing.model import Label, Pair

if TYPE_CHECKING:
    from edgen.runreader import Compared

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


def preferred(compared: Compared, voice: Voice) -> Preferred | Unfit:
    """A pair with its label as chosen and rejected conversations."""
    pair = compared.pair
    if pair.label is None:
        return Unfit(pair.left_out or "no_label")
    first, second = compared.a, compared.b
    if pair.label.chosen == "b":
        first, second = second, first
    chosen = voice.messages(first.turns, compared.scenario)
    rejected = voice.messages(second.turns, compared.scenario)
    if same(chosen, rejected):
        return Unfit("identical")
    return Preferred(pair, pair.label, evidence(compared, pair.label), chosen, rejected)


def turn_level(compared: Compared, voice: Voice) -> TurnPair | Unfit:
    """A pair with its label as the one message of the trained side at which the conversations part."""
    whole = preferred(compared, voice)
    if isinstance(whole, Unfit):
        return whole
    shortest = min(len(whole.chosen), len(whole.rejected))
    at = next((i for i in range(shortest) if whole.chosen[i] != whole.rejected[i]), None)
    if at is None:
        return Unfit("one_ends")
    chosen, rejected = whole.chosen[at], whole.rejected[at]
    if chosen["role"] != "assistant" or rejected["role"] != "assistant":
        return Unfit("differs_at_other_side")
    if same([chosen], [rejected]):
        return Unfit("identical")
    return TurnPair(whole, at, whole.chosen[:at], chosen, rejected)


def same(one: list[Message], other: list[Message]) -> bool:
    """Whether two conversations say the same; many chat templates drop white space at a message's ends."""
    return len(one) == len(other) and all(
        x["role"] == y["role"] and x["content"].strip() == y["content"].strip()
        for x, y in zip(one, other, strict=True)
    )


def completions(run: Run, voice: Voice) -> Iterator[Completion | Unfit]:
    """Every completion that turn-level pairs choose or reject, once, in the order of the pairs.

    One that is chosen in one pair and rejected in another after the same prompt says nothing, and is left
    out. The run is read twice; what is remembered of a completion is 16 bytes and a flag.
    """
    verdicts: dict[bytes, int] = {}
    for compared in run.compared():
        found = turn_level(compared, voice)
        if isinstance(found, TurnPair):
            for message, flag in ((found.chosen, 1), (found.rejected, 2)):
                key = _key(found.prompt, message)
                verdicts[key] = verdicts.get(key, 0) | flag
    given: set[bytes] = set()
    for compared in run.compared():
        found = turn_level(compared, voice)
        if isinstance(found, Unfit):
            yield found
            continue
        for message, label in ((found.chosen, True), (found.rejected, False)):
            key = _key(found.prompt, message)
            if verdicts[key] == 3:
                yield Unfit("contradictory")
            elif key in given:
                yield Unfit("repeated")
            else:
                given.add(key)
                suffix = "chosen" if label else "rejected"
                yield Completion(
                    f"{found.id}-{suffix}", found.split, found.prompt, message, label, found.whole.evidence
                )


def _key(prompt: list[Message], message: Message) -> bytes:
    return blake2b(msgspec.json.encode([*prompt, message]), digest_size=16).digest()
