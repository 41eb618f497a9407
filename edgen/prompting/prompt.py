"""Prompts: a template file compiled once, and rendered with a scenario's values to messages.

A template without blocks renders to one user message. With `{% block user %}`, and perhaps `{% block system
%}`, it renders to a user and a system message, and has only comments outside the blocks. The last newline of
a file, and newlines at either end of a block, are not part of the message; everything else is, exactly.

The variables are the values of a scenario. A JSON Schema next to a template, with the same name, is the
required form of its answers.

A `Snippet` is a short text with variables, such as a text of a space. It is compiled once and rendered to one
text in the sandbox of prompts; snippets of one file share a sandbox. `fraction(n, d)` prints n/d in lowest
terms: `3/4`, `-1/2`, or a whole number.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from edgen.core.digest import compute_fingerprint, compute_sha256
from edgen.core.errors import LongPromptError, TemplateError
from edgen.core.forms import AnyForm, Form, list_answer_kinds
from edgen.core.pictures import pictures_in
from edgen.core.space_layouts import map_bare_fields
from edgen.core.values import MAX_TEXT, Message, Scenario, ValueWithFields
from edgen.core.yaml_values import read_text
from edgen.prompting.answer_schema import read_schema_file
from edgen.prompting.front_matter import FrontMatter, read_front

# Jinja and the compiler are imported when a template is compiled: reading a run needs neither.
if TYPE_CHECKING:
    import jinja2
    from jinja2.runtime import Context

    from edgen.prompting.check import Block
    from edgen.prompting.sandbox import Sandbox

Forms = Literal["auto", "schema", "prose"]
SUFFIX = ".schema.json"
PICTURE = "picture"  # the field of an entry, and the variable of a scenario
MAX_SNIPPET = 4_000  # characters


def scenario_variables(scenario: Scenario) -> dict[str, str | int | None]:
    """Return the template variables of a scenario: its index, and its values with the fields of their
    entries.

    Some fields have variables of their own, named by the layout of the space; `picture` is the first picture.
    A dimension with such a name replaces the variable.
    """
    variables: dict[str, str | int | None] = {"index": scenario.index}
    for name, dimension in map_bare_fields().items():
        variables[name] = scenario.field(dimension, name)
    variables[PICTURE] = find_picture(scenario)
    variables |= scenario.values
    for name, fields in scenario.fields.items():
        variables[name] = ValueWithFields(scenario[name], fields)
    return variables


def find_picture(scenario: Scenario, sees: Collection[str] | None = None) -> str:
    """Return the mark of the first picture of a scenario's values, or of the dimensions in `sees`; empty
    without one."""
    for name, fields in scenario.fields.items():
        text = fields.get(PICTURE)
        if isinstance(text, str) and (sees is None or name in sees) and pictures_in(text):
            return text
    return ""


def find_schema_file(template: Path) -> Path:
    """Return the path of a template's schema, which may be missing."""
    return template.parent / (template.name.removesuffix(".j2") + SUFFIX)


def read_answer_schema(template: Path) -> bytes | None:
    """Return the schema next to a template, as the JSON to send; None if there is no such file.

    Raises AnswerSchemaError, a TemplateError, for a file that is not a JSON Schema object, is too large or is
    too deep.
    """
    path = find_schema_file(template)
    return read_schema_file(path) if os.path.lexists(path) else None


def digest_template(text: str | bytes, schema: bytes | None) -> str:
    """Return the hex digest of a template's text (in UTF-8) and of its schema if it has one."""
    return (
        compute_sha256(text)
        if schema is None
        else compute_fingerprint((compute_sha256(text), compute_sha256(schema)), 64)
    )


def render_schema(schema: bytes) -> str:
    """Return a schema as the text of a file."""
    return msgspec.json.format(schema, indent=2).decode() + "\n"


MAX_TEMPLATE = 250_000  # characters of a file: far more than a prompt, few enough to compile


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A compiled template."""

    name: str  # as in the job
    source: str
    """The file's name, for messages."""
    text: str
    """The file's text."""
    sha256: str
    """The hex digest of the text (in UTF-8) and of the schema if it has one."""
    variables_used: frozenset[str]
    """The variables that the template reads."""
    front: FrontMatter
    """Its front matter."""
    _template: jinja2.Template  # compiled
    _sandbox: Sandbox  # the sandbox that compiled the template
    _parts: tuple[tuple[Block, Callable[[Context], Iterator[str]]], ...]
    """The blocks of the template, with a renderer each."""
    schema: bytes | None = None
    """The JSON Schema of its answers, as JSON."""
    forms: Forms = "prose"
    """Whether requests carry the form of the answer that the protocol states: `auto` if the service supports
    it, `schema` always, `prose` never."""
    forms_of: Mapping[str, Forms] = field(default_factory=dict)
    """`forms` for other roles that answer this template, by role."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Compile the text anew in another process."""
        facts = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name[0] != "_"}
        return _compile_prompt, (facts,)

    def form(self, form: AnyForm, role: str = "") -> Form | None:
        """Return the form to request from a role; None if the template's words are enough or it has its own
        schema."""
        forms = self.forms_of.get(role, self.forms)
        if forms == "prose" or self.schema is not None:
            return None
        made = form if isinstance(form, Form) else form()
        required = forms == "schema"
        return made if made.required is required else made._replace(required=required)

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the rendered messages. Raises TemplateError, with the line, for rendering errors."""
        self._sandbox.work = 0
        context = self._sandbox.make_context(self._template, variables)
        try:
            return tuple([self._render_message(role, part(context)) for role, part in self._parts])
        except _list_rendering_errors() as error:
            raise _word_error(error, self._template, self.source) from None

    def list_unused_variables(self, available: Collection[str]) -> list[str]:
        """Return the available variables that this template never reads, in order."""
        return [name for name in available if name not in self.variables_used]

    def _render_message(self, role: Block, pieces: Iterator[str]) -> Message:
        size = 0
        chunks = []
        for piece in pieces:
            size += len(piece)
            if size > MAX_TEXT:
                said = f"it cannot be rendered: it renders to more than {MAX_TEXT:,} characters."
                raise LongPromptError(self.source, said)
            chunks.append(piece)
        content = "".join(chunks)
        if self._template.blocks:
            content = content.strip("\n")
        if not content.isascii():
            try:
                content.encode()
            except UnicodeEncodeError:
                _refuse_rendering("it renders half of a character (a lone surrogate)")
        if not content or content.isspace():
            _refuse_rendering(f"it renders to an empty {role} message")
        return Message(role, content)


def _list_rendering_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that rendering a template can raise."""
    from edgen.prompting.check import RENDERING

    return RENDERING


