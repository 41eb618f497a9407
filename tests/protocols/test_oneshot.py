"""One prompt for the whole conversation: the other parts of its request."""

from __future__ import annotations

import dataclasses
import json

import pytest

from edgen.core.resources import find
from edgen.core.values import Request
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.base import Rules
from edgen.protocols.oneshot import ONESHOT
from edgen.providers.openai.config import OpenAIConfig
from tests.protocols.play import SCENARIO
from tests.scenarios import DEFAULT_VARIABLES

pytestmark = pytest.mark.unit


def prompt() -> Prompt:
    return load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES, expects="conversation")


def requested(rules: Rules, prompt: Prompt) -> Request:
    return next(ONESHOT.start(SCENARIO, 0, {"default": prompt}, rules))


def test_speakers_have_the_jobs_own_words() -> None:
    asked = requested(Rules(asks=1, seed=7, words=(("Teacher", ("Coach",)),)), prompt())
    assert asked.speakers == (("Teacher", "Coach"), ("Student",))


@pytest.mark.parametrize(("room", "most", "longest"), [(None, 24, 500), (600, 8, 204), (100, 4, 50)])
def test_a_conversation_of_the_form_fits_the_answers_tokens(
    room: int | None, most: int, longest: int
) -> None:
    backend = OpenAIConfig(model="m", max_tokens=room)
    rules = Rules(asks=1, seed=7, backends={"default": backend})
    asked = requested(rules, dataclasses.replace(prompt(), forms="auto"))
    turns = json.loads(asked.schema or b"")["properties"]["conversation"]
    assert (turns["minItems"], turns["maxItems"]) == (4, most)
    assert turns["items"]["properties"]["text"]["maxLength"] == longest
