"""A model ranks candidates for what comes next, some of them at a time.

Listwise, by windows that slide from the last candidate to the first (RankGPT: Sun, Yan, Ma, Ren, Yin and Ren,
"Is ChatGPT Good at Search?", EMNLP 2023, arXiv 2304.09542): of each `WINDOW` candidates the model says the
order, and the better half of them is ranked again with those before. A hundred candidates are nine requests,
one after the other. A window whose answers cannot be read keeps its order.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from edgen.domains.retrieval.ranking_answers import Order, read_order
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
from edgen.plugin.forms import form, list_of, whole_number
from edgen.plugin.protocols import Protocol, fence_texts
from edgen.plugin.texts import words

WINDOW = 20
STEP = 10
# What a template is given; it has to show `SHOWN`.
SHOWN = ("guarded", "candidates", "form")
VARIABLES = (*SHOWN, "fence", "count")
TEMPLATE = "rank_candidates"
ROLE = "default"  # whom it asks

_BLOCK = r"(?ms)^\[([0-9a-f]{16})\] %s begins\n(.*)\n\[\1\] %s ends$"
_SAID = re.compile(_BLOCK % ("Conversation", "Conversation"))
_LISTED = re.compile(_BLOCK % ("The list of candidates", "The list of candidates"))
_CANDIDATE = re.compile(r"(?m)^Candidate (\d{1,4}): (.*(?:\n  \| .*)*)")


class Ranked(msgspec.Struct, frozen=True):
    """The order of all candidates."""

    places: tuple[int, ...]  # of the candidates, the best first
    windows: int  # lists that the model put in order
    unread: int = 0  # windows that could not be read
    unknown: int = 0  # numbers that name no candidate, and were dropped
    repeated: int = 0  # numbers that came before, and were dropped
    missing: int = 0  # candidates that were not named
    detail: Rejection | None = None  # why the last unread window could not be read


class Ranking(SimulatedAnswers, Protocol):
    """Says which candidates fit best."""

    name = "ranking"
    precedence = 11
    answers = (AnswerKind("ranking", "numbers of candidates, the best first: [2] > [1]", VARIABLES),)

    def simulated(self, request: Simulation) -> str | None:
        """Return the order by how many different words a candidate shares with the conversation; of equal
        ones, the one listed first."""
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
    said: Sequence[Turn],
    candidates: Sequence[str],
    first: Sequence[int],
    address: Address,
    prompt: Prompting,
    rules: Rules,
) -> Generator[Request, Reply, Ranked]:
    """Yield the order of candidates for what comes after what was `said`; `first` is the order to begin with,
    the best first."""
    order = [*first]
    ranked = Ranked((), 0)
    for start, end in windows(len(order)):
        window = order[start:end]
        here = Address(address.scenario, address.task, ranked.windows)
        messages = prompt.messages(
            _variables(said, [candidates[place] for place in window], here, rules.seed)
        )
        asked = form(order=list_of(whole_number(1, len(window)), len(window), len(window)))
        question = Question(here, messages, RANKING.name, ROLE, prompt.schema, form=prompt.form(asked))
        found = yield from ask(question, rules, partial(read_order, count=len(window)))
        if isinstance(found, Order):
            order[start:end] = [window[place] for place in found.places]
        ranked = _add(ranked, found)
    return msgspec.structs.replace(ranked, places=tuple(order))


def windows(count: int) -> Iterator[tuple[int, int]]:
    """Yield the windows of so many candidates, half open, the last first."""
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


def _variables(
    said: Sequence[Turn], candidates: Sequence[str], address: Address, seed: int
) -> dict[str, Any]:
    listed = [Turn(f"Candidate {number}", text) for number, text in enumerate(candidates, start=1)]
    shown = {"guarded": ("Conversation", said), "candidates": ("The list of candidates", listed)}
    return {
        **fence_texts(seed, address.scenario, f"{address.task}/{address.step}", shown),
        "count": len(candidates),
        "form": "[2] > [1]" + (" > …" if len(candidates) > 2 else ""),
    }
