"""Requests for turns: one that a token limit cuts off is kept up to its last complete sentence, if the job
allows it (`too_long`)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

import msgspec

from edgen.core.values import Rejection, RejectionReason, Reply, Request
from edgen.protocols.base import Question, ask
from edgen.protocols.parts import Rules
from edgen.reading.cut_off import without_end

CUT_OFF = "cut_off"  # a flag: a turn ends where the last whole sentence did


class Spoken(Protocol):
    """A turn as read: a struct with its text and its flags."""

    @property
    def text(self) -> str: ...

    @property
    def flags(self) -> tuple[str, ...]: ...


S = TypeVar("S", bound=Spoken)
Read = Callable[[Reply], S | Rejection]


def ask_turn(question: Question, rules: Rules, read: Read[S]) -> Generator[Request, Reply, S | Rejection]:
    """Ask for a turn, as `ask` does. A turn that is cut off is kept, requested again or rejected, as the job
    says."""
    final = frozenset([RejectionReason.TRUNCATED] if rules.too_long == "reject" else [])

    def read_cut(reply: Reply) -> S | Rejection:
        said = read(reply)
        cut = isinstance(said, Rejection) and said.reason is RejectionReason.TRUNCATED
        kept = _read_kept(question, reply, read) if cut and rules.too_long == "cut" else None
        return said if kept is None else kept

    return (yield from ask(question, rules, read_cut, final))


def _read_kept(question: Question, reply: Reply, read: Read[S]) -> S | None:
    """Return what is whole of a turn that was cut off; None if nothing is.

    The cut reply is read as if it had ended there, with its last sentence and without. What is kept has to be
    the beginning of all that was said: else it was an announcement, a thought or an action.
    """
    whole = without_end(reply.text)
    if whole is None or reply.finish_reason not in ("length", "stop"):
        return None
    said, kept = (
        read(reply if question.form is None else question.form.content(reply))
        for reply in (_ended(reply, text) for text in whole)
    )
    if isinstance(said, Rejection) or isinstance(kept, Rejection) or not said.text.startswith(kept.text):
        return None
    if not kept.text:
        return None if said.text else kept
    changed: Any = kept
    flagged: S = msgspec.structs.replace(changed, flags=(*kept.flags, CUT_OFF))
    return flagged


def _ended(reply: Reply, text: str) -> Reply:
    return msgspec.structs.replace(reply, text=text, finish_reason="stop")
