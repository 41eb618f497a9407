"""Texts split into marked and plain parts: the turns read from a raw reply, the reason of a rejection, and
the words in which two texts differ."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence

import msgspec

_MOST_RAW = 400_000  # most characters of a raw reply in which parts are searched
_MOST_WORDS = 1_200  # most words of two texts that are compared
_TAIL = 40  # characters that are marked at the end of a cut-off reply
_FEWEST = 4  # fewest characters of a quoted part
_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|'([^']{3,})'|:\s+(.+)$", re.DOTALL)
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class TextMark(msgspec.Struct, frozen=True):
    """A part of a text. `kind`: plain, read (`turn` is its number, from 1), reason, added or removed."""

    text: str
    kind: str = "plain"
    turn: int | None = None


class _Span(msgspec.Struct, frozen=True):
    begin: int
    end: int
    kind: str
    turn: int | None = None


def mark_reply(raw: str, turns: Sequence[str], reason: str | None, detail: str | None) -> list[TextMark]:
    """Return a raw reply in parts, with marks on the parts that became turns and on those that its rejection
    quotes."""
    if len(raw) > _MOST_RAW:
        return [TextMark(raw)]
    spans = [*_read_spans(raw, turns)]
    if reason is not None:
        spans += _find_reason_spans(raw, reason, detail or "")
    return _cut(raw, spans)


def _read_spans(raw: str, turns: Sequence[str]) -> Iterable[_Span]:
    at = 0
    for number, text in enumerate(turns, 1):
        forms = dict.fromkeys((text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]))
        for form in forms:
            if form and (begin := raw.find(form, at)) >= 0:
                at = begin + len(form)
                yield _Span(begin, at, "read", number)
                break


def _find_reason_spans(raw: str, reason: str, detail: str) -> list[_Span]:
    """Return the spans that the detail of a rejection quotes; for a cut-off reply, its end."""
    quoted = [next(filter(None, found)) for found in _QUOTED.findall(detail)]
    for quote in sorted(quoted, key=len, reverse=True):
        words = quote.strip().rstrip("….").strip("\"'“” ").split()
        if len(" ".join(words)) < _FEWEST:
            continue
        found = re.search(r"\s+".join(map(re.escape, words)), raw, re.IGNORECASE)
        if found is not None:
            return [_Span(found.start(), found.end(), "reason")]
    if reason.startswith("truncated") and raw.rstrip():
        end = len(raw.rstrip())
        return [_Span(max(0, end - _TAIL), end, "reason")]
    return []


def _cut(text: str, spans: Iterable[_Span]) -> list[TextMark]:
    """Return a text in parts. If spans overlap, reasons win over turns."""
    parts: list[TextMark] = []
    at = 0
    reasons = [one for one in spans if one.kind == "reason"]
    chosen = reasons + [
        one
        for one in spans
        if one.kind != "reason" and all(one.end <= other.begin or other.end <= one.begin for other in reasons)
    ]
    for one in sorted(chosen, key=lambda span: span.begin):
        if one.begin < at:
            continue
        if one.begin > at:
            parts.append(TextMark(text[at : one.begin]))
        parts.append(TextMark(text[one.begin : one.end], one.kind, one.turn))
        at = one.end
    if at < len(text) or not parts:
        parts.append(TextMark(text[at:]))
    return parts


def mark_text_differences(text: str, other: str, kind: str) -> list[TextMark]:
    """Return a text in parts. Words that the other text does not have in this order get `kind`."""
    if text == other:
        return [TextMark(text)]
    mine, theirs = _WORDS.findall(text), _WORDS.findall(other)
    if len(mine) + len(theirs) > _MOST_WORDS:
        return [TextMark(text, kind)]
    parts: list[TextMark] = []
    matcher = difflib.SequenceMatcher(None, theirs, mine, autojunk=False)
    for how, _, _, begin, end in matcher.get_opcodes():
        if begin < end:
            parts.append(TextMark("".join(mine[begin:end]), "plain" if how == "equal" else kind))
    return parts or [TextMark(text)]
