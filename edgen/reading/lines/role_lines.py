"""The lines at which a turn starts, and how a reply writes them. One pass, bounded work per line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

import msgspec

from edgen.reading.roles import RolePattern, RoleWords

_MARK = r"[^\w\n(\[:：]|_"  # what may decorate a name
_PREFIX = r"""
    ^(?P<prefix>(?:[^\w\n]|_){0,40}+
    (?:(?:(?:turn|line|exchange|round)\s?)?\#?\d{1,4}(?:[^\w\n]|_){1,8}+){0,3}+)
"""
_NOTE = r"(?:[([][^()\[\]\n]{1,60}[)\]]|[,/][ ]?[\w .'’]{1,30}|[ ](?:says|said|asks|asked|replies|responds|answers))"
_SEPARATOR = r"""
    (?:(?P<colon>[^\S\n]{0,3}[:：](?!:))
    |(?P<tag>[^\S\n]{0,3}(?:[|>→]|[-=]>)|(?<=\])[^\S\n]{1,4}(?=\S))
    |(?P<dash>[^\S\n]{1,3}[-–—]{1,2}(?=[^\S\n])|—)
    |(?P<alone>[^\S\n]{0,8}(?=\n|\Z)))
"""
_NAME = rf"""
    (?P<name>(?P<role>%s)(?:[ ]?\#?\d{{1,2}}\b|[ ][A-Z]\b|s\b)?)
    (?P<closing>(?:{_MARK}){{0,4}}?)
    (?P<note>[ ]?{_NOTE})?
    (?P<after>(?:[*_"'”`\])]){{0,4}})
"""
_BY_NAME = r"""(?P<person>[^\W\d_][\w.'’-]{0,24}(?:[ ][^\W\d_][\w.'’-]{0,24}){0,3})[ ]?
    [(\[][ ]?(?P<of>ROLE)[ ]?[)\]](?P<by>(?:[*_"'”`]){0,4})"""
_ROLE = RolePattern(
    rf"{_PREFIX}(?:{_NAME % 'ROLE'}{_SEPARATOR}|{_BY_NAME}(?P<bycolon>[^\S\n]{{0,3}}[:：]))",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_ALIAS = RolePattern(
    rf"{_PREFIX}{_NAME % 'ROLE|ALIAS'}(?P<colon>[^\S\n]{{0,3}}[:：](?!:))",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
# Any other name at the start of a line, looked at only where the reply says whose name it is.
_NAMED = re.compile(
    rf"{_PREFIX}(?P<name>[^\W\d_][\w.'’-]{{0,24}}+(?:[ ][^\W\d_][\w.'’-]{{0,24}}+){{0,3}})(?:[*_\"'”`\])]){{0,4}}(?P<colon>[ ]?[:：])",
    re.VERBOSE | re.MULTILINE,
)
_KINDS = ("colon", "tag", "alone", "dash")


class RoleLine(msgspec.Struct, frozen=True):
    """A line that starts a turn: who speaks, where the line and its text start, how it is written."""

    role: str
    start: int
    text: int
    prefix: str
    kind: str = "colon"
    named: bool = False
    aliased: bool = False
    form: str = ""


# No conversation has more; what follows is left in the last turn.
MAX_LINES = 20_000


def find_role_lines(text: str, roles: RoleWords) -> list[RoleLine]:
    """The lines that start a turn, in the one manner that the reply uses for it."""
    found, names = _with_roles(text, roles)
    if names:
        found = _with_names(text, found, names)
    found = _without_odd_forms(found)
    for kind in _KINDS:
        of_kind = [line for line in found if line.kind == kind]
        if count_speakers(of_kind) > 1:
            return _without_examples(of_kind)
    if count_speakers(found) > 1:
        return found
    matches = islice(_ALIAS.of(roles).finditer(text), MAX_LINES)
    aliased = [line for match in matches if (line := _aliased(text, match, roles))]
    return aliased if count_speakers(aliased) > 1 else found


def count_speakers(lines: Iterable[RoleLine]) -> int:
    """How many roles speak in some lines."""
    return len({line.role for line in lines})


def _without_odd_forms(lines: list[RoleLine]) -> list[RoleLine]:
    """Without `Students: 20`, `Student A: 3/4` and `Teacher, one thing:` inside a turn: such forms count only if they
    start lines in more than one turn, or if the role has no plain form."""
    if not any(line.form for line in lines):
        return lines
    plain_roles = {line.role for line in lines if not line.form}
    turns: dict[tuple[str, str], set[int]] = {}
    turn = 0
    for line in lines:
        turn += not line.form
        turns.setdefault((line.role, line.form), set()).add(turn)
    return [
        line
        for line in lines
        if not line.form or line.role not in plain_roles or len(turns[line.role, line.form]) > 1
    ]


def _form(added: str, note: str | None) -> str:
    """How a role is written, "" if as the bare word, perhaps with a number or a note. `added` stands behind the
    word."""
    if note is not None and note.lstrip()[:1] in (",", "/"):
        return "comma"
    if added and not added.strip(" #").isdigit():
        return "plural" if added[0] in "sS" else "letter"
    return ""


def _without_examples(lines: list[RoleLine]) -> list[RoleLine]:
    """Without numbered lines and objects (`{"student": `) where most lines are neither: these stand inside a turn."""
    plain_lines = [line for line in lines if not any(c.isdigit() or c == "{" for c in line.prefix)]
    few = len(lines) - len(plain_lines) < len(plain_lines)
    return plain_lines if few and count_speakers(plain_lines) > 1 else lines


def _with_roles(text: str, roles: RoleWords) -> tuple[list[RoleLine], dict[str, str]]:
    """The lines that name a role, and the people of whom they say which role they have."""
    found: list[RoleLine] = []
    names: dict[str, str] = {}
    for match in islice(_ROLE.of(roles).finditer(text), MAX_LINES):
        line = _line(text, match, roles)
        found.append(line)
        beside = match["person"] or match["note"]
        if beside is not None:
            names.setdefault(beside.strip(" ()[],/").lower(), line.role)
    if len(found) == 2 and not names:
        for line, end in zip(found, (found[1].start, len(text)), strict=True):
            said = text[line.text : end].lstrip(" ").partition("\n")[0]
            if len(said) <= 60:
                names[said.strip(" *_,.").lower()] = line.role
    return found, names


def _with_names(text: str, found: list[RoleLine], names: dict[str, str]) -> list[RoleLine]:
    """The lines that start a turn, those under somebody's name among them. Where two lines only say who is who
    (`Teacher: Ms. R`), they are no turns themselves."""
    named: list[RoleLine] = []
    for match in islice(_NAMED.finditer(text), MAX_LINES):
        role = names.get(match["name"].rstrip(".").lower()) or names.get(match["name"].lower())
        if role is not None:
            named.append(RoleLine(role, match.start(), _text_start(text, match), match["prefix"], named=True))
    if len(found) == 2 and not any(line.named for line in found):
        return named if count_speakers(named) > 1 else found
    taken = {line.start for line in named}
    return sorted((*named, *(f for f in found if f.start not in taken)), key=lambda line: line.start)


def _line(text: str, match: re.Match[str], roles: RoleWords) -> RoleLine:
    if match["of"] is not None:
        role = roles.by_name[match["of"].lower()]
        return RoleLine(role, match.start(), _text_start(text, match), match["prefix"], named=True)
    prefix, name, word, note = match.group("prefix", "name", "role", "note")
    role = roles.by_name[word.lower()]
    kind = match.lastgroup or "colon"  # the separator is the last thing matched
    if kind == "alone" and prefix.rstrip().endswith(("[", "<")):
        kind = "tag"
    named = note is not None or not (name == word or roles.is_bare(name))
    start = _text_start(text, match)
    return RoleLine(role, match.start(), start, prefix, kind, named, form=_form(name[len(word) :], note))


def _aliased(text: str, match: re.Match[str], roles: RoleWords) -> RoleLine | None:
    name = roles.by_name.get(match["role"].lower())
    role = name or roles.alias(match["name"])
    if role is None:
        return None
    return RoleLine(role, match.start(), _text_start(text, match), match["prefix"], aliased=name is None)


def _text_start(text: str, match: re.Match[str]) -> int:
    """Where what is said starts: behind the colon and behind the marks that close a bold name."""
    at = match.end()
    prefix = match["prefix"]
    mark = text[at : at + 1]
    if mark and mark in "*_" and mark in prefix:
        while text[at : at + 1] == mark and at - match.end() < 3:
            at += 1
    return at


def unadorned(line: RoleLine, text: str, roles: RoleWords) -> str:
    """What a line introduces without the other half of the marks that stand before the role."""
    prefix = line.prefix.rstrip()
    if prefix.endswith("|") and text.startswith(">"):
        text = text[1:]
    if prefix.endswith(("**", "__")) and text.endswith(prefix[-2:]) and text.count(prefix[-2:]) % 2:
        text = text[:-2]
    if line.kind == "tag" and "|" in prefix and text.endswith("|"):
        text = text[:-1]
    cut = max(text.rfind("</"), text.rfind("[/"))
    if (
        cut >= 0
        and ("<" in prefix or "[" in prefix)
        and text[cut + 2 :].lower().startswith((*roles.by_name, "turn"))
    ):
        text = text[:cut]
    return text
