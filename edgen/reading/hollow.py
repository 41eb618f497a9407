"""Detection of answers without content: placeholders, echoes of the prompt, one repeated line.

Texts are compared by their words, without regard to case and punctuation. Texts that a prompt lists, quotes
within a sentence or names with a label are facts, which a turn may say word for word; its sentences are
instructions. Nothing raises; prompts are analysed once.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Message, Rejection, RejectionReason
from edgen.reading.detect import APART, fold, join_plain_words, may_hold_signs, words
from edgen.reading.placeholders import has_placeholder, has_short_placeholder, is_placeholder
from edgen.reading.text.characters import excerpt

_EXAMPLE = compile_later(r"\"[^\"\n]{1,60}\"\s{0,3}:\s{0,3}\[?\s{0,3}\"([^\"\n]{1,300})\"")
# Begins with all marks that end a sentence, which is how the search is quick.
_SHOWN = compile_later(
    r"(?i)\b(?:example|sample|for instance|e\.g\.)[^\n\"“]{0,40}[:,]\s{0,3}[\"“]([^\"”\n]{1,300})[\"”]"
)
_SENTENCE = compile_later(r"[.!?…。！？\n](?:(?<=[。！？\n])|(?=[\s\"')\]*”’]|\Z))")
_ENDS = "\n.!?…。！？"
_LISTED = compile_later(r"\s{0,20}(?:[-*•–]|\d{1,3}[.):])\s")
_LABEL = compile_later(r"([^\n:：]{1,60})[:：]\s")
# In a sentence: words that a side may say.
_QUOTED = compile_later(r"(?<=\w )(?:\"[^\"\n]{1,300}\"|“[^“”\n]{1,300}”)")
_SPEAKER = compile_later(r"(?:\A|\n\n)(?:#\d+ [^\n]{1,80}|(?P<name>[^\n:#]{1,60})):\s")
# Bytes as they are compared first: letters and digits in lower case, and blanks.
_RUNS = bytes(ord(c.lower()) if c.isalnum() else 0 if c == APART else 32 for c in map(chr, range(128)))
_RUNS += b" " * 128
_MARK = b"\1"  # between sentences, as no text is encoded
_ODD = 2  # stands for marks of which placeholders may have one, and for what does not print
_ODDLY = frozenset("_<[{(\x7f" + "".join(map(chr, range(1, 32)))) - {"\n"}
_MARKED = bytes(
    1 if chr(code) in ".!?\n" else _ODD if chr(code) in _ODDLY else kept for code, kept in enumerate(_RUNS)
)

_MOST_PARTS = 4096  # of prompts, whose words are kept
_MARKS = 20  # characters around the words of a turn
SHORT = 3  # words of a sentence of a prompt that is no chance agreement where nothing else was said before
LONG = 5  # words of a turn that nobody says again by chance
RUN = 6  # words in a row out of the middle of an instruction
COPIED = 8  # words of copied instructions, next to others
SHARE = 0.5  # of a turn
SAME_LINE = 5  # times
ONLY_LINE = 3  # times, of a line of more than a few words, where nothing else is said
ALONE = 0.8  # of a text's lines, for a short one


class _Prompt:
    """A prompt, prepared for comparison.

    All of it is made on demand; more than `known` for a text with a sentence whose runs are all in `known`.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def known(self) -> frozenset[bytes]:
        """Its runs of letters and digits."""
        return frozenset().union(*map(_list_runs, self._text.split(". ")))

    @functools.cached_property
    def examples(self) -> frozenset[str]:
        """The texts of its examples."""
        shown = [*_EXAMPLE.finditer(self._text), *_SHOWN.finditer(self._text)]
        return frozenset(" ".join(words(match[1])) for match in shown) - {""}

    @functools.cached_property
    def lines(self) -> list[_Line]:
        """Its lines."""
        return [_split_instruction(line) for line in self._text.split("\n")]

    @functools.cached_property
    def each(self) -> frozenset[str]:
        """Its sentences."""
        return frozenset([one for line in self.lines for one in line.said])

    @functools.cached_property
    def sentences(self) -> str:
        """Its sentences between marks."""
        return f"{APART}{APART.join([one for line in self.lines for one in (*line.said, '', *line.instructs)])}{APART}"

    @functools.cached_property
    def run(self) -> str:
        """Its instructions as one run of words."""
        return f" {' '.join([one for line in self.lines for one in line.instructs])} "

    def has(self, sentence: str) -> bool:
        """Return whether a sentence of some length is one of the prompt's, or stands in one."""
        count = 1 + sentence.count(" ")
        return count >= SHORT and (sentence in self.each or (count > SHORT and f" {sentence} " in self.run))


