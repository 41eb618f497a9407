"""What a template says of itself: its front matter, a comment at the very top of the file.

    {#
    ---
    name: The prompt of my study
    version: "1.2"
    expects: conversation
    ---
    Whatever else the comment says stands here.
    #}

It is YAML between two lines of `---`, as in many other files, inside one of Jinja's own comments: so a
template that has it stays a plain Jinja template, and nothing of it is ever rendered. The lines of `---`
stand by themselves because `{#-` and `-#}` mean something else to Jinja: they eat the blanks around the
comment. A comment that does not begin with such a line is a comment like any other.

Front matter may be copied with a shipped template whose text is edited then. Such a text is not its source's any
more: what is read says so, whoever shows it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from edgen.core import resources
from edgen.core.answer_kinds import answer_kinds
from edgen.core.digest import sha256
from edgen.core.errors import Problem, TemplateError
from edgen.core.yaml_values import convert, nearest, read_yaml, shortened

_MOST = 20_000  # characters of front matter: far more than it needs, little enough for the YAML reader
_FIRST_COMMENT = re.compile(r"\s*\{#(.*?)#\}", re.DOTALL)
_OPENS = re.compile(r"[ \t]*(?:\r?\n)?---[ \t]*\r?\n")
_STRAYED = re.compile(r"\{#[ \t]*(?:\r?\n)?---[ \t]*\r?\n")
_CLOSES = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)


_OURS = "Written for this project"  # the source of a text that claims nobody else's words


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """Front matter; each key may be left out. `name` is a title for people, `source` says where the words come from,
    `expects` what the model's answer is read as (see `answer_kinds`). `space` the space whose variables it uses. `licence` may be spelled
    `license`. `sha256` is the digest of the source's own text (`body_sha256`): a text that has another is said to be
    edited."""

    name: str | None = None
    version: str | None = None
    source: str | None = None
    licence: str | None = None
    expects: str | None = None
    notes: str | None = None
    space: str | None = None
    sha256: str | None = None


def read_front(text: str, source: str, known: str | None = None) -> FrontMatter:
    """The front matter of a template's text, an empty Front where it has none; `source` is what messages call the file,
    `known` a kind of answer that need not be looked up. Where the text is not the one that it was written for, it claims
    nobody's words.

    Raises TemplateError, with the line, for front matter that is begun and cannot be read.
    """
    front = _stated(text, source)
    if front.expects not in (None, known) and front.expects not in (kinds := answer_kinds()):
        found = f"unknown value {shortened(repr(front.expects))}{nearest(front.expects, kinds)}"
        raise _one(source, _line_of("expects", text, 1), f"expects: {found}")
    return _honest(front, text)


def edited_from(text: str) -> str | None:
    """The name of the shipped template that a template's text was made from and differs from, by what its front matter
    says of itself; None where it says nothing, or is as shipped. Raises TemplateError as `read_front` does."""
    front = _stated(text, "template")
    if front.source is None:
        return None
    digest, lines = body_sha256(text), set(_body(text).split("\n")) - {""}
    claimed = [(name, body) for name, (source, title, body) in _shipped().items() if source == front.source
               and (source != _OURS or title == front.name)]  # fmt: skip
    if not claimed or any(sha256(body) == digest for _, body in claimed):
        return None
    return max(claimed, key=lambda entry: len(lines & set(entry[1].split("\n"))))[0]


def body_sha256(text: str) -> str:
    """The digest of what a template says, without its first comment and the line ends around the rest."""
    return sha256(_body(text))


def _body(text: str) -> str:
    comment = _FIRST_COMMENT.match(text)
    return text[0 if comment is None else comment.end() :].replace("\r\n", "\n").strip("\n")


@cache
def _shipped() -> dict[str, tuple[str | None, str | None, str]]:
    """Source, title and body of each shipped template, by name."""
    found = {}
    for name in resources.shipped("prompts"):
        text = resources.find("prompts", name).read_text(encoding="utf-8")
        front = _stated(text, name)
        found[name] = (front.source, front.name, _body(text))
    return found


def _honest(front: FrontMatter, text: str) -> FrontMatter:
    """The front matter without claims that an edited text has made untrue."""
    if front.source is None:
        return front
    origin = edited_from(text)
    if origin is None and front.sha256 in (None, body_sha256(text)):
        return front
    claimed = f"Edited from {origin or 'another text'}; its source: {front.source}"
    return msgspec.structs.replace(front, source=claimed, version=None, notes=None)


def _stated(text: str, source: str) -> FrontMatter:
    """Front matter as it is written."""
    comment = _FIRST_COMMENT.match(text)
    if comment is None or (opened := _OPENS.match(text, comment.start(1), comment.end(1))) is None:
        return FrontMatter()
    line = text.count("\n", 0, opened.end()) + 1
    closed = _CLOSES.search(text, opened.end(), comment.end(1))
    if closed is None:
        raise _one(
            source, line - 1, "the front matter has no end; close it with a line of --- before the '#}'"
        )
    if text[comment.start(1)] == "-" or closed.end() == comment.end(1):
        raise _one(source, line - 1, "write {# and #} on lines of their own, apart from the lines of ---")
    body = text[opened.end() : closed.start()]
    if len(body) > _MOST:
        raise _one(source, line - 1, f"the front matter is longer than {_MOST:,} characters")
    # Empty lines in front, so that what YAML says of a line is true of the file.
    values = read_yaml("\n" * (line - 1) + body, source, TemplateError)
    return _built({} if values is None else values, body, line, source)


def find_stray(text: str) -> int | None:
    """The line of the first comment that looks like front matter but has something before it."""
    top = _FIRST_COMMENT.match(text)
    start = -1 if top is None else top.start(1) - 2
    return next(
        (text.count("\n", 0, m.start()) + 1 for m in _STRAYED.finditer(text) if m.start() != start), None
    )


def _built(values: Any, body: str, first: int, source: str) -> FrontMatter:
    if not isinstance(values, dict):
        raise _one(source, first, "front matter is a list of keys with values, as in 'version: \"1.0\"'")
    if not isinstance(values.get("version", ""), str):
        where = _line_of("version", body, first)
        raise _one(source, where, 'a version is a text; put it in quotes, as in version: "1.0"')
    if "license" in values:
        if "licence" in values:
            where = _line_of("license", body, first)
            raise _one(source, where, "licence and license are the same key; keep one of them")
        values = {**values, "licence": values["license"]}
        del values["license"]
    problems: list[Problem] = []
    front = convert(values, FrontMatter, "$", problems)
    if not problems:
        assert isinstance(front, FrontMatter)
        return front
    found = [
        (_line_of(key := p.path.removeprefix("$."), body, first), f"{key}: {p.message}") for p in problems
    ]
    worded = [Problem(f"line {line}", message) for line, message in sorted(found)]
    raise TemplateError.of(source, worded)


def _line_of(key: str, body: str, first: int) -> int:
    """The line of the file on which a key of the front matter stands. What hangs on a key is further to the right than
    the key, so of several lines that look like it the leftmost is meant."""
    spelled = re.escape(key).replace("licence", "licen[cs]e")
    found = list(re.finditer(rf"^( *)['\"]?{spelled}['\"]?[ \t]*:", body, re.MULTILINE))
    if not found:
        return first
    return first + body.count("\n", 0, min(found, key=lambda match: len(match[1])).start())


def _one(source: str, line: int, message: str) -> TemplateError:
    return TemplateError.of(source, [Problem(f"line {line}", message)])
