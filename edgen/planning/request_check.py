"""Checks of a plugin's protocol: its requests, results and expected calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from edgen.config import Job, list_asked_roles, list_templates
from edgen.core.forms import list_answer_kinds
from edgen.core.plugins.faults import blame, refuse_value, require_type, require_value
from edgen.core.text import describe_type, join_list, shorten
from edgen.core.values import Conversation, Message, Rejection, Request, Turn
from edgen.protocols.base import ConversationProtocol, ExpectedCall, Result, Template
from edgen.protocols.labelled_units import ABOUT

MOST_REQUESTS = 500  # maximum requests of one conversation, unless the protocol expects more
_SLACK = 4  # factor on the maximum calls that the protocol expects


def limit_requests(protocol: ConversationProtocol, job: Job) -> int:
    """Return the number of requests of one conversation after which a plugin's protocol counts as endless.

    A question is asked at most `asks` times, and a conversation that fails a gate is tried at most `asks`
    times. Raises FaultyPluginError as `require_expected` does.
    """
    return max(MOST_REQUESTS, _SLACK * len(require_expected(protocol, job, 2)) * job.asks**2)


def require_expected(protocol: ConversationProtocol, job: Job, level: int) -> tuple[ExpectedCall, ...]:
    """Return the calls of one conversation at one level that a plugin's protocol expects. Raises
    FaultyPluginError if `expected` raises or returns anything else."""
    try:
        found = protocol.expected(job, level)
    except BaseException as error:  # noqa: BLE001 - raised again
        blame("protocol", protocol.name, error)
    kind = tuple[ExpectedCall, ...]
    require_value("protocol", protocol.name, found, kind, "a tuple of ExpectedCall")
    templates, roles = list_templates(job, None), list_asked_roles(job)
    _require_uses(protocol.name, "`expected`", (one.use for one in found), templates)
    for call in found:
        template = templates[call.use]
        asked = (template.asked, *template.also)
        said = ""
        if min(call.tokens) < 0:
            said = f"expects fewer than 0 tokens: {call.tokens}"
        elif call.role not in roles:
            said = f"returned the role {call.role!r} from `expected`, which its `roles` do not list"
        elif call.role not in asked or template.asked not in roles:
            said = (
                f"returned the role {call.role!r} with the template {call.use!r} from `expected`, and that "
                f"template is for {join_list(map(repr, asked))}: name a role of `roles` as `asked`, and the "
                "others in `also`"
            )
        if said:
            refuse_value("protocol", protocol.name, said)
    return found


def require_templates(protocol: ConversationProtocol, templates: Mapping[str, Template]) -> None:
    """Raise FaultyPluginError if a plugin's protocol has no templates, or one with an unknown kind of
    answer."""
    if not templates:
        refuse_value("protocol", protocol.name, "returned no template from `templates`")
    own = {kind.name for kind in protocol.answers}
    for use, template in templates.items():
        if template.expects not in {None, *own} and template.expects not in list_answer_kinds():
            said = (
                f"returned a template for {use!r} that expects {template.expects!r}, which no `answers` has"
            )
            refuse_value("protocol", protocol.name, said)


def require_opening(
    protocol: ConversationProtocol, job: Job, found: Any, uses: Collection[str]
) -> dict[str, tuple[Message, ...]]:
    """Return the first messages by use from a plugin's protocol. Raises FaultyPluginError if they are
    anything else, a use is not in its `templates`, or a template of its `expected` calls has none."""
    name = protocol.name
    require_type("protocol", name, found, dict, "a dict of messages from `opening`")
    kind = dict[str, tuple[Message, ...]]
    opening: dict[str, tuple[Message, ...]]
    opening = require_value("protocol", name, found, kind, "messages by use from `opening`")
    _require_uses(name, "`opening`", opening, uses)
    if missing := [one.use for one in require_expected(protocol, job, 2) if one.use not in opening]:
        refuse_value(
            "protocol", name, f"returned no messages for {missing[0]!r}, which `expected` has, from `opening`"
        )
    return opening


def _require_uses(protocol: str, method: str, given: Iterable[str], uses: Collection[str]) -> None:
    """Raise FaultyPluginError for a use without a template."""
    if unknown := [use for use in given if use not in uses]:
        listed = f"{join_list(map(repr, uses))} alone" if uses else "nothing"
        said = f"returned {unknown[0]!r} from {method}, and its `templates` have {listed}"
        refuse_value("protocol", protocol, said)


class RequestCheck:
    """A check of the requests of one conversation. `most`: see `limit_requests`."""

    def __init__(self, protocol: str, scenario: int, most: int) -> None:
        self._protocol, self._scenario, self._most = protocol, scenario, most
        self._count = 0

    def __call__(self, request: Any) -> Request:
        """Return a request with U+FFFD for lone surrogates in its messages. Raises FaultyPluginError if it
        cannot be sent or stored."""
        name = self._protocol
        if not isinstance(request, Request):
            refuse_value("protocol", name, f"yielded {describe_type(request)}, not a Request")
        plain = msgspec.structs.replace(request, scene=None, view=None, same_prompt=())
        checked = require_value("protocol", name, plain, Request, "a Request")
        if not checked.messages:
            refuse_value("protocol", name, "yielded a Request without messages")
        place = checked.address
        if (other := place.scenario) != self._scenario:
            said = f"yielded a request at the address of scenario {other} in scenario {self._scenario}"
            refuse_value("protocol", name, said)
        if not (0 <= place.step < ABOUT and 0 <= place.attempt < ABOUT):
            said = f"yielded a request whose step or attempt is not from 0 to {ABOUT - 1:,}: {place}"
            refuse_value("protocol", name, said)
        self._count += 1
        if self._count > self._most:
            said = (
                f"asked {self._most:,} requests in one conversation and did not end; its `expected` gives "
                "fewer"
            )
            refuse_value("protocol", name, said)
        if checked is plain:
            return request
        return msgspec.structs.replace(request, messages=checked.messages, prose=checked.prose)


def require_result(protocol: str, result: Result, speakers: Collection[str]) -> Result:
    """Return a result of a plugin's protocol with U+FFFD for lone surrogates. `speakers`: the roles of the
    space; empty: any role may speak. Raises FaultyPluginError if the result cannot be recorded or counted."""
    if not isinstance(result, Rejection):
        result = require_value("protocol", protocol, result, Conversation, "a Conversation or a Rejection")
        if not result.turns:
            refuse_value("protocol", protocol, "returned a Conversation without turns, not a Rejection")
        for place, turn in enumerate(result.turns):
            if flaw := _find_turn_flaw(turn, speakers):
                refuse_value("protocol", protocol, f"returned a Conversation whose turn {place} {flaw}")
        for event in result.events:
            if not _is_event(event):
                said = (
                    f"returned a Conversation with the event {shorten(repr(event), 80)}; an event is a dict"
                )
                refuse_value(
                    "protocol",
                    protocol,
                    f"{said} with `event` (its kind), `time` (seconds) and `turn` (the number of the next turn)",
                )
        if result.ended_by is not None and speakers and result.ended_by not in speakers:
            said = f"returned a Conversation ended by {result.ended_by!r}, which the space does not have"
            refuse_value("protocol", protocol, said)
        if result.probability is not None and not 0 <= result.probability <= 1:
            refuse_value(
                "protocol", protocol, f"returned the probability {result.probability}, not one from 0 to 1"
            )
    elif not result.code.isprintable():
        refuse_value("protocol", protocol, f"rejected with a reason that is not a word: {result.code!r}")
    else:
        detail = require_value("protocol", protocol, result.detail, str, "the detail of a Rejection")
        result = msgspec.structs.replace(result, detail=detail)
    return result


def _is_event(event: dict[str, Any]) -> bool:
    """Return whether an event can be recorded: it has a kind, a time in seconds, and the number of the next
    turn."""
    kind, time, turn = (event.get(key) for key in ("event", "time", "turn"))
    return (
        isinstance(kind, str)
        and kind != ""
        and isinstance(time, int | float)
        and not isinstance(time, bool)
        and time >= 0
        and type(turn) is int
        and turn >= 0
    )


def _find_turn_flaw(turn: Turn, speakers: Collection[str]) -> str | None:
    """Return why a turn cannot be recorded, as a clause; None if it can."""
    if not turn.text or turn.text.isspace():
        return "has no text; return a Rejection, such as Rejection('empty', …)"
    if not turn.role or turn.role != turn.role.strip() or not turn.role.isprintable():
        return f"has a role that is not a name: {turn.role!r}"
    if speakers and turn.role not in speakers:
        return f"has the role {turn.role!r}, which the space does not have ({join_list(speakers)})"
    return None
