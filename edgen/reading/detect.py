"""Detect faults in a turn that was read without an error: a leaked secret, a loop.

Both detectors are pure, raise on no text, and work in time linear in its length.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from edgen.core.text import compile_later

# Scripts that put no space between words: there each character counts as one.
_SOLID = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = compile_later(
    rf"[{_SOLID}]|[^\W_{_SOLID}]+(?:'[^\W_{_SOLID}]+)*"
    # Signs that change the meaning of a sum are words; other marks are punctuation.
    r"|[+=<>^%÷×±√≤≥≠]|[-*/](?=\s?[\d(])"
)
_ASCII_WORD = compile_later(r"[a-z0-9]+(?:'[a-z0-9]+)*|[+=<>^%]|[-*/](?=\s?[0-9(])")  # what _WORD finds there
# In most texts, blanks separate the words once other characters are blanked. Splitting at blanks costs a third
# of a search for words.
APART = "\0"  # stands between texts that are looked at together
_SIGN = "\x01"  # stands for a sign, until it is known whether one is a word
_SIGNS = "-*/+=<>^%"
_BLANKED = bytes(
    ord(c.lower()) if c.isalnum() or c in ("'", APART) else c in _SIGNS or 32 for c in map(chr, range(128))
) + bytes(128)
_SIGN_WORD = compile_later(r"[-*/+=<>^%](?:(?<=[+=<>^%])|\s?[0-9(])")
_OF_SIGNS = frozenset("+=<>^%0123456789(")  # every sign that is a word is one of these, or before one
_INSIDE = compile_later(rf"[^\W_{_SOLID}]{{2}}")  # what stands around a place inside a word
_SENTENCE = compile_later(r"[.!?…。！？](?=[\s\"')\]*]|\Z)|[。！？\n]")
_FOLD = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
    }
)
_SLASH = compile_later(r" ?([-/]) ?")

MIN_SECRET_WORDS = 2
MIN_SECRET = 8  # characters; shorter phrases come up by themselves
MIN_WORDS = 4  # a turn of fewer may well be said twice: "Yes, I see."
MIN_SENTENCE = 3
MIN_LONG = 12  # words of a turn that may nearly equal another
SAME = 0.9
_REMEMBERED = 4_000  # characters of a turn whose words are kept
MAX_COMPARED = 1000  # words compared in order, after the common beginning of both texts


def find_leak(text: str, secrets: Sequence[str], heard: Sequence[str]) -> str | None:
    """Return the first secret that `text` holds word for word, unless one of the texts in `heard` has it too.

    Case, white space, and kinds of quotation marks and dashes do not matter; words are whole. A secret of one
    word, or of fewer than eight characters, is ignored: people say such a thing by chance.
    """
    said: str | None = None
    for secret in secrets:
        wanted = fold(secret)
        if not is_secret(wanted):
            continue
        said = fold(text) if said is None else said
        if _holds(said, wanted) and not any(_holds(fold(other), wanted) for other in heard):
            return secret
    return None


def is_secret(phrase: str) -> bool:
    """Return whether a folded phrase is too long to be said by chance."""
    length = len(_WORD.findall(phrase))
    return length >= MIN_SECRET_WORDS and (len(phrase) >= MIN_SECRET or length >= MIN_WORDS)


def fold(text: str) -> str:
    """Return the text in one case, with one kind of white space, quotation mark and dash.

    Secrets are searched for in this form.
    """
    return _SLASH.sub(r"\1", " ".join(_with_plain_marks(text).casefold().split()))


def _holds(text: str, phrase: str) -> bool:
    """Return whether the phrase stands in the text with no letter or digit running on at either end."""
    at = text.find(phrase)
    while at >= 0:
        ends = (at, at + len(phrase))
        if not any(_INSIDE.fullmatch(text, max(end - 1, 0), end + 1) for end in ends):
            return True
        at = text.find(phrase, at + 1)
    return False


def loops(text: str, earlier: Sequence[str]) -> bool:
    """Return whether a side repeats itself. `earlier` are its own turns before this one, in their order.

    It does if the text equals one of them (case, white space and punctuation aside; a text of fewer than four
    words must equal the last two), if it nearly equals the last one (at least 90% the same words in the same
    order, and the same numbers), or if it says one sentence three times.
    """
    said = _split_words(text)
    if not said:
        return _equals_last_two(text.split(), [other.split() for other in earlier[-2:]])
    if len(said) < MIN_WORDS:
        return _equals_last_two(said, [_split_words(other) for other in earlier[-2:]])
    if any(said == _split_words(other) for other in earlier):
        return True
    if earlier and _are_nearly_equal(said, _split_words(earlier[-1])):
        return True
    if len(_SENTENCE.findall(text)) < 2:  # most texts have fewer than three sentences
        return False
    sentences = (tuple(words(part)) for part in _SENTENCE.split(text))
    counts = Counter(sentence for sentence in sentences if len(sentence) >= MIN_SENTENCE)
    return any(count >= 3 for count in counts.values())


def _split_words(text: str) -> tuple[str, ...]:
    """Return `words` of a turn, cached for comparisons with later turns."""
    return _split_words_cached(text) if len(text) <= _REMEMBERED else tuple(words(text))


@functools.lru_cache(maxsize=2048)  # turns of the conversations at work
def _split_words_cached(text: str) -> tuple[str, ...]:
    return tuple(words(text))


def _equals_last_two(words: Sequence[str], last: Sequence[Sequence[str]]) -> bool:
    return bool(words) and len(last) == 2 and last[0] == words == last[1]


def words(text: str) -> list[str]:
    """Return the words of a text in order, without regard to case and to the kind of apostrophes and
    dashes. A number is one; so is each character of a script without spaces, and a sign that changes what
    a sum says."""
    folded = _with_plain_marks(text)
    if not folded.isascii():
        return _WORD.findall(folded.casefold())
    blanked = _blank_non_words(folded.replace(APART, " "))
    return _ASCII_WORD.findall(folded.lower()) if blanked is None else blanked.split()


def may_hold_signs(text: str) -> bool:
    """Return whether `words` of a text may hold a sign."""
    return not _OF_SIGNS.isdisjoint(text)


def split_words_of_turns(texts: Sequence[str]) -> list[list[str]]:
    """Return `words` of each text; in half the time if they hold only words between blanks and marks."""
    together = _with_plain_marks(f" {APART} ".join(texts))
    blanked = _blank_non_words(together) if together.isascii() else None
    if blanked is None or blanked.count(APART) != len(texts) - 1:
        return [words(text) for text in texts]
    return [text.split() for text in blanked.split(APART)]


def join_plain_words(text: str) -> str | None:
    """Return the words of a text with one blank between them, None where finding them takes `words`.
    Each run of APART stays, as a word."""
    folded = _with_plain_marks(text)
    blanked = _blank_non_words(folded) if folded.isascii() else None
    return None if blanked is None else " ".join(blanked.split())


def _with_plain_marks(text: str) -> str:
    """Return the text with one kind of apostrophe, quotation mark and dash."""
    return text.replace("`", "'") if text.isascii() else text.translate(_FOLD)


def _blank_non_words(text: str) -> str | None:
    """Return an ASCII text in lower case with blanks for all that is in no word, None where it holds other
    words than that shows."""
    blanked = text.encode().translate(_BLANKED).decode()
    if _SIGN in blanked:
        if _SIGN_WORD.search(text) is not None:
            return None
        blanked = blanked.replace(_SIGN, " ")
    inside = "'" not in blanked or (
        "''" not in blanked and "' " not in f"{blanked} " and " '" not in f" {blanked}"
    )
    return blanked if inside else None


def join_words(words: Iterable[str]) -> str:
    """Return words as one text with a space around each, for searches of phrases."""
    return f" {' '.join(words)} "


def _are_nearly_equal(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether two long texts hold mostly the same words in the same order, and the same numbers.

    After their common beginning, a thousand words are compared: enough for any turn, at a bounded cost.
    """
    most = max(len(a), len(b))
    if min(len(a), len(b)) < MIN_LONG or (Counter(a) & Counter(b)).total() < SAME * most:
        return False
    # A question with other numbers is another question.
    if [w for w in a if w[0].isdigit()] != [w for w in b if w[0].isdigit()]:
        return False
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[same : same + MAX_COMPARED], b[same : same + MAX_COMPARED]
    same = min(same, MAX_COMPARED)
    wanted = math.ceil(SAME * (same + max(len(a), len(b))) - 1e-9) - same
    allowed = len(a) + len(b) - 2 * wanted
    return wanted <= 0 or (allowed >= 0 and _count_edits(a, b, allowed) <= allowed)


def _count_edits(a: Sequence[str], b: Sequence[str], most: int) -> int:
    """Return the number of words to delete or insert to turn `a` into `b`; most + 1 if more than `most`.

    This is the greedy algorithm of Myers (An O(ND) difference algorithm, Algorithmica 1, 1986).
    """
    reach = {1: 0}
    for edits in range(most + 1):
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            if x >= len(a) and x - k >= len(b):
                return edits
    return most + 1