def find_hollow(text: str, messages: Sequence[Message], *, opening: bool = False) -> Rejection | None:
    """Return why a text says nothing of its speaker's own; None if it does.

    `messages` are those that asked for it. `opening`: nothing was said before.
    """
    if not text.strip():
        return None
    return _find(text, _split_sentences(text), _Asked.from_messages(messages, opening=opening))


class _Asked(NamedTuple):
    """The messages that asked for a text: the other side's last one, the brief with names, the prompts."""

    heard: str | None
    brief: str
    prompts: tuple[_Prompt, ...]

    @classmethod
    def from_messages(cls, messages: Sequence[Message], *, opening: bool) -> _Asked:
        if len(messages) == 1:
            (brief,) = messages
            return cls(None, brief.content, (_split_prompt(brief.content),))
        spoken = [message.content for message in messages[1:] if message.role == "user"]
        briefs = [message.content for message in messages if message.role == "system"]
        briefs = briefs or [messages[0].content]
        briefs += [line for line in [_find_opening_line(spoken, opening=opening)] if line]
        heard = spoken[-1] if spoken else None
        return cls(heard, messages[0].content, tuple(map(_split_prompt, briefs)))


def _find(text: str, said: Sequence[str], asked: _Asked) -> Rejection | None:
    """Return the same, given the sentences of the text."""
    if is_placeholder(text):
        return Rejection(RejectionReason.PLACEHOLDER, f"the answer is a placeholder: {excerpt(text)}")
    if len(said) >= ONLY_LINE and {*said} == {said[0]} and said[0].count(" ") >= SHORT:
        return Rejection(RejectionReason.LOOP, f"the answer says one line {len(said)} times: {excerpt(text)}")
    if len(said) >= SAME_LINE and repeats_a_line(text):
        return Rejection(RejectionReason.LOOP, f"the answer says one line {SAME_LINE} times: {excerpt(text)}")
    if asked.heard is not None and any(
        repeats_the_last(text, heard) for heard in _list_last_turn_texts(asked.heard, asked.brief)
    ):
        return Rejection(RejectionReason.ECHO, f"the answer repeats the turn before it: {excerpt(text)}")
    if _repeats_prompts(text, said, asked.prompts):
        return Rejection(RejectionReason.ECHO, f"the answer repeats its prompt: {excerpt(text)}")
    return None


def _find_opening_line(spoken: Sequence[str], *, opening: bool) -> str:
    """Return the part of the first message that belongs to the prompt; "" if it may be the other side's turn.

    That part is all of it before anything is said, a paragraph in front of the first post, or a line before
    everything else.
    """
    first, *_ = spoken or [""]
    if opening:
        return first
    line, *rest = first.split("\n\n")
    if rest:
        return line
    stated = (
        len(spoken) > 1 and line[:1].isupper() and line.endswith(".") and len(_split_sentences(line)) == 1
    )
    return line if stated else ""


def find_hollow_turn(texts: Sequence[str], messages: Sequence[Message]) -> Rejection | None:
    """Return why one of a conversation's turns says nothing of its speaker's own; None if all do.

    A side may be silent for a turn (`...`).
    """
    if len(messages) == 1 and _is_plain(texts, messages[0].content):
        return None
    asked = _Asked.from_messages(messages, opening=True)
    turns = [(text, said) for text, said in zip(texts, _split_sentences_of_texts(texts), strict=True) if said]
    wholes = [" ".join(said) for _, said in turns]
    counts = Counter(whole for whole in wholes if whole.count(" ") >= SHORT - 1)
    said, count = next(iter(counts.most_common(1)), ("", 0))
    if count >= SAME_LINE:
        return Rejection(RejectionReason.LOOP, f"the answer says one line {count} times: {excerpt(said)}")
    for number, (text, sentences) in enumerate(turns):
        if number and wholes[number] == wholes[number - 1] and repeats_the_last(text, turns[number - 1][0]):
            return Rejection(RejectionReason.ECHO, f"a turn repeats the one before it: {excerpt(text)}")
        if (found := _find(text, sentences, asked)) is not None:
            return found
    return None


