"""What commands print: results to stdout, notes to stderr, model text made safe for a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from edgen.errors import UsageError


def safe(text: str) -> str:
    """`text` with control characters (escape sequences among them) shown as `\\x1b`, not obeyed.

    Line feeds and tabs stay; bidirectional overrides, which can make a line lie, are shown too.
    """
    return "".join(c if c in "\n\t" or (c.isprintable() and c not in _BIDI) else _escaped(c) for c in text)


_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_json(value: Any) -> None:
    """One JSON value, and nothing else, on stdout."""
    print_raw(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


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
