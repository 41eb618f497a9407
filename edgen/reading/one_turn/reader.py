"""Read one side's next turn out of a raw reply of self-play, or return the reason why there is no turn.

All wrappers of a turn are removed: thinking, fences, JSON, a label, quotation marks, notes to the user, the
end marker and the text after it. `repairs` names each. The text of the turn stays exactly as it is. A reply
that speaks for the other side, or twice for its own, is rejected. The reader raises no exception and is
linear in the length.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.assistant_words import (
    drop_notes,
    drop_preamble,
    find_service_refusal,
    is_assistants_refusal,
)
from edgen.reading.foreign_words import translate_conversation, translate_marker, translate_own_labels
from edgen.reading.lines.line import strip_half_marks
from edgen.reading.one_turn.json_turn import ASIDE, UnreadableError, read_json_turn
from edgen.reading.one_turn.labels import find_labels
from edgen.reading.other_speaker import speaks_for_another
from edgen.reading.repairs import Repair
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RolePattern, RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.characters import excerpt, replace_surrogates
from edgen.reading.text.marker import find_marker, find_short_marker
from edgen.reading.text.markup import without_markup
from edgen.reading.text.quotes import CLOSERS, is_silent, note_words_after, strip_turn_debris, trim, unquote
from edgen.reading.text.thinking import drop_thinking

_LABELLED_THOUGHT = compile_later(r"(?i)\A([^\n<]{1,60}[:：][*_ \t]{0,4})(?=<(?:think|thinking|reasoning)>)")
_FENCED = compile_later(r"\A(?:```([^`\n]+)```|~~~([^~\n]+)~~~)\Z")
# Code keeps the fence that says what language it is in.
_NO_CODE = frozenset(
    {"", "text", "txt", "plaintext", "plain", "markdown", "md", "dialogue", "conversation", "json"}
)
_XML = compile_later(r"(?i)\A<(response|reply|turn|output|utterance|answer)>")
_TOKENS_BEFORE = RolePattern(
    r"\A(?:(?:<\|(?!\s?(?:ROLE|user|human)\b)[\w ]{1,40}\|>|<s>(?!.{0,2000}</s>\S)|<bos>"
    r"|<start_of_turn>)\s*(?:(?:assistant|model)\b:?\s*)?){1,9}"
)
_TOKENS_AFTER = compile_later(
    r"(?i)(?:\s*(?:<br\s?/?>|<\|[\w ]{1,40}\|>|</s>|<eos>|<end_of_turn>|\[/INST\]))+\Z"
)
_HANDED_OVER = compile_later(
    r"(?i)<\|im_start\|>\s?user|<start_of_turn>\s?user|<\|start_header_id\|>\s?user|<\|user\|>|\[INST\]"
)
_TURN_OVER = compile_later(r"(?i)<\|(?:im_end|eot_id|end|end_of_text|endoftext)\|>|<end_of_turn>|<eos>")
_MARKER_ENDS = ("]", ")", "）", "】", ">")  # of an end marker in another language
MAX_ROUNDS = 8  # how many wrappers a turn may have, one in the other


class TurnReply(msgspec.Struct, frozen=True):
    """A side's turn, without label, end marker and debris.

    `text` is "" only if the reply is the end marker alone. `repairs` names what was taken away, in the order
    of first use.
    """

    text: str
    ended: bool = False
    repairs: tuple[str, ...] = ()


def read_turn(
    text: str,
    role: str,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> TurnReply | Rejection:
    """Return the turn of `role` in a reply, or a Rejection. Arguments as for `read`. Never raises."""
    if (refused := find_service_refusal(refusal, finish_reason)) is not None:
        return refused
    roles = roles.with_own(words) if words else roles
    reader = _Reader(role, roles)
    try:
        named = translate_own_labels(text, roles) if roles.own else text
        if named.lstrip()[:1] in ("<", "\\"):  # perhaps a whole conversation in markup
            named = without_markup(named, roles)
        if "\n" in named or "{" in named:
            named = translate_conversation(named, roles)
        return reader.read(named)
    except UnreadableError as error:
        return error.rejection


class _Reader:
    """Removes the wrappers of a reply one after the other, from the outside in."""

    def __init__(self, role: str, roles: RoleWords) -> None:
        self._role = role
        self._roles = roles
        self._repairs: list[str] = []
        self._ended = False
        self._labelled = False
        self._behind = ""  # text after the end marker

    def read(self, text: str) -> TurnReply | Rejection:
        text = trim(replace_surrogates(text, self._repairs))
        if not text:
            return Rejection(RejectionReason.EMPTY, "the answer is blank")
        if text.rstrip().endswith(_MARKER_ENDS) and (marked := translate_marker(text)) is not text:
            self._repairs.append(Repair.MARKER_FORM)
            text = marked
        steps: tuple[Callable[[str], str], ...] = (
            self._strip_thoughts, self._strip_tokens,
            lambda text: drop_preamble(text, self._role, self._repairs, self._roles),
            lambda text: drop_notes(text, self._repairs, self._roles),
            self._strip_fence, self._read_json, self._strip_marker, self._strip_quotes, self._strip_label,
        )  # fmt: skip
        for _ in range(MAX_ROUNDS):
            for step in steps:
                left = trim(step(text))
                if left != text:
                    text = left
                    break
            else:
                return self._make_reply(text)
        self._strip_label(text)
        return self._make_reply(text)

    def _make_reply(self, text: str) -> TurnReply | Rejection:
        if is_assistants_refusal(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {excerpt(text)}")
        if not is_silent(text):
            text = trim(strip_turn_debris(text, self._repairs))
        if is_silent(text):
            if not self._ended:
                return Rejection(RejectionReason.EMPTY, "the answer says nothing")
            text = ""
        if speaks_for_another(text, self._role, self._roles):
            self._repairs.append(Repair.OTHER_SPEAKER)
        return TurnReply(text, self._ended, tuple(dict.fromkeys(map(str, self._repairs))))

    def _strip_thoughts(self, text: str) -> str:
        if "<" not in text and "[/" not in text:
            return text
        return drop_thinking(_LABELLED_THOUGHT.sub(r"\1\n", text, count=1), self._repairs, self._roles)

    def _strip_tokens(self, text: str) -> str:
        """Without the tokens of a chat template; what a template gives to the user is the other side's."""
        if "<" not in text and "[" not in text:
            return text
        left = _TOKENS_BEFORE.of(self._roles).sub("", text, count=1)
        tail = _TOKENS_AFTER.search(left, max(0, len(left) - 400))
        if tail is not None and not ("</s>" in tail.group() and "<s>" in left):
            left = left[: tail.start()]
        over = _TURN_OVER.search(left)
        if (handed := _HANDED_OVER.search(left)) is not None:
            raise _speaks_for_other(left[handed.start() :], self._role)
        if over is not None and (behind := trim(left[over.end() :])):
            if _TOKENS_BEFORE.of(self._roles).match(behind):
                raise _make_second_turn_error(behind)
            self._repairs.append(Repair.POSTAMBLE)
            left = left[: over.start()]
        if left != text:
            self._repairs.append(Repair.STRAY_DEBRIS)
        return left

    def _strip_fence(self, text: str) -> str:
        inner = self._find_fenced_text(text)
        if inner is None:
            return text
        self._repairs.append(Repair.CODE_FENCE)
        return inner

    def _find_fenced_text(self, text: str) -> str | None:
        """Return the contents of a fence or a tag around the whole reply; None if there is none."""
        if (tag := _XML.match(text)) is not None and text.lower().endswith(f"</{tag[1].lower()}>"):
            return text[tag.end() : -len(tag[1]) - 3]
        if (line := _FENCED.match(text)) is not None:
            return line[1] or line[2]
        fences = list(surroundings.FENCE.finditer(text)) if "```" in text or "~~~" in text else []
        if not 0 < len(fences) < 3:
            return None
        first, last = fences[0], fences[-1]
        if first.start() > 0:  # a closing fence alone
            closes = first is last and last.end() == len(text) and not last[1].strip()
            return text[: first.start()] if closes else None
        language = first[1].strip().lower()
        if language not in _NO_CODE or (last is not first and last.end() < len(text)):
            return None
        inner = text[first.end() : len(text) if last is first else last.start()]
        if language == "json" and read_json_turn(trim(inner), self._role, self._roles) is None:
            return None
        return inner

    def _read_json(self, text: str) -> str:
        if "{" not in text and "[" not in text:
            return text
        found = read_json_turn(text, self._role, self._roles)
        if found is None:
            return text
        said, ended, repairs = found
        self._repairs += repairs
        self._ended = self._ended or ended
        return replace_surrogates(said, self._repairs)

    def _strip_marker(self, text: str) -> str:
        marked = find_marker(text) or find_short_marker(text)
        if marked is None:
            return text
        self._ended = True
        self._repairs += marked.repairs
        behind = text[marked.end :]
        self._behind = behind if behind.strip(" \t\r\n`~") else ""
        note_words_after(self._behind.rstrip("` \r\n~"), self._repairs)
        return marked.said

    def _strip_quotes(self, text: str) -> str:
        if is_silent(text):
            return text
        mark = self._behind.lstrip(" \t")[:1]
        if mark and mark in CLOSERS.get(text[:1], ""):
            # The mark that closes the turn may stand after the end marker.
            whole = unquote(text + mark, self._repairs, labelled=self._labelled)
            if whole != text + mark:
                return whole
        return unquote(text, self._repairs, labelled=self._labelled)

    def _strip_label(self, text: str) -> str:
        """Without its own label; no turn if it has another."""
        found = find_labels(text, self._role, self._roles)
        if not found:
            return text
        other = next((label for label, _ in found if label.role != self._role), None)
        if other is not None:
            raise _speaks_for_other(text[other.start :], self._role)
        spoken = [label for label, says in found if says]
        if len(spoken) + self._labelled > 1 and not (len(spoken) == 1 and spoken[0].start == 0):
            raise _make_second_turn_error(text[spoken[-1].start :])
        before = text[: found[0][0].start]
        if not spoken:  # labels under which nothing is said any more
            self._repairs.append(Repair.LAYOUT)
            return before
        label = spoken[0]
        if surroundings.has_words(before):
            if not ASIDE.match(trim(before)):
                raise _make_second_turn_error(text[label.start :])
            self._repairs.append(Repair.PREAMBLE)
        self._repairs.append(Repair.LAYOUT)
        self._labelled = True
        self._repairs += [Repair.ROLE_NAME] if label.named else []
        self._repairs += [Repair.ROLE_ALIAS] if label.aliased else []
        said = text[label.text :].strip()
        if "[" in before and said.endswith("]"):
            said = said[:-1].rstrip()
        return strip_half_marks(label, said, self._roles)


def _make_second_turn_error(text: str) -> UnreadableError:
    return UnreadableError(RejectionReason.TWO_TURNS, f"a second turn: {excerpt(text)}")


def _speaks_for_other(text: str, own: str) -> UnreadableError:
    return UnreadableError(
        RejectionReason.SPEAKS_FOR_OTHER, f"the {own.lower()} also speaks for the other: {excerpt(text)}"
    )
