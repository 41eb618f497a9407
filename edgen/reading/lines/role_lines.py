"""Cut a text at its labels, such as `Teacher:`, and read the marks of each label; bounded work per line.

`split_lines` cuts the text at every label with one `re.split`, so the labels and the bodies between them,
joined again, are the text. Further rules decide which labels count. The text of a label that does not count
joins the body before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.lines.labels import (
    ALIAS,
    ALIAS_ALONE,
    NAMED,
    ROLE,
    ROLE_ALONE,
    UNDERLINE,
    open_key,
    open_shared_key,
)
from edgen.reading.lines.legend import read_legend
from edgen.reading.lines.line import Lines, RoleLine, decode_text, find_shape, have_two_speakers, keep
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.marker import find_marker

_BOLD = frozenset("*_'")
_STRINGS = frozenset("\"'")
_ODD = _BOLD | _STRINGS | {*"-="}  # first characters of a body that may hold a part of its label
_ASSIGNS = (":", "=")
_LEGEND = 60  # characters of one on a line
_MENTIONS = frozenset('@:"')
_SIGN = compile_later(r"[^\W_]|\{")  # a character of a number, a key or an object
_KINDS = ("colon", "tag", "alone", "dash")

# No conversation has more lines. Further lines stay part of the last turn.
MAX_LINES = 20_000


def split_lines(text: str, roles: RoleWords) -> Lines:
    """Cut a text at the lines that start a turn, in the one manner that the reply uses for it."""
    found, names = _cut_at_roles(text, roles)
    if found.plain and not names and have_two_speakers(found.lines):
        return _without_examples(found)
    if names:
        found = _cut_at_person_names(found, names)
    found = _without_odd_forms(found)
    lines = found.lines
    kinds = {line.kind for line in lines}
    for kind in _KINDS:
        if kind in kinds:
            of_kind = lines if len(kinds) == 1 else [line for line in lines if line.kind == kind]
            if kind == "alone":
                of_kind = _without_unspaced(found, of_kind)
            if have_two_speakers(of_kind):
                return _without_examples(found if of_kind is lines else keep(found, of_kind))
    if have_two_speakers(lines):
        return found
    aliased = _cut_at_aliases(text, ALIAS if lines else ALIAS_ALONE, roles)
    return aliased if have_two_speakers(aliased.lines) else found


def _without_unspaced(found: Lines, alone: list[RoleLine]) -> list[RoleLine]:
    """Return the names on lines of their own that follow a blank line, or have the decoration of such names.

    All names are returned unless most follow a blank line and two roles remain.
    """
    before = [found.lead, *[line.body for line in found.lines[:-1]]]
    spaced = {
        id(line)
        for line, text in zip(found.lines, before, strict=True)
        if not text.strip() or text.endswith("\n")
    }
    if len(spaced) == len(alone):  # most
        return alone
    shapes = {find_shape(line.prefix.strip()) for line in alone if id(line) in spaced}
    kept = [line for line in alone if id(line) in spaced or find_shape(line.prefix.strip()) in shapes]
    return kept if len(spaced) > len(alone) // 2 and have_two_speakers(kept) else alone


def find_role_lines(text: str, roles: RoleWords) -> list[RoleLine]:
    """Return the lines that start a turn, with their places in the text."""
    found = split_lines(text, roles)
    at = len(found.lead)
    for line in found.lines:
        line.start = at
        at += len(line.label)
        line.text = at - 1
        at += len(line.body)
    return found.lines


# Forms that are never labels of a role which also has a plain form.
_NEVER_WITH_PLAIN = ("article", "clock", "to", "owner")


def _without_odd_forms(found: Lines) -> Lines:
    """Return the lines without odd forms inside a turn.

    Odd forms are `Students: 20`, `Student A: 3/4`, `Teacher, one thing:` and `Teacher at 9:00:`. An odd form
    counts only if it starts lines in more than one turn, or if the role has no plain form.
    """
    lines = found.lines
    if {line.form for line in lines} <= {""}:  # most
        return found
    plain_roles = {line.role for line in lines if not line.form}
    turns: dict[tuple[str, str], set[int]] = {}
    turn = 0
    for line in lines:
        turn += not line.form
        turns.setdefault((line.role, line.form), set()).add(turn)
    return keep(
        found,
        [
            line
            for line in lines
            if not line.form
            or line.role not in plain_roles
            or (len(turns[line.role, line.form]) > 1 and line.form not in _NEVER_WITH_PLAIN)
        ],
    )


def _find_form(added: str, note: str | None) -> str:
    """Return the form of a label: "" for the role's bare word, which may have a number or a note.

    `added`: the text between the word and the note.
    """
    if note is not None and note[-1:].isalnum() and (words := note.strip(" ,").removeprefix("at ")):
        if words[0].isdigit():
            return "clock"
        if words.startswith(("to ", "→", "->")):
            return "to"
    if note is not None and note.lstrip()[:1] in (",", "/"):
        return "comma"
    if added and not added.strip(" #").isdigit():
        return "owner" if added[0] in "'’" else "plural" if added[0] in "sS" else "letter"
    return ""


def _without_examples(found: Lines) -> Lines:
    """Return the lines without examples inside a turn: numbered lines, objects (`{"student": `), mentions.

    Marked lines are examples if most lines have no marks.
    """
    lines = found.lines
    prefixes = {line.prefix for line in lines}
    marked = {prefix for prefix in prefixes if _SIGN.search(prefix) is not None}
    if any(prefix[-1:] in _MENTIONS for prefix in prefixes):
        marked |= {line.prefix for line in lines if _is_mentioned(line)}
    if not marked or len(marked) == len(prefixes):
        return found
    plain_lines = [line for line in lines if line.prefix not in marked]
    few = len(lines) - len(plain_lines) < len(plain_lines)
    return keep(found, plain_lines) if few and have_two_speakers(plain_lines) else found


def _is_mentioned(line: RoleLine) -> bool:
    """Return whether a line begins with `@student`, `:student:` or `"student":`."""
    mark = line.prefix[-1:]
    return mark in ("@", ":") or (mark == '"' and '"' in line.label.partition('"')[2])


def _cut_at_roles(text: str, roles: RoleWords) -> tuple[Lines, dict[str, str]]:
    """Return the text cut at the lines that name a role, and the people whose roles they give."""
    bracketed = "(" in text or text.count("[") > 1
    pattern = ROLE if bracketed else ROLE_ALONE
    lead, *parts = pattern.of(roles).split("\n" + text, MAX_LINES)
    if (bare := _cut_at_bare_names(lead, parts, roles)) is not None:
        return bare, _find_people(bare.lines)
    lines: list[RoleLine] = []
    names: dict[str, str] = {}
    # Labels that were read before, by their text and separator: most labels repeat.
    read: dict[tuple[str, str | None], RoleLine] = {}
    keyed: set[int] = set()  # those on lines of their own, under a key
    for label, prefix, tag, body in zip(*(parts[i::12] for i in (0, 1, 9, 11)), strict=True):
        if (same := read.get((label, tag))) is None:
            groups = parts[12 * len(lines) + 2 : 12 * len(lines) + 11]
            same = read[label, tag] = _read_label(label, prefix, groups, names, roles)
            if same.kind == "alone" and prefix.rstrip(" \t\"'")[-1:] in _ASSIGNS:
                keyed.add(id(same))
        line = RoleLine(same.role, label, body, prefix, same.kind, same.named, False, same.form)
        lines.append(line)
        if body.lstrip()[:1] in _ODD or keyed:
            _take_parts_of_label(line, keyed=id(same) in keyed)
    if lines and all(line.kind in ("tag", "alone") for line in lines):
        open_shared_key(lines, unknown=bool(keyed))
    found = Lines(lead, lines)
    if "" in [line.role for line in read.values()]:
        found = keep(found, [line for line in lines if line.role])
    return found, names or _find_people(lines)


def _take_parts_of_label(line: RoleLine, *, keyed: bool) -> None:
    """Move what belongs to a label from the beginning of its text, and decode a quoted text.

    A key, a rule and marks that close a bold name belong to a label.
    """
    body = line.body
    if keyed:
        open_key(line)
    elif line.kind == "alone" and (rule := UNDERLINE.match(body)) is not None:
        line.label += rule[0]
        line.body = body[rule.end() :]
    if body[:1] in _BOLD and body[0] in line.prefix:
        _open(line)
    quoted = line.body.lstrip()[:1] in _STRINGS
    if quoted and (line.kind != "colon" or "-" in line.prefix or '"' in line.prefix):
        decode_text(line)


def _read_label(
    label: str, prefix: str, groups: Sequence[str | None], names: dict[str, str], roles: RoleWords
) -> RoleLine:
    """Return the label that the groups of ROLE describe, without a text; note a person's role in `names`.

    A line that only looks like a label gets the role "".
    """
    article, name, word, note, person, of, colon, tag, dash = groups
    by_name = roles.by_name
    word = word or of
    assert word is not None
    line = RoleLine(by_name[word.lower()], label, "", prefix)
    if colon is None:
        tagged = tag is not None or (dash is None and prefix.rstrip().endswith(("[", "<")))
        line.kind = "tag" if tagged else "dash" if dash is not None else "alone"
    odd = colon is None and (_is_prose(line, article, tag) or (tag == "." and not word.isupper()))
    if article is not None:
        line.form = "article"
    elif person is not None:
        line.named = True
        names.setdefault(person.strip(" ()[],/").lower(), line.role)
    elif name is not None and (name != word or note is not None):
        line.named = note is not None or not roles.is_bare(name)
        line.form = _find_form(name[len(word) :], note)
        odd = odd or (
            note is not None and note[0] == "/" and note[1:].lower() in by_name
        )  # `Teacher/Student: 2`
        if note is not None and not note.strip(" ,")[:1].isdigit():
            names.setdefault(note.strip(" ()[],/").lower(), line.role)
    line.role = "" if odd else line.role
    return line


def _cut_at_bare_names(lead: str, parts: list[Any], roles: RoleWords) -> Lines | None:
    """Return the lines if all labels are a role's bare name, perhaps decorated, and a colon; else None."""
    words = parts[4::12]
    if None in words or None in parts[8::12] or parts[3::12] != words or any(parts[2::12] + parts[5::12]):
        return None
    labels, prefixes = parts[::12], parts[1::12]
    named = {word: roles.by_name[word.lower()] for word in {*words}}
    lines = list(map(RoleLine, map(named.__getitem__, words), labels, parts[11::12], prefixes))
    before = "".join(prefixes)
    if any(map(before.__contains__, "-*_'\"")):
        for line in lines:
            if line.body[:1] in _BOLD and line.body[0] in line.prefix:
                _open(line)
            elif ("-" in line.prefix or '"' in line.prefix) and line.body.lstrip()[:1] == '"':
                decode_text(line)
    return Lines(lead, lines, True)


