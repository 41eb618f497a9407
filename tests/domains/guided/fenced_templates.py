"""Templates of this domain that show a fence, for tests/protocols/test_fences.py."""

from __future__ import annotations

from typing import Any

from tests.protocols.fenced import fenced

GUIDED: dict[str, Any] = {
    "role": "Helper",
    "partner": "Caller",
    "about": [],
    "world": [],
    "conversation": "…",
}
PROMPTS = {
    "guided_wizard_guarded": fenced(
        "guided_wizard_guarded",
        **GUIDED,
        options=["Hello."],
        replies=[],
        hint=1,
        free=True,
        seconds_left=None,
    ),
    "guided_paraphrase_guarded": fenced("guided_paraphrase_guarded", **GUIDED, utterance="Hello.", keep=[]),
    "guided_questionnaire_guarded": fenced(
        "guided_questionnaire_guarded", **GUIDED, items=["task: easy"], success=True, form="{}"
    ),
}
