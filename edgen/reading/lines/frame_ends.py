"""Ends of the frames around labels in a layout that no rule knows, and what such labels are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.reading.lines.line import TOKEN, find_kind
from edgen.reading.text.characters import find_common_start

LEAST = 2  # turns of each speaker
QUOTES = "\"'“”„«»‹›「」『』"
_MOST = 0.75  # share of the labels that continue alike
_RIGHT = 90  # characters of a frame after it
_OPENS_NOTE = ("(", "[")
_ENDS_FRAME = frozenset(f"{QUOTES}*_")  # last characters of a frame that may be the text's own
_OPENS_TEXT = compile_later(rf"(?:[{QUOTES}]|(?<=\s)[*_]{{1,3}})+\Z")
# Notes as in `Teacher *(smiling)*`, and a person's name after the role.
_NOTE = compile_later(r"[(\[][^()\[\]\n]{1,60}[)\]]")
_NAMES = compile_later(r"[^\W\d_][\w'’-]*\.?(?: [A-Z][\w'’-]*\.?){0,2}")
# The beginning of a sentence at the end of a frame; the same in a frame that is all that stands between labels, and any
# words after its last mark.
_RUN = r"(?:[\w'’ ,;.!?]|(?<=\w)-(?=\w)|(?<=\d):)*"
_BEGUN = compile_later(rf"(?<!\w)([A-ZÀ-ÖØ-ÞА-Я]{_RUN})\Z")
_BEGUN_WHOLE = compile_later(rf"(?<!\w)([A-ZÀ-ÖØ-ÞА-Я]{_RUN})\W*\Z")
_LAST_WORDS = compile_later(rf"(?:\A|(?<=[^\w\s,;.!?'’]))\s*((?=\w){_RUN})\W*\Z")


class SpeakerLabel(NamedTuple):
    """A speaker's word: the start of its line, its end, its role, and the shape of the text before it."""

    start: int
    end: int
    role: str
    left: tuple[str, ...]


def speak(spoken: Sequence[str]) -> bool:
    """Return whether two of the roles that speak do so often enough."""
    counts = sorted(Counter(spoken).values())
    return len(counts) > 1 and counts[-2] >= LEAST and counts[-1] <= 3 * counts[-2]


def find_frame_ends(text: str, labels: Sequence[SpeakerLabel]) -> list[int | None]:
    """Return the end of each label's frame, the longest that most labels have; None for labels without it.

    The beginning of a sentence that all texts share is no part of the frame, whose marks precede it.
    """
    starts = [*[label.start for label in labels[1:]], len(text)]
    rights = [
        text[label.end : min(start, label.end + _RIGHT)] for label, start in zip(labels, starts, strict=True)
    ]
    ends = _find_shared(rights, labels, _RIGHT)
    one = min(ends)
    whole = all(end >= len(rights[i].rstrip()) for i, end in [*ends.items()][:-1])
    begun = (_BEGUN_WHOLE if whole else _BEGUN).search(rights[one], 0, ends[one])
    if whole and begun is None:
        begun = _LAST_WORDS.search(rights[one], 0, ends[one])
        if begun is None:
            return [None] * len(labels)  # nothing is said after these words
    if begun is not None:
        ends = _find_shared(rights, labels, begun.start(1))
    # Quotation marks and emphasis at its end are the text's own.
    for i, end in ends.items():
        if rights[i][end - 1 : end] in _ENDS_FRAME:
            ends[i] = len(_OPENS_TEXT.sub("", rights[i][:end]))
    return [label.end + ends[i] if i in ends else None for i, label in enumerate(labels)]


def _find_shared(rights: Sequence[str], labels: Sequence[SpeakerLabel], most: int) -> dict[int, int]:
    """Return the length of the longest frame that most labels have, for each label with it; at most so many
    characters for the first of them."""
    # All share these tokens; a word or blanks at the end may be the beginning of longer ones.
    shared = TOKEN.findall(find_common_start(rights)[:most])
    while shared and (shared[-1] in _OPENS_NOTE or shared[-1].isalnum() or shared[-1][0] in " \t"):
        del shared[-1]
    ends = dict.fromkeys(range(len(labels)), sum(map(len, shared)))
    while ends[min(ends)] < most:
        each = [token[0] if (token := TOKEN.match(rights[i], end)) else "" for i, end in ends.items()]
        if each[0] in _OPENS_NOTE and all(notes := [_NOTE.match(rights[i], end) for i, end in ends.items()]):
            each, kinds = [note[0] if note else "" for note in notes], ["note"] * len(each)
        elif each.count(each[0]) == len(each):
            kinds = each
        elif (
            each[0].isalpha()
            and _is_name([(labels[i].role, token) for i, token in zip(ends, each, strict=True)])
            and all(names := [_NAMES.match(rights[i], end) for i, end in ends.items()])
            and _is_name([(labels[i].role, name[0]) for i, name in zip(ends, names, strict=True) if name])
        ):
            each, kinds = [name[0] if name else "" for name in names], ["name"] * len(each)
        else:
            kinds = [*map(_find_kind, each)]
        kind = kinds[0] if kinds.count(kinds[0]) == len(kinds) else Counter(kinds).most_common(1)[0][0]
        if not kind or kinds.count(kind) < _MOST * len(labels):
            break
        going = [(i, len(token)) for i, one, token in zip(ends, kinds, each, strict=True) if one == kind]
        if len(going) < len(ends) and not speak([labels[i].role for i, _ in going]):
            break
        ends = {i: ends[i] + length for i, length in going}
    return ends


def _is_name(tokens: Sequence[tuple[str, str]]) -> bool:
    """Return whether each speaker has a word of its own after the role, as in `<teacher_ann>`."""
    names = {*tokens}
    return 1 < len(names) == len(dict(names)) < len(tokens) // LEAST


def _find_kind(token: str) -> str:
    """Return the kind of a token, with one kind of quotation marks."""
    return "" if not token else '"' if token in QUOTES else find_kind(token)
