"""A refusal by a service's moderation counts as a reply to the prompt; other errors with
similar words do not."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply
from edgen.providers import make
from edgen.providers.openai.config import OpenAIConfig
from tests.providers.fakes import FakeServer, answer, request

OPENROUTER = (
    'm requires moderation on OpenAI. Your input was flagged for "violence". No credits were charged.'
)
AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
PROMPT = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."


async def asked(fake: FakeServer, error: dict[str, Any], status: int) -> Reply:
    fake.says(answer({"error": error}, status))
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1")
    it = make(config, timeout=60, connections=1, environ={})
    try:
        return await it.complete(request())
    finally:
        await it.aclose()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, {"code": 403, "message": OPENROUTER, "metadata": {"reasons": ["violence"]}}),
        (200, {"code": 403, "message": OPENROUTER}),
        (403, {"code": 403, "message": "no", "metadata": {"flagged_input": "how to", "reasons": []}}),
        (400, {"code": 400, "message": "no", "metadata": {"raw": '{"code": "content_filter"}'}}),
        (400, {"code": "content_filter", "message": "no", "status": 400}),
        (400, {"code": None, "message": AZURE}),
        (400, {"code": "content_policy_violation", "message": "no"}),
        (400, {"code": "invalid_prompt", "message": PROMPT}),
        (403, {"code": "moderation_blocked", "message": "no"}),
    ],
)
async def test_a_moderated_prompt_is_a_refusal(fake: FakeServer, status: int, error: dict[str, Any]) -> None:
    assert await asked(fake, error, status) == Reply("", "content_filter", error["message"])
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (403, {"message": "Your account was flagged for abuse."}, FailureKind.PERMISSION),
        (403, {"message": "Country not supported"}, FailureKind.PERMISSION),
        (400, {"message": "Unsupported parameter"}, FailureKind.BAD_REQUEST),
        (429, {"message": "moderation takes 5 prompts a second"}, FailureKind.RATE_LIMIT),
        (200, {"message": "moderation takes 5 prompts a second", "code": 429}, FailureKind.RATE_LIMIT),
        (400, {"message": "moderation", "code": "invalid_api_key"}, FailureKind.AUTHENTICATION),
    ],
)
async def test_other_errors_stay_errors(
    fake: FakeServer, status: int, error: dict[str, Any], kind: FailureKind
) -> None:
    with pytest.raises(CallError) as caught:
        await asked(fake, error, status)
    assert caught.value.kind is kind
