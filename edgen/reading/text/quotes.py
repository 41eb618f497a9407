"""Remove the quotation marks of the layout around a turn, and keep those of the speaker.

The text between the ends of a turn stays exactly as it is. Linear in the length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair
from edgen.reading.text.escapes import unescape

# Closing marks by the opening mark of a turn: models mix the kinds of double marks.
CLOSERS = {
    '"': '"”', "“": '”"', "”": '”"', "„": '“”"', "«": "»", "»": "«", "‹": "›", "'": "'", "‘": "’'", "`": "`",
    "「": "」", "『": "』", "＂": "＂",
}  # fmt: skip
_STRINGS = frozenset("\"'")  # where all turns begin so, both kinds are the layout's, as in Python
_OPENING = frozenset(CLOSERS)
DOUBLE = frozenset('"“”„＂')
_CLOSING = '"”＂'
CLOSING_MARKS = frozenset(_CLOSING)
ODD_ENDS = frozenset(("", *_CLOSING, ",", "\\", ">"))  # what the layout may leave at the end of a turn
INVISIBLE = "\u200b\u2060\ufeff"
# White space and marks that do not show.
BLANK = frozenset([c for c in map(chr, range(0x3001)) if c.isspace()]) | {*INVISIBLE}
# Characters that say nothing: a text that begins with another character says something.
SILENCE = frozenset(" \t\r\n\x0b\x0c\xa0\"'“”‘’«»`*_.…,;\\" + INVISIBLE) | {""}
# A stage direction before a turn in quotation marks, and one after a mark at its end.
_LEADING_TAG = compile_later(r"(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|\*[^*\n]{1,80}\*)\s*(?=[\"“])")
_TRAILING_TAG = compile_later(r"[\"”]\s*\([^()\n]{1,80}\)\s*,?\Z")
_TOKENS = compile_later(r"(?i)(?:\s*(?:<br\s?/?>|<\|[^|\n]{1,40}\|>|</s>))+\Z")
_TAG = compile_later(r"\s*(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\])\s*[.,;]?\s*\Z")
_BARE_SINGLE = compile_later(r"(?<!\w)['‘]|['’](?!\w)")
_MARKS = compile_later(r"[\"“”„«»「」]|\n[^\S\n]*\n")
_BEFORE = frozenset("([{<-–—/:：=,>*_'‘“„«\\")
_ENDS = (".", "!", "?", "…", ",", "。", "！", "？")


def trim(text: str) -> str:
    """Return the text without white space and invisible marks at its ends."""
    text = text.strip()
    if text.isascii():
        return text
    while text and (text[0] in INVISIBLE or text[-1] in INVISIBLE):
        text = text.strip(INVISIBLE).strip()
    return text


def is_silent(text: str) -> bool:
    """Return whether the text says nothing: empty, or dots and leftovers of quotation marks only."""
    return not text or (text[0] in SILENCE and SILENCE.issuperset(text))


def holds_invisible(text: str) -> bool:
    """Return whether a text holds one of the invisible marks that are taken off a turn's ends."""
    return not text.isascii() and ("\u200b" in text or "\u2060" in text or "\ufeff" in text)


def find_layout_openers(firsts: Sequence[str]) -> frozenset[str]:
    """Return the opening quotation marks that belong to the layout, from the first characters of the turns.

    A mark belongs to the layout if a good part of the turns begins with it.
    """
    openers = _OPENING.intersection(firsts)
    if not openers or (len(firsts) > 2 and _STRINGS.issuperset(firsts)):
        return openers
    return frozenset(
        [
            first
            for first in openers
            if firsts.count(first) * (4 if first in DOUBLE else 2) >= len(firsts) + (first not in DOUBLE)
        ]
    )


def unwrap_plain(text: str, first: str) -> str | None:
    """Return the text between the quotation marks around a turn; None if only `unwrap` can decide."""
    closers = CLOSERS[first]
    inner = (
        text[1:-1] if text[-1] in closers else text[1:-2] if text[-1] == "," and text[-2] in closers else ""
    )
    if not inner:
        return None
    if '"' in inner and first in DOUBLE and (inner.count('"') != inner.count('\\"') or "\\\\" in inner):
        return None
    if first == "'" and "''" in inner and "'" not in inner.replace("''", ""):  # as YAML writes it
        inner = inner.replace("''", "'")
    return (unescape(inner, first) if "\\" in inner else inner).strip()


def find_closing(body: str, closers: str, start: int, stop: int, *, escaped: bool = False) -> int:
    """Return the place of the quotation mark that closes body[start:stop] at its end; -1 without one.

    Only commas, white space, closing brackets and a stage tag may follow the mark. A mark after a backslash
    counts only if it may be `escaped`.
    """
    at = max([body.rfind(closer, start, stop) for closer in closers])
    if at < 0 or (not escaped and _is_escaped(body, at)):
        return -1
    after = body[at + 1 : stop]
    closes = not after.strip(" \t\r\n,;.]}") or (len(after) < 100 and _TAG.match(after))
    return at if closes else -1


