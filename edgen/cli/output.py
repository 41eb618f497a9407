"""What commands print: results to stdout, notes to stderr, model text made safe for a terminal.

It is the same whether a terminal or a file takes it. In lines for people, what a terminal would obey or hide is written
out (`safe`); in JSON it is escaped, so that who reads the JSON has every character as it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from edgen.core.errors import UsageError
from edgen.core.safe_text import safe, safe_json


def json_text(value: Any) -> str:
    """A value as one line of JSON that is safe to print. A half of a character, which a file's name may hold, becomes
    U+FFFD."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_replace_halves(msgspec.to_builtins(value)))
    return safe_json(encoded.decode())


def _replace_halves(value: Any) -> Any:
    """Plain values without halves of characters."""
    if isinstance(value, dict):
        return {_replace_halves(key): _replace_halves(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_halves(child) for child in value]
    return _HALVES.sub("\ufffd", value) if isinstance(value, str) else value


_HALVES = re.compile("[\ud800-\udfff]")


def print_value(value: Any, lines: Iterable[str], *, json: bool) -> None:
    """A result: as JSON, or the lines that say the same to a person."""
    if json:
        print_json(value)
        return
    for line in lines:
        print_line(line)


def print_json(value: Any) -> None:
    """One JSON value, and nothing else, on stdout."""
    print_raw(msgspec.json.format(json_text(value), indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One JSON value on a line of its own, on stdout."""
    print_raw(json_text(value) + "\n")


class SafeText(str):
    """Text that is safe already: what a terminal obeys in it is edgen's own."""

    __slots__ = ()


def print_line(text: str = "") -> None:
    """One line of a result, on stdout."""
    print_raw((text if isinstance(text, SafeText) else safe(text)) + "\n")


def print_raw(text: str) -> None:
    """Text as it is, on stdout, at once. A reader that has gone away is no error: nobody misses it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        raise UsageError(f"standard output cannot be written ({problem.strerror}).") from None


def note(text: str) -> None:
    """A remark to the person, on stderr. Where nobody can read it, the work goes on all the same."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(safe(text) + "\n")
        sys.stderr.flush()


def format_cost(usd: float | None, *, calls: int = 1) -> str:
    """What calls cost, to a hundredth of a cent."""
    if usd is None:
        return "unknown (no price in the job)" if calls else "none yet"
    return f"${usd:.4f}"


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int, what: str = "") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more{what}" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def align_columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """The lines of a table: the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(cells)
        )


def wrap_behind(label: str, text: str) -> list[str]:
    """The text behind its label, within 80 columns."""
    indent = " " * len(label)
    return textwrap.wrap(text, 80, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)
