"""Check that a protocol of conversations meets edgen's expectations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from edgen.config import parse_job
from edgen.config.job import RolesAndSettings
from edgen.core.errors import EdgenError
from edgen.core.registry import part_of
from edgen.core.text import describe_type
from edgen.core.values import Conversation, Message, Rejection, Reply, Request
from edgen.families.base import Recorded, find_change
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.planning.request_check import (
    RequestCheck,
    limit_requests,
    require_expected,
    require_opening,
    require_result,
)
from edgen.protocols.base import ConversationProtocol, SelfDescription, SimulatedAnswers, make_call_seed
from edgen.protocols.reasons import REASONS
from edgen.providers import make
from edgen.testing.check import SPACE, Check, ConformanceError, begin_check, register_for_check
from edgen.testing.families import make_provenance
from edgen.validation.schema import explain_invalid, is_valid

_BAD_REPLIES = (
    Reply(""),
    Reply(" \n"),
    Reply("", refusal="I cannot help."),
    Reply("", finish_reason="content_filter"),
    Reply("???", finish_reason="length"),
    Reply("null"),
    Reply("[]"),
    Reply('{"turns": 3}'),
    Reply("Ä" * 50_000),
    Reply("\x00\u2028🙂"),
)
_FOREIGN = (Message("user", "Name three rivers of Europe, and nothing else."),)


def check_protocol(
    protocol: ConversationProtocol,
    job: Mapping[str, Any] | None = None,
    *,
    answer: Callable[[Request], str] | None = None,
    base: Path | None = None,
) -> None:
    """Check a protocol of conversations. `job`: keys of a job with the protocol, added to a small job about
    the space education_dialogue_faithful. `base`: the folder to which paths in it are relative. `answer`
    replies to its requests; by default the simulator does, so the protocol needs SimulatedAnswers."""
    check = begin_check("protocol", protocol)
    check.that(isinstance(protocol, ConversationProtocol), "is not an edgen.plugin.ConversationProtocol")
    with register_for_check("protocol", protocol):
        plan = check.value(
            "a job with it cannot be planned; give the keys that it needs, such as a space, as `job`",
            lambda: _make_plan(protocol, job or {}, base),
        )
        _check_protocol_facts(check, protocol, plan)
        simulated = part_of(protocol, SimulatedAnswers).simulated
        foreign = check.value("`simulated` raises", simulated, _make_simulation(_FOREIGN))
        check.that(foreign is None, "`simulated` answers a prompt of another protocol; return None there")
        respond = answer or _make_simulator()
        replies: list[Reply] = []

        def reply_to(request: Request) -> Reply:
            replies.append(Reply(respond(request)))
            return replies[-1]

        first, result = _drive(check, plan, reply_to)
        kept = tuple(replies)
        again, same = _drive(check, plan, lambda request: Reply(respond(request)))
        check.that(
            first == again and result == same, "the same replies lead to other requests; it has to be pure"
        )
        made = _encode_work(first, result)
        check.require_same_elsewhere(
            "its requests", made, _drive_elsewhere, protocol, dict(job or {}), base, kept
        )
        check.that(
            isinstance(result, Conversation),
            f"usual replies lead to no conversation: {getattr(result, 'detail', result)}",
        )
        _check_record(check, plan, result)
        roles = part_of(protocol, RolesAndSettings).roles(plan.job)
        for request in first:
            check.that(request.role in roles, f"asks the role {request.role!r}, which `roles` does not list")
        addresses = [request.address for request in first]
        check.that(len({*addresses}) == len(addresses), "asks twice at one address; count `step` up")
        _check_calls(check, plan, first)
        for scenario, replicate in ((0, 1), (1, 0)):
            asked, _ = _drive(check, plan, lambda request: Reply(respond(request)), scenario, replicate)
            check.that(
                {request.address for request in asked} != {*addresses},
                "asks a scenario's second conversation at the addresses of its first; give `replicate` to Address",
            )
        for reply in _BAD_REPLIES:
            _drive(check, plan, _make_constant_answer(reply))


def _check_protocol_facts(check: Check, protocol: ConversationProtocol, plan: Plan) -> None:
    several = part_of(protocol, RolesAndSettings)
    roles = check.value("`roles` raises", lambda: several.roles(plan.job))
    check.that(isinstance(roles, tuple) and len(roles) > 0, "`roles` is not a tuple of names")
    before = 0
    for level in (0, 1, 2):
        calls = check.value(
            f"`expected` fails for level {level}", require_expected, protocol, plan.job, level
        )
        check.that(len(calls) > 0, f"`expected` gives no call for level {level}")
        check.that(
            len(calls) >= before, f"`expected` has fewer calls for level {level} than for level {level - 1}"
        )
        before = len(calls)
        for one in calls:
            ordered = [*one.tokens] == sorted(one.tokens)
            check.that(ordered, f"`expected` has the tokens {one.tokens}; few come first, and many last")
    opening = check.value("`opening` raises", lambda: plan.opening(plan.scenario(0)))
    check.value("`opening` fails", require_opening, protocol, plan.job, opening, plan.templates)
    described = part_of(protocol, SelfDescription)
    caveats = check.value("`caveats` raises", lambda: [*described.caveats(plan.settings)])
    check.that(all(isinstance(one, str) and one for one in caveats), "`caveats` gives no sentences")
    step = check.value("`role_of` raises", lambda: several.role_of(plan.job, 0))
    check.that(step is None or step in roles, f"`role_of` names {step!r}, which `roles` does not list")


def _check_record(check: Check, plan: Plan, result: Any) -> None:
    """Check that the job's family can record a conversation."""
    recorded = Recorded("check-000000-r0", plan.scenario(0), result, make_provenance(0, result))
    record = check.value("its conversation cannot be recorded", plan.family.record, recorded)
    if not is_valid(record, plan.family.schema):
        check.fail(f"its conversation makes a record that {explain_invalid(record, plan.family.schema)}")
    change = check.value("its record cannot be read", find_change, plan.family, recorded, record)
    check.that(change is None, f"the family {plan.family.name} does not keep its conversation: {change}")


