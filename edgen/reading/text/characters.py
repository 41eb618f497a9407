"""List the marks and words of a text cheaply: a rule runs only if the text holds the marks that it needs.

`replace_surrogates` replaces lone surrogates, which JSON escapes can leave and which cannot be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords

_SURROGATE = compile_later("[\ud800-\udfff]")
_ENDS = tuple(".!?…。！？।؟")
_WORDS = 4  # blanks of a text that has words enough for a sentence
_FEW = 4
_SHORT = 400  # characters of an excerpt
_SHOWN = 60  # characters of its one line
_PLAIN = b"0123456789 .,!?'-;/%+$" + bytes(range(65, 91)) + bytes(range(97, 123))

_LONGEST_WORD = 30  # characters of a word that is remembered
_MOST_WORDS = 20_000
_NUMBERED = compile_later(r"[\d_]")
TOKEN = compile_later(r"[^\W\d_]+")
# ASCII letters in lower case, or as they are, and blanks for other characters of ASCII.
_LOWERED, _LETTERS = (
    bytes(ord(change(c)) if c.isalpha() else 32 for c in map(chr, range(128))) + bytes(range(128, 256))
    for change in (str.lower, str)
)
_SPOKEN = compile_later(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# An end marker, a probability and a heading hold one of these: see `may_mark`, `is_likely` and `may_head`.
TELLING = (
    "conversation",
    "dialog",
    "chat",
    "discussion",
    "transcript",
    "prob",
    "likelihood",
    "chance",
)
_STEMS = (*map(str.encode, TELLING), b"likel")
# The first word of a sentence, and the last one.
_BEGUN = compile_later(r"[^\W\d_]+(?:['’][^\W\d_]+)*[,.!?…]*")
_STOPPED = compile_later(r"(?:[^\W_]|['’])+(?:-[^\W_]+)*[.!?…]+")
_LAST_STEMS = (*TELLING[:5], "end", "over")
# Words at the beginning of a line that may head or end a turn, or be the key of a text.
_OPENERS = frozenset({
    "turn", "exchange", "round", "line", "role", "speaker", "name", "who", "from", "author", "character",
    "text", "content",
    "message", "step", "part", "phase", "scene", "act", "stage", "section", "segment", "episode", "utterance", "says", "said", "value", "speech", "t", "s",
})  # fmt: skip
# The beginning of a line that continues a sentence.
_CONTINUING = compile_later("[—–]|[0-9]{1,4}[,%]?")
_COUNTS = frozenset(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
# The words with which a line after a conversation may begin, and the stems of others, and those of words after the
# former.
_ENDERS = frozenset({
    "the", "final", "i", "in", "this", "let", "hope", "feel", "would", "please", "fade", "end", "p",
})  # fmt: skip
_ENDING_STEMS = (
    "turn", "exchange", "round", "prob", "outcome", "result", "reason", "assess", "evaluat", "verdict", "note",
    "explan", "analys", "summar", "disclaim", "comment", "rational",
)  # fmt: skip
_SECOND_STEMS = (
    *_ENDING_STEMS, "hope", "this", "me", "free", "you", "out", "to", "of", "conversation", "dialog", "simulat",
)  # fmt: skip


def is_encodable(text: str) -> bool:
    """Return whether a text holds no lone surrogate. Encoding is faster than a search."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_marks(text: str) -> str:
    """Return the characters of a text in their order, without ASCII letters, digits, blanks and the marks of
    plain sentences (`.,!?'-;/%+$`). Few remain in most texts, so a search among them costs little."""
    return text.encode("utf-8", "surrogatepass").translate(None, _PLAIN).decode("utf-8", "surrogatepass")


_HUMP = compile_later(r"(?<=[a-z])(?=[A-Z])")


def split_camel_case(name: str) -> str:
    """Return a name such as `teacherTurn` with underscores between its words."""
    return _HUMP.sub("_", name)


@lru_cache(maxsize=4)  # many rules need the marks of one reply
def list_marks(text: str) -> str:
    """Return `find_marks` of a whole reply, kept for the next rule."""
    return find_marks(text)


@lru_cache(maxsize=4)
def holds_foreign_letters(text: str) -> bool:
    """Return whether a whole reply holds letters beyond ASCII's, or circled numbers."""
    return _hold_foreign_letters(list_marks(text))


