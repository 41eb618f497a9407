"""Prompts that show turns between fences, rendered as in tests of the fences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from edgen.core.resources import find
from edgen.core.values import Address, Turn
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.fence import fence_turns

HERE = Address(0, 0)


def load_shipped(name: str, variables: Collection[str], expects: str | None = None) -> Prompt:
    """Load a shipped template, once for all turns that it shows."""
    return _load(name, frozenset(variables), expects)


@functools.cache
def _load(name: str, variables: frozenset[str], expects: str | None) -> Prompt:
    return load_prompt(find("prompts", name), variables, expects=expects)


def render(name: str, variables: Mapping[str, Any]) -> str:
    prompt = load_shipped(name, variables.keys())
    return "\n".join(message.content for message in prompt.messages(variables))


def fenced(name: str, **told: Any) -> Callable[[list[Turn]], str]:
    """Return a function that renders a template from turns, with FENCED and the given variables."""
    return lambda turns: render(name, {**told, **fence_turns(7, 0, 0, turns)})