def _find_people(lines: list[RoleLine]) -> dict[str, str]:
    """Return the texts of two lines as names with their roles; empty unless there are exactly two."""
    said = (
        [(line.body.lstrip(" ").partition("\n")[0], line.role) for line in lines] if len(lines) == 2 else []
    )
    names = [(name.partition(",")[0].partition("(")[0], role) for name, role in said]
    return {name.strip(" *_,.").lower(): role for name, role in names if len(name) <= 60}


def _is_prose(line: RoleLine, article: str | None, tag: str | None) -> bool:
    """Return whether a line that names a role without a colon begins a sentence: `The teacher`, `Teacher (Ms.
    R) went`."""
    if tag is None:
        return article is not None
    if tag == "\t" or not tag.isspace():
        return False
    bracketed = line.label[: -len(tag)].endswith(")")
    return article is not None or (bracketed and not line.prefix.rstrip().endswith("("))


def _open(line: RoleLine) -> None:
    """Give the label the marks that close a bold name, which stand at the beginning of the body."""
    mark = line.body[:1]
    if mark == "'" and not (line.body.startswith("'''") and line.prefix.endswith("'''")):
        return
    if mark in _BOLD and mark in line.prefix:
        count = 2 if line.body[1:2] == mark else 1
        count += count == 2 and line.body[2:3] == mark
        line.label += mark * count
        line.body = line.body[count:]


