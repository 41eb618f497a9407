"""Cells of tables that spreadsheets open.

A spreadsheet runs a cell that begins with =, +, - or @. Some also look after leading white space and
quotation marks, drop a leading tab or carriage return, or read full-width signs as ordinary ones:
https://owasp.org/www-community/attacks/CSV_Injection. Text of a model or of a foreign file may be such a
cell.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"""[\t\r]|[\s"'`“”„‘’‚«»＂＇\u200b\u2060\ufeff\x00-\x1f]*[=+\-@＝＋－＠]""")
APOSTROPHE = "'"


def disarm(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet could read it as a formula."""
    return APOSTROPHE + text if _FORMULA.match(text) else text
