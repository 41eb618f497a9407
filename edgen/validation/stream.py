"""Records of a JSON file of any size, one after the other, in the memory of one record.

A file is a JSON list, JSON Lines, one record, or an object of records by their ids, which may be nested in
another object (`{"first": {"0": …}, "second": {"0": …}}`). Python's own JSON scanner finds the end of each
record in a window that slides over the file. It takes two inputs that JSON forbids, NaN and lone surrogates,
so these spoil only their own record.
"""

from __future__ import annotations

import codecs
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import msgspec

from edgen.core.errors import DataError
from edgen.core.text import compile_later

MOST = 1 << 26  # most characters of a record
_CHUNK = 1 << 18  # bytes
_NEAR = 64  # characters before the window's end in which an error may be due to missing text
_OPEN = "Unterminated"  # Python's word for a text without an end
_ESCAPE = 6  # characters of \\uXXXX
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_SPACE = compile_later(r"[ \t\n\r]*")
# the values of numbers are not needed, and Python refuses integers with thousands of digits
_scan = json.JSONDecoder(parse_int=float).raw_decode

Recognizes = Callable[[Any], bool]


class Piece(NamedTuple):
    """One record: its JSON, its key in an object of records by their ids (`first/0` in a nested one, None
    elsewhere), and its line, from 1."""

    raw: msgspec.Raw
    key: str | None = None
    line: int = 1