def _cut_at_person_names(found: Lines, names: dict[str, str]) -> Lines:
    """Return the text cut at lines under a person's name as well.

    Two lines that only say who is who (`Teacher: Ms. R`) are no turns themselves.
    """

    def find_role(name: str, _: str) -> str | None:
        return names.get(name.rstrip(".").lower()) or names.get(name.lower())

    lead, named = cut_at_names(found.lead, find_role)
    lines = [*named]
    for line in found.lines:
        body, inside = cut_at_names(line.body, find_role)
        named += inside
        line.body = body
        lines += (line, *inside)
    found_lines = found.lines
    every = Lines(lead, lines)
    if len(found_lines) == 2 and not any(line.named for line in found_lines):
        return keep(every, named if have_two_speakers(named) else found_lines)
    return every


def cut_at_names(text: str, role_of: Callable[[str, str], str | None]) -> tuple[str, list[RoleLine]]:
    """Return the text before the first line of a known role, and the lines of roles.

    `role_of` gets a name and the text after it, and returns the role, or None.
    """
    below = text.partition("\n")[2]
    if (":" not in below and "：" not in below) or len(parts := NAMED.split(text, MAX_LINES)) == 1:
        return text, []
    lines: list[RoleLine] = []
    bodies = [[parts[0]]]
    rest = iter(parts[1:])
    for label, prefix, name, body in zip(*[rest] * 4, strict=True):
        role = role_of(name, body)
        if role is None:
            bodies[-1] += (label, body)
        else:
            lines.append(RoleLine(role, label, "", prefix, "colon", True))
            bodies.append([body])
    for line, pieces in zip(lines, bodies[1:], strict=True):
        line.body = "".join(pieces)
        _open(line)
    return "".join(bodies[0]), lines


