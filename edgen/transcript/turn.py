"""One turn of self-play: a raw reply to what one side says next, or to the reason why it is no turn.

What models put around a turn goes: thinking, fences, JSON, a label, quotation marks, notes to their user, the
end marker and what stands behind it; each is named in `repairs`. What is in the turn stays to the letter. A reply that
speaks for the other side, or twice for its own, is none. Nothing raises, and work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from edgen.model import Rejection, RejectionReason, Role
from edgen.transcript import frame
from edgen.transcript.abroad import NO_WORDS, OwnWords, in_our_words_throughout, relabelled, with_marker
from edgen.transcript.characters import encoded, shown
from edgen.transcript.declining import declines_as_assistant, without_notes, without_preamble
from edgen.transcript.labels import Label, labels
from edgen.transcript.marker import find_marker, find_short_marker
from edgen.transcript.quotes import CLOSERS, name_behind, silent, trim
from edgen.transcript.repairs import Repair
from edgen.transcript.spoken import ASIDE, UnreadableError, in_json
from edgen.transcript.thinking import without_thinking
from edgen.transcript.unquoting import unquoted, without_debris

_LABELLED_THOUGHT = re.compile(
    r"\A([^\n<]{1,60}[:：][*_ \t]{0,4})(?=<(?:think|thinking|reasoning)>)", re.IGNORECASE
)
_FENCED = re.compile(r"\A(?:```([^`\n]+)```|~~~([^~\n]+)~~~)\Z")
# Code keeps the fence that says what language it is in.
_NO_CODE = frozenset(
    {"", "text", "txt", "plaintext", "plain", "markdown", "md", "dialogue", "conversation", "json"}
)
_XML = re.compile(r"\A<(response|reply|turn|output|utterance|answer)>", re.IGNORECASE)
_TOKENS_BEFORE = re.compile(
    r"\A(?:(?:<\|(?!\s?(?:teacher|student|user|human)\b)[\w ]{1,40}\|>|<s>(?!.{0,2000}</s>\S)|<bos>|<start_of_turn>)\s*(?:(?:assistant|model)\b:?\s*)?){1,9}"
)
_TOKENS_BEHIND = re.compile(
    r"(?:\s*(?:<br\s?/?>|<\|[\w ]{1,40}\|>|</s>|<eos>|<end_of_turn>|\[/INST\]))+\Z", re.IGNORECASE
)
_HANDED_OVER = re.compile(
    r"<\|im_start\|>\s?user|<start_of_turn>\s?user|<\|start_header_id\|>\s?user|<\|user\|>|\[INST\]",
    re.IGNORECASE,
)
_TURN_OVER = re.compile(
    r"<\|(?:im_end|eot_id|end|end_of_text|endoftext)\|>|<end_of_turn>|<eos>", re.IGNORECASE
)
_OWN = {"Teacher": "teacher", "Student": "student"}


def _announced(own: str) -> re.Pattern[str]:
    """A first line in which the model speaks about the side that it plays, not as that side."""
    speaks = (
        r"(?:(?:['’]s)?\s(?:next\s)?(?:turn|response|reply|message|line|utterance)|\s(?:next\s)?(?:says|replies|responds)"
        r"|\s(?:would|will|might|could)\s(?:\w{1,20}\s)?(?:say|reply|respond))"
    )
    return re.compile(
        r"\A(?:(?:sure|certainly|of\scourse|okay|ok|alright|absolutely|understood)\b[^\n:]{0,40}?)?"
        rf"(?:\b(?:here(?:['’]s|\sis)\b[^\n:]{{0,40}}?)?\bthe\s(?:\w{{1,20}}\s)?{own}{speaks}\b[^\n:]{{0,40}}"
        rf"|\bas\sthe\s{own},?\si(?:\s(?:would|will|might|could)|['’](?:d|ll))\s(?:say|reply|respond)\b[^\n:]{{0,40}}"
        rf"|\bhere(?:['’]s|\sis)\s[^\n:]{{1,40}}?\sas\sthe\s{own})"
        r"[*_]{0,3}:[*_]{0,3}[^\S\n]{0,9}(?:\n|(?=[\"“]))\s{0,99}(?=\S)",
        re.IGNORECASE,
    )


_ANNOUNCED = {role: _announced(own) for role, own in _OWN.items()}
_TITLE = {
    role: re.compile(
        rf"\A[#*_>\[ ]{{0,8}}(?:the\s)?{own}(?:['’]s)?\s(?:next\s)?(?:turn|response|reply|message|line|utterance)"
        r"(?:\s?\d{1,3})?[\]*_ ]{0,4}(?::[*_]{0,3}|(?=\n))\s{0,99}(?=\S)",
        re.IGNORECASE,
    )
    for role, own in _OWN.items()
}
MAX_ROUNDS = 8  # how many wrappers a turn may have, one in the other


class Said(msgspec.Struct, frozen=True):
    """What a side said: text without label, end marker and debris. `text` is "" only if the reply is the
    end marker alone. `repairs` names what was taken away, in the order of first use."""

    text: str
    ended: bool = False
    repairs: tuple[str, ...] = ()


def read_turn(
    text: str,
    role: Role,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    words: OwnWords = NO_WORDS,
) -> Said | Rejection:
    """What `role` says in a reply, or why it is no turn. Arguments as for `read`. Never raises."""
    if refusal is not None and refusal.strip():
        return Rejection(RejectionReason.REFUSED, f"the service refused: {shown(refusal)}")
    if finish_reason == "content_filter":
        return Rejection(RejectionReason.REFUSED, "the service blocked the answer")
    if finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the answer was cut off by the token limit")
    reader = _Reader(role)
    try:
        return reader.read(in_our_words_throughout(relabelled(text, words)))
    except UnreadableError as error:
        return Rejection(error.reason, error.detail)


class _Reader:
    """Takes the wrappers off a reply one after the other, from the outside in."""

    def __init__(self, role: Role) -> None:
        self._role: Role = role
        self._repairs: list[str] = []
        self._ended = False
        self._labelled = False
        self._behind = ""  # what stood behind the end marker

    def read(self, text: str) -> Said | Rejection:
        text = trim(encoded(text, self._repairs))
        if not text:
            return Rejection(RejectionReason.EMPTY, "the answer is blank")
        if (marked := with_marker(text)) is not text:
            self._repairs.append(Repair.MARKER_FORM)
            text = marked
        steps: tuple[Callable[[str], str], ...] = (
            self._thoughts, self._tokens, self._announcement, self._notes, self._fence, self._json, self._marker,
            self._quotes, self._label,
        )  # fmt: skip
        for _ in range(MAX_ROUNDS):
            for step in steps:
                left = trim(step(text))
                if left != text:
                    text = left
                    break
            else:
                return self._said(text)
        self._label(text)
        return self._said(text)

    def _said(self, text: str) -> Said | Rejection:
        if declines_as_assistant(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {shown(text)}")
        if not silent(text):
            text = trim(without_debris(text, self._repairs))
        if silent(text):
            if not self._ended:
                return Rejection(RejectionReason.EMPTY, "the answer says nothing")
            text = ""
        return Said(text, self._ended, tuple(dict.fromkeys(map(str, self._repairs))))

    def _thoughts(self, text: str) -> str:
        if "<" not in text and "[/" not in text:
            return text
        return without_thinking(_LABELLED_THOUGHT.sub(r"\1\n", text, count=1), self._repairs)

    def _tokens(self, text: str) -> str:
        """Without the tokens of a chat template; what a template gives to the user is the other side's."""
        if "<" not in text and "[" not in text:
            return text
        left = _TOKENS_BEFORE.sub("", text, count=1)
        tail = _TOKENS_BEHIND.search(left, max(0, len(left) - 400))
        if tail is not None and not ("</s>" in tail.group() and "<s>" in left):
            left = left[: tail.start()]
        over = _TURN_OVER.search(left)
        if (handed := _HANDED_OVER.search(left)) is not None:
            raise _speaks_for_other(left[handed.start() :], self._role)
        if over is not None and (behind := trim(left[over.end() :])):
            if _TOKENS_BEFORE.match(behind):
                raise UnreadableError(RejectionReason.TWO_TURNS, f"a second turn: {shown(behind)}")
            self._repairs.append(Repair.POSTAMBLE)
            left = left[: over.start()]
        if left != text:
            self._repairs.append(Repair.STRAY_DEBRIS)
        return left

    def _announcement(self, text: str) -> str:
        """Without a first line such as `Here's the teacher's next turn:`."""
        for pattern, name in ((_ANNOUNCED, Repair.PREAMBLE), (_TITLE, Repair.LAYOUT)):
            match = pattern[self._role].match(text)
            if match is not None:
                self._repairs.append(name)
                return text[match.end() :]
        return without_preamble(text, self._role, self._repairs)

    def _notes(self, text: str) -> str:
        return without_notes(text, self._repairs)

    def _fence(self, text: str) -> str:
        inner = self._unfenced(text)
        if inner is None:
            return text
        self._repairs.append(Repair.CODE_FENCE)
        return inner

    def _unfenced(self, text: str) -> str | None:
        """What a fence or a tag around the whole reply holds; None if there is none."""
        if (tag := _XML.match(text)) is not None and text.lower().endswith(f"</{tag[1].lower()}>"):
            return text[tag.end() : -len(tag[1]) - 3]
        if (line := _FENCED.match(text)) is not None:
            return line[1] or line[2]
        fences = [] if "```" not in text and "~~~" not in text else list(frame.FENCE.finditer(text))
        if not 0 < len(fences) < 3:
            return None
        first, last = fences[0], fences[-1]
        if first.start() == 0:
            language = first[1].strip().lower()
            if language not in _NO_CODE or (len(fences) == 2 and last.end() < len(text)):
                return None
            inner = text[first.end() : last.start() if len(fences) == 2 else len(text)]
            return inner if language != "json" or in_json(trim(inner), self._role) is not None else None
        return (
            text[: first.start()]
            if len(fences) == 1 and last.end() == len(text) and not last[1].strip()
            else None
        )

    def _json(self, text: str) -> str:
        found = in_json(text, self._role)
        if found is None:
            return text
        self._repairs += found.repairs
        self._ended = self._ended or found.ended
        return encoded(found.text, self._repairs)

    def _marker(self, text: str) -> str:
        marked = find_marker(text) or find_short_marker(text)
        if marked is None:
            return text
        self._ended = True
        if not marked.standard:
            self._repairs.append(Repair.MARKER_FORM)
        self._behind = text[marked.end :]
        if not self._behind.strip(" \t\r\n`~"):
            self._behind = ""
        name_behind(self._behind.rstrip("` \r\n~"), self._repairs)
        return marked.said

    def _quotes(self, text: str) -> str:
        if silent(text):
            return text
        mark = self._behind.lstrip(" \t")[:1]
        if mark and mark in CLOSERS.get(text[:1], ""):
            # The mark that closes the turn may stand behind the end marker.
            whole = unquoted(text + mark, self._repairs, labelled=self._labelled)
            if whole != text + mark:
                return whole
        return unquoted(text, self._repairs, labelled=self._labelled)

    def _label(self, text: str) -> str:
        """Without its own label; no turn if it has another."""
        found = labels(text, self._role)
        if not found:
            return text
        other = next((label for label in found if label.role != self._role), None)
        if other is not None:
            raise _speaks_for_other(text[other.start :], self._role)
        spoken = [label for label in found if label.says]
        if len(spoken) + self._labelled > 1 and not (len(spoken) == 1 and spoken[0].start == 0):
            raise UnreadableError(
                RejectionReason.TWO_TURNS, f"a second turn: {shown(text[spoken[-1].start :])}"
            )
        label = spoken[0] if spoken else found[0]
        before = text[: label.start] if not spoken or label is found[0] else text[: found[0].start]
        if not spoken:
            # Labels under which nothing is said any more.
            self._repairs.append(Repair.LAYOUT)
            return before
        if frame.chatter(before):
            if not ASIDE.match(trim(before)):
                raise UnreadableError(
                    RejectionReason.TWO_TURNS, f"a second turn: {shown(text[label.start :])}"
                )
            self._repairs.append(Repair.PREAMBLE)
        self._labelled = True
        self._repairs.append(Repair.LAYOUT)
        self._repairs += [Repair.ROLE_NAME] if label.named else []
        self._repairs += [Repair.ROLE_ALIAS] if label.aliased else []
        return _unadorned(label, text[label.text :], listed="[" in before)


def _unadorned(label: Label, text: str, *, listed: bool) -> str:
    """What a label introduces without the other half of the marks that stood before the label."""
    text = text.strip()
    prefix = label.prefix.rstrip()
    if listed and text.endswith("]"):
        text = text[:-1].rstrip()
    if prefix.endswith("|") and text.startswith(">"):
        text = text[1:]
    if prefix.endswith(("**", "__")) and text.endswith(prefix[-2:]) and text.count(prefix[-2:]) % 2:
        text = text[:-2]
    cut = max(text.rfind("</"), text.rfind("[/"))
    if (
        cut >= 0
        and prefix.endswith(("<", "["))
        and text[cut + 2 :].lower().startswith(("teacher", "student"))
    ):
        text = text[:cut]
    return text


def _speaks_for_other(text: str, own: Role) -> UnreadableError:
    return UnreadableError(
        RejectionReason.SPEAKS_FOR_OTHER, f"the {own.lower()} also speaks for the other: {shown(text)}"
    )