def _hold_foreign_letters(marks: str) -> bool:
    return not marks.isascii() and any(map(str.isalnum, {*marks}))  # no letters of ASCII are marks


def holds_pair(text: str, pair: str) -> bool:
    """Return whether a text holds two characters in a row. Faster than `in` if the first is rare."""
    at = text.find(pair[0])
    for _ in range(_FEW):
        if at < 0 or text[at + 1 : at + 2] == pair[1]:
            return at >= 0
        at = text.find(pair[0], at + 1)
    return pair in text


def replace_surrogates(text: str, repairs: list[str]) -> str:
    """Return the text with U+FFFD for every lone surrogate."""
    if is_encodable(text if len(text) < _SHORT else list_marks(text)):
        return text
    repairs.append(Repair.BAD_CHARACTERS)
    return _SURROGATE.sub("\ufffd", text)


@lru_cache(maxsize=4)
def lower(text: str) -> str:
    """Return a whole reply in lower case; unchanged if lower case would move its letters."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text  # İ


def fold(text: str) -> str:
    """Return the text in ASCII lower case, with question marks for other characters.

    Words have the same places there. A search costs a tenth of one that ignores case.
    """
    return (text if text.isascii() else text.encode("ascii", "replace").decode()).lower()


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    for length in (2 * _SHOWN, _SHORT):  # most texts hold few blanks
        words = " ".join(replace_surrogates(text[:length], []).split())
        if len(words) > _SHOWN:
            return words[: _SHOWN - 3] + "..."
    return words


def find_common_start(texts: Sequence[str]) -> str:
    """Return the characters with which all texts begin, by the first and the last in their order."""
    first, last = min(texts), max(texts)
    differ = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, len(first))]


def are_spoken(texts: Sequence[str]) -> bool:
    """Return whether most of the texts are sentences, as turns are.

    Such a text ends as a sentence does or has more than a few words.
    """
    said = [text.rstrip("\"'”’»」)]*_ \n") for text in texts]
    return sum(text[-1:] in _ENDS or text.count(" ") >= _WORDS for text in said) * 2 > len(said)


@lru_cache(maxsize=4)  # several rules need the words of one reply
def find_letters(text: str, *, exact: bool = False) -> frozenset[str]:
    """Return the runs of letters in a text, in lower case if not `exact`."""
    return frozenset(split_letters(text, exact=exact))


def split_letters(text: str, *, exact: bool = False, marks: str | None = None) -> list[str]:
    """Return the runs of letters in their order. `marks`: `find_marks` of the text, if it is known."""
    return encode_letters(text, exact=exact, marks=marks).decode("utf-8", "surrogatepass").split()


def encode_letters(text: str, *, exact: bool = False, marks: str | None = None) -> bytes:
    """Return the letters of a text in UTF-8, in lower case if not `exact`, and blanks for all else."""
    marks = list_marks(text) if marks is None else marks
    if not _hold_foreign_letters(marks):
        return text.encode("ascii", "replace").translate(_LETTERS if exact else _LOWERED)
    for mark in {*marks}:
        if not mark.isascii() and (not mark.isalnum() or mark.isdecimal()):
            text = text.replace(mark, " ")
    text = text if exact else text.lower().replace("\u0307", " ")  # of İ
    return text.encode("utf-8", "surrogatepass").translate(_LETTERS if exact else _LOWERED)


class WordMemory(dict[Any, bool]):
    """A cache of decisions about words, each decided once. The words are strings, or bytes."""

    def __init__(self, decide: Callable[[Any], bool]) -> None:
        super().__init__()
        self._decide = decide
        self._have: set[Any] = set()  # words for which the decision is True

    def __missing__(self, word: Any) -> bool:
        found = self._decide(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
                self._have = set()
            self[word] = found
            if found:
                self._have.add(word)
        return found

    def have_all(self, words: Sequence[Any]) -> bool:
        """Return whether it is true of all of some words."""
        return self._have.issuperset(words) or all(map(self.__getitem__, words))

    def find_others(self, words: Sequence[str]) -> set[str]:
        """Return those of some words of which it is not true."""
        return {word for word in {*words} - self._have if not self[word]}


def _remember_other_words(stems: tuple[str, ...], words: frozenset[str]) -> WordMemory:
    """Return a memory of whether a word begins with a letter, but neither with one of these stems nor as one
    of these words."""

    def decide(word: str) -> bool:
        if not word[:1].isalpha():
            return False
        start = _SPOKEN.findall(word.lower())[0]
        return not start.startswith(stems) and start not in words

    return WordMemory(decide)


class TurnWords:
    """The words of turns that may belong to a layout."""

    def __init__(self, roles: RoleWords, labels: frozenset[str], speakers: frozenset[str]) -> None:
        self.roles = roles
        self.names = names = tuple(roles.by_name)  # in lower case
        self.labels = frozenset(map(str.encode, labels))  # words that may name a speaker
        self.speakers = self.labels.union(map(str.encode, speakers))  # and where another is looked for
        self.plain = WordMemory(lambda word: labels.isdisjoint(TOKEN.findall(word.lower())))
        """Whether a word names no speaker. `labels`: words that may do so."""
        self.opening = WordMemory(
            lambda word: (
                word[:1].isalpha() and self.plain[word] and _OPENERS.isdisjoint(_SPOKEN.findall(word.lower()))
            )
        )
        """Whether a line that begins with a word is no label, heading or key."""

        self.notes = WordMemory(
            lambda note: (
                labels.isdisjoint(TOKEN.findall(note.lower()))
                and not any(map(fold(note).__contains__, TELLING))
                and not note.strip(" ([").startswith("to ")
            )
        )
        """Whether words in a label are a note alone."""
        self.wordy_notes = WordMemory(lambda note: self.notes[note] and _NUMBERED.search(note) is None)
        """The same for notes without numbers."""
        stems = (*_STEMS, *encode_letters(" ".join(names)).split())
        self.quiet = WordMemory(
            lambda word: word not in self.speakers and not any(map(word.__contains__, stems))
        )
        """Whether a word, in letters of UTF-8, names no speaker, and no word of a role's name and none of
        `TELLING` is in it."""
        self.unending = WordMemory(
            lambda word: not (word[:1].isdecimal() or any(map(fold(word).__contains__, _LAST_STEMS)))
        )
        """Whether neither an end marker nor a heading ends with a word."""
        self.stopping = WordMemory(
            lambda word: (word[:-1].isalpha() and word[-1] in _ENDS) or _STOPPED.fullmatch(word) is not None
        )
        """Whether a sentence ends with a word."""
        self.beginning = WordMemory(lambda word: _BEGUN.fullmatch(word) is not None and self.opening[word])
        """Whether a sentence begins with a word, but no label, heading or key."""
        # Whether a line that begins with a word, or has it after one of `_ENDERS`, ends no conversation.
        self._continuing = _remember_other_words(_ENDING_STEMS, _ENDERS)
        self._second = _remember_other_words(_SECOND_STEMS, frozenset())

        self.speaking = WordMemory(lambda word: self.opening[word] and self._continuing[word])
        """Whether a line that begins with a word is speech: no label, heading or key, and no end."""

    def begin_plainly(self, words: Sequence[str]) -> bool:
        """Return whether a line that begins with these words (the third of them the rest of it) is no label,
        heading or key: `step by step we …` and `12, so that we …` name nothing, `step 2` may do so."""
        if not words or self.opening[words[0]]:
            return bool(words)
        first, second, rest = [*words, "", ""][:3]
        return (
            ((first.isalpha() and self.plain[first]) or _CONTINUING.fullmatch(first) is not None)
            and second.islower()
            and second.isalpha()
            and second not in _COUNTS
            and " " in rest
        )

    def go_on(self, lines: Sequence[str]) -> bool:
        """Return whether no rule takes one of some lines for the end of a conversation, by its first words
        (`surroundings.LAST_STOP`)."""
        starts = [line.split(" ", 2) for line in lines if line]
        return self._continuing.have_all([start[0] for start in starts]) or all(map(self._goes_on, starts))

    def _goes_on(self, words: Sequence[str]) -> bool:
        first, *rest = words
        return self._continuing[first] or (first.lower() in _ENDERS and bool(rest) and self._second[rest[0]])
