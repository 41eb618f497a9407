"""One prompt plays both sides, as Education Dialogue was made."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.model import Address, Conversation, Rejection, Reply, Scenario
from edgen.prompting import scenario_variables
from edgen.protocols.base import Conversing, Prompting, Rules, ask
from edgen.transcript import read


def oneshot(scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules) -> Conversing:
    """Yields one request per ask; returns the first conversation, or the last rejection."""
    messages = prompts["default"].messages(scenario_variables(scenario))

    def heard(reply: Reply) -> Conversation | Rejection:
        return read(reply.text, finish_reason=reply.finish_reason, refusal=reply.refusal, words=rules.words)

    return (yield from ask(Address(scenario.index, replicate), messages, rules, heard))
