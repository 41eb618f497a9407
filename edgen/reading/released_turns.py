"""Clean one turn of a released Education Dialogue file from the debris of the reader that made the file.

Those files hold texts such as `?"",`, `."` before a stage tag, `...",` and a marker as a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import find_marker, hold_no_marker, may_mark
from edgen.reading.text.quotes import drop_tag, is_silent, note_words_after, strip_debris, trim

_QUOTE = compile_later('["“”]')
# Most turns have no debris: no such marks at either end, no quotation mark and no bracket.
_PLAIN = compile_later(r"[A-Za-z0-9](?:[^\"“”＂(\[{<]*[A-Za-z0-9.!?])?")
# A separator follows each turn. One inside a turn splits it in two; plain parts are joined to a plain turn.
_ALL_PLAIN = compile_later(r"(?>(?:[A-Za-z0-9](?:[^\"“”＂(\[{<\x1f]*[A-Za-z0-9.!?])?\x1f)+)")


def is_plain(text: str) -> bool:
    """Return whether a quick check shows that a turn holds no debris and no end marker.

    False is not certain: the text may still be clean.
    """
    return _PLAIN.fullmatch(text) is not None and not may_mark(fold(text))


def are_plain(texts: Sequence[str]) -> bool:
    """Return whether a quick check shows that none of these turns holds debris or an end marker.

    There is at least one turn.
    """
    whole = "\x1f".join([*texts, ""])
    return _ALL_PLAIN.fullmatch(whole) is not None and hold_no_marker(texts)


def clean_turn(text: str) -> tuple[str, bool, tuple[str, ...]]:
    """Return (text without debris and end marker, whether it held the marker, the names of the repairs).

    The text is "" if nothing is said: a turn of dots, of debris, or of the marker alone. The sentence's own
    quotation marks stay.
    """
    return (text, False, ()) if is_plain(text) else _clean_text(text)


def _clean_text(text: str) -> tuple[str, bool, tuple[str, ...]]:
    repairs: list[str] = []
    said = trim(text)
    marked = find_marker(said)
    if marked is not None:
        behind = said[marked.end :]
        said = trim(marked.said)
        repairs += marked.repairs
        before = len(repairs)
        note_words_after(behind, repairs)
        unmarked = "“" not in said and '"' not in said
        if len(repairs) == before and unmarked and ('"' in behind or "”" in behind):
            repairs.append(Repair.STRAY_DEBRIS)
    said = _strip_loose_quotes(drop_tag(said, repairs), repairs)
    if is_silent(said):
        if marked is None:
            repairs.append(Repair.EMPTY_TURN)
        said = ""
    return said, marked is not None, tuple(dict.fromkeys(map(str, repairs)))


def _strip_loose_quotes(text: str, repairs: list[str]) -> str:
    """Return the text without quotation marks around it or at its end that no sentence needs."""
    bare = text.lstrip('"“')
    opening = len(text) - len(bare)
    quoted = text.rstrip(", ")
    wrapped = (
        opening == 1 and quoted[1:].endswith(('"', "”")) and not _QUOTE.search(quoted, 1, len(quoted) - 1)
    )
    alone = opening == 1 and not _QUOTE.search(bare)
    doubled = opening > 1 and not bare[:1].isspace()
    if wrapped and quoted != text:
        text = quoted[1:-1]
    elif doubled or alone:
        text = bare
    else:
        return trim(strip_debris(text, repairs))
    repairs.append(Repair.STRAY_DEBRIS)
    return trim(strip_debris(text, repairs))
