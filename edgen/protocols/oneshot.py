"""One prompt plays both sides, as Education Dialogue was made.

An answer that is no conversation is asked for afresh, never with the wreck in the prompt; one that
was cut off is asked for with twice the room.
"""

from __future__ import annotations

from edgen.errors import CallError, FailureKind
from edgen.model import Address, Conversation, Rejection, RejectionReason, Request, Scenario
from edgen.prompting import scenario_variables
from edgen.protocols.base import Conversing, Prompting, Rules, call_seed
from edgen.transcript import read

_NO_MORE_ROOM = (FailureKind.BAD_REQUEST, FailureKind.CONTEXT_OVERFLOW)


def oneshot(scenario: Scenario, replicate: int, prompt: Prompting, rules: Rules) -> Conversing:
    """Yields one request per ask; returns the first conversation, or the last rejection."""
    messages = prompt.messages(scenario_variables(scenario))
    scale = 1
    result: Conversation | Rejection = Rejection(RejectionReason.EMPTY, "it was never asked")
    for attempt in range(rules.asks):
        address = Address(scenario.index, replicate, step=0, attempt=attempt)
        try:
            reply = yield Request(
                address, messages, seed=call_seed(rules.seed, address), max_tokens_scale=scale
            )
        except CallError as failure:
            if scale > 1 and failure.kind in _NO_MORE_ROOM:
                return result  # the model has no more room to give: it stays cut off
            raise
        result = read(reply.text, finish_reason=reply.finish_reason, refusal=reply.refusal)
        if isinstance(result, Conversation):
            return result
        if result.reason is RejectionReason.TRUNCATED:
            scale *= 2
    return result
