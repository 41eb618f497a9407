"""Several texts in one reply: from the reply to the texts, in order.

They stand in a JSON list (of texts, or of objects whose first text counts), in the first list of a JSON
object, as the values of an object by number, or after numbers or bullets, where one text may continue over
several lines. The words before the first text are a remark, as is a paragraph without a number after the
last. If one text is asked for, it may be all of the reply. Never raises; linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answer_body import MAX_READ, body_of, decode_json, extract_fenced, with_line_feeds
from edgen.reading.assistant_words import find_service_refusal, is_assistants_refusal
from edgen.reading.text.characters import excerpt, replace_surrogates

LONGEST = 4_000  # characters of a text

_NUMBER = compile_later(r"(?m)^[ \t>]{0,8}\**\(?(\d{1,3})[.):](?:\**[ \t]+|\**$)")
_BULLET = compile_later(r"(?m)^[ \t]{0,8}[-*•‣–—][ \t]+")
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“", "‘": "’", "'": "'", "`": "`"}


def read_texts(
    text: str, count: int, role: str = "", *, finish_reason: str = "stop", refusal: str | None = None
) -> list[str] | Rejection:
    """Return the first `count` texts of a reply, one at least, without quotation marks around them and
    without the label `role:`; or why there are none."""
    cut = finish_reason == "length"
    if (refused := find_service_refusal(refusal, "stop" if cut else finish_reason)) is not None:
        return refused
    body = body_of(with_line_feeds(replace_surrogates(text[:MAX_READ], []))).strip()
    if not body:
        return Rejection(RejectionReason.EMPTY, "it is empty")
    body = extract_fenced(body).strip()
    found = [clean for one in _split_texts(body, cut=cut) if (clean := _strip_label_and_quotes(one, role))]
    if not found and is_assistants_refusal(body):
        return Rejection(RejectionReason.REFUSED, excerpt(body))
    if not found and cut:
        return Rejection(RejectionReason.TRUNCATED, "the reply was cut off before its first text ended")
    if (
        not found
        and count == 1
        and not body.startswith(("[", "{"))
        and (whole := _strip_label_and_quotes(body, role))
    ):
        found = [whole]
    if not found:
        return Rejection(RejectionReason.UNREAD, f"it lists no texts: {excerpt(body)}")
    return found[:count]


def _split_texts(body: str, *, cut: bool) -> list[str]:
    """Return the texts as they are written. Of a reply that was cut off, the last may be half of one."""
    listed = _find_json_texts(body)
    if listed is not None:
        return listed
    marks = _select_ascending(_NUMBER.finditer(body)) or [*_BULLET.finditer(body)]
    if not marks:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(body)]
    texts = [body[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    if cut:
        return texts[:-1]
    if texts and len(texts) > 1 and not any("\n\n" in text for text in texts[:-1]):
        texts[-1] = texts[-1].partition("\n\n")[0]  # a remark after the list
    return texts


def _select_ascending(marks: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """Return the numbers that count up from 1 without a gap, which leaves out numbers inside a text."""
    found: list[re.Match[str]] = []
    for mark in marks:
        if int(mark[1]) == len(found) + 1:
            found.append(mark)
    return found


def _find_json_texts(body: str) -> list[str] | None:
    """Return the texts of the first JSON value that holds a list; None where there is none."""
    for first, last in (("[", "]"), ("{", "}")):
        start, end = body.find(first), body.rfind(last)
        value = decode_json(body[start : end + 1]) if 0 <= start < end else None
        if (texts := [*_list_texts(value)]) or value == []:
            return texts
    return None


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        inside = next((child for child in value.values() if isinstance(child, list)), None)
        value = [*value.values()] if inside is None else inside
    for item in value if isinstance(value, list) else ():
        text = (
            next((one for one in item.values() if isinstance(one, str)), None)
            if isinstance(item, dict)
            else item
        )
        if isinstance(text, str):
            yield text


def _strip_label_and_quotes(text: str, role: str) -> str:
    """Return a text without its label and the quotation marks around all of it; "" where it is too long to be
    one."""
    text = text.strip()
    for _ in range(3):
        if role and text.casefold().startswith(f"{role.casefold()}:"):
            text = text[len(role) + 1 :].lstrip()
        if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
            text = text[1:-1].strip()
    return text if len(text) <= LONGEST else ""
