"""Characters that cannot be stored (lone surrogates, which JSON escapes can leave), and excerpts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair

_SURROGATE = compile_later("[\ud800-\udfff]")
_ENDS = tuple(".!?…。！？।؟")
_WORDS = 4  # blanks
_FEW = 4
_SHORT = 400  # characters of an excerpt
_SHOWN = 60  # characters of its one line
_PRINTED = bytes(range(32, 127))
_PLAIN = b"0123456789 .,!?'-;/%+$" + bytes(range(65, 91)) + bytes(range(97, 123))


def is_encodable(text: str) -> bool:
    """Return whether a text holds no lone surrogate: encoding it is quicker than looking for one."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_printable(text: str) -> bool:
    """Return whether all characters print, as `str.isprintable` does at three times the cost for ASCII."""
    return not text.encode().translate(None, _PRINTED) if text.isascii() else text.isprintable()


def find_marks(text: str) -> str:
    """Return the characters of a text in their order, without ASCII letters, digits, blanks and the marks of
    plain sentences (`.,!?'-;/%+$`): few in most texts, so looking for one costs nothing."""
    return text.encode("utf-8", "surrogatepass").translate(None, _PLAIN).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4)  # the rules for one reply ask for them again and again
def list_marks(text: str) -> str:
    """Return `find_marks` of a whole reply. A rule about a mark that is not among them does not run."""
    return find_marks(text)


@lru_cache(maxsize=4)
def holds_foreign_letters(text: str) -> bool:
    """Return whether a whole reply holds letters beyond ASCII's, or circled numbers."""
    marks = list_marks(text)
    return not marks.isascii() and any(mark.isalnum() and not mark.isascii() for mark in {*marks})


def holds_pair(text: str, pair: str) -> bool:
    """Return whether a text holds two characters in a row: quicker than `in` where the first is rare."""
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


def fold(text: str) -> str:
    """Return the text in ASCII lower case, other characters as question marks: words are found in it at the
    same places, and at a tenth of the cost of a search without regard to case."""
    return (text if text.isascii() else text.encode("ascii", "replace").decode()).lower()


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    for length in (2 * _SHOWN, _SHORT):  # most texts hold few blanks
        words = " ".join(replace_surrogates(text[:length], []).split())
        if len(words) > _SHOWN:
            return words[: _SHOWN - 3] + "..."
    return words


def find_common_start(texts: Sequence[str]) -> str:
    """Return the characters with which all texts begin: the first and the last in their order tell."""
    first, last = min(texts), max(texts)
    differ = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, len(first))]


def are_spoken(texts: Sequence[str]) -> bool:
    """Return whether most of the texts are sentences, as turns are.

    Such a text ends as a sentence does or has more than a few words.
    """
    said = [text.rstrip("\"'”’»」)]*_ \n") for text in texts]
    return sum(text[-1:] in _ENDS or text.count(" ") >= _WORDS for text in said) * 2 > len(said)
