"""A YAML parser to plain values, in time and memory bounded by the text's size.

The parser's events are read one at a time and turned into values at once: only lists, dicts, texts, numbers,
truth values and None. Each value is counted, also each repetition by an alias or a merge key, and the reader
stops at MAX_VALUES. An alias gives a copy, so that changes do not spread. Every error is a YamlError, whose
text names the line.

The events come from libyaml if PyYAML was built with it (40 times as fast), else from PyYAML's own parser.
Neither recurses: only the composer of PyYAML's C loader can overflow the stack, and it is not used.

`flow` and `as_text` write values on one line: every text quoted, unprintable characters escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

MAX_SIZE = 4 * 1024 * 1024  # characters: 40,000 entries of a space take half of it
MAX_VALUES = 400_000  # with aliases and merges expanded
MAX_DEPTH = 40
_MOST_HANDLES = 10
MAX_NUMBER = 500  # characters of a number; Python prints at most 4,300 digits
BRACES = "; a text that begins with a brace or a bracket goes in quotes, as in '{date}'"

_PREFIX = "tag:yaml.org,2002:"
# Characters forbidden by YAML, and lone surrogates, which no UTF-8 file can hold.
_FORBIDDEN = re.compile("[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A tag handle is compared with all others: many of them take very long.
_HANDLES = re.compile(r"^%TAG\b", re.MULTILINE)
_OPEN: Any = object()  # value of an anchor that is still being read


# A PyYAML loader, of which only the parser is used. libyaml's exists if PyYAML was built with it.
Parser = Callable[[str], Any]
PARSERS: tuple[Parser, ...] = (*([yaml.CSafeLoader] if yaml.__with_libyaml__ else []), yaml.SafeLoader)


class YamlError(ValueError):
    """An invalid text, described by a clause that begins with the line if known."""


def read_values(text: str, parser: Parser | None = None) -> Any:
    """Return the plain values of a YAML text; None for an empty one. Raises YamlError. `parser` is by default
    the fastest available."""
    if len(text) > MAX_SIZE:
        raise YamlError(f"it is larger than {MAX_SIZE // 1024 // 1024} MiB, the limit for YAML files")
    if forbidden := _FORBIDDEN.search(text):
        line = text.count("\n", 0, forbidden.start()) + 1
        code = f"U+{ord(forbidden.group()):04X}"
        raise YamlError(
            f"line {line}: it holds a character that YAML forbids ({code}); write it as an escape"
        )
    if len(_HANDLES.findall(text)) > _MOST_HANDLES:
        raise YamlError(
            f"it declares more than {_MOST_HANDLES} tags (%TAG); none of them means anything here"
        )
    try:
        return _Reader((parser or PARSERS[0])(text).get_event).read_document()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = BRACES if (problem.context or "").startswith("while parsing a flow") else ""
        said = next((_SAID[part] for part in _SAID if part in (problem.problem or "")), problem.problem)
        raise YamlError(f"{where}{said}{hint}") from None
    except yaml.YAMLError as problem:
        raise YamlError(" ".join(str(problem).split())) from None


_SAID = {
    "found invalid Unicode character escape code": "this escape is half of a character (a lone surrogate), "
    "or none",
    "a tab character that violates": "a tab indents this line; indent with spaces",
    "cannot start any token": "a tab, or one of @, ` and %, stands where a value begins; indent with spaces, "
    "and put a text that begins so in quotes",
}


class _Reader:
    """A converter of one text's events to values."""

    def __init__(self, event: Callable[[], yaml.Event]) -> None:
        self._event = event
        self._anchors: dict[str, Any] = {}
        self._count = 0
        self._repeated = 0

    def read_document(self) -> Any:
        """Return the value of the only document; None if there is none."""
        self._event()
        if isinstance(self._event(), yaml.StreamEndEvent):
            return None
        value = self._read_value(self._event(), 0)
        self._event()
        if not isinstance(after := self._event(), yaml.StreamEndEvent):
            _refuse(after, "a second document begins; keep one of them, and no line of --- or ... between")
        return value

    def _read_value(self, event: Any, depth: int) -> Any:
        self._check_room(event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._copy(event, self._resolve_alias(event), depth)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = _OPEN
        if isinstance(event, yaml.ScalarEvent):
            value = _read_scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(event, depth)
        else:
            value = self._read_dict(event, depth)
        if anchor is not None:
            self._anchors[anchor] = value
        return value

    def _check_room(self, event: Any, depth: int, count: int = 1) -> None:
        self._count += count
        if self._count > MAX_VALUES:
            _refuse(event, f"it holds more than {MAX_VALUES:,} values, aliases expanded")
        if depth > MAX_DEPTH:
            _refuse(event, "it is nested too deeply")

    def _list(self, start: yaml.SequenceStartEvent, depth: int) -> list[Any]:
        _check_tag(start, "seq")
        result = []
        while not isinstance(event := self._event(), yaml.SequenceEndEvent):
            result.append(self._read_value(event, depth + 1))
        return result

    def _read_dict(self, start: yaml.MappingStartEvent, depth: int) -> dict[Any, Any]:
        _check_tag(start, "map")
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        while not isinstance(event := self._event(), yaml.MappingEndEvent):
            if _is_merge(event):
                merged |= self._read_merge(self._event(), depth)
                continue
            key = self._read_value(event, depth + 1)
            if isinstance(key, bool) and isinstance(event, yaml.ScalarEvent):
                key = event.value  # `on:` names a key, though YAML 1.1 calls it a truth value
            if isinstance(key, dict | list):
                _refuse(event, f"a key is a text{BRACES}")
            if key in own:
                _refuse(event, f"the key '{_shorten_text(str(key))}' is given twice")
            own[key] = self._read_value(self._event(), depth + 1)
        return {**merged, **own} if merged else own

    def _read_merge(self, event: Any, depth: int) -> dict[Any, Any]:
        """Return the entries that a merge key takes from one mapping, or from several, with the first taking
        precedence."""
        value = self._read_value(event, depth + 1)
        several = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in several):
            _refuse(event, "the merge key << takes a mapping or a list of mappings")
        result: dict[Any, Any] = {}
        for one in reversed(several):
            result |= one
        return result

    def _resolve_alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            _refuse(
                event, f"there is nothing with the anchor '&{_shorten_text(event.anchor)}' above this alias"
            )
        value = self._anchors[event.anchor]
        if value is _OPEN:
            _refuse(
                event,
                f"the alias '*{_shorten_text(event.anchor)}' is recursive: it is inside the value that it "
                "repeats",
            )
        return value

    def _copy(self, event: Any, value: Any, depth: int) -> Any:
        """Return a copy of what an alias repeats, counted again; texts count by their length."""
        if isinstance(value, str):
            self._repeated += len(value)
            if self._repeated > MAX_SIZE:
                _refuse(event, f"its aliases repeat more than {MAX_SIZE // 1024 // 1024} MiB of text")
            return value
        if not isinstance(value, dict | list):
            return value
        self._check_room(event, depth, len(value))
        if isinstance(value, list):
            return [self._copy(event, child, depth + 1) for child in value]
        return {
            self._copy(event, key, depth): self._copy(event, child, depth + 1) for key, child in value.items()
        }


