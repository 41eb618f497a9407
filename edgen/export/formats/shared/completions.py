"""Completions of turn-level pairs, each good or bad, for formats of unpaired preferences.

If an oracle labelled the pairs, its strengths decide. The completions after one prompt of a scenario are
compared with the mean of their strengths. Completions near the mean are neither good nor bad. Otherwise a
completion is good if it was chosen and bad if it was rejected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean

from edgen.export.formats.shared.pair_rows import TurnPair, make_rows_of_pairs, read_turn
from edgen.plugin import Chat, LeftOut, Row, RunReader, Scenario
from edgen.plugin.formats import Evidence, Message, Rows, Side, SplitName, digest_of

# Minimum distance of a completion from the middle: 2p - 1, with p the probability that it is preferred to the
# middle.
CLEAR = 0.1

# Reasons why `iterate_completions` omits a completion, not a pair.
OF_COMPLETIONS = frozenset({"contradictory", "middling", "repeated"})

# The rule, for cards.
RULE = (
    "Where pairs have strengths (`edgen pairs --signal oracle`), the strengths decide: after each prompt, "
    "the middle is the mean strength of the completions in a scenario's labelled pairs. A completion is "
    f"good if it would be preferred to the middle with a probability of at least {(1 + CLEAR) / 2:.2f}, and "
    "bad if the middle would be preferred to it with that probability. The others are left out as middling."
)

# The note on omissions, for cards of pairs and of completions.
COUNTED = "Pairs and completions left out as contradictory or repeated are counted together."


@dataclass(frozen=True, slots=True)
class Completion:
    """One assistant message after a prompt."""

    id: str  # id of the conversation
    split: SplitName  # train or test
    prompt: list[Message]  # messages before it
    completion: Message  # the assistant's message
    label: bool  # True if it is good
    evidence: Evidence  # of the label
    scenario: Scenario  # of the conversation


@dataclass(slots=True)
class _Said:
    """Evidence on a completion: the strengths of its conversations, by id, and whether it was chosen or
    rejected in a pair. A strength is None if the pairs have none."""

    strengths: dict[str, float | None] = field(default_factory=dict)
    chosen: bool = False
    rejected: bool = False


def iterate_completions(run: RunReader, chat: Chat) -> Iterator[Completion | LeftOut]:
    """Yield every completion that turn-level pairs choose or reject, once, in the order of the pairs.

    A completion that is good and bad after the same prompt is contradictory and is left out, like one that is
    neither. The run is read twice; memory holds 16 bytes and a flag per completion, beyond its scenario.
    """
    good, bad = _collect_verdicts(run, chat)
    given: set[bytes] = set()
    for compared in run.compared():
        found = read_turn(compared, chat)
        if isinstance(found, LeftOut):
            yield found
            continue
        for message, part in ((found.chosen, "chosen"), (found.rejected, "rejected")):
            key = digest_of([*found.prompt, message])
            if key in good and key in bad:
                yield LeftOut("contradictory")
            elif key not in good and key not in bad:
                yield LeftOut("middling")
            elif key in given:
                yield LeftOut("repeated")
            else:
                given.add(key)
                name = f"{found.id}-{part}"
                evidence = found.whole.evidence
                yield Completion(
                    name, found.split, found.prompt, message, key in good, evidence, found.scenario
                )


def make_rows_of_turns(
    of_pair: Callable[[TurnPair], Row | LeftOut], of_completion: Callable[[Completion], Row | None]
) -> Rows:
    """Return the rows of a format with one row per turn-level pair, followed by one per completion. Omissions
    of pairs are counted with the pairs; `of_completion` returns None for a completion whose pair was
    counted."""

    def make_rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
        yield from make_rows_of_pairs(read_turn, of_pair)(run, chat)
        for found in iterate_completions(run, chat):
            if isinstance(found, LeftOut):
                if found.reason in OF_COMPLETIONS:
                    yield found
            elif (row := of_completion(found)) is not None:
                yield row

    return make_rows


def _collect_verdicts(run: RunReader, chat: Chat) -> tuple[set[bytes], set[bytes]]:
    """Return the completions that are good in some context, and those that are bad in some."""
    good: set[bytes] = set()
    bad: set[bytes] = set()
    for _, pairs in groupby(run.compared(), key=lambda compared: compared.pair.scenario):
        turns = (read_turn(compared, chat) for compared in pairs)
        for said in _iterate_contexts(turn for turn in turns if isinstance(turn, TurnPair)):
            better, worse = _judge(said)
            good |= better
            bad |= worse
    return good, bad


def _iterate_contexts(pairs: Iterable[TurnPair]) -> Iterable[dict[bytes, _Said]]:
    """Yield the completions of a scenario's pairs by digest, grouped by prompt."""
    contexts: dict[bytes, dict[bytes, _Said]] = defaultdict(lambda: defaultdict(_Said))
    for found in pairs:
        context = contexts[digest_of(found.prompt)]
        chosen, rejected = _find_sides(found)
        said = context[digest_of([*found.prompt, found.chosen])]
        said.chosen = True
        said.strengths[chosen.id] = _find_strength(chosen)
        said = context[digest_of([*found.prompt, found.rejected])]
        said.rejected = True
        said.strengths[rejected.id] = _find_strength(rejected)
    return contexts.values()


def _find_sides(found: TurnPair) -> tuple[Side, Side]:
    """Return the chosen and the rejected side of a pair."""
    pair = found.whole.pair
    return (pair.a, pair.b) if found.whole.label.chosen == "a" else (pair.b, pair.a)


def _find_strength(side: Side) -> float | None:
    return None if side.strength is None else side.strength.value


def _judge(context: dict[bytes, _Said]) -> tuple[set[bytes], set[bytes]]:
    """Return the good and the bad completions after one prompt."""
    strengths = {key: _compute_mean(list(said.strengths.values())) for key, said in context.items()}
    known = {key: value for key, value in strengths.items() if value is not None}
    if len(known) < len(strengths):
        chosen = {key for key, said in context.items() if said.chosen}
        return chosen, {key for key, said in context.items() if said.rejected}
    middle = fmean(known.values())
    ahead = {key: math.tanh((value - middle) / 2) for key, value in known.items()}
    return {key for key, by in ahead.items() if by >= CLEAR}, {k for k, by in ahead.items() if by <= -CLEAR}


def _compute_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values; None if one is missing."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
