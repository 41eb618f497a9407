"""Escapes in a turn between quotation marks, as a string of JSON or Python has them."""

from __future__ import annotations

import re

from edgen.core.text import compile_later

# A written line break: several of them, one before a list's mark, or one between sentences.
_BREAK = compile_later(r"(?<!\\)(?:(?:\\n){2,3}|\\n(?=(?:[-*•–]|\d{1,2}[.)])[ ])|(?<=[.!?:…])\\n(?=[A-Z“(]))")
_STRING = compile_later(r"(?>(?:[^\\]|\\[\\\"'n])*)")  # every backslash begins an escape
_DOUBLED = compile_later(r"\\\\(?:[A-Za-z]{2}|[(\[{])")  # before a command of LaTeX
_COMMAND = compile_later(  # of LaTeX
    r"(?<!\\)\\n(?:abla|e|earrow|eq|equiv|exists|geq|i|leq|less|eg|mid|ormalsize|ot|otin|parallel|rightarrow|sim"
    r"|subseteq|u|warrow|ewline)(?![a-z])"
)
_INSIDE = compile_later(r"[^\s.!?:…,]\\n[a-z]")  # as in code: `print(1)\nprint(2)`


def unescape(text: str, opener: str) -> str:
    r"""Return a text with `"` for `\"`, and line breaks for `\n` where no code and no formula has it.

    Where all others are doubled, as in a string of JSON or Python, `\\` before a command or next to other
    escapes stands for one backslash. Otherwise they belong to the speaker.
    """
    if "\\" not in text:
        return text
    written = _STRING.fullmatch(text) is not None
    doubled = written and "\\\\" in text and ('\\"' in text or _DOUBLED.search(text) is not None)
    parts = text.split("\\\\") if doubled else [text]
    breaks = "".join(parts).count("\\n")
    every = (
        breaks
        and written
        and (doubled or "\\\\" not in text)
        and _COMMAND.search(text) is None
        and (breaks > 1 or _INSIDE.search(text) is None)
    )
    for place, part in enumerate(parts):
        plain = part.replace('\\"', '"').replace("\\'", "'" if opener == "'" else "\\'")
        parts[place] = plain.replace("\\n", "\n") if every else _BREAK.sub(_write_breaks, plain)
    return "\\".join(parts)


def _write_breaks(written: re.Match[str]) -> str:
    return written[0].replace("\\n", "\n")
