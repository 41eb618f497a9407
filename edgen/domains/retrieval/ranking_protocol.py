"""The protocol `ranking`: a model ranks candidates for the next utterance, some of them at a time.

Listwise, by windows that slide from the last candidate to the first (RankGPT: Sun, Yan, Ma, Ren, Yin and Ren,
"Is ChatGPT Good at Search?", EMNLP 2023, arXiv 2304.09542). The model states the order of each `WINDOW`
candidates, and the better half is ranked again with the candidates before. A hundred candidates take nine
requests, one after the other. A window without a readable answer keeps its order.

Numbers of an answer are in brackets (`[3] > [1] > [2]`), or in a row with only `>`, commas, brackets and
white space between them. Other text is ignored: if numbers are bracketed singly, those count; else the
longest row of two or more. Unknown and repeated numbers are dropped. Candidates that are not named come last,
in their earlier order. A reply in which most numbers are unknown is no order.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from edgen.plugin import (
    Address,
    AnswerKind,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    SimulatedAnswers,
    Simulation,
    Turn,
    ask,
)
from edgen.plugin.answers import body_of
from edgen.plugin.forms import form, list_of, whole_number
from edgen.plugin.protocols import Protocol, RejectionReason, fence_texts
from edgen.plugin.texts import excerpt, words

WINDOW = 20
STEP = 10
# Variables of a template, which must show `SHOWN`.
SHOWN = ("guarded", "candidates", "form")
VARIABLES = (*SHOWN, "fence", "count")
TEMPLATE = "rank_candidates"
ROLE = "default"  # the role that answers

_BLOCK = r"(?ms)^\[([0-9a-f]{16})\] %s begins\n(.*)\n\[\1\] %s ends$"
_SAID = re.compile(_BLOCK % ("Conversation", "Conversation"))
_LISTED = re.compile(_BLOCK % ("The list of candidates", "The list of candidates"))
_CANDIDATE = re.compile(r"(?m)^Candidate (\d{1,4}): (.*(?:\n  \| .*)*)")


class Ranked(msgspec.Struct, frozen=True):
    """The order of all candidates."""

    places: tuple[int, ...]  # places of the candidates, the best first
    windows: int  # lists that the model put in order
    unread: int = 0  # windows without a readable answer
    unknown: int = 0  # dropped numbers without a candidate
    repeated: int = 0  # dropped repeated numbers
    missing: int = 0  # candidates that were not named
    detail: Rejection | None = None  # rejection of the last unread window


class Ranking(SimulatedAnswers, Protocol):
    """The protocol that asks which candidates fit best."""

    name = "ranking"
    precedence = 11
    answers = (AnswerKind("ranking", "numbers of candidates, the best first: [2] > [1]", VARIABLES),)

    def simulated(self, request: Simulation) -> str | None:
        """Return the candidates by the number of different words that they share with the conversation; ties
        keep the listed order."""
        if "] The list of candidates begins" not in request.text:
            return None
        said, listed = _SAID.search(request.text), _LISTED.search(request.text)
        if said is None or listed is None:
            return None
        if request.fault == "garbage":
            return request.say("garbage")
        known = {*words(said[2])}
        shared = {
            int(found[1]): len(known.intersection(words(found[2])))
            for found in _CANDIDATE.finditer(listed[2])
        }
        return " > ".join(f"[{number}]" for number in sorted(shared, key=lambda one: (-shared[one], one)))


RANKING = Ranking()


def rank_by_windows(
    context: Sequence[Turn],
    candidates: Sequence[str],
    first: Sequence[int],
    address: Address,
    prompt: Prompting,
    rules: Rules,
) -> Generator[Request, Reply, Ranked]:
    """Yield the requests of all windows; return the order of candidates for the turn after `context`.
    `first`: the order to start from, the best first."""
    order = [*first]
    ranked = Ranked((), 0)
    for start, end in list_windows(len(order)):
        window = order[start:end]
        here = Address(address.scenario, address.task, ranked.windows)
        messages = prompt.messages(
            _list_variables(context, [candidates[place] for place in window], here, rules.seed)
        )
        asked = form(order=list_of(whole_number(1, len(window)), len(window), len(window)))
        question = Question(here, messages, RANKING.name, ROLE, prompt.schema, form=prompt.form(asked))
        found = yield from ask(question, rules, partial(read_order, count=len(window)))
        if isinstance(found, Order):
            order[start:end] = [window[place] for place in found.places]
        ranked = _add(ranked, found)
    return msgspec.structs.replace(ranked, places=tuple(order))


def list_windows(count: int) -> Iterator[tuple[int, int]]:
    """Yield the windows over `count` candidates, half open, the last first."""
    end = count
    while True:
        yield max(0, end - WINDOW), end
        if end <= WINDOW:
            return
        end -= STEP


def _add(ranked: Ranked, found: Order | Rejection) -> Ranked:
    replace = msgspec.structs.replace
    if isinstance(found, Rejection):
        return replace(ranked, windows=ranked.windows + 1, unread=ranked.unread + 1, detail=found)
    return replace(
        ranked,
        windows=ranked.windows + 1,
        unknown=ranked.unknown + found.unknown,
        repeated=ranked.repeated + found.repeated,
        missing=ranked.missing + found.missing,
    )


def _list_variables(
    said: Sequence[Turn], candidates: Sequence[str], address: Address, seed: int
) -> dict[str, Any]:
    listed = [Turn(f"Candidate {number}", text) for number, text in enumerate(candidates, start=1)]
    shown = {"guarded": ("Conversation", said), "candidates": ("The list of candidates", listed)}
    return {
        **fence_texts(seed, address.scenario, f"{address.task}/{address.step}", shown),
        "count": len(candidates),
        "form": "[2] > [1]" + (" > …" if len(candidates) > 2 else ""),
    }


_BRACKETED = re.compile(r"\[[ \t]{0,4}(\d{1,9})[ \t]{0,4}\]")
_NUMBER = re.compile(r"\d{1,9}")
_BETWEEN = frozenset(" \t\r\n>,;[]")


class Order(NamedTuple):
    """The places of all candidates, from 0, best first; the numbers of unknown and repeated numbers that were
    dropped, and of candidates that were not named."""

    places: tuple[int, ...]
    unknown: int = 0
    repeated: int = 0
    missing: int = 0


def read_order(reply: Reply, count: int) -> Order | Rejection:
    """Return the order of `count` candidates, or a rejection."""
    if reply.refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(reply.refusal))
    text = body_of(reply.text)
    named = _find_ranked_numbers(text)
    known = [number for number in named if 1 <= number <= count]
    order = tuple(dict.fromkeys(known))
    if reply.finish_reason == "length" and len(order) < count:
        return Rejection(
            RejectionReason.TRUNCATED, f"the reply was cut off at {len(order)} of {count} candidates"
        )
    if not order or len(named) > 2 * len(known):
        said = f"it ranks nothing: {excerpt(text)}" if text.strip() else "it is empty"
        return Rejection(RejectionReason.UNREAD, said)
    rest = [number for number in range(1, count + 1) if number not in set(order)]
    places = tuple(number - 1 for number in (*order, *rest))
    return Order(places, len(named) - len(known), len(known) - len(order), len(rest))


def _find_ranked_numbers(text: str) -> list[int]:
    """Return the numbers that a reply ranks, in its order."""
    if bracketed := _BRACKETED.findall(text):
        return [int(number) for number in bracketed]
    longest: list[int] = []
    row: list[int] = []
    end = 0
    for found in _NUMBER.finditer(text):
        if row and not _BETWEEN.issuperset(text[end : found.start()]):
            row = []
        row.append(int(found[0]))
        end = found.end()
        if len(row) > len(longest):
            longest = row
    alone = text.strip(" \t\r\n.*") == str(longest[0]) if len(longest) == 1 else bool(longest)
    return [*longest] if alone else []