def _is_escaped(body: str, at: int) -> bool:
    if body[at - 1 : at] != "\\":
        return False
    bare = len(body[max(0, at - 8) : at].rstrip("\\"))
    return (min(at, 8) - bare) % 2 == 1


def strip_tokens(text: str, repairs: list[str]) -> str:
    """Return the text without line breaks of HTML and tokens of a chat template at its end."""
    if text[-1:] != ">" or (tokens := _TOKENS.search(text, max(0, len(text) - 200))) is None:
        return text
    repairs.append(Repair.STRAY_DEBRIS)
    return text[: tokens.start()]


def unwrap(body: str, openers: Collection[str], repairs: list[str]) -> str:
    """Return the body without the quotation marks of the layout, whose kinds are `openers`."""
    body = strip_tokens(trim(body), repairs)
    first = body[:1]
    if first in openers and "\\" not in body:
        inner = unwrap_plain(body, first)
        if inner is not None and inner[-1:] not in ODD_ENDS and inner[-2:-1] not in CLOSING_MARKS:
            return inner
    elif first in ("(", "[", "*") and '"' in openers and (tag := _LEADING_TAG.match(body)):
        body = body[tag.end() :]
        repairs.append(Repair.STAGE_TAG)
        first = body[:1]
    if first not in openers:
        return strip_debris(body, repairs).replace('\\"', '"')
    at = find_closing(body, CLOSERS[first], 1, len(body))
    if at < 0:
        at = find_closing(body, CLOSERS[first], 1, len(body), escaped=True)
    if at < 0:
        if first in "'’‘" or _is_balanced(body, first):  # else an apostrophe would go
            return unescape(strip_debris(body, repairs), first)
        repairs.append(Repair.MISSING_QUOTE)
        return unescape(strip_debris(body[1:].lstrip(), repairs), first)
    inner = body[1:at]
    if _is_two_quotations(inner, body[at]):
        return unescape(body, first)
    if body[at + 1 :].strip(" \t\r\n,;.]}"):
        repairs.append(Repair.STAGE_TAG)
    inner = inner.strip()
    if len(inner) > 2 and inner[0] == inner[-1] == '"' and inner.count('"') == 2 and inner[-2] != "\\":
        repairs.append(Repair.STRAY_DEBRIS)
        inner = inner[1:-1]
    return unescape(strip_debris(inner, repairs), first)


def _is_balanced(body: str, opener: str) -> bool:
    if opener in CLOSERS[opener]:
        return body.count(opener) % 2 == 0
    return body.count(opener) <= sum(body.count(closer) for closer in CLOSERS[opener])


def _is_two_quotations(inner: str, closer: str) -> bool:
    """Return whether `inner` is the inside of `"A" and "B"`, whose ends belong to two quotations."""
    if closer != '"' or inner.count('"') % 2:
        return False
    at = inner.find('"')
    if at < 1 or inner[at - 1] in " \t\n([{-–—/\\":
        return False
    return inner[at + 1 : at + 2].isspace() or inner[at + 1 : at + 2] in tuple(".,;:?!")


def note_words_after(after: str, repairs: list[str]) -> None:
    """Note the repair for words or a stage tag after an end marker, but not for leftovers of the layout."""
    rest = after.strip(" \t\r\n.,;!\"'“”‘’«»`*_)]}|>\\")
    if not rest:
        return
    quote = max(after.rfind('"'), after.rfind("”"))
    tagged = (
        quote >= 0 and not after[:quote].strip(' \t.,"”\\') and _TAG.match(after[quote + 1 : quote + 100])
    )
    repairs.append(Repair.STAGE_TAG if tagged else Repair.AFTER_END_MARKER)


def is_open(text: str) -> bool:
    """Return whether a double quotation mark is open at the end of a text."""
    return (text.count('"') + text.count("“") + text.count("„") - text.count("”")) % 2 == 1


def drop_tag(text: str, repairs: list[str], *, ends: tuple[str, ...] = ("",)) -> str:
    """Return the text without `" (Direct instruction)` at its end: a tag after a mark that closes nothing.

    The rest has one of these `ends`; otherwise the text is unchanged.
    """
    tag = _TRAILING_TAG.search(text, max(0, len(text) - 200)) if text.endswith((")", "),")) else None
    if tag is None:
        return text
    said = text[: tag.start()]
    if is_open(said) or not said.rstrip().endswith(ends):
        return text
    repairs.append(Repair.STAGE_TAG)
    return said.rstrip()


