"""Characters that cannot be stored (lone surrogates, which JSON escapes can leave), and excerpts."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair

_SURROGATE = compile_later("[\ud800-\udfff]")
_ENDS = tuple(".!?…。！？।؟")
_WORDS = 4  # blanks
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


def replace_surrogates(text: str, repairs: list[str]) -> str:
    """Return the text with U+FFFD for every lone surrogate."""
    if is_encodable(text):
        return text
    repairs.append(Repair.BAD_CHARACTERS)
    return _SURROGATE.sub("\ufffd", text)


def fold(text: str) -> str:
    """Return the text in ASCII lower case, other characters as question marks: words are found in it at the
    same places, and at a tenth of the cost of a search without regard to case."""
    return (text if text.isascii() else text.encode("ascii", "replace").decode()).lower()


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    words = " ".join(replace_surrogates(text[:400], []).split())
    return words if len(words) <= 60 else words[:57] + "..."


def are_spoken(texts: Sequence[str]) -> bool:
    """Return whether most of the texts are sentences, as turns are.

    Such a text ends as a sentence does or has more than a few words.
    """
    said = [text.rstrip("\"'”’»」)]*_ \n") for text in texts]
    return sum(text[-1:] in _ENDS or text.count(" ") >= _WORDS for text in said) * 2 > len(said)
