"""A conversation as the messages that a chat template takes.

One role is trained and is the assistant; all others are the user. Two turns running of one side become one message,
joined by a blank line, so that the two always alternate; where several roles are the user, each of their turns begins
with the name of who speaks. A conversation that the assistant begins gets an opening user line, a system message, or
both; one that the user begins needs no user line. A template that asks for turns, as the environment's do, opens as the
environment shows it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.core import resources
from edgen.core.errors import TemplateError, UsageError
from edgen.core.values import END_MARKER, Role, Scenario, Turn
from edgen.core.yaml_values import read_text
from edgen.export.options import ExportOptions, Opening, Told
from edgen.export.own_options import FormatOptions
from edgen.export.tokens import ChatTokenizer, load_tokenizer
from edgen.families.base import Scene, Scenes
from edgen.space import Space
from edgen.space.education import is_education, template_fields, template_variables

if TYPE_CHECKING:
    from edgen.prompting import Prompt

Message = dict[str, str]
DO_THIS = "Do this now:"  # before the actions that a prompt asks for, as templates of tutoring say it


def make_chat(options: ExportOptions, space: Space, scenes: Scenes | None = None) -> Chat:
    """The chat that the options ask for. The assistant is the first role of the space where nobody chose one. `scenes` are
    those of the conversations' family.

    Raises UsageError for a role that the space has not and for a tokenizer that cannot be used, TemplateError for such a
    template.
    """
    assistant = _role_of("--train", options.train, space)
    prompt = _load_opening(options.opening_prompt, assistant, space)
    for_turns = prompt.front.expects == "turn"
    if for_turns and options.opening is not None:
        raise UsageError(
            f"--opening {options.opening}: {prompt.source} asks for turns and brings its own opening; leave --opening out."
        )
    end_marker = options.end_marker or ("keep" if for_turns else "drop")
    chat = Chat(
        assistant,
        options.opening or "user",
        prompt,
        space,
        keeps_end=end_marker == "keep",
        masks=options.masks is not False,
        min_turns_left=options.min_turns_left,
        scenes=scenes,
        actions=options.actions,
        alternatives=options.alternatives is True,
        agent=_role_of("--agent", options.agent, space),
    )
    chat.tokens = load_tokenizer(options)
    return chat


def _role_of(option: str, named: str | None, space: Space) -> Role:
    """The role that an option names; the first of the space where it names none."""
    roles = {role.name.lower(): role.name for role in space.roles}
    found = space.roles[0].name if named is None else roles.get(named.lower())
    if found is None:
        raise UsageError(
            f"{option} {named}: the space {space.name} has no such role (there: {', '.join(roles)})."
        )
    return found


def _load_opening(named: str | Path | None, assistant: Role, space: Space) -> Prompt:
    """The template of the opening: a file, or the name of a shipped one. One that asks for turns may use what the
    environment tells the role. Raises TemplateError for one that cannot be used."""
    from edgen.prompting import load_prompt
    from edgen.prompting.front_matter import read_front

    if named is None:
        named = "export_opening" if is_education(space) else "export_opening_roles"
    shipped = str(named) in resources.shipped("prompts")
    path = resources.find("prompts", str(named)) if shipped else Path(named)
    if read_front(read_text(path, TemplateError), str(path)).expects != "turn":
        return load_prompt(path, opening_variables(space), expects="opening")
    sees = next(role.sees for role in space.roles if role.name == assistant)
    return load_prompt(path, template_variables(space, sees), fields=template_fields(space))


def opening_variables(space: Space) -> tuple[str, ...]:
    """What a template of an opening may use: the role that is trained, the others, what that role may know as lines,
    and the scenario."""
    return ("role", "others", "brief", *template_variables(space))


@dataclass(slots=True)
class Chat:
    """How turns become messages. `assistant` is the role that is trained; `prompt` gives the texts of the opening,
    from `opening_variables`, or those of the environment if it asks for turns. `keeps_end`: the end marker stands
    behind the last words of the assistant, where it spoke it. `masks`: formats that mark the trained messages do so. `min_turns_left`:
    a pair is no row where fewer turns follow the one at which it parts. `scenes`: what single responses are said in, where
    conversations are about several things. `agent` is the role that answers users. `actions`: what tells a prompt what the response is to do. `alternatives`:
    responses that did not go on are responses, too. `own`: what was chosen of the format's own options."""

    assistant: Role
    opening: Opening
    prompt: Prompt
    space: Space
    keeps_end: bool = False
    masks: bool = True
    min_turns_left: int | None = None
    scenes: Scenes | None = None
    actions: Told | None = None
    alternatives: bool = False
    agent: Role = ""
    tokens: ChatTokenizer | None = field(default=None, init=False, repr=False)  # where a tokenizer was given
    own: FormatOptions | None = None
    _last: tuple[Scenario, list[Message]] | None = field(default=None, repr=False)

    @property
    def users(self) -> list[Role]:
        """The other roles."""
        return [role.name for role in self.space.roles if role.name != self.assistant]

    @property
    def as_environment(self) -> bool:
        """Whether a conversation opens as the environment shows it."""
        return self.prompt.front.expects == "turn"

    def messages(
        self, turns: Sequence[Turn], scenario: Scenario, ended_by: Role | None = None
    ) -> list[Message]:
        """The messages of a conversation of one or more turns, whatever it opens with included. `ended_by` is who
        spoke the end marker, which turns do not hold.

        Raises TemplateError where the opening cannot be rendered.
        """
        messages = self._open(scenario, assistant_first=turns[0].role == self.assistant)
        names_speakers = len(self.space.roles) > 2
        if self.keeps_end and ended_by == self.assistant:
            turns = _with_end(turns, ended_by)
        for turn in turns:
            side = "assistant" if turn.role == self.assistant else "user"
            text = f"{turn.role}: {turn.text}" if names_speakers and side == "user" else turn.text
            if messages and messages[-1]["role"] == side:
                messages[-1]["content"] += f"\n\n{text}"
            else:
                messages.append({"role": side, "content": text})
        return messages

    def prompt_in(self, scene: Scene, turns: Sequence[Turn]) -> list[Message]:
        """The messages before a response in a scene: its turns, one at least; what the assistant knows of the scene
        stands at the end of the first message."""
        messages = self.messages(turns[scene.begin :], scene.scenario)
        if scene.brief:
            messages[0]["content"] += f"\n\n{scene.brief}"
        return messages

    def tell(self, prompt: list[Message], response: Turn) -> list[Message] | None:
        """The prompt with what the response is to do at the end of its last message, where that is wanted; None where
        nothing says what."""
        if self.actions is None:
            return prompt
        named = response.labels if self.actions == "labels" else response.data.get("wanted", ())
        actions = [named] if isinstance(named, str) else list(named)
        if not actions or not prompt:
            return None
        last = prompt[-1]
        return [*prompt[:-1], {**last, "content": f"{last['content']}\n\n{DO_THIS} {', '.join(actions)}"}]

    def mask(self, message: Message) -> dict[str, bool]:
        """Whether a message is trained, as `train`; nothing where no masks are wanted."""
        return {"train": message["role"] == "assistant"} if self.masks else {}

    def _open(self, scenario: Scenario, *, assistant_first: bool) -> list[Message]:
        """What stands before the first turn."""
        if self.as_environment:
            rendered = self._render(scenario)
            if assistant_first:
                return [{**message} for message in rendered]
            # As selfplay does: the brief of a role that does not open is one message, so that others come first.
            text = "\n\n".join(message["content"] for message in rendered)
            return [{"role": rendered[0]["role"], "content": text}]
        blocks = [] if self.opening == "user" else ["system"]
        if self.opening != "system" and assistant_first:
            blocks.append("user")
        return [self._block(block, scenario) for block in blocks]

    def _block(self, block: str, scenario: Scenario) -> Message:
        """The message of a block. Raises TemplateError where the template has none."""
        for message in self._render(scenario):
            if message["role"] == block:
                return {**message}
        raise TemplateError(
            self.prompt.source,
            f"this opening needs a {block} message; write it into {{% block {block} %}} … {{% endblock %}}.",
        )

    def _render(self, scenario: Scenario) -> list[Message]:
        from edgen.prompting import scenario_variables

        # Conversations come scenario by scenario, so the last opening is nearly always the next one.
        if self._last is None or self._last[0] != scenario:
            variables = {
                **scenario_variables(scenario),
                "role": self.assistant.lower(),
                "others": " and the ".join(self.users).lower(),
                "brief": self._brief(scenario),
            }
            made = self.prompt.messages(variables)
            self._last = (scenario, [{"role": one.role, "content": one.content} for one in made])
        return self._last[1]

    def _brief(self, scenario: Scenario) -> str:
        """What the assistant may know of the scenario, a line a dimension. What it sees of exercises is none."""
        seen = next(role.sees for role in self.space.roles if role.name == self.assistant)
        labels = {one.name: one.label or one.name.replace("_", " ") for one in self.space.dimensions}
        return "\n".join(f"- {labels[name]}: {scenario[name]}" for name in seen if name in labels)


def _with_end(turns: Sequence[Turn], by: Role) -> tuple[Turn, ...]:
    """The turns with the end marker behind the last words of whoever spoke it, or alone where it said no others."""
    last = turns[-1]
    if last.role != by:
        return (*turns, Turn(by, END_MARKER))
    return (*turns[:-1], Turn(by, f"{last.text} {END_MARKER}"))


def without_trailing_user(messages: list[Message]) -> list[Message]:
    """The messages up to the assistant's last one."""
    return messages[:-1] if messages[-1]["role"] == "user" else messages


def digest_of(messages: Sequence[Message]) -> bytes:
    """16 bytes that stand for what messages say."""
    return blake2b(msgspec.json.encode(messages), digest_size=16).digest()
