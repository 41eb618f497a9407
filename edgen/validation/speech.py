"""The spoken text of a conversation in a file, and kinds of debris in the turns of released ED files.

`read_turn` reads only one turn's text; `read_speech` returns the spoken text of all turns that `repair.fix`
would keep. Both are linear in the text's length. The kinds of debris are those of KINDS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import END_MARKER, Role, Turn
from edgen.reading import clean_turn, is_plain
from edgen.validation.findings import quote

Marker = Literal["suffix", "own_turn", "inside", "absent"]

# In any brackets and wording; END_MARKER is the only correct spelling.
_MARKER = compile_later(
    r"[\[(<{]\s*(?:the\s+)?end\s+of\s+(?:(?:the|this|our)\s+)?(?:conversation|dialogue|dialog"
    r"|chat)\s*[.!]?\s*[\])>}]",
    re.IGNORECASE,
)
_WORD = compile_later(r"\w")
_SPECIAL = compile_later(r'["“”\[(<{]')
_CLOSING = '"”'
_SILENCE = frozenset(" \t\r\n\"'“”‘’.…,")


@dataclass(frozen=True, slots=True)
class TurnText:
    """The contents of a turn's text. `notes` are (kind, problem); `says` is whether words remain without
    debris and marker.

    `markers` counts the end markers, `marker_last` is whether one is at the very end.
    """

    notes: tuple[tuple[str, str], ...] = ()
    says: bool = True
    markers: int = 0
    marker_last: bool = False


_PLAIN = TurnText()


def read_turn(text: str) -> TurnText:
    """Read the text of one turn."""
    if _WORD.search(text) and not _SPECIAL.search(text):
        return _PLAIN
    notes: list[tuple[str, str]] = []
    body = _without_tail(_without_tag(text.strip(), notes), notes)
    if _has_doubled_start(body):
        notes.append(("doubled_quotes", "the text starts with doubled quotation marks"))
    elif not notes and _is_unpaired(body):
        notes.append(("stray_quote", "a quotation mark has no partner"))
    markers = list(_MARKER.finditer(body))
    rest = _MARKER.sub(" ", body) if markers else body
    says = not _SILENCE.issuperset(rest)
    if odd := next((m.group() for m in markers if m.group() != END_MARKER), None):
        notes.append(("marker_spelling", f"the end marker is spelled {quote(odd)}"))
    if not says:
        notes.append(_split_silence(rest, bool(markers)))
    last = bool(markers) and _SILENCE.issuperset(body[markers[-1].end() :])
    return TurnText(tuple(notes), says, len(markers), last)


def _split_silence(rest: str, marked: bool) -> tuple[str, str]:
    if marked:
        return "marker_turn", "the end marker is a turn of its own"
    if "." in rest or "…" in rest:
        return "ellipsis_turn", "the turn holds nothing but dots"
    return "empty_turn", "the turn holds no text"


def _is_unpaired(body: str) -> bool:
    return body.count('"') % 2 == 1 or body.count("”") > body.count("“")


def _has_doubled_start(body: str) -> bool:
    bare = body.lstrip('"“')
    return len(body) - len(bare) > 1 and bare != "" and not bare[0].isspace()


def _without_tag(body: str, notes: list[tuple[str, str]]) -> str:
    """Remove words in brackets after a quotation mark that closes nothing, such as `" (Direct
    instruction)`."""
    start = body.rfind("(")
    if start < 0 or body.find(")", start) != len(body) - 1:
        return body
    said = body[:start].rstrip()
    closed = said.endswith(tuple(_CLOSING)) and _is_unpaired(said)
    if not closed or _MARKER.fullmatch(body, start):
        return body
    notes.append(("stage_tag", f"the stage tag {quote(body[start:])} is after the closing quotation mark"))
    return said[:-1].rstrip()


def _without_tail(body: str, notes: list[tuple[str, str]]) -> str:
    """Remove closing quotation marks, and a comma after them, that belong to no quotation."""
    comma = body.endswith(",")
    quoted = body[:-1].rstrip() if comma else body
    said = quoted.rstrip(_CLOSING)
    marks = len(quoted) - len(said)
    doubled = marks > 1 and said != "" and not said[-1].isspace()
    if not marks or not (doubled or _is_unpaired(quoted)):
        if marks and comma and quoted[0] in '"“':
            notes.append(("stray_quote", "the text is in quotation marks, followed by a comma"))
        return body
    tail = body[len(said) :]
    if doubled:
        notes.append(("doubled_quotes", f"the text ends with doubled quotation marks: {tail}"))
    if comma:
        notes.append(("quote_comma", f"the text ends with the debris {tail}"))
    if not notes:
        notes.append(("stray_quote", "the text ends with a quotation mark that has no partner"))
    return said


class Speech(msgspec.Struct, frozen=True):
    """The spoken text of a conversation. `marker`: the place of the end marker (`inside`: before further
    text, which `turns` leave out); `ended_by`: its speaker. `defects` are the kinds of debris found, once
    each."""

    turns: tuple[Turn, ...]
    marker: Marker
    ended_by: Role | None
    defects: tuple[str, ...]


def read_speech(turns: Iterable[Turn]) -> Speech:
    """Read the spoken text of turns as written. Accepts any text."""
    kept: list[Turn] = []
    defects: dict[str, None] = {}
    marker: Marker = "absent"
    ended_by: Role | None = None
    for turn in turns:
        if marker == "absent" and is_plain(turn.text):
            kept.append(turn)
            continue
        what = read_turn(turn.text)
        defects |= dict.fromkeys(kind for kind, _ in what.notes)
        if marker != "absent":
            marker = "inside" if what.says else marker
            continue
        text, marked, repairs = clean_fully(turn.text)
        if text:
            kept.append(msgspec.structs.replace(turn, text=text))
        if marked:
            ended_by = turn.role
            marker = "suffix" if text else "own_turn"
            if "after_end_marker" in repairs:
                marker = "inside"
    defects.pop("marker_turn", None)  # `marker` covers it
    return Speech(tuple(kept), marker, ended_by, tuple(defects))


def clean_fully(text: str) -> tuple[str, bool, tuple[str, ...]]:
    """Apply `clean_turn` until nothing changes, since several markers can follow each other."""
    marked = False
    repairs: dict[str, None] = {}
    for _ in range(10):
        before = text
        text, held, names = clean_turn(before)
        marked = marked or held
        repairs |= dict.fromkeys(names)
        if text in ("", before):
            break
    return text, marked, tuple(repairs)
