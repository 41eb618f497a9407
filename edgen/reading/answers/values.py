"""A list of short texts, one on each line or as JSON, out of a model's reply.

Plain, numbered and bulleted lines, quoted or not, lines of a code fence, and a JSON list of texts (or an
object that holds one) are values. Thinking, headings, a line that announces the list and a remark after it
are not. If most lines have a number or a bullet, the others are remarks; so are one or two bare lines alone.
Never raises; linear.
"""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.answer_body import decode_json, extract_fenced, with_line_feeds
from edgen.reading.assistant_words import is_assistants_refusal
from edgen.reading.text.thinking import drop_thinking

MOST_LINES = 2_000  # of a reply; far more than anybody asks for
LONGEST = 200  # characters of a value; a longer line is prose
_LEAST_BARE = 3  # bare lines that make a list

_MARK = compile_later(
    r"\s{0,20}(?:[-*+•‣◦–—·]\s+|\(?\d{1,5}[.):](?!\d)\s*|\(?[a-z][.)]\s+|\d{1,5}\s+[-–—]\s+)"
)
_HEADING = compile_later(r"\s{0,3}(?:#{1,6}\s|[-=*_]{3,}\s*$|<[^<>]{0,40}>\s*$)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`", "*": "*", "_": "_"}
_SENTENCE = compile_later(r"[^.]*[^\W\d_]{4}\.")  # "Jr." and "etc." keep theirs


def read_values(text: str, *, cut: bool = False) -> list[str]:
    """Return the values that a reply lists, in its order, none blank; empty if it lists none. `cut`: the
    reply was cut off, so its last line may be half of one. A value may still be too long, or hold what a
    space's value may not."""
    text = drop_thinking(with_line_feeds(text), [])
    if is_assistants_refusal(text.strip()):
        return []
    listed = _find_json_texts(text)
    if listed is not None:
        return listed
    lines = [line for line in extract_fenced(text).split("\n", MOST_LINES)[:MOST_LINES] if line.strip()]
    if cut:
        lines = lines[:-1]
    lines = [line for line in lines if not _HEADING.match(line) and not _announces(line)]
    marks = [_MARK.match(line) for line in lines]
    if 2 * sum(mark is not None for mark in marks) >= len(lines):
        lines = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True) if mark is not None]
    elif len(lines) < _LEAST_BARE:
        return []
    return [value for line in lines if (value := _strip_comma_and_quotes(line))]


def _announces(line: str) -> bool:
    """`Here are fifty topics:` and the opening and closing brackets of a list that is no JSON."""
    bare = line.strip().strip("*_")
    return bare.endswith((":", "：")) or bare in ("[", "]", "{", "}", "],", "```", "~~~")


def _find_json_texts(text: str) -> list[str] | None:
    """Return the texts of a JSON list, or of the first list in a JSON object; None where the reply is no
    JSON."""
    value = decode_json(extract_fenced(text).strip())
    if isinstance(value, dict):
        value = next((child for child in value.values() if isinstance(child, list)), None)
    if not isinstance(value, list):
        return None
    return [text for item in value[:MOST_LINES] if (text := _read_text(item))]


def _read_text(item: object) -> str:
    """Return an item of a list, where it is a text, or an object whose first value is one."""
    if isinstance(item, dict):
        item = next(iter(item.values()), None)
    return item.strip() if isinstance(item, str) else ""


def _strip_comma_and_quotes(text: str) -> str:
    """Return a line without its comma or its sentence's full stop, and without quotation marks around all of
    it."""
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
