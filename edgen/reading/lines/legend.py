"""Find the legend of a reply, which defines short names of the speakers: `P1 = Teacher, P2 = Student`.

A legend stands at the beginning of a reply or at its end. Linear in the length of these parts.
"""

from __future__ import annotations

import re
from collections import Counter

from edgen.core.text import compile_later
from edgen.reading.lines.line import find_kind
from edgen.reading.lines.speakers import Speakers, list_known_speakers
from edgen.reading.roles import RolePattern, RoleWords

_HEAD = 800  # characters in which a legend may stand
_NEAR = 40  # characters between the beginning of a short name and the role's name
_LONGEST = 90  # characters between the beginning of a person's name and the role's name
_INSIDE = 5  # characters of a bracket before the role's name: `(the `
_LABELS = 2  # definitions of each name that are labels of turns: `Ann (teacher) 9:30`
_MOST = 8  # definitions in a part: more are labels of turns
_AFTER = 60  # characters of a definition after a blank or a comma: ` (T)`, `, Ann`
# `P1 = Teacher`, `Q: the teacher`, `A stands for the student`; `Ann (teacher)`; `the teacher (Q)`; `a
# teacher named Ann`.
_LEGEND = RolePattern(
    r"(?<!\w)(?P<short>[A-Z][\w.]{0,15}|[^\W_a-z]\w{0,2}|[^\w\s]{1,4})[*_`\"'/]{0,3}\s?(?:=|:|->|→|–|-|is"
    r"|stands for|for)\s?(?:the\s|an?\s)?[*_`\"']{0,3}(?P<role>(?i:ROLE))(?![^\W\d_])"
    r"|(?:(?m:^)[^\w\n]{0,6}|[ ][*_]{0,3})(?P<person>[A-Z][\w.'’-]{0,19}(?:[ ][A-Z][\w.'’-]{0,19}){0,2})"
    r"[*_]{0,3}(?:[ ](?:\(|[-–—][ ]|(?:is|plays)[ ])|:[ ]|,[ ](?=(?:the|an?|his|her)[ ]))(?:(?:the|an?|his|her)\s)?(?P<of>(?i:ROLE))(?![^\W\d_])\)?|(?i:ROLE)[ ]\((?P<letter>[A-Z])\)"
    r"|(?:(?<=\w[ ])(?i:ROLE)(?:,?[ ](?:(?:named|called)[ ])?)|(?i:ROLE)[ ]\()(?P<called>[A-Z][\w.'’-]{1,19}(?:[ ][A-Z][\w.'’-]{0,19}){0,2})(?<!\.)"
)
_CALLED = compile_later(r",? (?:named |called )?[A-Z]\w")  # after a role's name: a person's
_BULLETS = "*_-–—|#>.:•·=~"  # marks before names, which are not short names themselves
_LEGEND_MARKS = ("=", ":", ">", "→", "–", "-", "is", "for", "(", ",")
_ARTICLES = ("the", "a", "an", "his", "her")


def read_legend(text: str, roles: RoleWords) -> tuple[Speakers | None, int]:
    """Return the short names that a reply's legend gives the speakers, and the end of one at its beginning.

    (None, 0) if it does not name two speakers.
    """
    known = list_known_speakers(roles).words
    found: dict[str, str] = {}
    often: Counter[str] = Counter()
    end = 0
    parts = (text,) if len(text) < 2 * _HEAD else (text[:_HEAD], text[-_HEAD // 2 :])
    for part in parts:
        for match in _find_definitions(part, roles):
            short = match["short"] or match["person"] or match["letter"] or match["called"]
            role = match["role"] or match["of"] or match[0].partition(" ")[0].rstrip(",")
            if short.lower() not in known and find_kind(short) != "am" and not _is_no_sign(short):
                if short not in found and part is parts[0] and match.end() < len(text) // 2:
                    end = match.end()
                found.setdefault(short, known[role.lower()])
                found.setdefault(short.upper(), known[role.lower()])  # as plays have it
                often[short] += 1
    labels = sum(count >= _LABELS for count in often.values()) > 1
    return (Speakers(found, exact=True), end) if len({*found.values()}) > 1 and not labels else (None, 0)


def _is_no_sign(short: str) -> bool:
    """Return whether a short name cannot stand for a speaker: a number of two digits or more, or bullets."""
    return not short.strip(_BULLETS) or (len(short) > 1 and short.isdigit())


def _find_definitions(part: str, roles: RoleWords) -> list[re.Match[str]]:
    """Return the matches of a legend's definitions in a text; an empty list if a role has no definition.

    The expression is slow, so it runs only around a role's name that may be a part of a definition.
    """
    lowered = part.lower()
    shorts: set[str] = set()
    places: list[tuple[int, int]] = []  # role names that may be part of a definition
    for name in roles.by_name:
        defined = len(places)
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            if some := _find_short_name(part, at, end):
                shorts.add(some)
                places.append((at, end))
            at = lowered.find(name, end)
        if len(places) == defined:
            return []
    if len(shorts) < len(roles.by_name) or len(places) > _MOST:
        return []
    found: list[re.Match[str]] = []
    for at, end in sorted(places):
        named = "(" in part[max(0, at - _INSIDE) : at]
        begin = max(0, at - _LONGEST) if named else part.rfind("\n", max(0, at - _NEAR), at) + 1
        begin = max(begin or at - _NEAR, found[-1].end() if found else 0)
        after = _AFTER if part[end : end + 1] in (",", " ") else 1
        found += _LEGEND.of(roles).finditer(part, begin, end + after)
    return found


def _find_short_name(part: str, at: int, end: int) -> str:
    """Return a text with a possible short name for the role whose name stands at part[at:end], or ""."""
    spoken_of = at > 1 and part[at - 1] == " " and part[at - 2].isalnum()  # `a teacher`
    if part.startswith(" (", end) or (spoken_of and _CALLED.match(part, end)):
        return part[end : end + _AFTER]
    near = max(0, at - _NEAR)
    before = part[part.rfind("\n", near, at) + 1 or near : at].rstrip("*_`\"' ")
    if len(before) < 2:
        return ""
    article = before.rpartition("(")[2].rpartition(" ")[2]
    described = article in _ARTICLES
    before = before.removesuffix(article).rstrip() if described else before
    if not before.endswith(_LEGEND_MARKS):  # most
        return ""
    mark = next(filter(before.endswith, _LEGEND_MARKS))
    if mark == "," and not described:
        return ""
    short = before[: -len(mark)].removesuffix(" stands ").split()[-1:]
    return next((one for one in short if not one[0].islower()), "")