def _is_plain(texts: Sequence[str], brief: str) -> bool:
    """Return whether the letters alone show that no turn can be hollow, as in most conversations.

    No turn equals the one before it or many others, none is a placeholder, says a sentence three times or may
    repeat the prompt.
    """
    whole = APART.join(texts)
    if not whole.isascii():
        return False
    marked = whole.encode().translate(_MARKED)
    odd = _ODD in marked or "\n" in whole
    if odd:
        marked = marked.replace(bytes([_ODD]), b" ")
    squeezed = marked.translate(None, b" ")
    letters = squeezed.replace(_MARK, b"").split(b"\0")
    if len(letters) != len(texts) or b"" in letters:
        return False
    each = [*filter(None, squeezed.replace(b"\0", _MARK).split(_MARK))]
    again = len({*letters}) < len(letters) or len(each) - len({*each}) >= ONLY_LINE - 1
    if again and _may_repeat(squeezed, letters):
        return False
    said = [*filter(None, marked.replace(b"\0", _MARK).split(_MARK))]
    dotted = squeezed.find(_MARK + _MARK) >= 0 and (".." in whole or ". ." in whole)
    odd = odd or dotted or squeezed.find(b"loremipsum") >= 0
    if has_placeholder(texts) if odd else has_short_placeholder(texts):
        return False
    return not _may_copy(whole, marked, said, brief)


def _may_repeat(squeezed: bytes, letters: Sequence[bytes]) -> bool:
    """Return whether a turn may repeat the one before it or many others, or say a sentence three times."""
    if len(letters) - len({*letters}) >= SAME_LINE - 1 or any(map(operator.eq, letters, letters[1:])):
        return True
    turns = [[*filter(None, turn.split(_MARK))] for turn in squeezed.split(b"\0")]
    return any(len(said) - len({*said}) >= ONLY_LINE - 1 for said in turns)


def _may_copy(whole: str, marked: bytes, said: Sequence[bytes], brief: str) -> bool:
    """Return whether a turn may repeat the prompt: its sentences, or long ones, have only words of that."""
    known = _KNOWN.add(brief)
    near = [
        one
        for one in said
        if one.rpartition(b" ")[2] in known  # the last word, empty in front of a blank; most are in no prompt
        and (head := one.split(None, 1))
        and head[0] in known
        and known.issuperset(one.split())
    ]
    if not near or not any(map(_split_prompt(brief).known.issuperset, map(bytes.split, near))):
        return False
    # Signs count as words; a sentence has at least a character for each.
    if sum(map(len, near if may_hold_signs(whole) else map(bytes.split, near))) >= COPIED:
        return True
    turns = [filter(bytes.strip, turn.split(_MARK)) for turn in marked.split(b"\0")]
    return any(map({*near}.issuperset, turns))


def repeats_a_line(text: str) -> bool:
    """Return whether a text says one line or sentence five times."""
    if sum(map(text.count, _ENDS)) < SAME_LINE - 1:  # most texts
        return False
    said = [" ".join(words(line)) for line in _SENTENCE.split(text)]
    counts = Counter(line for line in said if line)
    if not counts:
        return False
    line, count = counts.most_common(1)[0]
    alone = count >= ALONE * counts.total()
    return count >= SAME_LINE and (alone or len(line.split()) >= SHORT)


def repeats_the_last(text: str, heard: str) -> bool:
    """Return whether a turn repeats the one before it word for word.

    A short turn may well be said by both sides, if it is no question.
    """
    if abs(len(text) - len(heard)) > _MARKS + len(text) // 5:  # most texts
        return False
    said = words(text)
    if len(said) < (SHORT if text.rstrip("\"'”’ ").endswith(("?", "？", "؟")) else LONG):
        return False
    return said == words(heard)


def _list_last_turn_texts(heard: str, brief: str) -> Iterator[str]:
    """Yield the texts that may be the last turn of a message.

    They are all of it, the text after the speaker's name, its title, and the text after the title; each also
    without a last paragraph, which may ask for a form.
    """
    whole, _, paragraph = heard.rpartition("\n\n")
    for text in (heard, whole) if whole and paragraph else (heard,):
        yield text
        for label in [*_SPEAKER.finditer(text)][-1:]:
            if label["name"] is None or label["name"] in brief:  # else it is said: `Repeat after me: …`
                said = text[label.end() :]
                title, _, behind = said.partition("\n")
                yield from (said, title.removeprefix("Title: "), behind)


