"""Checks of the requests that a plugin's protocol yields, one conversation at a time."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.config import Job
from edgen.core.plugin_faults import blame, refuse_value, require_type, require_value
from edgen.core.values import Address, Message, Request
from edgen.protocols.base import ConversationProtocol

MOST_REQUESTS = 500  # of one conversation, where a protocol does not expect more
_SLACK = 4  # times the calls that it expects at most


def limit_requests(protocol: ConversationProtocol, job: Job) -> int:
    """Return the number of requests of one conversation after which a plugin's protocol never ends.

    A question is asked `asks` times at most, and so is a conversation that fails a gate. Raises
    FaultyPluginError if `expected` raises or returns no tuple.
    """
    try:
        calls = protocol.expected(job, 2)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again
        blame("protocol", protocol.name, error)
    require_type("protocol", protocol.name, calls, tuple, "a tuple of ExpectedCall")
    return max(MOST_REQUESTS, _SLACK * len(calls) * job.asks**2)


class RequestCheck:
    """The check of the requests of one conversation. `most`: see `limit_requests`."""

    def __init__(self, protocol: str, scenario: int, most: int) -> None:
        self._protocol, self._scenario, self._most = protocol, scenario, most
        self._count = 0

    def __call__(self, request: Any) -> Request:
        """Return a request, with U+FFFD for lone surrogates in its messages. Raises FaultyPluginError for one
        that cannot be sent or stored."""
        name = self._protocol
        if not isinstance(request, Request):
            refuse_value("protocol", name, f"yielded a {type(request).__name__}, not a Request")
        require_value("protocol", name, request.address, Address, "a Request with an Address")
        if (other := request.address.scenario) != self._scenario:
            said = f"yielded a request at the address of scenario {other} in scenario {self._scenario}"
            refuse_value("protocol", name, said)
        kind = tuple[Message, ...]
        messages = require_value(
            "protocol", name, request.messages, kind, "a Request with a tuple of Messages"
        )
        self._count += 1
        if self._count > self._most:
            said = f"asked {self._most:,} requests in one conversation and did not end; its `expected` gives fewer"
            refuse_value("protocol", name, said)
        return (
            request if messages is request.messages else msgspec.structs.replace(request, messages=messages)
        )
