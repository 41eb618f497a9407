"""A conversation as the messages that a chat template takes, seen from the side that is trained.

The trained side is the assistant, the other the user. Two turns running of one side become one message,
joined by a blank line, so that the two always alternate. A conversation that the trained side begins gets
an opening user line, a system message, or both; one that the other side begins needs no user line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from edgen.errors import TemplateError
from edgen.model import Role, Scenario, Turn
from edgen.prompting import SCENARIO_VARIABLES, Prompt, scenario_variables

Opening = Literal["user", "system", "both"]
Message = dict[str, str]
OPENING_VARIABLES: tuple[str, ...] = ("role", *SCENARIO_VARIABLES)


@dataclass(slots=True)
class Voice:
    """How turns become messages. `prompt` gives the texts of the opening, from OPENING_VARIABLES."""

    train: Role
    opening: Opening
    prompt: Prompt
    _last: tuple[Scenario, dict[str, str]] | None = field(default=None, repr=False)

    def messages(self, turns: Sequence[Turn], scenario: Scenario) -> list[Message]:
        """The messages of a conversation of one or more turns, whatever it opens with included.

        Raises TemplateError where the opening cannot be rendered.
        """
        messages: list[Message] = []
        if self.opening != "user":
            messages.append({"role": "system", "content": self._text("system", scenario)})
        if self.opening != "system" and turns[0].role == self.train:
            messages.append({"role": "user", "content": self._text("user", scenario)})
        previous: Role | None = None
        for turn in turns:
            if turn.role == previous:
                messages[-1]["content"] += f"\n\n{turn.text}"
            else:
                role = "assistant" if turn.role == self.train else "user"
                messages.append({"role": role, "content": turn.text})
            previous = turn.role
        return messages

    def _text(self, block: str, scenario: Scenario) -> str:
        # Conversations come scenario by scenario, so the last opening is nearly always the next one.
        if self._last is None or self._last[0] != scenario:
            variables = {**scenario_variables(scenario), "role": self.train.lower()}
            rendered: dict[str, str] = {m.role: m.content for m in self.prompt.messages(variables)}
            if block not in rendered:
                raise TemplateError(
                    self.prompt.source,
                    f"this opening needs a {block} message; write it into {{% block {block} %}} … {{% endblock %}}.",
                )
            self._last = (scenario, rendered)
        return self._last[1][block]


def without_trailing_user(messages: list[Message]) -> list[Message]:
    """The messages up to the assistant's last one."""
    return messages[:-1] if messages[-1]["role"] == "user" else messages


def masked(messages: list[Message]) -> list[dict[str, str | bool]]:
    """The messages, each with `train`: whether the trained side wrote it."""
    return [{**message, "train": message["role"] == "assistant"} for message in messages]