def _word_error(error: Exception, template: jinja2.Template, source: str) -> TemplateError:
    from edgen.prompting.check import word_error

    return word_error(error, template, source)


def _refuse_rendering(why: str) -> NoReturn:
    from jinja2 import TemplateRuntimeError

    raise TemplateRuntimeError(why) from None


def _open_sandbox() -> Sandbox:
    from edgen.prompting.sandbox import Sandbox

    return Sandbox()


def load_prompt(
    path: Path,
    available: Collection[str],
    *,
    expects: str | None = None,
    fields: Mapping[str, Collection[str]] | None = None,
) -> Prompt:
    """Load the template in the file at `path`. It may use the variables in `available`. `expects` is the kind
    of its answer; `fields` are the fields of each variable's values, None if unknown.

    Raises TemplateError, with every problem and its line: for a missing, empty or too large file, invalid
    UTF-8, front matter that is invalid or expects another kind, a syntax error, an unknown variable, filter
    or test, and forbidden constructs; also for an unusable schema next to the template.
    """
    from edgen.prompting.check import compile_text

    source = str(path)
    text = read_text(path, TemplateError)
    if len(text) > MAX_TEMPLATE:
        raise TemplateError(
            source, f"it is longer than {MAX_TEMPLATE:,} characters, the most that a prompt may have."
        )
    if not text.strip():
        raise TemplateError(source, "it is empty; write the prompt into it.")
    front = read_front(text, source, expects)
    if expects is not None and front.expects not in (None, expects):
        kinds = list_answer_kinds()
        raise TemplateError(
            source,
            f"it is for another use: it says `expects: {front.expects}` ({kinds[front.expects].says}), and "
            f"its answer would be read as `{expects}` here ({kinds[expects].says}).",
        )
    sandbox = _open_sandbox()
    template, used = compile_text(text, source, sandbox, available, fields)
    schema = read_answer_schema(path)
    digest = digest_template(text, schema)
    return Prompt(
        path.stem, source, text, digest, used, front, template, sandbox, _split_parts(template), schema
    )


def _split_parts(template: jinja2.Template) -> tuple[tuple[Block, Callable[[Context], Iterator[str]]], ...]:
    from edgen.prompting.check import BLOCKS

    blocks = template.blocks or {"user": template.root_render_func}
    return tuple((role, blocks[role]) for role in BLOCKS if role in blocks)


def _compile_prompt(facts: dict[str, Any]) -> Prompt:
    from edgen.prompting.check import compile_text

    sandbox = _open_sandbox()
    template, _ = compile_text(facts["text"], facts["source"], sandbox, facts["variables_used"])
    return Prompt(**facts, _template=template, _sandbox=sandbox, _parts=_split_parts(template))


def make_sandbox() -> Sandbox:
    """Return a sandbox for the snippets of one file."""
    sandbox = _open_sandbox()
    sandbox.globals["fraction"] = _fraction
    return sandbox


def _fraction(numerator: int, denominator: int) -> str:
    return str(Fraction(numerator, denominator))


class Snippet:
    """A compiled text. `variables_used` are the variables that it reads."""

    def __init__(
        self,
        text: str,
        sandbox: Sandbox,
        available: Collection[str],
        fields: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Compile the text. Raises TemplateError for forbidden constructs, and for unknown variables and
        fields."""
        from edgen.prompting.check import compile_text

        if len(text) > MAX_SNIPPET:
            raise TemplateError("text", f"it is longer than {MAX_SNIPPET:,} characters.")
        self._text = text
        self._plain = text if "{" not in text else None
        self._sandbox = sandbox
        self._template, self.variables_used = compile_text(text, "text", sandbox, available, fields)

    def __reduce__(self) -> tuple[Any, ...]:
        """Compile the text anew in another process."""
        return _compile_snippet, (self._text, self.variables_used)

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return the text, stripped. Raises TemplateError for rendering errors."""
        if self._plain is not None:
            return self._plain.strip()
        self._sandbox.work = 0
        context = self._sandbox.make_context(self._template, variables)
        try:
            text = "".join(self._template.root_render_func(context))
        except _list_rendering_errors() as error:
            raise _word_error(error, self._template, "text") from None
        if len(text) > MAX_TEXT:
            raise TemplateError("text", f"it renders to more than {MAX_TEXT:,} characters.")
        return text.strip()


def _compile_snippet(text: str, used: frozenset[str]) -> Snippet:
    return Snippet(text, make_sandbox(), used)
