"""Parse JSON as models write it: with a strict parser, or with one that fixes errors if the strict one fails.

Objects become JsonMembers, which keep a key that is given twice. `parse` raises no exception and is linear in
the length of the text, at any depth of nesting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from edgen.core.text import compile_later
from edgen.reading.roles import RolePattern, RoleWords

MAX_DEPTH = 100  # no conversation is nested deeper; deeper values are ignored


class JsonMembers(list[tuple[str, Any]]):
    """A JSON object: its members in their order, a key as often as it was given."""


_OBJECTS = (dict, JsonMembers)


def is_object(value: Any) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, _OBJECTS)


def list_members(value: Any) -> Iterable[tuple[str, Any]]:
    """Yield the keys and values of an object, in their order."""
    return value.items() if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class Parsed:
    """JSON values of a text, the text around them, and the fixes that they needed."""

    values: tuple[Any, ...]  # values in their order
    before: str  # text before the first value
    after: str  # text after the last value
    mended: bool  # the strict parser rejected a value
    escaped: bool  # backslashes had to be doubled
    cut: bool  # the text ends inside a string


_START = RolePattern(
    r"(?i)\n[^\S\n]{0,200}(?:-[^\S\n](?={))?(?:(\[)(?=\s*+(?:[\[{\"'“]|\([\"'\d]))(?!\s*+\[[^\[\]\n\"'“]{1,40}\][ :]{1,3}[\w\[*])|({)(?=\s*+(?:[{]*+\s*+[\"'“]|/[/*]"
    r"|(?!ROLE)\w{1,30}\s{0,9}:)))"
)
_STRICT = json.JSONDecoder(object_pairs_hook=JsonMembers)
_BETWEEN = compile_later(r"[\s,]*(?:-[^\S\n](?={))?")
# Escapes that are invalid in JSON, and valid ones that were meant for LaTeX.
_ESCAPE = compile_later(
    r"\\(?:[\\\"'/]|u[0-9a-fA-F]{4}|(?P<latex>[bfr](?=[a-zA-Z])"
    r"|t(?=imes|ext|heta|herefore|au\b|frac|riangle|ilde)|(?<!\\[nt]\\)t(?=o\b|anh?\b)"
    r"|n(?=abla|eq\b|otin\b)|(?<=[\s$({=]\\)n(?=e\b|u\b|eg\b))|[bfnrt]|(?P<unknown>))"
)


def parse(text: str, roles: RoleWords, *, plain: bool = False) -> Parsed | None:
    """Return the JSON values of a text; None if no value starts a line.

    `plain`: an object without duplicate keys becomes a dictionary, which is faster.
    """
    if "[" not in text and "{" not in text:
        return None
    first = _START.of(roles).search("\n" + text)
    if first is None:
        return None
    start = at = first.end() - 2
    escaped, count = _double_backslashes(text[at:]) if "\\" in text else (text[at:], 0)
    values: list[Any] = []
    mended = cut = False
    at = 0
    while at < len(escaped) and escaped[at] in "[{":
        if not mended:
            try:
                value, end = _decode(escaped, at) if plain else _STRICT.raw_decode(escaped, at)
            except (ValueError, RecursionError):
                mended = True
        if mended:
            value, end, cut = _mend(escaped, at)
        values.append(value)
        at = end
        following = _BETWEEN.match(escaped, at)
        assert following is not None
        if following.end() < len(escaped) and escaped[following.end()] in "[{":
            at = following.end()
    return Parsed(tuple(values), text[:start], escaped[at:], mended, count > 0, cut)


def _decode(text: str, at: int) -> tuple[Any, int]:
    """Return the value that starts at a bracket, and its end.

    The fast decoder needs to know the end: for the first value the last bracket is tried, then, as for any
    value, the end of the line. Raises ValueError if the strict parser rejects the value.
    """
    ends = [text.find("\n", at)]
    if at == 0:
        ends.insert(0, text.rfind("}" if text[0] == "{" else "]") + 1)
    for end in ends:
        whole = text[at : end if end > at else len(text)].rstrip(" \t\r,")
        try:
            value = msgspec.json.decode(whole)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        if _count_keys(value) == whole.count('":') - whole.count('\\":'):
            return value, at + len(whole)
        break
    return _STRICT.raw_decode(text, at)


def _count_keys(value: Any) -> int:
    """Return the number of members in all objects of a value."""
    count, stack = 0, [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            count += len(value)
            value = value.values()
        stack += [child for child in value if type(child) is dict or type(child) is list]
    return count


def _double_backslashes(text: str) -> tuple[str, int]:
    """Return the text with those backslashes doubled that are invalid in JSON or meant for LaTeX."""
    count = 0

    def double_backslash(match: re.Match[str]) -> str:
        nonlocal count
        if match.lastgroup is None:
            return match.group()
        count += 1
        return "\\" + match.group()

    return _ESCAPE.sub(double_backslash, text), count


_TOKEN = compile_later(
    r"(?>(?:[\s,;]|//[^\n]*|/\*[^*]*\*/)*)(?:(?P<open>[\[{]|\((?=[\"'\d]))|(?P<close>[\]}])|(?P<colon>[:=]>?)|(?P<quote>\"\"\""
    r"|[\"“”'‘]|(?:(?<=:)|(?<=:[ ]))`(?!`))|(?P<word>[^\s,;:\[\]{}\"“”]{1,64}))?"
)
_CLOSING = {'"': '"', "“": "”", "”": "”", "'": "'", "‘": "’", "`": "`", '"""': '"""'}
_TRIES = 8  # containers that the strict parser may reject before it is no longer called
_STRING_ENDS = frozenset("\"”'’")
_LITERALS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
_AFTER_VALUE = compile_later(
    r"[^\S\n]*+(?:\n|[}\]]|\Z|,\s*+(?:[\"“'{}\[\]]|\Z|\w{1,20}+\s{0,9}:)|,[^\S\n]*+\n)"
)
_AFTER_ITEM = compile_later(  # of a tuple
    r"[^\S\n]*+(?:,?\)[\s,]*+(?:[\]}(]|\Z)|,\s*+(?:[\"'\[{(]|[\w.]{1,20}\s*+[,)]))"
)
_CHANCE = compile_later(r"(?i)[\w ]{0,30}?(?:probability|likelihood|chance)[\w ]{0,30}\Z")
_AFTER_KEY = compile_later(r"\s*+(?::|=>)")
_NEXT_KEY = compile_later(r"[^\S\n]*+[\"'“]\w{1,24}[\"'”]\s*:")
_UNESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MARK = compile_later(r"\\.|[\"”’'`\n]", re.DOTALL)


class _Frame:
    """A container that is still open."""

    def __init__(self, opened: str) -> None:
        self.opened = opened
        self.items: list[tuple[str | None, Any]] = []
        self.key: str | None = None

    def add(self, value: Any) -> None:
        self.items.append((self.key, value))
        self.key = None

    def read_colon(self) -> None:
        if self.key is None and self.items and self.items[-1][0] is None:
            self.key = str(self.items.pop()[1])

    def is_unclosed_list(self) -> bool:
        """Return whether a list ends with the key of the probability, so that its bracket is missing."""
        *values, (name, key) = self.items
        return self.opened != "{" and name is None and bool(values) and _CHANCE.match(str(key)) is not None

    def find_value(self) -> Any:
        if any(key is not None for key, _ in self.items):
            return JsonMembers((key or "", value) for key, value in self.items)
        return [value for _, value in self.items]


def _mend(text: str, at: int) -> tuple[Any, int, bool]:
    """Return the value whose bracket stands at `at`, its end, and whether the text ends inside a string.

    A value that is never closed ends at the end of the text.
    """
    cut = False
    tries = 0
    stack: list[_Frame] = []
    done: Any = []
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        at = match.end()
        kind = match.lastgroup
        if kind is None:
            at += 1
        elif kind == "open":
            if len(stack) == MAX_DEPTH:
                break
            if stack and tries < _TRIES and match["open"] != "(":
                if (valid := _decode_strictly(text, at - 1)) is not None:
                    done, at = valid
                    stack[-1].add(done)
                    continue
                tries += 1
            stack.append(_Frame(match["open"]))
        elif kind == "close":
            # A bracket of the wrong kind closes a container, too: another bracket was forgotten.
            done = _close(stack)
            if not stack:
                return done, at, False
        elif kind == "colon":
            if len(stack) > 1 and stack[-1].items and stack[-1].is_unclosed_list():
                _, word = stack[-1].items.pop()
                _close(stack)
                stack[-1].add(word)
            stack[-1].read_colon()
        elif kind == "quote":
            frame = stack[-1]
            after = _AFTER_ITEM if frame.opened == "(" and frame.items else _AFTER_VALUE
            string, at = _read_string(text, at, match["quote"], after, is_value=frame.key is not None)
            frame.add(string)
            cut = at == len(text) and text[-1] not in _STRING_ENDS
        else:
            closed = stack[-1].opened == "(" and match["word"][-1] == ")"
            word = match["word"][:-1] if closed else match["word"]
            if word:
                stack[-1].add(_read_word(word))
            if closed:
                _close(stack)
    while stack:
        done = _close(stack)
    return done, len(text), cut


def _decode_strictly(text: str, at: int) -> tuple[Any, int] | None:
    """Return the value at a bracket, and its end; None unless it is JSON. Most JSON that needs a fix is valid
    inside."""
    try:
        return _STRICT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _close(stack: list[_Frame]) -> Any:
    """Return the value of the innermost container, and add it to the one around it."""
    done = stack.pop().find_value()
    if stack:
        stack[-1].add(done)
    return done


def _read_word(word: str) -> Any:
    lowered = word.lower()
    if lowered in _LITERALS:
        return _LITERALS[lowered]
    try:
        return float(word)
    except ValueError:
        return word


def _read_string(
    text: str, start: int, quote: str, after: re.Pattern[str], *, is_value: bool
) -> tuple[str, int]:
    """Return the string that starts at `start`, and the place after it.

    A quotation mark closes a string only if JSON seems to follow (`after` matches), so a mark inside a
    sentence needs no backslash.
    """
    close = _CLOSING[quote]
    if quote == '"""':
        end = text.find(close, start)
        return (text[start:], len(text)) if end < 0 else (text[start:end], end + 3)
    for match in _MARK.finditer(text, start):
        mark = match.group()
        if mark == close or (mark == '"' and close == "”"):
            if after.match(text, match.end()) or (not is_value and _AFTER_KEY.match(text, match.end())):
                return _unescape(text[start : match.start()]), match.end()
        elif mark == "\n" and is_value and _NEXT_KEY.match(text, match.end()):
            return _unescape(text[start : match.start()].rstrip().rstrip(",")), match.end()
    return _unescape(text[start:]), len(text)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return re.sub(r"\\(.)", lambda m: _UNESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
