"""Remove the headings and asides between turns: `**Part 2**`, `# Practice`, `(The bell rings.)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.lines.line import RoleLine
from edgen.reading.text.surroundings import read_value_of_line

_LONGEST = 80  # characters of a line that belongs to the layout
# A line that is the heading of a part.
_HEADING = compile_later(
    r"(?i)\#{1,6}[ ](?P<title>)\S|(?P<rule>[-=~—–]{2,9})[ ]?(?P<ruled>)[^\n]{1,60}?(?P=rule)\Z"
    r"|[^\w\n]{0,6}(?P<named>(?:part|phase|scene|act|stage|section|segment|episode)\s(?:\d{1,2}|[ivx]{1,4})\b"
    r"|(?:conversation|dialogue|dialog|lesson)\s\(?continue[sd]\b)"
    r"|(?P<bold>\*\*)[^\W\d_][^*\n.!?:,;\d]{1,40}\*\*\Z"
    r"|(?P<aside>[*_]{0,2}\()(?=[^()]*[^\W\d_]{2}[ ][^\W\d_])[^()]{1,80}\)[*_]{0,2}\Z"
)


def drop_headings(lines: Sequence[RoleLine]) -> bool:
    """Remove the headings of parts in front of the next turn; return whether there were any.

    A heading has a number, or occurs more than once. One title, or words in brackets, below a blank line
    count if no turn has other further lines.
    """
    headings = []
    longer = 0  # turns with further lines
    for line in lines[:-1]:
        if not -1 < line.body.find("\n") < len(line.body) - 1:  # most
            continue
        longer += "\n" in line.body.strip()
        said, _, last = line.body.rstrip().rpartition("\n")
        if said.strip() and len(last) <= _LONGEST and (heading := _HEADING.match(last.strip())) is not None:
            headings.append((line, said, heading))
    if not headings:  # most
        return False
    often = Counter(heading.lastgroup for _, _, heading in headings)
    asides = longer == len(headings) and not any("\n" in said.strip() for _, said, _ in headings)
    dropped = False
    for line, said, heading in headings:
        repeated = heading["named"] is not None or often[heading.lastgroup] > 1
        if heading["aside"] is not None or (heading["title"] is not None and not repeated):
            repeated = asides and said[-1:] == "\n" and read_value_of_line(heading[0]) is None
        if repeated:
            line.body, dropped = said, True
    return dropped
