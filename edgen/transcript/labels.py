"""Labels in one turn of self-play: the lines that name a speaker, told from lines that only mention one.

A label stands at the beginning of a line. No labels are: a role inside a quotation, in a table, in an
object of JSON, in a list of words, as the one who is spoken to (`Teacher, one thing: …`), and as the
rest of a sentence that was broken into lines. Linear in the text's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice

import msgspec

from edgen.model import Role
from edgen.transcript.quotes import CLOSERS, silent
from edgen.transcript.rolelines import MAX_LINES, RoleLine, role_lines
from edgen.transcript.roles import ALIASES, alias

# Every one of these ends a line for somebody; as long as what they replace, so that places stay.
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
_MARKS = re.compile(r"[\"“”„«»「」]|\n[^\S\n]*\n")
_BEFORE = frozenset("([{<-–—/:：=,>*_'‘“„«\\")
# A label on the line of the turn before it, looked at only where a label opens the reply.
_INLINE = re.compile(
    r"(?<=[\[,.!?…\"”])[^\S\n](?=[^\S\n]{0,9}(?:Teacher|Student):\s)"
    r"|(?<=[\[,\"”])[^\S\n](?=[^\S\n]{0,9}(?:Teacher|Student):[\"“])"
)
_OPENED = re.compile(r"[^\w\n]{0,12}(?:Teacher|Student|Conversation)\b[^\n:]{0,40}:", re.IGNORECASE)
_SCRIPT = re.compile(
    r"\|\s?(?:speaker|role|who)\s?\|\s?(?:text|line|message|utterance|says|dialogue|turn|words|what)\s?\|",
    re.IGNORECASE,
)
_ALIAS = re.compile(
    rf"^(?P<prefix>(?:[^\w\n(|]|_){{0,12}}+)(?P<name>{'|'.join(a for a in ALIASES if len(a) > 1)})"
    r"[\])*_]{0,3}[^\S\n]{0,3}[:：][*_]{0,3}(?=\s|[\"“])",
    re.IGNORECASE | re.MULTILINE,
)
_INITIAL = re.compile(r"(?:[*_]{0,2})(?P<name>[TS])[*_]{0,2}:[*_]{0,2}[^\S\n]{1,4}", re.IGNORECASE)
# What chats call the two sides; the model itself is always the assistant.
_SELF = frozenset({"assistant", "model", "ai"})
_LOOSE = frozenset({"assistant", "model", "ai", "user", "human"})
_PAST = re.compile(r"\b(?:said|asked)\b", re.IGNORECASE)
_RATIO = re.compile(r"(?:teacher|student)s?\b", re.IGNORECASE)
_WORDS = re.compile(r"[\"“'‘¡¿*_(\[]{0,3}[^\W\d_][\w'’]*[^\w\n]+\w[\w'’]*[^\w\n]+\w")


class Label(msgspec.Struct, frozen=True):
    """A line that names its speaker: where it starts, where what is said starts and ends."""

    role: Role
    start: int
    text: int
    end: int
    prefix: str
    named: bool
    aliased: bool
    says: bool  # whether anything is said


def labels(text: str, own: Role) -> list[Label]:
    """The labels of a reply by `own`, in their order."""
    page = _Page(text)
    lines = role_lines(page.text)
    found = [line for line in lines if not line.aliased]
    ends = _ends(found, len(text))
    said = {
        line.start: not silent(page.text[line.text : end].strip())
        for line, end in zip(found, ends, strict=True)
    }
    found = [line for line in found if page.may_label(line, said[line.start])]
    opening = next((line for line in found if line.start <= page.begin), None)
    paired = opening is not None and len({line.role for line in found if line.kind == opening.kind}) == 2
    good = [
        line
        for line in found
        if page.labels(line, own, paired=paired and opening is not None and line.kind == opening.kind)
    ]
    good += page.aliased(lines, own, good)
    good.sort(key=lambda line: line.start)
    ends = _ends(good, len(text))
    return [
        Label(
            line.role, line.start, line.text, end, line.prefix, line.named, line.aliased,
            not silent(page.text[line.text : end].strip()),
        )
        for line, end in zip(good, ends, strict=True)
    ]  # fmt: skip


def quotations(text: str) -> list[tuple[int, int]]:
    """Where the quotations of a text begin and end (both are quotation marks), in their order.

    A mark opens where a word could begin, and closes where one could end; one that the next opens
    again before it was closed, or that its paragraph does not close, is none.
    """
    spans: list[tuple[int, int]] = []
    opened = -1
    for match in _MARKS.finditer(text):
        mark, at = match.group(), match.start()
        if len(mark) > 1:
            opened = -1
        elif opened >= 0 and mark in CLOSERS[text[opened]] and not text[at - 1].isspace():
            spans.append((opened, at))
            opened = -1
        elif mark in '"“„«「' and (at == 0 or text[at - 1].isspace() or text[at - 1] in _BEFORE):
            opened = at
    return spans


class _Page:
    """A reply with every kind of line end as a newline: places in it are places in the reply."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", " \n").translate(_LINE_ENDS)
        self.begin = len(text) - len(text.lstrip())
        if _OPENED.match(self.text, self.begin):
            self.text = _INLINE.sub("\n", self.text)
        self._table = "|" in text and _SCRIPT.search(self.text) is not None
        self._quotations = quotations(self.text)
        self._starts = [start for start, _ in self._quotations]

    def may_label(self, line: RoleLine, says: bool) -> bool:
        """Whether a line has the looks of a label, whoever it names."""
        name = self.text[line.start : line.text]
        if line.form and not (line.form == "comma" and line.start <= self.begin):
            return False
        if "{" in line.prefix or (line.prefix.lstrip().startswith("|") and not self._table):
            return False
        if line.kind in ("alone", "dash") and not says:
            return False
        if line.kind == "alone" and (any(c in name for c in "!?.,…") or _listed(line.prefix)):
            return False
        if line.kind == "colon" and _RATIO.match(self.text, line.text):
            return False
        return not self._quoted(line) and not self._broken(line)

    def labels(self, line: RoleLine, own: Role, *, paired: bool) -> bool:
        """Whether a line that may be a label is one. `paired`: both sides are labelled in its manner,
        from the beginning of the reply on."""
        if paired:
            return True
        name = self.text[line.start : line.text]
        if line.role == own and line.start <= self.begin:
            return not name.endswith(("→", "->", "=>")) or name[-1] not in self._line(line.text)
        if line.form:
            return False
        if line.kind == "colon":
            return _PAST.search(name) is None
        bracketed = line.prefix.rstrip().endswith(("[", "<", "<|"))
        if line.kind == "tag":
            return (
                bracketed
                or self._table
                or (name.endswith((">", "|")) and "-" not in name and "=" not in name and self._talks(line))
            )
        return line.kind == "alone" and (bracketed or "*" in line.prefix or "#" in line.prefix)

    def aliased(self, lines: list[RoleLine], own: Role, good: list[RoleLine]) -> list[RoleLine]:
        """The labels that call a side by another word: `Tutor:`, `User:`, and `T:` at the beginning."""
        found: list[RoleLine] = []
        for match in islice(_ALIAS.finditer(self.text), MAX_LINES):
            name = match["name"].lower()
            role = alias(name)
            if role is None:
                continue
            line = RoleLine(role, match.start(), match.end(), match["prefix"], "colon", False, True, name)
            if not self._quoted(line):
                found.append(line)
        if not found:
            return self._initials(lines, own)
        words = {line.form for line in found}
        chat = bool(words & _SELF) and bool(words & {"user", "human"})
        opened = bool(good) or found[0].start <= self.begin
        runs_on = words >= {"user", "assistant"}
        other: Role = "Student" if own == "Teacher" else "Teacher"
        kept: list[RoleLine] = []
        for line in found:
            loose = line.form in _LOOSE
            opens = line.start <= self.begin
            if loose and (chat or (opens and line.form in _SELF)):
                line = _of(line, own if line.form in _SELF else other)
            talks = self._talks(line)
            strict = opens and line.role == own and (not loose or line.form in _SELF)
            placed = opens or not loose or self._after_blank(line)
            if strict or runs_on or (chat and opened) or (placed and talks):
                kept.append(line)
        return kept

    def _initials(self, lines: list[RoleLine], own: Role) -> list[RoleLine]:
        """`T:` and `S:`, which stand for many things, only where the reply begins with one of them."""
        both = [line for line in lines if line.aliased and not self._quoted(line)]
        if both:
            opens = both[0].start <= self.begin
            talking = {line.role for line in both if self._talks(line)}
            return both if opens and len(talking) == 2 else []
        match = _INITIAL.match(self.text, self.begin)
        if match is None or alias(match["name"]) != own:
            return []
        line = RoleLine(own, match.start(), match.end(), "", "colon", False, True)
        return [line] if self._talks(line) else []

    def _quoted(self, line: RoleLine) -> bool:
        """Whether the line names its role inside a quotation: not where each line is quoted as a whole."""
        at = bisect_right(self._starts, line.text - 1) - 1
        if at < 0 or not self._starts[at] < line.text - 1 < self._quotations[at][1]:
            return False
        start, end = self._quotations[at]
        whole = start >= line.start and not self._line(end + 1).strip(" \t,;]")
        return not (whole and self._line(self.begin)[:1] in ('"', "“") and self._fills())

    def _fills(self) -> bool:
        """Whether a quotation fills the first line."""
        if not self._quotations or self._starts[0] != self.begin:
            return False
        return not self._line(self._quotations[0][1] + 1).strip(" \t,;]")

    def _broken(self, line: RoleLine) -> bool:
        """Whether the line goes on with the sentence of the line before: `… what your⏎teacher: practise`."""
        name = self.text[line.start : line.text].lstrip()
        if line.prefix.strip() or not name[:1].islower() or line.start == 0:
            return False
        before = self.text[max(0, line.start - 60) : line.start - 1].rstrip(" \t")
        return before[-1:].isalnum() or before[-1:] == ","

    def _talks(self, line: RoleLine) -> bool:
        """Whether three words or more stand behind the label, the first of them no number."""
        return _WORDS.match(self._line(line.text).lstrip()) is not None

    def _after_blank(self, line: RoleLine) -> bool:
        before = self.text[max(0, line.start - 60) : max(0, line.start - 1)].rstrip(" \t")
        return line.start > 0 and before[-1:] in ("", "\n")

    def _line(self, at: int) -> str:
        """What is left of a line from `at` on, 300 characters at most."""
        return self.text[at : at + 300].partition("\n")[0]


def _ends(lines: list[RoleLine], length: int) -> list[int]:
    """Where what each line introduces ends."""
    return [line.start for line in lines[1:]] + [length] * bool(lines)


def _of(line: RoleLine, role: Role) -> RoleLine:
    return RoleLine(role, line.start, line.text, line.prefix, line.kind, line.named, line.aliased)


def _listed(prefix: str) -> bool:
    """Whether a prefix makes an item of a list: a bullet or a number."""
    return any(c.isdigit() for c in prefix) or prefix.strip() in ("-", "*", "+", "•", "–")
