"""Output of commands: results to stdout, notes to stderr, model text made safe for a terminal.

It is the same for a terminal and a file, except that sentences break between words at a terminal's edge. In
lines for people, characters that a terminal would interpret or hide are written out (`safe`); in JSON they
are escaped, so that a reader of the JSON gets every character unchanged.
"""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

import msgspec

from edgen.core.errors import UsageError
from edgen.core.text import columns, escape_hidden, escape_hidden_json, format_dollars, replace_surrogates

_LEAST_COLUMNS = 20  # of a terminal in which sentences are broken between words


def render_json(value: Any) -> str:
    """Return a value as one line of JSON that is safe to print. A lone surrogate, which a file's name may
    hold, becomes U+FFFD."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))
    return escape_hidden_json(encoded.decode())


def print_value(value: Any, lines: Iterable[str], *, json: bool) -> None:
    """Print a result: as JSON, or the lines that say the same to a person."""
    if json:
        print_json(value)
        return
    for line in lines:
        print_line(line)


def print_json(value: Any) -> None:
    """Print one JSON value, and nothing else, on stdout."""
    print_raw(msgspec.json.format(render_json(value), indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print one JSON value on one line, on stdout."""
    print_raw(render_json(value) + "\n")


class SafeText(str):
    """Text that is safe already: what a terminal obeys in it is edgen's own."""

    __slots__ = ()


def print_line(text: str = "") -> None:
    """Print one line of a result, on stdout."""
    print_raw((text if isinstance(text, SafeText) else escape_hidden(text)) + "\n")


@contextlib.contextmanager
def keep_stdout() -> Iterator[None]:
    """Keep stdout for what this module prints. Other code that prints, such as a plugin, prints on stderr."""
    _kept.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _kept.pop()


_kept: list[TextIO] = []  # stdout, while sys.stdout is another stream


def print_raw(text: str) -> None:
    """Text as it is, on stdout, at once. A reader that has gone away is no error: nobody misses it."""
    out = _kept[-1] if _kept else sys.stdout
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    except OSError as problem:
        raise UsageError(f"standard output cannot be written ({problem.strerror}).") from None


def note(text: str) -> None:
    """Print a remark to the person, on stderr. Without a reader, the work continues."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(_fold(escape_hidden(text), _find_terminal_width(sys.stderr)) + "\n")
        sys.stderr.flush()


def fold_behind(label: str, text: str) -> str:
    """Return a text after its label. On a terminal that is too narrow, its further lines begin below the
    first."""
    width = _find_terminal_width(sys.stdout)
    line = label + text
    return "\n".join(wrap_behind(label, text, width)) if 0 < width < columns(line) else line


def _find_terminal_width(stream: TextIO) -> int:
    """Return the number of columns of a stream's terminal; 0 if there is none, or too few to read in."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0
    return width if width >= _LEAST_COLUMNS else 0


def _fold(text: str, width: int) -> str:
    """Break lines longer than `width` between words: a terminal would break them anywhere. 0: leave them as
    they are."""
    if not width:
        return text
    return "\n".join(_fold_line(line, width) if columns(line) > width else line for line in text.split("\n"))


def _fold_line(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    parts = textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)


def format_cost(usd: float | None, *, calls: int = 1) -> str:
    """Format the cost of calls."""
    if usd is None:
        return "unknown (no price in the job)" if calls else "none yet"
    return format_dollars(usd)


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def join_first(names: Sequence[str], most: int, what: str = "") -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - most} more{what}" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def align_columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Yield the lines of a table: the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(cells)
        )


def wrap_behind(label: str, text: str, width: int = 80) -> list[str]:
    """Return the lines of a text after its label, within `width` columns."""
    indent = " " * len(label)
    return textwrap.wrap(text, width, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)
