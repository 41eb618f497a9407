"""Conversations as the messages of a chat template.

One role is trained and is the assistant; all others are the user. Consecutive turns of one side are joined by
a blank line, so that the two always alternate; with several user roles, each of their turns begins with the
speaker's name. A conversation begins with its first turn. An opening can be requested: a user line before a
conversation that the assistant begins, a system message in any conversation, or both. With a template that
requests turns, such as the environment's, the opening is as in the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.config import find_job_protocol
from edgen.core import resources
from edgen.core.errors import TemplateError, UsageError
from edgen.core.registry import part_of
from edgen.core.values import END_MARKER, Role, Scenario, Turn
from edgen.core.yaml_values import read_text
from edgen.export.options import FormatOptions, OptionValues
from edgen.export.shared_options import ActionOptions, ChatOptions, MaskOptions, Opening, TokenOptions
from edgen.export.tokens import ChatTokenizer, load_tokenizer
from edgen.families.base import Scenes, TurnScene, defaults_of
from edgen.families.reader import RecordContents
from edgen.protocols.base import TurnByTurn
from edgen.protocols.parts import TURN_VARIABLES, labels_of, make_turn_variables
from edgen.space import Space
from edgen.space.model import list_template_fields, template_variables
from edgen.store.run_reader import RunReader

if TYPE_CHECKING:
    from edgen.prompting import Prompt

Message = dict[str, str]
DO_THIS = "Do this now:"  # precedes the requested actions in a prompt, as in shipped templates


def build_chat(run: RunReader, options: OptionValues) -> Chat:
    """Build the chat of a run for the options. Raises as `make_chat` does."""
    trained = part_of(find_job_protocol(run.job), TurnByTurn).trained(run.job)
    return make_chat(options, run.space, part_of(run.family, RecordContents).scenes(run.space), trained)


def make_chat(
    options: OptionValues, space: Space, scenes: Scenes | None = None, trained: Role | None = None
) -> Chat:
    """Build the chat for the options. `scenes` are those of the conversations' family; `trained` is the
    assistant unless the options name another role; None: the first role of the space.

    Raises UsageError for an unknown role and an unusable tokenizer, TemplateError for an unusable template.
    """
    given, tokens = options.of(ChatOptions), options.of(TokenOptions)
    assistant = role_of("--train", given.train or trained, space)
    prompt = None
    if given.opening is not None or given.opening_prompt is not None:
        prompt = _load_opening(given.opening_prompt, assistant, space)
    for_turns = prompt is not None and prompt.front.expects == "turn"
    if for_turns and prompt is not None and given.opening is not None:
        raise UsageError(
            f"--opening {given.opening}: {prompt.source} asks for turns and brings its own opening; leave "
            "--opening out."
        )
    end_marker = given.end_marker or ("keep" if for_turns else "drop")
    chat = Chat(
        assistant,
        given.opening or (None if prompt is None else "user"),
        prompt,
        space,
        keeps_end=end_marker == "keep",
        scenes=scenes,
        options=options,
    )
    if tokens.tokenizer is not None:
        chat.tokens = load_tokenizer(Path(tokens.tokenizer), tokens.max_tokens)
    return chat


def role_of(option: str, named: str | None, space: Space) -> Role:
    """Return the role in an option; by default the first of the space. Raises UsageError for an unknown
    one."""
    roles = {role.name.lower(): role.name for role in space.roles}
    found = space.roles[0].name if named is None else roles.get(named.lower())
    if found is None:
        raise UsageError(
            f"{option} {named}: the space {space.name} has no such role (known: {', '.join(roles)})."
        )
    return found


def _load_opening(named: str | None, assistant: Role, space: Space) -> Prompt:
    """Load the template of the opening: a file, or a shipped one's name. A template that requests turns may
    use the environment's variables of the role. Raises TemplateError for an unusable one."""
    from edgen.prompting import load_prompt
    from edgen.prompting.front_matter import read_front

    if named is None:
        named = defaults_of(space).templates.get("opening", "export_opening_roles")
    shipped = str(named) in resources.list_shipped("prompts")
    path = resources.find("prompts", str(named)) if shipped else Path(named)
    if read_front(read_text(path, TemplateError), str(path)).expects != "turn":
        return load_prompt(path, list_opening_variables(space), expects="opening")
    sees = next(role.sees for role in space.roles if role.name == assistant)
    return load_prompt(
        path, (*TURN_VARIABLES, *template_variables(space, sees)), fields=list_template_fields(space)
    )


def list_opening_variables(space: Space) -> tuple[str, ...]:
    """Return the variables of an opening's template: the trained role, the other roles, the trained role's
    knowledge as lines, and the scenario."""
    return (*TURN_VARIABLES, *template_variables(space))