def _check_calls(check: Check, plan: Plan, asked: Sequence[Request]) -> None:
    """Check the calls of a usual conversation against `expected` and `opening`, and that the conversation can
    be given up after its first request."""
    most = len(require_expected(plan.protocol, plan.job, 2))
    check.that(
        len(asked) <= most, f"makes {len(asked)} requests; `expected` has {most} for level 2, the maximum"
    )
    opening = plan.opening(plan.scenario(0))
    shown = asked[0].prose or asked[0].messages
    check.that(
        shown in opening.values() or asked[0].messages in opening.values(),
        "its first request is none of the messages of `opening`, which `edgen preview` shows",
    )
    work = plan.protocol.start(plan.scenario(0), 0, plan.prompts, plan.rules)
    next(work)
    check.value("cannot be given up after its first request", work.close)


def _encode_work(asked: Sequence[Request], result: Conversation | Rejection) -> bytes:
    """Return the parts of requests that shape answers and their addresses, and the result, as JSON."""
    plain = [(one.address, one.messages, one.seed, one.role, one.schema, one.prose) for one in asked]
    return msgspec.json.encode((plain, result), order="deterministic")


def _drive_elsewhere(
    protocol: ConversationProtocol, keys: Mapping[str, Any], base: Path | None, replies: Sequence[Reply]
) -> bytes:
    """Run the conversation that got these replies; return what `_encode_work` does."""
    with register_for_check("protocol", protocol):
        plan, left = _make_plan(protocol, keys, base), iter(replies)
        check = begin_check("protocol", protocol)
        return _encode_work(*_drive(check, plan, lambda _: next(left, Reply(""))))


def _drive(
    check: Check, plan: Plan, reply: Callable[[Request], Reply], scenario: int = 0, replicate: int = 0
) -> tuple[list[Request], Conversation | Rejection]:
    """Run one conversation to its end; return its requests and its result."""
    asked: list[Request] = []
    guard = RequestCheck(plan.protocol.name, scenario, limit_requests(plan.protocol, plan.job))
    drawn = plan.scenario(scenario)
    before = msgspec.json.encode(drawn)
    work: Generator[Request, Reply, Any] = plan.protocol.start(drawn, replicate, plan.prompts, plan.rules)
    if not isinstance(work, Generator):
        check.fail(f"`start` returns {describe_type(work)}, not a generator")
    try:
        request = next(work)
        while True:
            checked = check.value("yields a request that cannot be sent", guard, request)
            check.that(checked is request, "yields a request with a lone surrogate in its messages")
            own, seed = plan.protocol.name, make_call_seed(plan.rules.seed, request.address)
            check.that(request.protocol == own, f"yields a request of the protocol {request.protocol!r}")
            check.that(
                request.seed == seed,
                "yields a request with a `seed` that does not follow from its address; make it with `ask` or "
                "Question",
            )
            asked.append(request)
            request = work.send(reply(request))
    except StopIteration as end:
        result = end.value
    except (EdgenError, ConformanceError):
        raise
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        check.fail(f"raises {type(error).__name__}: {error}; a bad reply is a Rejection", error)
    check.that(msgspec.json.encode(drawn) == before, "changes the scenario that it is given")
    right = isinstance(result, Conversation | Rejection)
    check.that(right, f"returns {describe_type(result)}, not a Conversation or a Rejection")
    stored = check.value(
        "returns a result that cannot be stored",
        require_result,
        plan.protocol.name,
        result,
        plan.job.speakers,
    )
    check.that(stored == result, "returns a result with a lone surrogate")
    if isinstance(result, Conversation):
        same = msgspec.convert(msgspec.to_builtins(result), Conversation) == result
        check.that(same, "returns a Conversation with a list in place of a tuple")
    if isinstance(result, Rejection):
        check.that(
            result.reason in {*REASONS, *(one.code for one in plan.protocol.reasons)},
            f"rejects with the reason {result.reason!r}, which its `reasons` does not explain",
        )
    return asked, result


def _make_plan(protocol: ConversationProtocol, keys: Mapping[str, Any], base: Path | None) -> Plan:
    plain = {
        "name": "check",
        "seed": 7,
        "conversations": 2,
        "space": SPACE,
        "backends": {"default": {"type": "simulator"}},
        **keys,
        "protocol": protocol.name,
    }
    return make_plan(parse_job(plain, "of the check"), AllowedFiles(base or Path.cwd(), None))


def _make_constant_answer(reply: Reply) -> Callable[[Request], Reply]:
    return lambda _: reply


def _make_simulator() -> Callable[[Request], str]:
    from edgen.simulator.config import SimulatorConfig

    backend = make(SimulatorConfig(), timeout=30.0, connections=1, environ={})

    def respond(request: Request) -> str:
        return asyncio.run(backend.complete(request)).text

    return respond


def _make_simulation(messages: tuple[Message, ...]) -> Any:
    """Return the simulation that a protocol gets for these messages."""
    from edgen.simulator.simulated_request import SimulatedRequest

    return SimulatedRequest(messages, None, Random(7))  # noqa: S311 - reproducible, not secret