def _cut_at_aliases(text: str, pattern: RolePattern, roles: RoleWords) -> Lines:
    """Return the text cut at lines that call a role by any word of the pattern."""
    lead, *parts = pattern.of(roles).split("\n" + text, MAX_LINES)
    lines: list[RoleLine] = []
    for label, prefix, _, name, word, _, body in zip(*[iter(parts)] * 7, strict=True):
        role = roles.by_name.get(word.lower())
        called = role or roles.alias(name) or ""
        line = RoleLine(called, label, body, prefix, "colon", False, role is None)
        _open(line)
        lines.append(line)
    first = lines[0].label + lines[0].body if lines else ""
    if len(first) <= _LEGEND and [name in first.lower() for name in roles.by_name].count(True) > 1:
        # `(T: teacher, S: student)`
        lead, lines = (lead, lines) if read_legend(first, roles)[0] is None else (lead + first, lines[1:])
    return keep(Lines(lead, lines), [line for line in lines if line.role])


# The beginning of the text after the turns.
_FOOT = compile_later(r"(?i)\n[^\n]{0,60}?(?:probab|likelihood|chance)|\n[^\S\n]*(?:[\]}]|```|---|\*\*\*)")
_MARKS = " \t*_"


def cut_at_other_words(found: Lines, roles: RoleWords, *, last: bool) -> Lines:
    """Return the text also cut at lines inside a turn that call a role by another word and speak, where only
    the `last` turn may hold some.

    Examples are `Tutor:`, `The student:` and `Die Lehrerin:`. Otherwise a speaker's words would become part
    of another's turn. `Maestro: is a teacher` explains a word. The text after the turns is not cut.
    """

    def find_role(name: str, body: str) -> str | None:
        return None if body.lstrip(_MARKS)[:1].islower() else roles.look_up_role(name)

    lines = found.lines[:-1] if last else []
    for line in found.lines[len(lines) :]:
        lines.append(line)
        below = line.body.partition("\n")[2]
        if ":" not in below and "：" not in below:
            continue
        end = len(line.body)
        if line is found.lines[-1]:
            end = foot.start() if (foot := _FOOT.search(line.body)) else end
            if "\n" not in line.body[:end].rstrip():
                continue
            end = min(end, len(marked.said) if (marked := find_marker(line.body)) else end)
        body, inside = cut_at_names(line.body[:end], find_role)
        if inside:
            inside[-1].body += line.body[end:]
            line.body = body
            for other in inside:
                other.named, other.aliased = False, True
            lines += inside
    return found if len(lines) == len(found.lines) else Lines(found.lead, lines)
