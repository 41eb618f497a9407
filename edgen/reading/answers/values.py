"""A list of short texts, one on each line or as JSON, out of a model's reply.

Plain, numbered and bulleted lines, quoted or not, lines of a code fence, and a JSON list of texts (or an object that
holds one) are values. Thinking, headings, a line that announces the list and a remark behind it are not. Where most
lines have a number or a bullet, the others are remarks; so are one or two bare lines alone. Never raises; linear.
"""

from __future__ import annotations

import re

import msgspec

from edgen.reading.assistant_words import is_assistants_refusal
from edgen.reading.text.surroundings import FENCE
from edgen.reading.text.thinking import drop_thinking

MOST_LINES = 2_000  # of a reply; far more than anybody asks for
LONGEST = 200  # characters of a value; a longer line is prose
_LEAST_BARE = 3  # bare lines that make a list

_MARK = re.compile(r"\s{0,20}(?:[-*+•‣◦–—·]\s+|\(?\d{1,5}[.):](?!\d)\s*|\(?[a-z][.)]\s+|\d{1,5}\s+[-–—]\s+)")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s|[-=*_]{3,}\s*$|<[^<>]{0,40}>\s*$)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`", "*": "*", "_": "_"}
_SENTENCE = re.compile(r"[^.]*[^\W\d_]{4}\.")  # "Jr." and "etc." keep theirs
_BREAK = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def read_values(text: str, *, cut: bool = False) -> list[str]:
    """The values that a reply lists, in its order, none blank; empty if it lists none. `cut`: the reply was cut off, so
    its last line may be half of one. A value may still be too long, or hold what a space's value may not."""
    text = drop_thinking(_BREAK.sub("\n", text), [])
    if is_assistants_refusal(text.strip()):
        return []
    listed = _json(text)
    if listed is not None:
        return listed
    lines = [line for line in _inside(text).split("\n", MOST_LINES)[:MOST_LINES] if line.strip()]
    if cut:
        lines = lines[:-1]
    lines = [line for line in lines if not _HEADING.match(line) and not _announces(line)]
    marks = [_MARK.match(line) for line in lines]
    if 2 * sum(mark is not None for mark in marks) >= len(lines):
        lines = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True) if mark is not None]
    elif len(lines) < _LEAST_BARE:
        return []
    return [value for line in lines if (value := _bare(line))]


def _inside(text: str) -> str:
    """What stands in the first code fence, all of the text where there is none."""
    fences = [found for _, found in zip(range(2), FENCE.finditer(text), strict=False)]
    return text[fences[0].end() : fences[1].start()] if len(fences) == 2 else text


def _announces(line: str) -> bool:
    """`Here are fifty topics:` and the opening and closing brackets of a list that is no JSON."""
    bare = line.strip().strip("*_")
    return bare.endswith((":", "：")) or bare in ("[", "]", "{", "}", "],", "```", "~~~")


def _json(text: str) -> list[str] | None:
    """The texts of a JSON list, or of the first list in a JSON object; None where the reply is no JSON."""
    body = _inside(text).strip()
    if body[:1] not in ("[", "{"):
        return None
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if isinstance(value, dict):
        value = next((child for child in value.values() if isinstance(child, list)), None)
    if not isinstance(value, list):
        return None
    return [text for item in value[:MOST_LINES] if (text := _text(item))]


def _text(item: object) -> str:
    """An item of a list, where it is a text, or an object whose first value is one."""
    if isinstance(item, dict):
        item = next(iter(item.values()), None)
    return item.strip() if isinstance(item, str) else ""


def _bare(text: str) -> str:
    """A line without its comma or its sentence's full stop, and without quotation marks around all of it."""
    text = text.strip()
    if text.endswith((",", ";")):
        text = text[:-1].rstrip()
    for _ in range(4):
        if len(text) < 2 or _QUOTES.get(text[0]) != text[-1] or text[-1] in text[1:-1]:
            break
        text = text[1:-1].strip()
    if text.startswith("**") and text.endswith("**"):
        text = text[2:-2].strip()
    return text[:-1] if _SENTENCE.fullmatch(text) else text
