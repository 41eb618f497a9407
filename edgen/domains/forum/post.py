"""A reader of forum posts: from a reply to the post's text and its votes on earlier posts.

A reply is a JSON object (`{"text": "…", "votes": [2], "accept": 3}`), or its whole text is the post. The
first post may have its title in a line at the top (`Title: …`). Posts are numbered from 1; a vote for an own
post or for an unknown number does not count. Never raises; linear in the reply's length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from edgen.plugin import Rejection
from edgen.plugin.answers import (
    TEACHER_STUDENT,
    JsonMembers,
    OwnWords,
    RoleWords,
    body_of,
    find_service_refusal,
    object_in,
    parse,
    read_turn,
    replace_surrogates,
    strip_fence,
)
from edgen.plugin.forms import Form, form, form_of, list_of, one_of
from edgen.plugin.forms import text as text_of
from edgen.plugin.protocols import RejectionReason
from edgen.plugin.texts import excerpt, shorten

MAX_TITLE = 200
UNKNOWN_POST = "unknown_post"  # a repair: a vote or a mark for a post that cannot get it was dropped
TITLE_FROM_TEXT = "title_from_text"  # a repair: a question without a title got its first words as a title
_KEYS = {"text", "title", "votes", "accept", "pass", "same_question"}
_TITLE = re.compile(r"(?i)\A[\s*_#]{0,8}title[\s*_]{0,4}[:：][ \t*_]{0,4}([^\n]{1,400})\n")
_SENTENCE = re.compile(r"[^.!?\n]{1,400}[.!?]?")


class Post(msgspec.Struct, frozen=True):
    """A post."""

    text: str  # empty if the member only votes or marks, or has nothing to add
    title: str = ""  # title of the first post
    votes: tuple[int, ...] = ()  # numbers of posts that the member finds helpful
    accept: int | None = None  # number of the post that answers the question; None: none
    same_question: bool = False  # the member has the same question
    ended: bool = False  # the post ends with the end marker
    repairs: tuple[str, ...] = ()  # the reader's fixes
    flags: tuple[str, ...] = ()  # findings of detectors that do not reject the post


def make_post_form(others: Sequence[int], *, titled: bool = False, may_accept: bool = False) -> Form:
    """Return the form of a post: a question with its title, or an answer with votes for the posts of others.
    With `may_accept`, it also has the number of the post that answers the question; 0 for none."""
    if titled:
        return form(title=text_of(MAX_TITLE), text=text_of())
    parts = {"text": text_of(least=0)}
    if others:
        parts["votes"] = list_of(one_of(others), 0, len(others))
    if others and may_accept:
        parts["accept"] = one_of((0, *others))
    return form_of(parts)


def read_post(
    text: str,
    role: str,
    others: Collection[int],
    *,
    titled: bool = False,
    may_accept: bool = False,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> Post | Rejection:
    """Return the post of `role`, or a rejection. `others` are the numbers of the posts by others. With
    `titled`, the post is a question, which has a title and a text."""
    if (refused := find_service_refusal(refusal, finish_reason)) is not None:
        return refused
    body = body_of(text)
    value = _find_json(body)
    if value is None:
        cut = RejectionReason.TRUNCATED if finish_reason == "length" else RejectionReason.UNREAD
        return Rejection(cut, f"this is no whole post: {excerpt(body)}")
    repairs: list[str] = []
    votes = _read_numbers(value.get("votes"), others, repairs)
    accepted = value.get("accept") or None  # 0 in a form: no post
    accept = next(iter(_read_numbers(accepted, others, repairs)), None) if may_accept else None
    same = value.get("same_question") is True
    said = value.get("text") if value else body
    said = said if isinstance(said, str) else ""
    title = value.get("title")
    if titled and not value and (line := _TITLE.match(said)):
        title, said = line[1], said[line.end() :]
    # Under a schema, a member with nothing to add sends an empty text.
    silent = value.get("pass") is True or value.get("text") == ""
    if not titled and not said.strip() and (votes or accept or same or silent):
        return Post("", "", votes, accept, same, repairs=tuple(dict.fromkeys(repairs)))
    turn = read_turn(said, role, finish_reason=finish_reason, refusal=refusal, roles=roles, words=words)
    if isinstance(turn, Rejection):
        return turn
    if titled and not turn.text:
        return Rejection(RejectionReason.EMPTY, "the question has no text")
    title = _shorten_title(title) if titled and isinstance(title, str) else ""
    if titled and not title:
        repairs.append(TITLE_FROM_TEXT)
        found = _SENTENCE.search(turn.text)
        title = _shorten_title(found[0] if found else turn.text)
    return Post(
        turn.text,
        title,
        votes,
        accept,
        same,
        turn.ended,
        (*turn.repairs, *dict.fromkeys(repairs)),
    )


def _find_json(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a reply; empty if the reply is plain text, None for a JSON object that is not
    a complete post."""
    body = strip_fence(text)
    value = object_in(body) or {}
    if _KEYS & {*value}:
        return value
    # JSON with errors: line breaks within a text, an extra comma, single quotes, or a cut-off end.
    start = body.find("{")
    parsed = parse(body[start:], TEACHER_STUDENT) if start >= 0 else None
    for one in parsed.values if parsed is not None else ():
        if parsed is not None and isinstance(one, JsonMembers) and _KEYS & {key for key, _ in one}:
            return None if parsed.cut else dict(reversed(one))
    return {} if start else None


def _read_numbers(value: Any, known: Collection[int], repairs: list[str]) -> tuple[int, ...]:
    """Return the numbers of known posts, each once. Accepted are `2`, `"#2"` and `[2, 3]`."""
    named = value if isinstance(value, list) else [] if value is None or value is False else [value]
    found = []
    for one in named:
        number = re.fullmatch(r"\s*#?(\d{1,6})\s*", one) if isinstance(one, str) else None
        place = int(number[1]) if number else one
        if type(place) in (int, float) and place in known:
            found.append(int(place))
        else:
            repairs.append(UNKNOWN_POST)
    return tuple(dict.fromkeys(found))


def _shorten_title(text: str) -> str:
    return shorten(" ".join(replace_surrogates(text, []).split()), MAX_TITLE)
