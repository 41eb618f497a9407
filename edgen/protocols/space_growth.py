"""Requests more values of one dimension of a space, batch after batch, until there are enough.

Every request shows some of the existing values, drawn anew each time, so that answers do not repeat. A value
from an answer is kept if a space may hold it and no existing value is nearly the same
(`edgen.space.similar_values`); dropped values are counted by reason. Requests end when enough values are
kept, or when three answers in a row brought nothing new. The number of values in a request does not depend on
the number wanted. So a later run that wants more begins with the same requests, and the ledger has their
answers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Sequence

import msgspec

from edgen.plugin import (
    Address,
    AnswerKind,
    Prompting,
    Question,
    Reply,
    Request,
    SimulatedAnswers,
    Simulation,
    Space,
)
from edgen.plugin.forms import form, list_of, text
from edgen.plugin.protocols import (
    LONGEST,
    KnownValues,
    Protocol,
    name_list,
    read_values,
    value_problem,
)

BATCH = 50  # values that one request asks for
SHOWN = 100  # most values that one request shows
BARREN = 3  # answers in a row without a new value that end the requests

# The variables of a template, all texts. `values` are the shown values.
VARIABLES = ("dimension", "name", "description", "count", "values")


VALUES = form(values=list_of(text(LONGEST), 1, BATCH))


class SpaceGrowth(SimulatedAnswers, Protocol):
    """The protocol that asks for new values of a dimension."""

    name = "space_growth"
    precedence = 30
    answers = (AnswerKind("values", "new values for a preference space, one on each line", VARIABLES),)

    def simulated(self, request: Simulation) -> str | None:
        """Return new values, a line each."""
        return request.values()


SPACE_GROWTH = SpaceGrowth()


class NewValues(msgspec.Struct, frozen=True):
    """The result: the kept values in the order of arrival, and the numbers of dropped ones by reason.
    `answers` counts the model's answers, `empty` those without a value."""

    kept: tuple[str, ...]
    dropped: dict[str, int]
    answers: int
    empty: int


def ask_for_values(
    space: Space,
    dimension: str,
    wanted: int,
    prompt: Prompting,
    seed: int,
    on_answer: Callable[[int, int], None] = lambda _kept, _dropped: None,
) -> Generator[Request, Reply, NewValues]:
    """Yield one request at a time; return the new values, at most `wanted`. `on_answer` gets the numbers of
    kept and dropped values after each answer."""
    present = [entry.value for entry in space[dimension].entries]
    known, kept, dropped = KnownValues(present), list[str](), Counter[str]()
    answers = empty = barren = 0
    while len(kept) < wanted and barren < BARREN:
        # After an answer without new values the same prompt could get the same answer: at temperature 0 it
        # does.
        shown = draw_shown([*present, *kept], seed, answers, shuffled=barren > 0)
        variables = {
            "dimension": name_list(space, dimension),
            "name": space.name,
            "description": space.description,
            "count": BATCH,
            "values": shown,
        }
        address = Address(0, 0, step=answers)
        question = Question(
            address,
            prompt.messages(variables),
            SPACE_GROWTH.name,
            schema=prompt.schema,
            form=prompt.form(VALUES),
        )
        reply = yield question.request(address, seed)
        answers += 1
        listed = [] if reply.refusal else read_values(reply.text, cut=reply.finish_reason == "length")
        before = len(kept)
        for value in listed:
            if len(kept) == wanted:
                dropped["not_needed"] += 1
            elif (reason := find_drop_reason(value, known)) is not None:
                dropped[reason] += 1
            else:
                known.add(value)
                kept.append(value)
        empty += not listed
        barren = 0 if len(kept) > before else barren + 1
        on_answer(len(kept), dropped.total())
    return NewValues(tuple(kept), dict(sorted(dropped.items())), answers, empty)


def draw_shown(values: Sequence[str], seed: int, number: int, *, shuffled: bool = False) -> list[str]:
    """Return at most SHOWN of the values, in their order or shuffled; the choice depends on the seed and the
    request's number."""

    def hash_place(index: int) -> bytes:
        return hashlib.blake2b(f"{seed}/{number}/{values[index]}".encode(), digest_size=8).digest()

    drawn = sorted(range(len(values)), key=hash_place)[:SHOWN]
    return [values[index] for index in (drawn if shuffled else sorted(drawn))]


def find_drop_reason(value: str, known: KnownValues) -> str | None:
    """Return the reason for dropping a value; None if it is kept.

    Reasons are `too_long`, `not_allowed` (by the space's rules, or without a letter or digit), `identical`
    and `near_duplicate`.
    """
    if len(value) > LONGEST:
        return "too_long"
    if value_problem(value) is not None or not any(map(str.isalnum, value)):
        return "not_allowed"
    twin = known.find_similar(value)
    return None if twin is None else twin[0]
