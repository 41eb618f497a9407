"""The quotation marks around a whole turn, told from those of the quotations in it.

Everything is linear in the text's length. What is between the marks stays to the letter.
"""

from __future__ import annotations

import re

from edgen.reading.repairs import Repair
from edgen.reading.text.quotes import CLOSERS, LEADING_TAG, drop_tag, find_closing, strip_debris, unwrap

_BARE_SINGLE = re.compile(r"(?<!\w)['‘]|['’](?!\w)")
_MARKS = re.compile(r"[\"“”„«»「」]|\n[^\S\n]*\n")
_BEFORE = frozenset("([{<-–—/:：=,>*_'‘“„«\\")
_ENDS = (".", "!", "?", "…", ",", "。", "！", "？")


def unquote(text: str, repairs: list[str], *, labelled: bool) -> str:
    """The turn without quotation marks that enclose it as a whole, or that open it and close nothing.

    `labelled`: a label stood before it, so that the marks belong to the layout, and a stage direction
    behind them too.
    """
    stage = LEADING_TAG.match(text)
    spoken = text[stage.end() :] if stage is not None else text
    names: list[str] = []
    inner = _inside(spoken, names, labelled=labelled)
    if inner is None:
        return text
    repairs += [Repair.STAGE_TAG] if stage is not None else []
    repairs += names
    return inner


def _inside(text: str, names: list[str], *, labelled: bool) -> str | None:
    """What the marks around a text enclose; None where none enclose it."""
    first = text[:1]
    if first == '"':
        return _straight(text, names, labelled=labelled)
    if first in ("'", "‘"):
        inner = text[1:-1]
        whole = len(text) > 2 and text[-1] in CLOSERS[first] and not _BARE_SINGLE.search(inner)
        names += [Repair.LAYOUT] if whole else []
        return inner if whole else None
    if first in CLOSERS and first != "`":
        return _paired(text, names, labelled=labelled)
    return None


def _straight(text: str, names: list[str], *, labelled: bool) -> str | None:
    at = find_closing(text, '"”', 1, len(text))
    if at < 0:
        if text.count('"') != 1 or "”" in text:
            return None
        names.append(Repair.MISSING_QUOTE)
        return text[1:]
    if not _whole(text[1:at], text[at + 1 :], labelled):
        return None
    inner = unwrap(text, ('"',), names)
    if inner[:1] == '"' and len(inner) >= at:
        names.clear()
        return None
    names[:] = [Repair.LAYOUT, *names]
    return inner


def _paired(text: str, names: list[str], *, labelled: bool) -> str | None:
    """The same where opening and closing marks differ, so that one can count how deep they are."""
    closers = CLOSERS[text[0]]
    depth = 0
    at = -1
    for match in re.finditer(f"[{re.escape(text[0] + closers)}]", text):
        mark = match.group()
        if mark == '"':
            continue
        depth += 1 if mark == text[0] else -1
        if depth == 0:
            at = match.start()
            break
    if at < 0 and '"' in closers:
        at = find_closing(text, '"', 1, len(text)) if text.count('"') == 1 else -1
    if at < 0:
        if text.count(text[0]) != 1 or any(c in text for c in closers):
            return None
        names.append(Repair.MISSING_QUOTE)
        return text[1:]
    if text[at + 1 :].strip(" \t\r\n,;.]}") and not labelled:
        return None
    if find_closing(text, text[at], at, len(text)) != at or not _whole(text[1:at], text[at + 1 :], labelled):
        return None
    names.append(Repair.LAYOUT)
    if text[at + 1 :].strip(" \t\r\n,;.]}"):
        names.append(Repair.STAGE_TAG)
    return text[1:at]


def _whole(inner: str, behind: str, labelled: bool) -> bool:
    """Whether what stands behind closing marks leaves them around a whole turn: `"La casa" (the house)`
    and `"Energy".` are sentences with a quotation at their beginning."""
    behind = behind.strip(" \t\r\n,;]}")
    if not behind:
        return bool(inner.strip())
    return labelled or (behind == "." and inner.rstrip().endswith(_ENDS))


def strip_turn_debris(text: str, repairs: list[str]) -> str:
    """The turn without loose marks at its end, and without a stage direction behind one of them; the
    mark of inches stays, and so does one that closes a quotation."""
    if (untagged := drop_tag(text, repairs, ends=_ENDS)) is not text:
        return untagged
    bare = text.rstrip(' \t,"”')
    if bare[-1:].isdigit() and text[len(bare) :].strip() in ('"', "”"):
        return text
    return strip_debris(text, repairs)


def find_quotations(text: str) -> list[tuple[int, int]]:
    """Where the quotations of a text begin and end (both are quotation marks), in their order.

    A mark opens where a word could begin, and closes where one could end; one that the next opens
    again before it was closed, or that its paragraph does not close, is none.
    """
    spans: list[tuple[int, int]] = []
    opened = -1
    for match in _MARKS.finditer(text):
        mark, at = match.group(), match.start()
        if len(mark) > 1:
            opened = -1
        elif opened >= 0 and mark in CLOSERS[text[opened]] and not text[at - 1].isspace():
            spans.append((opened, at))
            opened = -1
        elif mark in '"“„«「' and (at == 0 or text[at - 1].isspace() or text[at - 1] in _BEFORE):
            opened = at
    return spans
