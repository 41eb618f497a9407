"""A judge is shown two conversations, in both orders, and says which is the better one.

It sees transcripts without the end marker, or what both share and the two responses it parts in; of
the scenario only what its template asks for. A template takes the texts plain, as the published ones do, or
guarded (`guarded`), as nobody can speak to the judge from. An answer that names neither side is asked for
again, and is unread in the end: it never counts for anybody.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from edgen.model import Address, Rejection, RejectionReason, Reply, Request, Scenario, Turn
from edgen.pairing.model import Candidate, Compare, Order, SideName, Verdict
from edgen.pairing.verdict import read_verdict
from edgen.prompting import scenario_variables
from edgen.protocols.base import Prompting, Rules, ask, transcript_of
from edgen.protocols.guarded import GUARDED, fenced, guarded_lines, mark

# The plain texts that a judge's template is given, by what is compared.
PLAIN: dict[Compare, tuple[str, ...]] = {
    "conversation": ("conversation_1", "conversation_2"),
    "response": ("conversation", "response_1", "response_2"),
}
# What a judge's template is given, besides the scenario, by what is compared.
COMPARED: dict[Compare, tuple[str, ...]] = {compare: (*names, *GUARDED) for compare, names in PLAIN.items()}
# A judge's template has to show both texts: plain, or guarded.
SHOWN: dict[Compare, tuple[tuple[str, ...], ...]] = {
    compare: (names[-2:], ("guarded_1", "guarded_2")) for compare, names in PLAIN.items()
}
ORDERS: tuple[Order, Order] = ("ab", "ba")
_SHOWN = 200  # characters of an answer that could not be read


class Comparison(msgspec.Struct, frozen=True):
    """Two candidates of a scenario; `slot` numbers them among all pairs that the scenario can have."""

    scenario: Scenario
    slot: int
    a: Candidate
    b: Candidate


def shared_prefix(a: Candidate, b: Candidate) -> int:
    """How many turns two candidates share from the start."""
    count = 0
    for one, other in zip(a.turns, b.turns, strict=False):
        if one != other:
            break
        count += 1
    return count


def oracle(
    comparison: Comparison, prompt: Prompting, compare: Compare, votes: int, rules: Rules
) -> Generator[Request, Reply, list[Verdict] | Rejection]:
    """Yields a request per vote and order (and per further ask); returns every verdict, in both orders as
    often, or why there is none."""
    a, b = comparison.a, comparison.b
    if a.turns == b.turns:
        return Rejection(RejectionReason.IDENTICAL, "both conversations say the same")
    shown = _shown(a, b, compare)
    if isinstance(shown, Rejection):
        return shown
    scenario = scenario_variables(comparison.scenario)
    guarded = [guarded_lines(turns) for turns in shown]
    fence = mark(rules.seed, comparison.scenario.index, comparison.slot, guarded)
    messages = {
        order: prompt.messages(
            {**scenario, **_plain(shown, compare, order), **_guarded(guarded, compare, order, fence)}
        )
        for order in ORDERS
    }
    verdicts = []
    for vote in range(votes):
        for step, order in enumerate(ORDERS):
            address = Address(comparison.scenario.index, comparison.slot, step=2 * vote + step)
            unread: list[str] = []

            def read(reply: Reply, unread: list[str] = unread) -> int | Rejection:
                said = read_verdict(reply.text, finish_reason=reply.finish_reason, refusal=reply.refusal)
                if said is not None:
                    return said
                unread.append((reply.refusal or reply.text)[:_SHOWN])
                cut = reply.finish_reason == "length"
                reason = RejectionReason.TRUNCATED if cut else RejectionReason.UNREAD
                return Rejection(reason, "the answer names neither side")

            said = yield from ask(address, messages[order], rules, read, "judge")
            choice = None if isinstance(said, Rejection) else _side(said, order)
            text = unread[-1] if choice is None else None
            verdicts.append(Verdict(order=order, vote=vote, choice=choice, text=text))
    return verdicts


def _side(said: int, order: Order) -> SideName:
    return "a" if (said == 1) == (order == "ab") else "b"


# What both share, and what each side has of its own.
_Shown = tuple[tuple[Turn, ...], tuple[Turn, ...], tuple[Turn, ...]]


def _shown(a: Candidate, b: Candidate, compare: Compare) -> _Shown | Rejection:
    """The turns that a judge is shown."""
    if compare == "conversation":
        return (), a.turns, b.turns
    prefix = shared_prefix(a, b)
    if min(len(a.turns), len(b.turns)) <= prefix or a.turns[prefix].role != b.turns[prefix].role:
        return Rejection(
            RejectionReason.NO_RESPONSES, "one of them ends where they part: there is no response to judge"
        )
    if a.turns[prefix].role != "Teacher":
        return Rejection(
            RejectionReason.NO_RESPONSES,
            "they part at a turn of the student, and the judge compares teachers",
        )
    return a.turns[:prefix], a.turns[prefix : prefix + 1], b.turns[prefix : prefix + 1]


def _plain(shown: _Shown, compare: Compare, order: Order) -> dict[str, str]:
    """The texts as the published templates take them, by the names of PLAIN."""
    sides = shown[1:] if order == "ab" else shown[:0:-1]
    if compare == "conversation":
        texts = [transcript_of(turns) for turns in sides]
    else:
        texts = [transcript_of(shown[0]), *[turns[0].text for turns in sides]]
    return dict(zip(PLAIN[compare], texts, strict=True))


def _guarded(lines: Sequence[str], compare: Compare, order: Order, fence: str) -> dict[str, str]:
    """The same texts by the names of GUARDED, each within its fence."""
    common, *sides = lines
    one, other = sides if order == "ab" else reversed(sides)
    noun = "Interaction" if compare == "conversation" else "Response"
    return {
        "compare": compare,
        "fence": fence,
        "guarded": fenced("Interaction", common, fence),
        "guarded_1": fenced(f"{noun} 1", one, fence),
        "guarded_2": fenced(f"{noun} 2", other, fence),
    }
