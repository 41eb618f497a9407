"""Requests to people: requests that a person answers, with what that person may see.

A protocol states the `View` of a request that people answer; `view_of` (edgen.protocols.views) makes one for
a request without one. It waits in the mailbox of a run (`edgen.store.mailbox`) until somebody answers it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from edgen.core.values import Address, AnswerTimes, TaskId


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """A value that a field of the answer may take, in words. `hint`: the protocol recommends it."""

    field: str
    value: str | int | float
    words: str
    hint: bool = False


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a request that is shown to the person who answers it: only what the role knows."""

    role: str = ""
    """The role that the person plays, in the space's words; empty for a judge or a labeller."""
    facts: tuple[tuple[str, str], ...] = ()
    """Knowledge of the role: a label and a value each."""
    turns: tuple[tuple[str, str], ...] = ()
    """Turns so far: speaker and text."""
    sides: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Texts to compare, in the order in which they are shown: speaker and text of the turns of each."""
    text: str = ""
    """Anything else to read before answering: a task, a pair, questions."""
    offers: tuple[Offer, ...] = ()
    """Words for values that fields of the answer may take, in the order in which they are offered."""
    questions: tuple[tuple[str, str], ...] = ()
    """A field of the answer and the question that it answers, where its name does not say it."""
    closing: str = ""
    """The end of a text whose speaker closes the conversation; empty: nobody can."""

    def with_(self, **fields: Any) -> View:
        """Return the view with other values of these fields."""
        return msgspec.structs.replace(self, **fields)


class PersonRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that waits for a person."""

    key: str  # identifies everything that shapes the answer
    address: Address  # of the call
    role: str  # of the job that the person answers for
    view: View  # shown to the person
    schema: bytes = b""  # JSON Schema of the answer; empty: any text
    again: str = ""  # why the person's last answer could not be used
    wait: float = 3600.0  # seconds that a person who took the conversation has for the answer
    arm: str = ""  # the ledger that it belongs to
    together: tuple[str, ...] = ()  # all roles that people play in this conversation


class PersonAnswer(NamedTuple):
    """A person's answer to a request, and when it was given."""

    text: str
    given: AnswerTimes


class AskPeople(Protocol):
    """A way to ask people."""

    async def ask(self, request: PersonRequest) -> PersonAnswer | None:
        """Wait for the answer to a request; return None if the person left."""

    async def end(self, scenario: int, task: TaskId) -> None:
        """Note that nothing more is asked about a task, such as a conversation."""