def _mark_sentences(text: str) -> bytes:
    """Return the runs of letters and digits of an ASCII text, with marks between at least its sentences.

    APART stays as a zero byte.
    """
    return text.encode().translate(_MARKED).replace(bytes([_ODD]), b" ")


def _split_marked(marked: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the sentences between marks, and the last run of each, which is empty in front of a blank."""
    said = [*filter(None, marked.replace(b"\0", _MARK).split(_MARK))]
    return said, [one.rpartition(b" ")[2] for one in said]


def _find_near(said: Sequence[bytes], lasts: Sequence[bytes], prompts: Sequence[_Prompt]) -> list[_Prompt]:
    """Return the prompts that may have one of these sentences, as they have all of its letters and digits.

    In most sentences, the last run is in no prompt.
    """
    near = []
    for prompt in prompts:
        known = prompt.known
        for one, last in zip(said, lasts, strict=True):
            if (not last or last in known) and (runs := one.split()) and known.issuperset(runs):
                near.append(prompt)
                break
    return near


def _repeats_prompts(text: str, said: Sequence[str], prompts: Sequence[_Prompt]) -> bool:
    """Return whether a text is whole sentences, a part or an example of a prompt, or mostly copied."""
    near = _find_near(*_split_marked(_mark_sentences(text)), prompts) if text.isascii() else prompts
    if not near:  # most texts
        return False
    whole = " ".join(said)
    count = 1 + whole.count(" ")
    for told in near:
        if whole in told.examples or (count >= RUN and f" {whole} " in told.run):
            return True
        if count >= SHORT and f"{APART}{APART.join(said)}{APART}" in told.sentences:
            return True
    if count < COPIED:
        return False
    copied = sum(1 + one.count(" ") for one in said if any(told.has(one) for told in near))
    return copied >= COPIED and copied >= SHARE * count


def _split_sentences(text: str) -> list[str]:
    return _split_sentences_of_texts([text])[0]


def _split_sentences_of_texts(texts: Sequence[str]) -> list[list[str]]:
    """Return the sentences of each text as words with a blank between them."""
    marked, ends = _SENTENCE.subn(f" {APART} ", f" {APART}{APART} ".join(texts))
    said = join_plain_words(marked)
    if said is None or said.count(APART) != ends + 2 * (len(texts) - 1):
        apart = [map(words, _SENTENCE.split(text)) for text in texts]
        return [[" ".join(found) for found in each if found] for each in apart]
    return [[part.strip() for part in text.split(APART) if part.strip()] for text in said.split(2 * APART)]


class _KnownWords:
    """The runs of letters and digits of all prompts so far: most sentences of answers have others.

    Prompts of one template share most of their parts, so another one costs little.
    """

    def __init__(self) -> None:
        self._known: tuple[set[str], set[bytes]] = set(), {b""}

    def add(self, prompt: str) -> set[bytes]:
        """Return the runs of at least this prompt, and an empty one."""
        said, runs = self._known
        parts = prompt.split(". ")
        if not said.issuperset(parts):
            if len(said) >= _MOST_PARTS:
                self._known = said, runs = set(), {b""}  # another thread may use the old ones
            runs.update(*map(_list_runs, [part for part in parts if part not in said]))
            said.update(parts)
        return runs


_KNOWN = _KnownWords()


@functools.lru_cache(maxsize=512)
def _split_prompt(text: str) -> _Prompt:
    return _Prompt(text)


@functools.lru_cache(maxsize=64)  # the prompts of one template share most sentences
def _list_runs(sentence: str) -> frozenset[bytes]:
    """Return the runs of letters and digits of a sentence."""
    return frozenset((sentence if sentence.isascii() else fold(sentence)).encode().translate(_RUNS).split())


class _Line(NamedTuple):
    """A prompt's line: its sentences, and those without the fact that it may state."""

    said: Sequence[str] = ()
    instructs: Sequence[str] = ()


@functools.lru_cache(maxsize=4096)  # as above
def _split_instruction(line: str) -> _Line:
    """Return a line of a prompt, without sentences if it lists something."""
    if _LISTED.match(line):
        return _Line()
    line = _QUOTED.sub("", line)
    said = _split_sentences(line)
    label = _LABEL.match(line)
    instructs = said if label is None else _split_sentences(label[1])  # without the text after a label
    return _Line(said, instructs)
