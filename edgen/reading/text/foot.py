"""Find the lines under the last turn that are no speech."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.text.surroundings import read_value_of_line

# A line under the last turn's that is no speech: a rule, a command, a tag, a row of a table, a number alone, a
# label with a number.
_VALUED = r"(?:[01]?[.,]\d{1,4}|\d{1,3}\s?%)"
_FOOT = compile_later(
    r"(?i)[^\S\n]*+(?:(?=[^\w\n]*[|+=─━┴╧*_#~`-])[^\w\n]{3,}+\Z|```|\\(?:end|hline|bottomrule)\b|</?\w"
    r"|\[(?:/\w+|b)\]|\[\w+\]\s*\Z|@\w+\s*\Z"
    rf"|\|.*\|\s*\Z|\W{{0,6}}{_VALUED}\W*+\Z"
    r"|\W{0,8}+(?:[\w'’]{1,20}[ ]){0,5}[\w'’]{1,20}[*_]{0,3}[ ]?(?:[:=：–—→]|-[ ])[*_ ]{0,4}"
    rf"(?:{_VALUED}|(?:yes|no|true|false|partly|partially|low|high|medium)\b).{{0,30}}\Z)"
)


def split_foot(said: str) -> tuple[str, str]:
    """Return the text of the last turn and the lines under it, from the first one that is no speech."""
    at = said.find("\n")
    while at >= 0:
        below = said.find("\n", at + 1)
        line = said[at + 1 : below if below >= 0 else len(said)]
        if _FOOT.match(line) or any(map(str.isdigit, read_value_of_line(line) or "")):
            return said[:at].rstrip(), said[at:]
        at = below
    return said, ""
