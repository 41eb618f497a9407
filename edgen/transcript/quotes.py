"""A turn's quotation marks: which belong to the layout and go, which were written and stay.

Everything here is linear in the text's length and keeps what is between the ends to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from edgen.transcript.repairs import Repair

CLOSERS = {
    '"': '"', "“": "”", "”": "”", "„": "“", "«": "»", "»": "«", "‹": "›", "'": "'", "‘": "’", "`": "`",
    "「": "」", "『": "』", "＂": "＂",
}  # fmt: skip
DOUBLE = frozenset('"“”„＂')
_CLOSING = '"”＂'
_INVISIBLE = "\u200b\u2060\ufeff"
_SILENCE = frozenset(" \t\r\n\x0b\x0c\xa0\"'“”‘’«»`*_.…,;\\" + _INVISIBLE)
_TAG = re.compile(r"\s*(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\])\s*[.,;]?\s*\Z")


def trim(text: str) -> str:
    """The text without white space and invisible marks at its ends."""
    text = text.strip()
    while text and (text[0] in _INVISIBLE or text[-1] in _INVISIBLE):
        text = text.strip(_INVISIBLE).strip()
    return text


def silent(text: str) -> bool:
    """Whether the text says nothing: empty, or dots and leftovers of quotation marks only."""
    return not text or (text[0] in _SILENCE and _SILENCE.issuperset(text))


def closing(body: str, closer: str, start: int, stop: int) -> int:
    """Where the quotation mark stands that closes body[start:stop], -1 if none does at its end.

    Behind it only commas, white space and a stage tag may stand.
    """
    at = body.rfind(closer, start, stop)
    if at < 0:
        return -1
    behind = body[at + 1 : stop]
    closes = not behind.strip(" \t\r\n,;.") or (len(behind) < 100 and _TAG.match(behind))
    return at if closes else -1


def unwrap(body: str, openers: Collection[str], repairs: list[str]) -> str:
    """What the body says without the quotation marks of the layout, whose kinds are `openers`."""
    body = trim(body)
    first = body[:1]
    if first not in openers:
        return _unescaped(strip_debris(body, repairs))
    closer = CLOSERS[first]
    at = closing(body, closer, 1, len(body))
    if at < 0:
        if _balanced(body, first, closer):
            return _unescaped(strip_debris(body, repairs))
        repairs.append(Repair.MISSING_QUOTE)
        return _unescaped(strip_debris(body[1:].lstrip(), repairs))
    inner = body[1:at]
    if _two_quotations(inner, closer):
        return _unescaped(body)
    if body[at + 1 :].strip(" \t\r\n,;."):
        repairs.append(Repair.STAGE_TAG)
    return _unescaped(strip_debris(inner.strip(), repairs))


def _unescaped(text: str) -> str:
    r"""`\"` as `"`; every other backslash is the writer's own."""
    return text.replace('\\"', '"') if '\\"' in text else text


def _balanced(body: str, opener: str, closer: str) -> bool:
    if opener == closer:
        return body.count(opener) % 2 == 0
    return body.count(opener) <= body.count(closer)


def _two_quotations(inner: str, closer: str) -> bool:
    """Whether `inner` is the inside of `"A" and "B"`, whose ends belong to two quotations."""
    if closer != '"' or inner.count('"') % 2:
        return False
    at = inner.find('"')
    if at < 1 or inner[at - 1] in " \t\n([{-–—/\\":
        return False
    return inner[at + 1 : at + 2].isspace() or inner[at + 1 : at + 2] in tuple(".,;:?!")


def strip_debris(text: str, repairs: list[str]) -> str:
    r"""The text without layout leftovers at its end (`?"",` and `.",` and `.\",`), real quotations kept."""
    if text[-1:] not in _CLOSING and text[-2:-1] not in _CLOSING and not text.endswith((",", "\\")):
        return text
    at, marks = _tail(text)
    if marks == 0:
        return text
    said, tail = text[:at], text[at:]
    opened = (said.count('"') + said.count("“") + said.count("„") - said.count("”")) % 2 == 1
    if opened:
        first = 2 if tail[0] == "\\" else 1
        if marks == 1:
            return text
        repairs.append(Repair.STRAY_DEBRIS)
        return said + tail[:first]
    if marks == 2 and tail in ('""', "“”") and said[-1:].isspace():
        return text
    repairs.append(Repair.STRAY_DEBRIS)
    return said.rstrip()


def _tail(text: str) -> tuple[int, int]:
    """Where the closing quotation marks at the end of the text begin, commas among them, and how many
    there are."""
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
