"""Find the labels in one turn of self-play: lines that name a speaker, not lines that only mention one.

A label stands at the beginning of a line, or after a sentence if a sentence follows. Rarer manners (a role in
another language, `You:`, people's names) count if both sides speak under them. A role's name is not a label
inside a quotation, a table, a JSON object or a list of words, as an address (`Teacher, one thing: …`), or at
the beginning of a line that continues a sentence. Linear in the length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice, pairwise

from msgspec.structs import replace

from edgen.core.text import compile_later
from edgen.reading.lines.line import RoleLine, have_two_speakers
from edgen.reading.lines.role_lines import MAX_LINES, find_role_lines
from edgen.reading.roles import CHAT_OTHER, CHAT_SELF, RolePattern, RoleWords
from edgen.reading.text.quotes import find_quotations, is_silent

# All kinds of line ends. The replacement has the same length, so places stay the same.
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
# A label on the line of the turn before. It counts only if a label opens the reply.
_INLINE = RolePattern(
    r"(?<=[\[,.!?…\"”])[^\S\n](?=[^\S\n]{0,9}(?:NAME):\s)|(?<=[\[,\"”])[^\S\n](?=[^\S\n]{0,9}(?:NAME):[\"“])"
)
_OPENED = RolePattern(r"(?i)[^\w\n]{0,12}(?:NAME|Conversation)\b[^\n:]{0,40}:")
_SCRIPT = compile_later(
    r"(?i)\|\s?(?:speaker|role|who)\s?\|\s?(?:text|line|message|utterance|says|dialogue|turn|words|what)\s?\|"
)
_ALIAS = RolePattern(
    r"(?im)^(?P<prefix>(?>(?:[^\w\n(|]|_){0,12}))(?P<name>CALLED)"
    r"[\])*_]{0,3}[^\S\n]{0,3}[:：][*_]{0,3}(?=\s|[\"“])"
)
_INITIAL = compile_later(r"(?i)(?:[*_]{0,2})(?P<name>[TS])[*_]{0,2}:[*_]{0,2}[^\S\n]{1,4}")
# Any letter as a key: `M:` next to `S:` and `T:` makes them an acrostic.
_LETTER = compile_later(r"(?m)^[^\w\n]{0,9}(?P<name>[A-Z])[*_]{0,3}:[*_]{0,3}(?=\s)")
_LOOSE = CHAT_SELF | CHAT_OTHER
_PAST = compile_later(r"(?i)\b(?:said|asked)\b")
_RATIO = RolePattern(r"(?i)(?:ROLE)s?\b")
_WORDS = compile_later(r"[\"“'‘¡¿*_(\[]{0,3}[^\W\d_][\w'’]*[^\w\n]+\w[\w'’]*[^\w\n]+\w")

_CLOSE = r"[\])*_\"”]{0,4}"
_COLON = rf"{_CLOSE}[^\S\n]{{0,3}}(?::(?=[*_]{{0,3}}(?:[\s\"“„«\u3000-\uffef]|\Z))|：)[*_]{{0,3}}"
# Rarer manners of naming a speaker. In brackets, as a title and in other languages one label is enough.
_RARE = RolePattern(
    rf"""^(?P<prefix>[^\w\n]{{0,12}}+_{{0,3}}+)(?:
    the[ ](?P<article>ROLE){_COLON}
    |(?P<title>ROLE)['’]s[ ](?:next[ ])?(?:turn|response|reply|message|line|utterance)(?:[ ]?\d{{1,3}})?(?:{_COLON}|[\])*_]{{1,4}}(?=\s))
    |(?<=\()(?P<round>ROLE)\)[*_]{{0,3}}(?=\s)
    |(?<=\#[ ])(?P<heading>ROLE)[ ]
    |(?P<dash>ROLE)[*_]{{0,3}}[^\S\n]{{1,3}}[-–—]{{1,2}}[^\S\n]
    |(?P<pronoun>you|me){_COLON}
    |(?:(?:el|la|los|der|die|le|il|lo|o|a|as)[ ]|l['’])?(?:FOREIGN)(?:[ ]?\([^()\n]{{1,30}}\))?{_COLON})""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_ENOUGH = frozenset({"title", "round", "foreign", "within"})
_MARK = compile_later(r"[:：)\]#*_–—-]")  # every rarer manner has one of these
_WITHIN = RolePattern(
    r"(?P<prefix>[(\[]?[*_]{0,3})(?P<within>NAME|UPPER)(?:[^\S\n]?\d{1,2}|[ "
    r"]\([^()\n]{1,30}\))?[*_]{0,3}[^\S\n]?[:：][*_]{0,3}[^\S\n]{1,4}(?=\S)"
)
_NAME_LINE = compile_later(
    r"(?m)^[^\S\n]{0,9}[*_\[]{0,3}(?P<name>(?P<title>(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Herr|Frau"
    r"|Señora?|Sra?|Mme|Madame|Monsieur)\.?[ ])?"
    r"[^\W\d_][\w'’-]{1,24}(?:[ ][^\W\d_][\w.'’-]{0,24})?)[*_\]]{0,3}[ ]?[:：][*_]{0,3}(?=[^\S\n]{1,4}\S)"
)
# Words before a scene that is shown to the other side, and keys that take turns as names do.
_SHOWS = compile_later(
    r"(?i)\b(?:dialog(?:ue)?|scene|script|play|skit|poem|story|novel|example|excerpt|passage|interview|joke"
    r"|sample|conversation)s?\b"
)
_KEY = compile_later(
    r"(?i)question|answer|problem|solution|example|note|hint|step|claim|evidence|before|after|input|output"
    r"|true|false|pros|cons|term|definition"
    r"|word|meaning|front|back|cause|effect|original|translation|english|spanish|french|german|latin|italian"
    r"|frage|antwort|pregunta|respuesta|given|find|theory|practice|fact|myth|person|doctor|teacher|student"
)
_BRIEF = compile_later(
    r"(?i)ok|okay|yes|yeah|yep|no|nope|sure|thanks?|hi|hello|hey|hm+|um|uh|oh|well|ja|nein|sí|oui|non|да|нет"
    r"|i(?:['’](?:m|ll))?"
)
_SENTENCE = compile_later(
    r"[\s\"“„«'‘「『¡¿*_(\[.…]{0,9}(?P<word>\w[\w'’]*)(?P<rest>[^.!?…。！？\n]{0,200}+)(?P<end>[.!?…。！？]?)"
)
_DEFINES = compile_later(
    r"(?i)\W{0,4}(?:(?:an?|any|the|one)\s)?(?:person|people|someone|somebody|anyone|human|individual"
    r"|one\swho|noun)\b"
)
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def find_labels(text: str, own: str, roles: RoleWords) -> list[tuple[RoleLine, bool]]:
    """Return the labels of a reply by `own` in their order, each with whether words follow it."""
    folded = text.casefold()
    if ":" not in text and "：" not in text and not any(name in folded for name in roles.by_name):
        return []  # in every manner but those of the roles' names a label has a colon
    page = _Page(text, own, roles)
    lines = find_role_lines(page.text, roles)
    found = [line for line in lines if not line.aliased]
    found = [line for line, says in page.mark_spoken(found) if page.may_label(line, says)]
    # If both sides are labelled in one manner from the beginning of the reply on, all lines in that manner
    # are labels.
    manner = next((line.kind for line in found if line.start <= page.begin), None)
    if not have_two_speakers([line for line in found if line.kind == manner]):
        manner = None
    good = [line for line in found if line.kind == manner or page.is_label(line)]
    good += page.find_aliased(lines, good)
    taken = {line.start for line in good}
    good += [line for line in (*page.find_rare(), *page.find_named()) if line.start not in taken]
    return page.mark_spoken(sorted(good, key=lambda line: line.start))


class _Page:
    """A reply with every kind of line end as a newline: places in it are places in the reply."""

    def __init__(self, text: str, own: str, roles: RoleWords) -> None:
        self._own = own
        self._other = roles.find_other_role(own)
        self._roles = roles
        self.text = text.replace("\r\n", " \n").translate(_LINE_ENDS)
        self.begin = len(text) - len(text.lstrip())
        if _OPENED.of(roles).match(self.text, self.begin):
            self.text = _INLINE.of(roles).sub("\n", self.text)
        self._table = "|" in text and _SCRIPT.search(self.text) is not None
        self._quotations = find_quotations(self.text)
        self._starts = [start for start, _ in self._quotations]

    def mark_spoken(self, lines: list[RoleLine]) -> list[tuple[RoleLine, bool]]:
        """Return the lines, each with whether anything is said between it and the next."""
        ends = [*(line.start for line in lines[1:]), len(self.text)]
        return [
            (line, not is_silent(self.text[line.text : end].strip()))
            for line, end in zip(lines, ends, strict=False)
        ]

    def may_label(self, line: RoleLine, says: bool) -> bool:
        """Return whether a line has the looks of a label, regardless of the speaker."""
        name = self.text[line.start : line.text]
        if line.form and not (line.form == "comma" and line.start <= self.begin):
            return False
        if "{" in line.prefix or (line.prefix.lstrip().startswith("|") and not self._table):
            return False
        if line.kind in ("alone", "dash") and not says:
            return False
        if line.kind == "alone" and (any(c in name for c in "!?.,…") or _is_list_item(line.prefix)):
            return False
        if line.kind == "colon" and _RATIO.of(self._roles).match(self.text, line.text):
            return False
        return not self._is_quoted(line) and not self._is_continuation(line)

    def is_label(self, line: RoleLine) -> bool:
        """Return whether a line that may be a label is one."""
        name = self.text[line.start : line.text]
        if line.role == self._own and line.start <= self.begin:
            return not name.endswith(("→", "->", "=>")) or name[-1] not in self._read_rest(line.text)
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
        keyed = line.prefix.rstrip(" \t\"'")[-1:] in (":", "=")
        return line.kind == "alone" and (bracketed or keyed or "*" in line.prefix or "#" in line.prefix)

    def find_aliased(self, lines: list[RoleLine], good: list[RoleLine]) -> list[RoleLine]:
        """Return the labels that call a side by another word: `Tutor:`, `User:`, and `T:` at the
        beginning."""
        found: list[RoleLine] = []
        for match in islice(_ALIAS.of(self._roles).finditer(self.text), MAX_LINES):
            name = match["name"].lower()
            role = self._roles.alias(name)
            if role is None:
                continue
            line = _make_label(role, match, match["prefix"], aliased=True, form=name)
            if not self._is_quoted(line):
                found.append(line)
        if not found:
            return self._find_initials(lines)
        words = {line.form for line in found}
        chat = bool(words & CHAT_SELF) and bool(words & CHAT_OTHER)
        opened = bool(good) or found[0].start <= self.begin
        runs_on = words >= {"user", "assistant"}
        kept: list[RoleLine] = []
        for line in found:
            loose = line.form in _LOOSE
            opens = line.start <= self.begin
            if loose and (chat or (opens and line.form in CHAT_SELF)):
                line = replace(line, role=self._own if line.form in CHAT_SELF else self._other)
            talks = self._talks(line)
            strict = opens and line.role == self._own and not loose
            placed = opens or not loose or self._is_after_blank(line)
            brief = loose and not opens and self._is_before_answer(line, alone=len(found) == 1)
            if strict or runs_on or (chat and opened) or (placed and talks) or brief:
                kept.append(line)
        return kept

    def _find_initials(self, lines: list[RoleLine]) -> list[RoleLine]:
        """Return the labels `T:` and `S:`.

        The letters may mean anything, so both sides must speak, or the reply must begin with its own letter.
        """
        both = [line for line in lines if not self._is_quoted(line)]
        if any(line.aliased for line in both):
            speaks = any(_speaks(self._read_first_line(line)) for line in both)
            acrostic = any(match["name"] not in "TS" for match in _LETTER.finditer(self.text))
            return both if have_two_speakers(both) and speaks and not acrostic else []
        match = _INITIAL.match(self.text, self.begin)
        if match is None or self._roles.alias(match["name"]) != self._own:
            return []
        line = _make_label(self._own, match, aliased=True)
        return [line] if self._talks(line) else []

    def find_rare(self) -> list[RoleLine]:
        """Return the labels in rarer manners, and those after a sentence on the same line."""
        if not _MARK.search(self.text):
            return []
        found = [
            self._make_rare(match, match.lastgroup or "")
            for match in islice(_RARE.of(self._roles).finditer(self.text), MAX_LINES)
        ]
        found += [
            self._make_rare(match, "within")
            for match in islice(_WITHIN.of(self._roles).finditer(self.text), MAX_LINES)
            if self._follows_sentence(match.start(), bold=match["prefix"].endswith(("**", "__")))
        ]
        manners: dict[str, list[RoleLine]] = {}
        for line in found:
            manners.setdefault(line.form, []).append(line)
        return [line for lines in manners.values() for line in self._select_conversing(lines)]

    def _make_rare(self, match: re.Match[str], manner: str) -> RoleLine:
        """Return the line of a label in one of the rarer manners, whose name is its form."""
        name = match[manner].lower()
        form, _, number = manner.partition("_")
        if form == "pronoun":
            role = self._own if name == "me" else self._other
        else:
            role = self._roles.names[int(number)] if form == "foreign" else self._roles.by_name[name]
        aliased = form in ("pronoun", "foreign")
        return _make_label(role, match, match["prefix"], aliased=aliased, form=form)

    def _select_conversing(self, lines: list[RoleLine]) -> list[RoleLine]:
        """Return the lines of one rarer manner if somebody speaks in them, none if they are about
        something."""
        lines = [line for line in lines if not self._is_quoted(line)]
        said = [self._read_first_line(line) for line in lines]
        if not lines or any(_DEFINES.match(what) for what in said):
            return []
        manner = lines[0].form
        to_end = manner in ("heading", "dash")
        speaking = {line.role for line, what in zip(lines, said, strict=True) if _speaks(what, to_end=to_end)}
        both = have_two_speakers(lines)
        opens = lines[0].start <= self.begin and manner != "within"
        enough = manner in _ENOUGH and (speaking - {self._own} or (opens and lines[0].role in speaking))
        return lines if speaking and (both or enough) else []

    def _follows_sentence(self, at: int, *, bold: bool) -> bool:
        """Return whether the place is inside a line, after the end of a sentence unless the label there is
        bold."""
        before = self.text[max(0, at - 60) : at].rpartition("\n")[2].rstrip()
        if not before:
            return False
        ended = before.rstrip('"”’)]*_ ').endswith(_ENDS) and not before.lower().endswith(("e.g.", "i.e."))
        return bold or ended

    def find_named(self) -> list[RoleLine]:
        """Return the labels of two people who take turns: one of them with a title, or one of them speaking
        twice."""
        found = list(islice(_NAME_LINE.finditer(self.text), MAX_LINES)) if "\n" in self.text else []
        names = list(dict.fromkeys(match["name"] for match in found))
        if len(names) != 2 or any(a["name"] == b["name"] for a, b in pairwise(found)):
            return []
        words = [word for name in names for word in name.split()]
        if not all(word[0].isupper() for word in words) or any(_KEY.fullmatch(word) for word in words):
            return []
        titled = {match["name"] for match in found if match["title"]}
        before = self.text[: found[0].start()][-400:]
        if (len(titled) != 1 and len(found) < 3) or before.rstrip().endswith(":") or _SHOWS.search(before):
            return []
        opening = [self._own, self._other] if found[0].start() <= self.begin else [self._other, self._own]
        roles = dict(zip(names, opening, strict=True))
        if len(titled) == 1 and (title := self._roles.titled) is not None:
            roles = {name: title if name in titled else self._roles.find_other_role(title) for name in names}
        lines = [_make_label(roles[one["name"]], one, named=True) for one in found]
        lines = [line for line in lines if not self._is_quoted(line)]
        return lines if any(_speaks(self._read_first_line(line)) for line in lines) else []

    def _is_before_answer(self, line: RoleLine, *, alone: bool) -> bool:
        """Return whether a chat's label stands before an answer (`ok`) and belongs to no list."""
        before = self.text[max(0, line.start - 60) : line.start].rstrip()
        first = _SENTENCE.match(self._read_first_line(line))
        answers = first is not None and _BRIEF.fullmatch(first["word"]) is not None
        return answers and ((alone and not before.endswith(":")) or self._is_after_blank(line))

    def _read_first_line(self, line: RoleLine) -> str:
        """Return the first line of what is said, 300 characters at most."""
        return self.text[line.text : line.text + 300].lstrip().partition("\n")[0]

    def _is_quoted(self, line: RoleLine) -> bool:
        """Return whether the line names its role inside a quotation: not where each line is quoted as a
        whole."""
        at = bisect_right(self._starts, line.text - 1) - 1
        if at < 0 or not self._starts[at] < line.text - 1 < self._quotations[at][1]:
            return False
        start, end = self._quotations[at]
        # Each line is quoted as a whole if a quotation fills the first.
        fills = self._starts[0] == self.begin and self._ends_line(self._quotations[0][1])
        whole = start >= line.start and self._ends_line(end)
        return not (whole and fills and self.text[self.begin] in '"“')

    def _ends_line(self, at: int) -> bool:
        """Return whether nothing but the comma of a list follows a place on its line."""
        return not self._read_rest(at + 1).strip(" \t,;]")

    def _is_continuation(self, line: RoleLine) -> bool:
        """Return whether a line continues the sentence before it: `… what your⏎teacher: practise`."""
        name = self.text[line.start : line.text].lstrip()
        if line.prefix.strip() or not name[:1].islower() or line.start == 0:
            return False
        before = self.text[max(0, line.start - 60) : line.start - 1].rstrip(" \t")
        return before[-1:].isalnum() or before[-1:] == ","

    def _talks(self, line: RoleLine) -> bool:
        """Return whether three words or more follow the label, the first of them no number."""
        return _WORDS.match(self._read_rest(line.text).lstrip()) is not None

    def _is_after_blank(self, line: RoleLine) -> bool:
        before = self.text[max(0, line.start - 60) : max(0, line.start - 1)].rstrip(" \t")
        return line.start > 0 and before[-1:] in ("", "\n")

    def _read_rest(self, at: int) -> str:
        """Return the rest of a line from `at` on, 300 characters at most."""
        return self.text[at : at + 300].partition("\n")[0]


def _make_label(
    role: str,
    match: re.Match[str],
    prefix: str = "",
    *,
    named: bool = False,
    aliased: bool = False,
    form: str = "",
) -> RoleLine:
    """Return a label at the place of a match."""
    return RoleLine(
        role,
        match[0],
        "",
        prefix,
        named=named,
        aliased=aliased,
        form=form,
        start=match.start(),
        text=match.end(),
    )


def _speaks(said: str, *, to_end: bool = False) -> bool:
    """Return whether a text begins with a sentence or a word such as `ok`. `to_end`: the sentence must end as
    one."""
    match = _SENTENCE.match(said)
    if match is None:
        return False
    word, end = match["word"], match["end"]
    if _BRIEF.fullmatch(word):
        return True
    if not word[0].isalpha() or word[0].islower() or (to_end and not end):
        return False
    if not word[0].isupper():  # a script without capitals
        return bool(end)
    return end in ("!", "?", "！", "？") or any(part[0].islower() for part in match["rest"].split())


def _is_list_item(prefix: str) -> bool:
    """Return whether a prefix makes an item of a list: a bullet or a number."""
    return any(c.isdigit() for c in prefix) or prefix.strip() in ("-", "*", "+", "•", "–")
