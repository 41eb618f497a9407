"""OpenAI's batches of responses: those of completions, with another path in each line and other answers."""

from __future__ import annotations

from edgen.providers.batches import LineResult, NeverBegun
from edgen.providers.failures import Secrets
from edgen.providers.openai import batches as completions
from edgen.providers.openai_responses.online import classify, read_reply

RESPONSES = completions.Endpoint("/v1/responses", read_reply, classify)


class ResponsesBatches(completions.OpenAIBatches):
    """The batches of one account, for one backend."""

    endpoint = RESPONSES


def read_line(line: bytes, secrets: Secrets = ()) -> LineResult | NeverBegun | None:
    """What a line of an output or error file says, without `secrets`; None if it is none. Never raises."""
    return completions.read_line(line, secrets, RESPONSES)
