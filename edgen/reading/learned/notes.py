"""Words in labels that change from turn to turn: `Teacher (smiling):`, `"emotion": "calm"`, `he asks, “`.

Their places are learned from the texts between the turns of one reply, and blanked in later ones before these
are cut. `drop_directions` leaves notes out of the turns themselves: `[smiling] Let us begin.`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat

import msgspec

from edgen.core.text import compile_later
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.text.characters import TurnWords, find_common_start

BLANK = "\x17"  # stands for a note
_DIGITS = compile_later("[0-9]+")
_NOTE = r"[^\W\d_](?:[^\W\d_]|[ ,'’-]){1,40}"
# The same in one set of characters, which is much faster. It holds digits, which `wordy_notes` rejects.
_RUN = r"[^\W\d_][\w ,'’-]{1,40}+"
_NUMBERING = r"[^\W\d_] ?"  # letters that number the lines of a table
# A mark after which any words may stand in a label, perhaps with the first of those that all notes share.
_OPENED = compile_later(r"[(\[\"'|=:*_>]\s?(?=(?:[^\W\d_]|[ ,'’-])*\Z)")
# The same with its brackets, on the line of the label: some labels may be without it.
_BRACKETED = compile_later(rf"(?<=\S) ?[(\[]{_NOTE}[)\]](?=[:*_])")
_PARTIAL = compile_later(r"[^\W\d_]+\Z")
_LETTER = compile_later(r"[^\W\d_]")
_QUOTES = ('"', "“", "„", "«")
_KEY = 3  # letters
_MOST = 0.4  # of a reply's characters


# A stage direction.
_DIRECTION = compile_later(r"(\[[^\W\d_][\w ,'’-]{1,40}+\])")
_UNDIRECTED = 2  # turns; if all begin with brackets, these may be the layout's


class LabelNotes(msgspec.Struct):
    """The notes in a layout's labels."""

    pattern: re.Pattern[str]  # groups: the text before a note, and the note
    blanked: str  # what stands for a note: BLANK, or nothing where labels may be without one
    known: frozenset[str] | None
    """The only notes allowed, such as names or verbs of speech; None if a mark encloses any note."""

    def blank(self, text: str, vocabulary: TurnWords) -> str | None:
        """Return the text with its notes blanked; None if it has none, or one that may be something else."""
        parts = self.pattern.split("\n" + text)
        notes = parts[2::3]
        if not notes or sum(map(len, notes)) > _MOST * len(text):
            return None
        if not (
            vocabulary.wordy_notes.have_all(notes) if self.known is None else self.known.issuperset(notes)
        ):
            return None
        parts[2::3] = [self.blanked] * len(notes)
        return "".join(parts)[1:]

    def extend(self, other: LabelNotes | None) -> None:
        """Take the notes that another layout knows."""
        if self.known is not None and other is not None and other.known is not None:
            self.known |= other.known


def find_label_notes(top: str, gaps: Sequence[str], spoken: Sequence[str]) -> LabelNotes | None:
    """Return the notes in the texts before turns; None if the labels of each role are alike without any.

    `top` is the text before the first turn, `gaps` those before the others, `spoken` the roles of all turns.
    """
    labels: dict[str, set[str]] = {}
    for gap, role in zip(gaps, spoken[1:], strict=True):
        labels.setdefault(role, set()).add(_DIGITS.sub("0", gap))
    if (optional := _find_bracketed_notes([label for some in labels.values() for label in some])) is not None:
        return optional
    top = _DIGITS.sub("0", "\n" + top)
    starts: set[str] = set()
    closers: set[str] = set()
    known: set[str] = set()
    closed, single = False, True
    for role, some in labels.items():
        if len(some) > 1:
            start = find_common_start([*some])
            opened = _OPENED.search(start)
            start = start[: opened.end()] if opened is not None else _PARTIAL.sub("", start)
            notes = [re.match(_NOTE, label[len(start) :]) for label in some]
            ends = {label[len(start) + note.end() :] for label, note in zip(some, notes, strict=True) if note}
            if not start.strip() or not all(notes) or len(ends) > 1 or not (end := ends.pop()):
                return None
            start = start[max(0, start.rfind("\n")) :]
            closed = closed or opened is None
            single = single and all(len(note[0].strip()) == 1 for note in notes if note)
            known.update(note[0] for note in notes if note)
            if role == spoken[0] and top.endswith(end):  # as in the label of the first turn
                start = next((start[at:] for at in range(len(start) - 2) if start[at:] in top), start)
            starts.add(start)
            closers.add(re.escape(end[: end.find("\n") + 1] or end[0]))
    quoted = all(gap.endswith(_QUOTES) for gap in gaps)
    if not starts or (closed and not quoted and any(" " in note.strip(" ,") for note in known)):
        return None  # several words next to a name show the general reader no label, except before quotations
    shared = find_common_start([start[::-1] for start in starts])[::-1]
    if len(_LETTER.findall(shared)) >= _KEY:  # a key names the note; a turn with it, too, is not read
        starts = {shared}
    before = "|".join(sorted({re.escape(start).replace("0", "[0-9]+") for start in starts}))
    run = _NUMBERING if single else _RUN
    pattern = re.compile(f"({before})({run})(?={'|'.join(sorted(closers))})")
    known.update(note for _, note in pattern.findall(top))
    return LabelNotes(pattern, BLANK, frozenset(known) if closed else None)


def _find_bracketed_notes(labels: Sequence[str]) -> LabelNotes | None:
    """Return the notes in brackets that some labels have next to a name."""
    bracketed = [label for label in labels if "(" in label or "[" in label]
    found = [note for label in bracketed if (note := _BRACKETED.search(label)) is not None]
    starts = {re.escape(note.string[note.string.rfind("\n") : note.start()]) for note in found}
    names = {label[label.rfind("\n") :] for label in (_BRACKETED.sub("", label) for label in labels)}
    if not found or len(names) > len(starts) or not all(start.startswith("\\\n") for start in starts):
        return None
    before = "|".join(sorted({start.replace("0", "[0-9]+") for start in starts}))
    blanks = {note[0][0] == " " for note in found}  # a blank that only one reply has belongs to no note
    blank = " ?" if len(blanks) > 1 else " " * blanks.pop()
    return LabelNotes(re.compile(rf"({before})({blank}(?:\({_RUN}\)|\[{_RUN}\]))(?=[:*_])"), "", None)


def drop_directions(whole: str, said: Sequence[str], vocabulary: TurnWords) -> str:
    """Return the text of all turns without stage directions in square brackets, if some turns begin and end
    without one and none names anybody."""
    most = len(said) - _UNDIRECTED
    few = sum(map(str.startswith, said, repeat("["))) <= most >= sum(map(str.endswith, said, repeat("]")))
    parts = _DIRECTION.split(whole) if few else []
    directions = parts[1::2]
    if (
        not directions
        or not vocabulary.wordy_notes.have_all(directions)
        or ends_conversation(" ".join({*directions}))
    ):
        return whole
    return " ".join(parts[::2])  # a direction inside an escape breaks it
