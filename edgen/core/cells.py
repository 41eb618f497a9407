"""Cells of tables that spreadsheets open.

A spreadsheet runs a cell that begins with =, +, - or @, and some look behind white space and quotation marks for it,
take a tab or a carriage return at the beginning away, or take full-width signs for the ordinary ones:
https://owasp.org/www-community/attacks/CSV_Injection. What a model or a stranger's file says may be such a cell.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"""[\t\r]|[\s"'`“”„‘’‚«»＂＇\u200b\u2060\ufeff\x00-\x1f]*[=+\-@＝＋－＠]""")
APOSTROPHE = "'"


def disarm(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet could take it for a formula."""
    return APOSTROPHE + text if _FORMULA.match(text) else text
