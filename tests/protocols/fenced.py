"""Prompts that show turns between fences, rendered as in tests of the fences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgen.core.resources import find
from edgen.core.values import Address, Turn
from edgen.prompting import load_prompt
from edgen.protocols.fence import fence_turns

HERE = Address(0, 0)


def render(name: str, variables: Mapping[str, Any]) -> str:
    prompt = load_prompt(find("prompts", name), variables.keys())
    return "\n".join(message.content for message in prompt.messages(variables))


def fenced(name: str, **told: Any) -> Callable[[list[Turn]], str]:
    """Return a function that renders a template from turns, with FENCED and the given variables."""
    return lambda turns: render(name, {**told, **fence_turns(7, 0, 0, turns)})
