"""Detection of a service's support for forms of answers, from its first answers.

A request with `prose` may be answered without its schema. It is sent with the schema first. If the service
refuses, it is sent with a schema without bounds; then, if the refusal names a further keyword, with a schema
of names, types and values only; at last in prose. A refused request costs nothing, so these do not count as
attempts. The first way that is answered serves all later requests. A service may also accept a schema and
ignore it: after IGNORED answers that do not fit, requests are sent in prose. The ledger notes the way, so a
resumed run does not try again.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.forms import BOUNDS, EXTRAS, without_bounds
from edgen.core.values import Reply, Request
from edgen.prompting.answer_schema import fits_schema
from edgen.store.ledger.opening import decode_fact

if TYPE_CHECKING:
    from edgen.execution.progress import Events
    from edgen.store.ledger import Ledger

Way = Literal["schema", "no_bounds", "plain", "prose"]
WAYS: tuple[Way, ...] = ("schema", "no_bounds", "plain", "prose")
_LEFT_OUT: dict[Way, frozenset[str]] = {"no_bounds": BOUNDS, "plain": EXTRAS}
_NAMED = 4  # at most this many properties of a schema are named in a description
IGNORED = 3  # whole answers that do not fit, before the first that does
REFUSED_ANYWAY = 3  # after this many calls refused in every way, the schema is not the cause
_FACT = "forms"
_REFUSES = "refuses the schema of an answer ({})"
_NO_OTHER_FORM = "the service takes no schema, so the same request was sent in words before"
_CONSEQUENCE: dict[Way, str] = {
    "schema": "answers are requested by schemas",
    "no_bounds": "the bounds of numbers, lists and texts are left out",
    "plain": "only names, types and values of its parts are sent",
    "prose": "only the words of the templates ask for it",
}
_ABOUT_SCHEMAS = re.compile(r"(?i)schema|grammar|response_?format|structured|json|output_config")


class FormSupport:
    """The way in which one backend's requests are sent. `name`: its name in the job; `identity`: a digest of
    everything that shapes its answers. `tell` gets a sentence when the way changes; `note` gets the way once
    it is known."""

    def __init__(self, name: str, identity: str) -> None:
        self._name = name
        self.identity = identity
        self.way: Way = "schema"
        self.settled = False
        self._why = "takes no schema"
        self._unfit = 0
        self._refused_anyway = 0  # calls that were refused in every way
        self.tell: Callable[[str], None] = lambda _: None
        self.note: Callable[[Way], None] = lambda _: None

    def restore(self, way: Way) -> None:
        """Continue with the way that an earlier session found."""
        self.way, self.settled = way, True

    def adapt_request(self, request: Request, way: Way | None = None) -> Request:
        """Return the request as it is sent in a way, by default the present one."""
        way = way or self.way
        if not request.prose or request.schema is None or way == "schema":
            return request
        if way in _LEFT_OUT:
            return msgspec.structs.replace(request, schema=without_bounds(request.schema, _LEFT_OUT[way]))
        return msgspec.structs.replace(request, schema=None, messages=request.prose, prose=())

    def is_sent_as_is(self, request: Request) -> bool:
        """Return whether a request is sent in one form only, and its answer teaches nothing about forms."""
        known = not request.prose or (self.settled and self.way == "schema")
        return known and not request.other_form

    def describe(self, request: Request) -> str:
        """Describe the form in which an answer is requested, as it is sent now."""
        if request.schema is None:
            return "in the template's own words"
        parts = msgspec.json.decode(request.schema).get("properties") or {}
        named = f" with {' and '.join(map(str, parts))}" if 0 < len(parts) <= _NAMED else ""
        sent = self.adapt_request(request)
        if sent.schema is None:
            return f"in words alone, since the service {self._why}"
        bounds = {"no_bounds": ", without bounds,", "plain": " of names, types and values"}.get(self.way, "")
        return f"by a JSON Schema{bounds if sent.schema != request.schema else ''}{named}"

    async def complete(self, request: Request, call: Callable[[Request], Awaitable[Reply]]) -> Reply:
        """Return the reply to a request, sent in the first way that the service takes. Raises CallError."""
        if request.other_form and self.way == "prose":
            raise CallError(FailureKind.BAD_REQUEST, _NO_OTHER_FORM)
        if not request.prose:
            return await call(request)
        refusal, way = "", self.way
        while True:
            try:
                reply = await call(self.adapt_request(request, way))
            except CallError as failure:
                # Another call may have found a later way meanwhile.
                found = WAYS.index(self.way) > WAYS.index(way)
                about = self._may_be_refused(request, failure) or (
                    found and _is_about_the_schema(failure, request)
                )
                if about and way != "prose":
                    refusal = failure.message
                    way = self.way if found else _choose_next_way(way, failure.message)
                    continue
                if about:
                    self._refused_anyway += 1
                elif refusal:  # this way was not refused: the call failed for another reason
                    self._change(way, _REFUSES.format(refusal.rstrip(" .")))
                raise
            if refusal:
                self._change(way, _REFUSES.format(refusal.rstrip(" .")))
            self.learn(request, reply)
            return reply

    def use_next_form(self, request: Request, failure: CallError) -> bool:
        """Switch to the next way if the service may have refused a request for its schema. Return whether it
        switched."""
        if not request.prose or self.way == "prose" or not self._may_be_refused(request, failure):
            return False
        self._change(
            _choose_next_way(self.way, failure.message), _REFUSES.format(failure.message.rstrip(" ."))
        )
        return True

    def learn(self, request: Request, reply: Reply) -> None:
        """Learn from an answer whether the service keeps to the schema."""
        if self.settled or self.way == "prose" or not request.prose or request.schema is None:
            return
        if reply.refusal is not None or reply.finish_reason != "stop":
            return
        if fits_schema(reply.text, without_bounds(request.schema)):
            self.settled = True
            self.note(self.way)
            return
        self._unfit += 1
        if self._unfit >= IGNORED:
            self._change(
                "prose", f"takes the schema of an answer and ignores it ({IGNORED} answers do not fit)"
            )

    def _may_be_refused(self, request: Request, failure: CallError) -> bool:
        """Return whether the request may have been refused for its schema."""
        if self.settled or self._refused_anyway >= REFUSED_ANYWAY:
            return False
        return _is_about_the_schema(failure, request)

    def _change(self, way: Way, why: str) -> None:
        if WAYS.index(way) <= WAYS.index(self.way):
            return  # another call has switched already
        self.way, self._unfit = way, 0
        self.settled = way == "prose"
        self._why = why
        self.note(way)
        self.tell(f"The backend {self._name} {why}. From now on {_CONSEQUENCE[way]}.")


def _choose_next_way(way: Way, refusal: str) -> Way:
    """Return the way after a refused one. "plain" is only tried if the refusal names a keyword that "plain"
    leaves out."""
    following = WAYS[WAYS.index(way) + 1]
    return (
        "prose"
        if following == "plain" and not any(word in refusal for word in EXTRAS - BOUNDS)
        else following
    )


def _is_about_the_schema(failure: CallError, request: Request) -> bool:
    """Return whether a service may have refused a request because of its schema. A bare 400 counts only for
    one answer: a request for several may be refused for their number."""
    if failure.kind is FailureKind.BAD_REQUEST and request.choices == 1:
        return True
    refused = failure.kind in (FailureKind.BAD_REQUEST, FailureKind.SERVER_ERROR)
    return refused and _ABOUT_SCHEMAS.search(failure.message) is not None


def restore_forms(ledger: Ledger, events: Events, known: dict[str, Way], support: FormSupport) -> None:
    """Restore a backend's way from the ledger, and note changes there. `known`: the ways of all the session's
    backends, by identity; filled from the ledger."""
    noted = decode_fact(ledger.read_fact(_FACT), dict[str, Way], ledger.path, "a note on forms") or {}
    known.update(noted | known)
    if (found := known.get(support.identity)) is not None:
        support.restore(found)

    def note(way: Way) -> None:
        known[support.identity] = way
        ledger.set_fact(_FACT, msgspec.json.encode(known).decode())

    support.note = note
    support.tell = partial(events.tell, "note")
