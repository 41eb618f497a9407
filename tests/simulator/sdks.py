"""The vendors' clients for tests of the served simulator.

They share one TLS context, which is expensive to make.
"""

from __future__ import annotations

from typing import Any

from edgen.providers.sdk import system_certificates
from tests.late import Late

anthropic, openai, genai = Late("anthropic"), Late("openai"), Late("google.genai")
types = Late("google.genai.types")


def openai_client(address: str, *, max_retries: int = 0, **more: Any) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=system_certificates())
    return openai.AsyncOpenAI(
        base_url=f"{address}/v1", api_key="any", max_retries=max_retries, http_client=http, **more
    )


def anthropic_client(address: str) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=system_certificates())
    return anthropic.AsyncAnthropic(api_key="any", base_url=address, max_retries=0, http_client=http)


def gemini_client(address: str, **options: Any) -> genai.Client:
    trusted = {"verify": system_certificates(), "ssl": system_certificates()}
    http = types.HttpOptions(base_url=address, client_args=trusted, async_client_args=trusted, **options)
    return genai.Client(api_key="any", http_options=http)
