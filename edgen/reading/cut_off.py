"""Reduce a reply that a token limit cut off to its whole parts: sentences, or members of a JSON object.

The functions work on raw text before any reader, so every reader of turns can read the rest. They raise no
exception and are linear in the length.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.reading.one_turn.json_turn import ASIDE
from edgen.reading.text.marker import find_marker

_CLOSERS = r"[\"'”’»“‘›)\]}」』）】》*_`]{0,6}"
# The marks of scripts without blanks end a sentence wherever they stand; a semicolon asks in Greek.
_END = compile_later(
    rf"[.!?…؟۔।॥։።။]+{_CLOSERS}(?=\s|\Z)|[。！？｡]+{_CLOSERS}"
    rf"|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e]{_CLOSERS}(?=\s|\Z)"
)
# A full stop ends no sentence after the number of a list, an initial or an abbreviation.
_NO_END = compile_later(
    r"(?:(?:\A|\n)[^\w\n]{0,9}\d{1,3}|(?<!\w)[A-ZÀ-ÞА-Я]|(?<!\w)(?:[^\W\d_]\.){1,4}[^\W\d_]"
    r"|(?<!\w)(?i:mr|mrs|ms|dr|prof|jr|sr|sra|mme|vs|etc|cf|fig|nr|bzw))\.\Z"
)
_SHOWN = 40  # characters up to a full stop that show what it is
_JSON = compile_later(r"(?m)^[^\S\n]{0,20}(?=[{\[]\s{0,99}[\"{\[])")
_FENCE = compile_later(r"(?m)^\s{0,9}```\w{0,20}[^\S\n]{0,9}\n?\Z")
_HALF_ESCAPE = compile_later(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")


class Whole(NamedTuple):
    """The parts of a cut reply: `all`, with open JSON closed, and `kept`, up to its last whole sentence."""

    all: str
    kept: str


def without_end(text: str) -> Whole | None:
    """Return what is whole in a reply that was cut off; None if no sentence or text is."""
    if (body := _JSON.search(text)) is not None and _is_preamble(text[: body.start()]):
        head, rest = text[: body.end()], text[body.end() :]
        found = _close(rest)
        return None if found is None else Whole(head + found.all, head + found.kept)
    kept = keep_whole_sentences(text)
    return Whole(text, kept) if kept else None


def _is_preamble(head: str) -> bool:
    """Return whether the text before JSON is no answer: empty, a fence, an announcement, thoughts."""
    said = _FENCE.sub("", head).strip()
    return not said or said.endswith(">") or ASIDE.match(said) is not None


def keep_whole_sentences(text: str) -> str:
    """Return a cut text up to its last complete sentence; "" if none is complete.

    A text with an end marker is complete with it.
    """
    if (marked := find_marker(text)) is not None and marked.said.strip():
        return text[: marked.end]
    end = 0
    for match in _END.finditer(text):
        before = text[max(0, match.start() + 1 - _SHOWN) : match.start() + 1]
        half = before[-1] == "." and match.end() == len(text) and before[-2:-1].isdigit()  # of a number
        if not half and not _NO_END.search(before):
            end = match.end()
    kept = text[:end]
    return kept if any(map(str.isalnum, kept)) else ""


class _Scan:
    """A scan of JSON that breaks off.

    `safe`: the end of the last whole member of an object, with the brackets that close the containers around
    it. `open`: the place where the unfinished text begins; None if there is no such text.
    """

    def __init__(self, text: str) -> None:
        self.stack: list[str] = []
        self.safe: tuple[int, str] | None = None
        self.open: int | None = None
        self.done: int | None = None
        self._is_value = False
        self._run(text)

    @property
    def closers(self) -> str:
        return "".join("}" if one == "{" else "]" for one in reversed(self.stack))

    @property
    def holds_members(self) -> bool:
        """Return whether a member that belongs to no list of values can stand here."""
        lists = len(self.stack) - len("".join(self.stack).lstrip("["))
        return self.stack[-1:] == ["{"] and "[" not in self.stack[lists:]

    def _run(self, text: str) -> None:
        at = 0
        while at < len(text) and self.done is None:
            char = text[at]
            if char == '"':
                end = _find_end_of_string(text, at)
                if end is None:
                    self.open = at if self._is_value and self.holds_members else None
                    return
                at = end
                if self._is_value:
                    self._note(end)
                continue
            at += 1
            if char in "{[":
                self.stack.append(char)
                self._is_value = False
            elif char in "}]":
                if self.stack:
                    self.stack.pop()
                if not self.stack:
                    self.done = at
                self._note(at)
            elif char == ":":
                self._is_value = True
            elif char == ",":
                if self._is_value:
                    self._note(at - 1)
                self._is_value = False

    def _note(self, end: int) -> None:
        if self.holds_members:
            self.safe = end, self.closers
        self._is_value = False


def _find_end_of_string(text: str, start: int) -> int | None:
    at = start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at + 1
        else:
            at += 1
    return None


def _close(text: str) -> Whole | None:
    """Return broken JSON with its last whole members alone, and a text in which it breaks off up to its last
    complete sentence."""
    scan = _Scan(text)
    if scan.done is not None:
        return Whole(text, text)
    if scan.open is not None:
        said = _decode(text[scan.open + 1 :])
        if said is not None and (kept := keep_whole_sentences(said)):
            before, after = text[: scan.open], scan.closers
            return Whole(before + _encode(said) + after, before + _encode(kept.rstrip()) + after)
    if scan.safe is None:
        return None
    end, after = scan.safe
    whole = text[:end] + after
    return Whole(whole, whole)


def _decode(raw: str) -> str | None:
    """Return the text of a JSON string that breaks off; None if it is no JSON string."""
    if (half := _HALF_ESCAPE.search(raw)) is not None:
        raw = raw[: half.start(1)]
    try:
        said: str = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return None
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _encode(text: str) -> str:
    return msgspec.json.encode(text).decode()
