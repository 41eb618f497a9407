"""The speakers' names in a layout that a prompt shows, as in `Anna: …` or `<teacher>text</teacher>`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgen.core.text import compile_later

NAME = r"[^\W\d_](?:[\w'’-]{0,30}\w)?"
# Placeholders for a turn's text, or for a name, in a shown layout.
TEXT = (
    r"(?:\.\.\.|…|(?:<(?!/)|\[|\{|\()[^<>\[\]{}()\n]{1,60}[>\]})]|(?:the |its |her |his |their |first |next "
    r")?(?:text|words|utterance|message|line|turn|reply|speech|content|what (?:he|she|they|it) sa(?:y|id"
    r"|ys))\b)"
)
# Markers before a name in a shown layout: the time, a tag, a picture.
_BEFORE = (
    r"(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?[ ]|(?:<[a-z]{1,6}>){1,3}|[^\w\s\[\](){}<>\"'`*_#.,:;|-]{1,8}[ "
    r"])"
)
PLACEHOLDERS = ("speaker", "role", "name", "character", "person", "speaker name", "role name", "who")
_SHOWN = compile_later(
    r"(?:^|[\n`\"'“(,]|\\n)[ \t]{0,12}(?:\d{1,2}[.)][ ]|[-*•#>|][ "
    rf"\t]{{1,3}}){{0,2}}{_BEFORE}?[*_\[<(\"]{{0,3}}({NAME})"
    rf"[*_\]>)\"]{{0,3}}[ ]?(?:[:：>|]|[-–—](?=[ ]))(?:[*_]{{0,3}}|</\w{{1,6}}>)[ \t]{{0,4}}[\"'“„«‹]?{TEXT}"
)
_CHAT_MARK = compile_later(rf"<\|(?:im_start|start_header_id)\|>[ ]?({NAME})", re.IGNORECASE)
_ITEM_OF = compile_later(rf"\\item\[({NAME})[:.]?\][ ]*{TEXT}")
_TAG = compile_later(rf"<({NAME})>[ \t\n]{{0,12}}{TEXT}[ \t\n]{{0,12}}</\1>", re.IGNORECASE)
_VALUE = compile_later(
    rf"[\"'`]?\b(?:role|speaker|from|who|name|character)[\"'`]?[ ]?[:=][ ]?[\"'`]({NAME})[\"'`]",
    re.IGNORECASE,
)
_HEADING = compile_later(rf"(?m)^#{{1,6}}[ ]({NAME})[ ]*\n[ \t]*{TEXT}")
_LAYOUTS = (_SHOWN, _TAG, _VALUE, _HEADING, _CHAT_MARK, _ITEM_OF)
# Words of a layout that are not names.
_NO_NAMES = compile_later(
    "conversation|dialogue|dialog|chat|transcript|probability|likelihood|chance|topic|text|role|speaker|name"
    "|character|person|who|output|format|example|answer|note|notes|turn|turns|message|messages|utterance"
    "|content|lesson|scene|title|setting|style|length|goal|task|rules|level|grade|subject|where|xml|json"
    "|markdown|result|the",
    re.IGNORECASE,
)


def find_shown_names(text: str) -> Iterator[str]:
    """Yield the speakers of the layout that a prompt shows, each once, in order."""
    found = [(match.start(), match[1]) for one in _LAYOUTS for match in one.finditer(text)]
    seen: set[str] = set()
    for _, name in sorted(found):
        if name.lower() not in seen and is_name(name):
            seen.add(name.lower())
            yield name


def is_name(text: str) -> bool:
    """Return whether a label may be a person's name and not a word of a layout."""
    return _NO_NAMES.fullmatch(text) is None
