"""Lines under the last turn of a reply that are no speech: rules, values, counts of turns."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.text.surroundings import find_last_value, read_value_of_line

# A line under the last turn's that is no speech: a rule, a command, a tag, a row of a table, a number alone, a
# label with a number.
_VALUED = r"(?:[01]?[.,]\d{1,4}|\d{1,3}\s?%)"
_BELOW = compile_later(
    r"(?i)[^\S\n]*+(?:(?=[^\w\n]*[|+=─━┴╧*_#~`-])[^\w\n]{3,}+\Z|```|\\(?:end|hline|bottomrule)\b|</?\w"
    r"|\[(?:/\w+|b)\]|\[\w+\]\s*\Z|@\w+\s*\Z"
    rf"|\|.*\|\s*\Z|([*_])[^\s*_][^*_]{{1,300}}\1\s*\Z|\W{{0,6}}{_VALUED}\W*+\Z"
    r"|\W{0,8}+(?:[\w'’]{1,20}[ ]){0,5}[\w'’]{1,20}[*_]{0,3}[ ]?(?:[:=：–—→]|-[ ])[*_ ]{0,4}"
    rf"(?:{_VALUED}|(?:yes|no|true|false|partly|partially|low|high|medium)\b).{{0,30}}\Z)"
)
# The same after a blank line: words in brackets, a count of turns.
_BELOW_BLANK = compile_later(
    r"(?i)[^\S\n]*+(?:[*_]{0,2}\((?=[^()\n]*[^\W\d_]{2}[ ][^\W\d_])[^()\n]{1,200}\)\W{0,3}\Z"
    r"|\W{0,8}+(?:[\w'’]{1,20}[ ]){0,4}(?:turns|exchanges|messages|words)[*_]{0,3}[ ]?[:=][*_ ]{0,4}\d{1,4}\W*+\Z)"
)
_MANY = 6  # turns of one line each: more lines of the last one are hardly speech


def split_foot(said: str, turns: int) -> tuple[str, str]:
    """Return the text of the last of some turns, and the lines under it, from the first one that is no
    speech."""
    if turns < _MANY:
        return _split_value(said)
    at = said.find("\n")
    while at >= 0:
        below = said.find("\n", at + 1)
        line = said[at + 1 : below if below >= 0 else len(said)]
        below_blank = said[at - 1] == "\n" and _BELOW_BLANK.match(line)
        if below_blank or _BELOW.match(line) or any(map(str.isdigit, read_value_of_line(line) or "")):
            return said[:at].rstrip(), said[at:]
        at = below
    return said, ""


def _split_value(said: str) -> tuple[str, str]:
    """Return the last turn's text and the paragraph under it, if this is a value or the rows of a table."""
    above, _, last = said.rstrip().rpartition("\n\n")
    valued = "\n" not in last and (find_last_value(last) or _BELOW_BLANK.match(last))
    rows = all(line[:1] == "|" for line in last.split("\n"))
    return (above.rstrip(), f"\n{last}") if above and (valued or rows) else (said, "")
