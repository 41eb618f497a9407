"""Front matter of templates: metadata in a comment at the very top of the file.

    {#
    ---
    name: The prompt of my study
    version: "1.2"
    expects: conversation
    ---
    Further text of the comment.
    #}

Front matter is YAML between two lines of `---` inside a Jinja comment, so it is never rendered. The lines of
`---` are separate because Jinja strips the blanks around a comment in `{#-` and `-#}`. A comment that does
not begin with such a line is an ordinary comment.

Users copy front matter with a shipped template, then edit the text. The edited text is no longer the text of
the named source, and readers report that.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from edgen.core import resources
from edgen.core.digest import compute_sha256
from edgen.core.errors import Problem, TemplateError
from edgen.core.forms import list_answer_kinds
from edgen.core.text import compile_later
from edgen.core.yaml_values import convert, read_yaml, shorten_word, suggest_name

_MOST = 20_000  # characters of front matter: far more than needed, few enough for the YAML reader
_FIRST_COMMENT = compile_later(r"\s*\{#(.*?)#\}", re.DOTALL)
_OPENS = compile_later(r"[ \t]*(?:\r?\n)?---[ \t]*\r?\n")
_STRAYED = compile_later(r"\{#[ \t]*(?:\r?\n)?---[ \t]*\r?\n")
_CLOSES = compile_later(r"^---[ \t]*\r?$", re.MULTILINE)


_OURS = "Written for this project"  # the source of texts that were written for edgen


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """Front matter; each key is optional."""

    name: str | None = None
    """A title for people."""
    version: str | None = None  # of the template
    source: str | None = None
    """The origin of the wording."""
    licence: str | None = None
    """May be spelled `license`."""
    expects: str | None = None
    """The kind of the model's answer (see `list_answer_kinds`)."""
    notes: str | None = None  # for people
    space: str | None = None
    """The space whose variables it uses."""
    sha256: str | None = None
    """The digest of the source's own text (`digest_body`). A text with another digest counts as edited."""


def read_front(text: str, source: str, known: str | None = None) -> FrontMatter:
    """Read the front matter of a template's text; empty FrontMatter if it has none. Messages call the file
    `source`. `known` is a kind of answer that needs no look-up. For an edited text, claims about its origin
    are dropped.

    Raises TemplateError, with the line, for incomplete or invalid front matter.
    """
    front = _parse_front(text, source)
    if front.expects not in (None, known) and front.expects not in (kinds := list_answer_kinds()):
        found = f"unknown value {shorten_word(repr(front.expects))}{suggest_name(front.expects, kinds)}"
        raise _make_template_error(source, _find_line("expects", text, 1), f"expects: {found}")
    return _drop_false_claims(front, text)


def find_original_template(text: str) -> str | None:
    """Return the name of the shipped template from which a text was edited, by its front matter; None if it
    has none or is unmodified. Raises TemplateError as `read_front` does."""
    front = _parse_front(text, "template")
    if front.source is None:
        return None
    own, bodies = _strip_body(text), _read_shipped_bodies()
    same = [name for name, body in bodies.items() if body == own]
    if any(_claims_source(front, name) for name in same):
        return None
    claimed = [name for name in bodies if _claims_source(front, name)]
    lines = set(own.split("\n")) - {""}
    return max(claimed, key=lambda name: len(lines & set(bodies[name].split("\n"))), default=None)


def _claims_source(front: FrontMatter, name: str) -> bool:
    """Return whether front matter names the source of the shipped template `name`."""
    shipped = _read_shipped_front(name)
    return shipped.source == front.source and (front.source != _OURS or shipped.name == front.name)


def digest_body(text: str) -> str:
    """Return the digest of a template's text without its first comment and without line ends at either
    end."""
    return compute_sha256(_strip_body(text))


def _strip_body(text: str) -> str:
    comment = _FIRST_COMMENT.match(text)
    return text[0 if comment is None else comment.end() :].replace("\r\n", "\n").strip("\n")


