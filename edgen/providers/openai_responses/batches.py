"""OpenAI's batches of responses, which differ from completions by path and answer format."""

from __future__ import annotations

from edgen.plugin.providers import LineResult, NeverBegun, Secrets
from edgen.providers.openai import batches as completions
from edgen.providers.openai_responses.online import classify, read_reply

RESPONSES = completions.Endpoint("/v1/responses", read_reply, classify)


class ResponsesBatches(completions.OpenAIBatches):
    """Client of the batches of one account, for one backend."""

    endpoint = RESPONSES


def read_line(line: bytes, secrets: Secrets = ()) -> LineResult | NeverBegun | None:
    """Read a line of an output or error file, without `secrets`; None if it is invalid. Never raises."""
    return completions.read_line(line, secrets, RESPONSES)
