"""Lines inside a turn that call a role by another word than the labels of the reply do."""

from __future__ import annotations

import re

from edgen.reading.lines.line import Lines, RoleLine
from edgen.reading.lines.role_lines import cut_at_names
from edgen.reading.roles import RoleWords
from edgen.reading.text.marker import find_marker

# Where the text after the turns begins.
_FOOT = re.compile(r"(?i)\n[^\n]{0,60}(?:probab|likelihood|chance)|\n[^\S\n]*(?:[\]}]|```|---|\*\*\*)")
_MARKS = " \t*_"


def cut_at_other_words(found: Lines, roles: RoleWords) -> Lines:
    """Return the text cut as well at lines inside a turn that call a role by another word or with an article (`Tutor:`,
    `The student:`, `Die Lehrerin:`) and speak: nobody's words become part of another's. `Maestro: is a teacher` explains a
    word. What follows the turns is not cut."""

    def role_of(name: str, body: str) -> str | None:
        return None if body.lstrip(_MARKS)[:1].islower() else roles.called(name)

    lines: list[RoleLine] = []
    for line in found.lines:
        lines.append(line)
        if "\n" not in line.body.rstrip() or (":" not in line.body and "：" not in line.body):
            continue
        end = len(line.body)
        if line is found.lines[-1]:
            foot, marked = _FOOT.search(line.body), find_marker(line.body)
            end = min(end, foot.start() if foot else end, len(marked.said) if marked else end)
        body, inside = cut_at_names(line.body[:end], role_of)
        if inside:
            inside[-1].body += line.body[end:]
            line.body = body
            for other in inside:
                other.named, other.aliased = False, True
            lines += inside
    return found if len(lines) == len(found.lines) else Lines(found.lead, lines)