@cache
def _read_shipped_bodies() -> dict[str, str]:
    files = resources.find_shipped_files("prompts")
    return {name: _strip_body(files[name].read_text(encoding="utf-8")) for name in sorted(files)}


@cache
def _read_shipped_front(name: str) -> FrontMatter:
    return _parse_front(resources.find("prompts", name).read_text(encoding="utf-8"), name)


def _drop_false_claims(front: FrontMatter, text: str) -> FrontMatter:
    """Return the front matter without claims that are false for an edited text."""
    if front.source is None:
        return front
    origin = find_original_template(text)
    if origin is None and front.sha256 in (None, digest_body(text)):
        return front
    claimed = f"Edited from {origin or 'another text'}; its source: {front.source}"
    return msgspec.structs.replace(front, source=claimed, version=None, notes=None)


def _parse_front(text: str, source: str) -> FrontMatter:
    """Return the front matter as written."""
    comment = _FIRST_COMMENT.match(text)
    if comment is None or (opened := _OPENS.match(text, comment.start(1), comment.end(1))) is None:
        return FrontMatter()
    line = text.count("\n", 0, opened.end()) + 1
    closed = _CLOSES.search(text, opened.end(), comment.end(1))
    if closed is None:
        raise _make_template_error(
            source, line - 1, "the front matter has no end; close it with a line of --- before the '#}'"
        )
    if text[comment.start(1)] == "-" or closed.end() == comment.end(1):
        raise _make_template_error(
            source, line - 1, "write {# and #} on lines of their own, apart from the lines of ---"
        )
    body = text[opened.end() : closed.start()]
    if len(body) > _MOST:
        raise _make_template_error(source, line - 1, f"the front matter is longer than {_MOST:,} characters")
    # Prepend empty lines, so that YAML's line numbers match the file.
    values = read_yaml("\n" * (line - 1) + body, source, TemplateError)
    return _make_front({} if values is None else values, body, line, source)


def find_stray(text: str) -> int | None:
    """Return the line of the first comment that looks like front matter but is not at the top."""
    top = _FIRST_COMMENT.match(text)
    start = -1 if top is None else top.start(1) - 2
    return next(
        (text.count("\n", 0, m.start()) + 1 for m in _STRAYED.finditer(text) if m.start() != start), None
    )


def _make_front(values: Any, body: str, first: int, source: str) -> FrontMatter:
    if not isinstance(values, dict):
        raise _make_template_error(
            source, first, "front matter is a list of keys with values, as in 'version: \"1.0\"'"
        )
    if not isinstance(values.get("version", ""), str):
        where = _find_line("version", body, first)
        raise _make_template_error(
            source, where, 'a version is a text; put it in quotes, as in version: "1.0"'
        )
    if "license" in values:
        if "licence" in values:
            where = _find_line("license", body, first)
            raise _make_template_error(
                source, where, "licence and license are the same key; keep one of them"
            )
        values = {**values, "licence": values["license"]}
        del values["license"]
    problems: list[Problem] = []
    front = convert(values, FrontMatter, "$", problems)
    if not problems:
        assert isinstance(front, FrontMatter)
        return front
    found = [
        (_find_line(key := p.path.removeprefix("$."), body, first), f"{key}: {p.message}") for p in problems
    ]
    worded = [Problem(f"line {line}", message) for line, message in sorted(found)]
    raise TemplateError.of(source, worded)


def _find_line(key: str, body: str, first: int) -> int:
    """Return the line of a front matter key in the file: the least indented of several such lines."""
    spelled = re.escape(key).replace("licence", "licen[cs]e")
    found = list(re.finditer(rf"^( *)['\"]?{spelled}['\"]?[ \t]*:", body, re.MULTILINE))
    if not found:
        return first
    return first + body.count("\n", 0, min(found, key=lambda match: len(match[1])).start())


def _make_template_error(source: str, line: int, message: str) -> TemplateError:
    return TemplateError.of(source, [Problem(f"line {line}", message)])
