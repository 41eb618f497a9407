"""A conversation as the messages that a chat template takes.

One role is trained and is the assistant; all others are the user. Two turns running of one side become one message,
joined by a blank line, so that the two always alternate; where several roles are the user, each of their turns begins
with the name of who speaks. A conversation that the assistant begins gets an opening user line, a system message, or
both; one that the user begins needs no user line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from edgen.core import resources
from edgen.core.errors import TemplateError, UsageError
from edgen.core.values import Role, Scenario, Turn
from edgen.export.options import ExportOptions, Opening
from edgen.prompting import Prompt, load_prompt, scenario_variables
from edgen.space import Space
from edgen.space.education import is_education, template_variables

Message = dict[str, str]


def make_chat(options: ExportOptions, space: Space) -> Chat:
    """The chat that the options ask for. The assistant is the first role of the space where nobody chose one.

    Raises UsageError for a role that the space has not, TemplateError for a template that cannot be used.
    """
    roles = {role.name.lower(): role.name for role in space.roles}
    assistant = space.roles[0].name if options.train is None else roles.get(options.train.lower())
    if assistant is None:
        raise UsageError(
            f"--train {options.train}: the space {space.name} has no such role (there: {', '.join(roles)})."
        )
    usual = "export_opening" if is_education(space) else "export_opening_roles"
    named = options.opening_prompt
    path = resources.find("prompts", usual) if named is None else Path(named)
    prompt = load_prompt(path, opening_variables(space), expects="opening")
    return Chat(assistant, options.opening or "user", prompt, space)


def opening_variables(space: Space) -> tuple[str, ...]:
    """What a template of an opening may use: the role that is trained, the others, what that role may know as lines,
    and the scenario."""
    return ("role", "others", "brief", *template_variables(space))


@dataclass(slots=True)
class Chat:
    """How turns become messages. `assistant` is the role that is trained; `prompt` gives the texts of the opening,
    from `opening_variables`."""

    assistant: Role
    opening: Opening
    prompt: Prompt
    space: Space
    _last: tuple[Scenario, dict[str, str]] | None = field(default=None, repr=False)

    @property
    def users(self) -> list[Role]:
        """The other roles."""
        return [role.name for role in self.space.roles if role.name != self.assistant]

    def messages(self, turns: Sequence[Turn], scenario: Scenario) -> list[Message]:
        """The messages of a conversation of one or more turns, whatever it opens with included.

        Raises TemplateError where the opening cannot be rendered.
        """
        messages: list[Message] = []
        if self.opening != "user":
            messages.append({"role": "system", "content": self._text("system", scenario)})
        if self.opening != "system" and turns[0].role == self.assistant:
            messages.append({"role": "user", "content": self._text("user", scenario)})
        names_speakers = len(self.space.roles) > 2
        previous: str | None = None
        for turn in turns:
            side = "assistant" if turn.role == self.assistant else "user"
            text = f"{turn.role}: {turn.text}" if names_speakers and side == "user" else turn.text
            if side == previous:
                messages[-1]["content"] += f"\n\n{text}"
            else:
                messages.append({"role": side, "content": text})
            previous = side
        return messages

    def _text(self, block: str, scenario: Scenario) -> str:
        # Conversations come scenario by scenario, so the last opening is nearly always the next one.
        if self._last is None or self._last[0] != scenario:
            variables = {
                **scenario_variables(scenario),
                "role": self.assistant.lower(),
                "others": " and the ".join(self.users).lower(),
                "brief": self._brief(scenario),
            }
            rendered: dict[str, str] = {m.role: m.content for m in self.prompt.messages(variables)}
            if block not in rendered:
                raise TemplateError(
                    self.prompt.source,
                    f"this opening needs a {block} message; write it into {{% block {block} %}} … {{% endblock %}}.",
                )
            self._last = (scenario, rendered)
        return self._last[1][block]

    def _brief(self, scenario: Scenario) -> str:
        """What the assistant may know of the scenario, a line a dimension."""
        seen = next(role.sees for role in self.space.roles if role.name == self.assistant)
        labels = {one.name: one.label or one.name.replace("_", " ") for one in self.space.dimensions}
        return "\n".join(f"- {labels[name]}: {scenario[name]}" for name in seen)


def without_trailing_user(messages: list[Message]) -> list[Message]:
    """The messages up to the assistant's last one."""
    return messages[:-1] if messages[-1]["role"] == "user" else messages


def digest_of(messages: Sequence[Message]) -> bytes:
    """16 bytes that stand for what messages say."""
    return blake2b(msgspec.json.encode(messages), digest_size=16).digest()