def iterate_lines(file: IO[bytes], source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1, without line ends. Only line feeds end one.
    Raises DataError with the place of invalid UTF-8."""
    place = 0
    for number in itertools.count(1):
        try:
            line = file.readline(MOST)
        except (OSError, EOFError, zlib.error) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise DataError(source, f"it cannot be read to its end: {reason}.") from None
        if not line:
            return
        if len(line) == MOST and not line.endswith(b"\n"):
            raise TooLongError(source, f"line {number} is longer than {MOST >> 20} MiB.")
        try:
            text = line.decode()
        except UnicodeDecodeError as problem:
            raise make_not_utf8_error(source, place + problem.start, number) from None
        place += len(line)
        yield (
            number,
            (text.removeprefix("\ufeff") if number == 1 else text).removesuffix("\n").removesuffix("\r"),
        )


def make_not_utf8_error(source: str, byte: int, line: int) -> DataError:
    """Return the error for a byte that is invalid UTF-8."""
    return DataError(source, f"byte {byte} (line {line}) is not UTF-8; save the file as UTF-8.")


class TooLongError(DataError):
    """A record that is longer than the window."""


def iterate_pieces(file: IO[bytes], source: str, recognizes: Recognizes | None = None) -> Iterator[Piece]:
    """Yield the records of a file. `recognizes` distinguishes a decoded record from an object of records;
    None: no object holds records by their ids.

    Raises DataError with the position of the problem.
    """
    window = TextWindow(file, source)
    first = window.peek_next()
    if first == "[":
        yield from _iterate_elements(window)
        if window.peek_next():
            raise window.make_fault("trailing characters")
    elif first == "{":
        depth = _find_depth(window, recognizes) if recognizes else 0
        yield from _iterate_members_of_all(window, depth) if depth else _iterate_json_lines(window)
    elif not first:
        raise DataError(source, "it is empty; an empty list of records is written [].")
    else:
        raise DataError(
            source, "it holds no records: expected a JSON list, or JSON Lines with an object a line."
        )


class TextWindow:
    """A window that slides over a UTF-8 text. Everything in `text` before `at` is read. Places of a
    look-ahead count from `at`, because reading on moves `text`."""

    def __init__(self, file: IO[bytes], source: str) -> None:
        """Open the window at the beginning of a file."""
        self._file, self.source = file, source
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes = 0
        self._counted, self._line = 0, 1  # a place in `text`, and its line
        self._column = 1  # of the first character of `text`
        self.text, self.at, self._ended = "", 0, False
        self.read_more()
        self.text = self.text.removeprefix("\ufeff")

    def read_more(self, size: int = 0) -> bool:
        """Read a number of bytes more, or a chunk, and drop the text before `at`. Return False at the end of
        the file."""
        if self._ended:
            return False
        data = self._read(size or _CHUNK)
        text = self._decode(data)
        self._line, self._column = self.find_place(self.at)
        self._counted = 0
        self.text = self.text[self.at :] + text
        self.at = 0
        return not self._ended

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except (OSError, EOFError, zlib.error) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise DataError(self.source, f"it cannot be read to its end: {reason}.") from None
        self._ended = not data
        return data

    def _decode(self, data: bytes) -> str:
        held = len(self._decoder.getstate()[0])  # bytes of a character that the last chunk cut
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as problem:
            byte = self._bytes - held + problem.start
            before = bytes(problem.object[: problem.start]).count(b"\n")
            line = self.find_place(len(self.text))[0] + before
            raise make_not_utf8_error(self.source, byte, line) from None
        self._bytes += len(data)
        return text

    def peek_next(self) -> str:
        """Read white space. Return the first other character, "" at the end of the file."""
        place = self.skip(0)  # it may move `at`
        self.at += place
        return self.text[self.at : self.at + 1]

    def skip(self, after: int) -> int:
        """Return the place of the first character from `after` on that is not white space."""
        while True:
            found = _SPACE.match(self.text, self.at + after)
            place = (found.end() if found else self.at + after) - self.at
            if self.at + place < len(self.text) or self._ended:
                return place
            if place > MOST:
                raise self._make_too_long_error()
            self.read_more()

    def peek(self, place: int) -> str:
        """Return the character at a place that `skip` returned, "" at the end of the file."""
        return self.text[self.at + place : self.at + place + 1]

    def take(self, wanted: str) -> str:
        """Read one of these characters. Raises DataError for anything else."""
        found = self.peek_next()
        if not found or found not in wanted:
            raise self.make_fault(f"expected {' or '.join(wanted)}")
        self.at += 1
        return found

    def read_value(self, after: int = 0, *, line: bool = False) -> tuple[Any, int]:
        """Return the JSON value at a place, decoded, and its length. With `line`, it must end on the same
        line."""
        size = _CHUNK
        while True:
            start = self.at + after
            try:
                found, end = _scan(self.text, start)
            except RecursionError:
                raise DataError(self.source, "it is nested too deeply to be a list of records.") from None
            except json.JSONDecodeError as problem:
                place = problem.pos - self.at
                cut_off = problem.msg.startswith(_OPEN) or problem.pos > len(self.text) - _NEAR
                if not (cut_off and self._reads_on(after, size)):
                    raise self._make_malformed_error(problem.msg, after, place, line=line) from None
            else:
                if end < len(self.text) or not self.read_more(size):
                    if line and "\n" in self.text[self.at + after : self.at + after + end - start]:
                        raise self._make_cut_off_error(self.at + after)
                    return found, end - start
            size = min(2 * size, MOST)

    def _reads_on(self, after: int, size: int) -> bool:
        if len(self.text) - self.at - after > MOST:
            raise self._make_too_long_error()
        return self.read_more(size)

    def make_fault(self, detail: str, at: int | None = None) -> DataError:
        """Return an error about the text at `at`, by default at the reading place; or about the end of the
        file."""
        if at is None and self.at >= len(self.text):
            return self._make_cut_off_error(len(self.text.rstrip()))
        line, column = self.find_place(self.at if at is None else at)
        return DataError(self.source, f"it is not valid JSON: line {line}, column {column}: {detail}.")

    def find_place(self, at: int) -> tuple[int, int]:
        """Return line and column of a place in `text`, both from 1."""
        if at < self._counted:
            self._line -= self.text.count("\n", at, self._counted)
        else:
            self._line += self.text.count("\n", self._counted, at)
        self._counted = at
        begin = self.text.rfind("\n", 0, at)
        return self._line, self._column + at if begin < 0 else at - begin

    def _make_malformed_error(self, detail: str, after: int, place: int, *, line: bool) -> DataError:
        start, at, end = self.at + after, self.at + place, len(self.text.rstrip())
        rest = self.text[at:end]
        escape = detail.startswith("Invalid \\") and len(rest) < _ESCAPE
        if detail.startswith(_OPEN) or escape or any(word.startswith(rest) for word in _WORDS):
            return self._make_cut_off_error(start if line else end)
        if line and "\n" in self.text[start:at]:
            return self._make_cut_off_error(start)
        return self.make_fault(detail[:1].lower() + detail[1:], at)

    def _make_cut_off_error(self, at: int) -> DataError:
        line = self.find_place(at)[0]
        end = self.text.find("\n", at)
        after = self.text[end:].encode() if end >= 0 else b""
        byte = self._bytes - len(self._decoder.getstate()[0]) - len(after)
        return DataError(
            self.source, f"it is not valid JSON: line {line} ends in the middle of a value, at byte {byte}."
        )

    def _make_too_long_error(self) -> DataError:
        line = self.find_place(self.at)[0]
        most = f"{MOST >> 20} million characters"
        return TooLongError(
            self.source,
            f"the record that begins in line {line} is longer than {most}; split it into records.",
        )


def _read_piece(window: TextWindow, key: str | None = None, *, line: bool = False) -> Piece:
    """Read one value as a record."""
    window.peek_next()
    number = window.find_place(window.at)[0]
    _, length = window.read_value(line=line)
    raw = msgspec.Raw(window.text[window.at : window.at + length].encode())
    window.at += length
    return Piece(raw, key, number)


def _iterate_elements(window: TextWindow) -> Iterator[Piece]:
    """Yield the elements of a list, and read the list's end."""
    window.take("[")
    if window.peek_next() == "]":
        window.at += 1
        return
    while True:
        yield _read_piece(window)
        if window.take(",]") == "]":
            return


def _iterate_json_lines(window: TextWindow) -> Iterator[Piece]:
    """Yield the values of JSON Lines, or a single value, which may have several lines."""
    first = _read_piece(window)
    yield first
    several = b"\n" in bytes(first.raw)
    while True:
        before = window.find_place(window.at)[0]
        if not window.peek_next():
            return
        if window.find_place(window.at)[0] == before:
            raise window.make_fault("trailing characters")
        yield _read_piece(window, line=not several)


def _iterate_members_of_all(window: TextWindow, depth: int) -> Iterator[Piece]:
    """Yield the records at a depth inside objects, one object after the other."""
    while window.peek_next():
        yield from _iterate_members(window, depth)


def _iterate_members(window: TextWindow, depth: int, before: str = "") -> Iterator[Piece]:
    window.take("{")
    if window.peek_next() == "}":
        window.at += 1
        return
    while True:
        if window.peek_next() != '"':
            raise window.make_fault("expected a key in quotation marks")
        key, length = window.read_value()
        window.at += length
        window.take(":")
        if depth > 1 and window.peek_next() == "{":
            yield from _iterate_members(window, depth - 1, f"{before}{key}/")
        else:
            yield _read_piece(window, f"{before}{key}")
        if window.take(",}") == "}":
            return


def _find_depth(window: TextWindow, recognizes: Recognizes, most: int = 2) -> int:
    """Return the number of objects around the first record: 0 for a single record, 1 for records by their
    ids. The window's position stays."""
    begins = [0]
    while len(begins) <= most and (inner := _find_first_object(window, begins[-1])) is not None:
        begins.append(inner)
    for depth in reversed(range(len(begins))):
        try:
            value, _ = window.read_value(begins[depth])
        except TooLongError:
            continue
        if recognizes(value):
            return depth
    return 0


def _find_first_object(window: TextWindow, begin: int) -> int | None:
    """Return the place of the first value of the object at `begin`, skipping empty objects; None unless that
    value is an object."""
    place = window.skip(begin + 1)
    while window.peek(place) == '"':
        _, length = window.read_value(place)
        place = window.skip(place + length)
        if window.peek(place) != ":":
            return None
        place = window.skip(place + 1)
        if window.peek(place) != "{":
            return None
        inner = window.skip(place + 1)
        if window.peek(inner) != "}":
            return place
        place = window.skip(inner + 1)
        if window.peek(place) != ",":
            return None
        place = window.skip(place + 1)
    return None
