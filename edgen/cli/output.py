"""What commands print: results to stdout, notes to stderr, model text made safe for a terminal.

It is the same whether a terminal or a file takes it. In lines for people, what a terminal would obey or hide is written
out (`safe`); in JSON it is escaped, so that who reads the JSON has every character as it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import msgspec

from edgen.errors import UsageError


def safe(text: str) -> str:
    """`text` with what a terminal would obey or hide written out: `\\x1b`, `\\u202e`.

    That is: control characters (escape sequences, C1), marks and overrides of direction, characters without a width but
    for the two joiners that scripts and emoji need, separators of lines, halves of characters. Line feeds and tabs stay.
    """
    return _UNUSUAL.sub(lambda found: _written_out(found.group()), text)


def safe_json(text: str) -> str:
    """JSON text whose value is the same and which `safe` would not change: what is hidden is escaped as JSON does it."""
    return _UNUSUAL.sub(lambda found: _escaped_in_json(found.group()), text)


# Everything but what needs no second look: quick, as most of most texts is ASCII.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")


def _written_out(run: str) -> str:
    return run if run.isprintable() else "".join(_escaped(c) if _hidden(c) else c for c in run)


def _escaped_in_json(run: str) -> str:
    return run if run.isprintable() else "".join(_units(c) if _hidden(c) else c for c in run)


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN and char not in "\u200c\u200d"


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _units(char: str) -> str:
    """A character as JSON escapes it, in one or two units of UTF-16."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def json_text(value: Any) -> str:
    """A value as one line of JSON that is safe to print. A half of a character, which a file's name may hold, becomes
    U+FFFD."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_whole(msgspec.to_builtins(value)))
    return safe_json(encoded.decode())


def _whole(value: Any) -> Any:
    """Plain values without halves of characters."""
    if isinstance(value, dict):
        return {_whole(key): _whole(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(child) for child in value]
    return _HALVES.sub("\ufffd", value) if isinstance(value, str) else value


_HALVES = re.compile("[\ud800-\udfff]")


def print_json(value: Any) -> None:
    """One JSON value, and nothing else, on stdout."""
    print_raw(msgspec.json.format(json_text(value), indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One JSON value on a line of its own, on stdout."""
    print_raw(json_text(value) + "\n")


def print_line(text: str = "") -> None:
    """One line of a result, on stdout."""
    print_raw(safe(text) + "\n")


def print_raw(text: str) -> None:
    """Text as it is, on stdout, at once. A reader that has gone away is no error: nobody misses it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        raise UsageError(f"standard output cannot be written ({problem.strerror}).") from None


_notes: Callable[[str], None] | None = None


def send_notes(to: Callable[[str], None] | None) -> None:
    """Have remarks go there, where stderr is a log for a machine; None: to stderr as lines again."""
    global _notes
    _notes = to


def note(text: str) -> None:
    """A remark to the person, on stderr. Where nobody can read it, the work goes on all the same."""
    if _notes is not None:
        _notes(text)
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(safe(text) + "\n")
        sys.stderr.flush()