@dataclass(slots=True)
class Chat:
    """A converter of turns to messages."""

    assistant: Role
    """The trained role."""
    opening: Opening | None
    """The form of the opening; None: conversations begin with their first turn."""
    prompt: Prompt | None
    """Gives the texts of the opening, from `list_opening_variables`, or from the environment's variables if
    it requests turns; None without an opening."""
    space: Space  # space of the run
    keeps_end: bool = False
    """Whether the end marker follows the assistant's last words, if the assistant spoke it."""
    scenes: Scenes | None = None
    """Contexts of single responses, if conversations have several parts."""
    options: OptionValues = field(default_factory=OptionValues)
    """The values of all options that the format takes."""
    tokens: ChatTokenizer | None = field(default=None, init=False, repr=False)  # if a tokenizer was given
    _last: tuple[Scenario, list[Message]] | None = field(default=None, repr=False)
    """Scenario and opening messages of the last call."""

    @property
    def own(self) -> FormatOptions | None:
        """The values of the format's own options."""
        return self.options.own

    @property
    def users(self) -> list[Role]:
        """The other roles."""
        return [role.name for role in self.space.roles if role.name != self.assistant]

    @property
    def as_environment(self) -> bool:
        """True if a conversation opens as in the environment."""
        return self.prompt is not None and self.prompt.front.expects == "turn"

    def messages(
        self, turns: Sequence[Turn], scenario: Scenario, ended_by: Role | None = None
    ) -> list[Message]:
        """Return the messages of a conversation of at least one turn, with its opening. `ended_by` is the
        speaker of the end marker, which turns do not have.

        Raises TemplateError if the opening cannot be rendered.
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

    def user_first(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages for a format in which the user speaks first. Without an opening, the
        assistant's words before that move to the head of the user's first message, with the names of both."""
        if self.opening is not None or self.as_environment or len(messages) < 2:
            return [*messages]
        first, second, *rest = messages
        if (first["role"], second["role"]) != ("assistant", "user"):
            return [*messages]
        named = second["content"] if len(self.users) > 1 else f"{self.users[0]}: {second['content']}"
        return [{"role": "user", "content": f"{self.assistant}: {first['content']}\n\n{named}"}, *rest]

    def prompt_in(self, scene: TurnScene, turns: Sequence[Turn]) -> list[Message]:
        """Return the messages before a response in a scene: the scene's turns, at least one. The assistant's
        knowledge of the scene is at the end of the first message, or before it if the assistant wrote it."""
        messages = self.messages(turns[scene.begin :], scene.scenario)
        if scene.brief and messages[0]["role"] == "assistant":
            return [{"role": "user", "content": scene.brief}, *messages]
        if scene.brief:
            messages[0]["content"] += f"\n\n{scene.brief}"
        return messages

    def tell(self, prompt: list[Message], response: Turn) -> list[Message] | None:
        """Return the prompt with the response's required actions at the end of its last message, if
        requested; None if they are unknown."""
        told = self.options.of(ActionOptions).actions
        if told is None:
            return prompt
        named = response.labels if told == "labels" else response.data.get("wanted", ())
        actions = [named] if isinstance(named, str) else list(named)
        if not actions or not prompt:
            return None
        last = prompt[-1]
        return [*prompt[:-1], {**last, "content": f"{last['content']}\n\n{DO_THIS} {', '.join(actions)}"}]

    def mask(self, message: Message) -> dict[str, bool]:
        """Return the key `train`, whether a message is trained on; empty without masks."""
        return {"train": message["role"] == "assistant"} if self.options.of(MaskOptions).masks else {}

    def _open(self, scenario: Scenario, *, assistant_first: bool) -> list[Message]:
        """Return the messages before the first turn."""
        if self.as_environment:
            rendered = self._render(scenario)
            if assistant_first:
                return [{**message} for message in rendered]
            # As in selfplay: the brief of a role that does not open is one message, so other messages come
            # first.
            text = "\n\n".join(message["content"] for message in rendered)
            return [{"role": rendered[0]["role"], "content": text}]
        blocks = ["system"] if self.opening in ("system", "both") else []
        if self.opening in ("user", "both") and assistant_first:
            blocks.append("user")
        return [self._render_block(block, scenario) for block in blocks]

    def _render_block(self, block: str, scenario: Scenario) -> Message:
        """Return the message of a block. Raises TemplateError if the template lacks it."""
        for message in self._render(scenario):
            if message["role"] == block:
                return {**message}
        raise TemplateError(
            self._opening_prompt.source,
            f"this opening needs a {block} message; write it into {{% block {block} %}} … {{% endblock %}}.",
        )

    @property
    def _opening_prompt(self) -> Prompt:
        assert self.prompt is not None, "without an opening nothing is rendered"
        return self.prompt

    def _render(self, scenario: Scenario) -> list[Message]:
        from edgen.prompting import scenario_variables

        # Conversations are ordered by scenario, so the last opening is almost always reused.
        if self._last is None or self._last[0] != scenario:
            variables = {**scenario_variables(scenario), **self._describe_roles(scenario)}
            made = self._opening_prompt.messages(variables)
            self._last = (scenario, [{"role": one.role, "content": one.content} for one in made])
        return self._last[1]

    def _describe_roles(self, scenario: Scenario) -> dict[str, str]:
        """Return the roles and the assistant's knowledge: as stated in the run, if the template requests
        turns."""
        if self.as_environment:
            role = next(role for role in self.space.roles if role.name == self.assistant)
            return make_turn_variables(scenario, self.space.roles, role, labels_of(self.space))
        others = " and the ".join(self.users).lower()
        return {"role": self.assistant.lower(), "others": others, "brief": self._format_brief(scenario)}

    def _format_brief(self, scenario: Scenario) -> str:
        """Return the assistant's knowledge of the scenario, one line per dimension."""
        seen = next(role.sees for role in self.space.roles if role.name == self.assistant)
        labels = labels_of(self.space)
        return "\n".join(f"- {labels[name]}: {scenario[name]}" for name in seen if name in labels)


def _with_end(turns: Sequence[Turn], by: Role) -> tuple[Turn, ...]:
    """Return the turns with the end marker after its speaker's last words, or as a turn of its own if that
    role has none."""
    last = turns[-1]
    if last.role != by:
        return (*turns, Turn(by, END_MARKER))
    return (*turns[:-1], Turn(by, f"{last.text} {END_MARKER}"))


def without_trailing_user(messages: list[Message]) -> list[Message]:
    """Return the messages up to and including the assistant's last one."""
    return messages[:-1] if messages[-1]["role"] == "user" else messages


def digest_of(messages: Sequence[Message]) -> bytes:
    """Return 16 bytes that identify the messages' content."""
    return blake2b(msgspec.json.encode(messages), digest_size=16).digest()