def _is_merge(event: Any) -> bool:
    return (
        isinstance(event, yaml.ScalarEvent)
        and event.value == "<<"
        and event.implicit[0]
        and event.tag is None
    )


def _check_tag(event: Any, usual: str) -> None:
    if event.tag not in (None, "!", _PREFIX + usual):
        _refuse_tag(event)


def _read_scalar(event: Any) -> Any:
    """Return the value of a scalar: a text unless YAML 1.1 defines another type. Dates stay texts, as in
    JSON; the reader rejects invalid dates."""
    text = event.value
    kind = "str"
    if event.tag not in (None, "!"):
        kind = event.tag.removeprefix(_PREFIX)
    elif event.implicit[0]:
        kind = _find_implicit_type(text)
    if kind == "str":
        if not text.isascii() and (half := re.search("[\ud800-\udfff]", text)):
            _refuse(event, f"a text holds half of a character (a lone surrogate, U+{ord(half.group()):04X})")
        return text
    maker = _MAKERS.get(kind)
    if maker is None:
        _refuse_tag(event)
    if len(text) > MAX_NUMBER:
        _refuse(event, f"a number of {len(text):,} characters is too long; a text goes in quotes")
    try:
        return maker(_CONSTRUCTOR, yaml.ScalarNode("", text))
    except (ValueError, LookupError, ArithmeticError):
        _refuse(event, f"'{_shorten_text(text)}' is not {_KINDS[kind]}; a text goes in quotes")


def _find_implicit_type(text: str) -> str:
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return tag
    return "str"


_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = {
    first: [
        (tag.removeprefix(_PREFIX), pattern)
        for tag, pattern in resolvers
        if tag.removeprefix(_PREFIX) in ("bool", "int", "float", "null")
    ]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
_CONSTRUCTOR = SafeConstructor()
_MAKERS: dict[str, Callable[[SafeConstructor, yaml.ScalarNode], Any]] = {
    "bool": SafeConstructor.construct_yaml_bool,
    "int": SafeConstructor.construct_yaml_int,
    "float": SafeConstructor.construct_yaml_float,
    "null": SafeConstructor.construct_yaml_null,
}
_KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "null": "null"}


def _refuse_tag(event: Any) -> NoReturn:
    _refuse(event, f"the tag '{_shorten_text(event.tag)}' is unsupported; remove it")


def _refuse(event: Any, what: str) -> NoReturn:
    mark = event.start_mark
    raise YamlError(f"line {mark.line + 1}, column {mark.column + 1}: {what}")


def _shorten_text(text: str | None) -> str:
    text = str(text)
    return text if len(text) <= 60 else text[:59] + "…"


# Values that YAML 1.1 reads as a truth value or null, in any case.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def flow(value: Any) -> str:
    """Return a plain value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_key(key)}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _as_float(value)
    return as_text(value) if isinstance(value, str) else str(value)


def as_key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() and key.lower() not in _WORDS else as_text(key)


def as_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _as_float(value)


def _as_float(value: float) -> str:
    text = repr(value)
    # YAML 1.1 reads 1e-07 as a text; it requires the point.
    return text if "." in text else text.replace("e", ".0e")


def as_text(text: str) -> str:
    """Return a YAML double-quoted scalar on one line. JSON's escapes are YAML's except for those beyond 16
    bits."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