def strip_debris(text: str, repairs: list[str]) -> str:
    r"""Return the text without layout leftovers at its end (`?"",` and `.",` and `.\",`), real quotations
    kept."""
    if text[-1:] not in _CLOSING and text[-2:-1] not in _CLOSING and not text.endswith((",", "\\")):
        return text
    at, marks = _find_tail(text)
    if marks == 0:
        return text
    said, tail = text[:at], text[at:]
    if is_open(said):
        first = 2 if tail[0] == "\\" else 1
        if marks == 1:
            return text
        repairs.append(Repair.STRAY_DEBRIS)
        return said + tail[:first]
    if marks == 2 and tail in ('""', "“”") and said[-1:].isspace():
        return text
    repairs.append(Repair.STRAY_DEBRIS)
    return said.rstrip()


def _find_tail(text: str) -> tuple[int, int]:
    """Return where the closing quotation marks (and commas) at the end of a text begin, and their number."""
    at = first = len(text)
    marks = 0
    while at > 0:
        char = text[at - 1]
        if char in _CLOSING:
            at -= 1
            marks += 1
            if text[at - 1 : at] == "\\":
                at -= 1
            first = at
        elif char in " \t,":
            at -= 1
        else:
            break
    return first, marks


def unquote(text: str, repairs: list[str], *, labelled: bool) -> str:
    """Return the turn without quotation marks that enclose it as a whole, or that open it and close nothing.

    `labelled`: a label stood before it, so that the marks belong to the layout, and a stage direction after
    them too.
    """
    stage = _LEADING_TAG.match(text)
    spoken = text[stage.end() :] if stage is not None else text
    names: list[str] = []
    inner = _extract_quoted(spoken, names, labelled=labelled)
    if inner is None:
        return text
    repairs += [Repair.STAGE_TAG] if stage is not None else []
    repairs += names
    return inner


def _extract_quoted(text: str, names: list[str], *, labelled: bool) -> str | None:
    """Return the text that the marks around a text enclose; None if none enclose it."""
    first = text[:1]
    if first == '"':
        return _straighten(text, names, labelled=labelled)
    if first in ("'", "‘"):
        inner = text[1:-1]
        whole = len(text) > 2 and text[-1] in CLOSERS[first] and not _BARE_SINGLE.search(inner)
        names += [Repair.LAYOUT] if whole else []
        return inner if whole else None
    if first in CLOSERS and first != "`":
        return _unquote_paired(text, names, labelled=labelled)
    return None


def _straighten(text: str, names: list[str], *, labelled: bool) -> str | None:
    at = find_closing(text, '"”', 1, len(text))
    if at < 0:
        if text.count('"') != 1 or "”" in text:
            return None
        names.append(Repair.MISSING_QUOTE)
        return text[1:]
    if not _is_whole_turn(text[1:at], text[at + 1 :], labelled):
        return None
    inner = unwrap(text, ('"',), names)
    if inner[:1] == '"' and len(inner) >= at:
        names.clear()
        return None
    names[:] = [Repair.LAYOUT, *names]
    return inner


def _unquote_paired(text: str, names: list[str], *, labelled: bool) -> str | None:
    """Return the same if opening and closing marks differ, so that their depth can be counted."""
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
    if find_closing(text, text[at], at, len(text)) != at or not _is_whole_turn(
        text[1:at], text[at + 1 :], labelled
    ):
        return None
    names.append(Repair.LAYOUT)
    if text[at + 1 :].strip(" \t\r\n,;.]}"):
        names.append(Repair.STAGE_TAG)
    return text[1:at]


def _is_whole_turn(inner: str, after: str, labelled: bool) -> bool:
    """Return whether closing marks followed by `after` enclose a whole turn.

    `"La casa" (the house)` and `"Energy".` only begin with a quotation.
    """
    after = after.strip(" \t\r\n,;]}")
    if not after:
        return bool(inner.strip())
    return labelled or (after == "." and inner.rstrip().endswith(_ENDS))


def strip_turn_debris(text: str, repairs: list[str]) -> str:
    """Return the turn without loose marks at its end, and without a stage direction after one of them.

    The mark of inches and one that closes a quotation stay.
    """
    if (untagged := drop_tag(text, repairs, ends=_ENDS)) is not text:
        return untagged
    bare = text.rstrip(' \t,"”')
    if bare[-1:].isdigit() and text[len(bare) :].strip() in ('"', "”"):
        return text
    return strip_debris(text, repairs)


def find_quotations(text: str) -> list[tuple[int, int]]:
    """Return the (begin, end) places of a text's quotations in their order; both are quotation marks.

    A mark opens where a word could begin, and closes where one could end. A mark is ignored if another opens
    before it is closed, or if its paragraph does not close it.
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
