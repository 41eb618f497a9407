"""Values in words: numbers with units, spans of time, lists of words, and model text made visible.

`escape_for_terminal` writes out characters that could change a terminal; `describe_counts` and its like put
counts on one line. `compile_later` makes regular expressions that are compiled at first use: edgen has
hundreds, and a command needs few of them.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

NONE = "–"
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_KEPT = frozenset("\n\t")
_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def escape_invisible(text: str) -> str:
    """Return `text` with characters written out that a page or a picture cannot hold, or that change a line's
    appearance.

    Control characters, lone surrogates and marks of direction become `\\x1b` or `\\u202e`; line feeds and
    tabs stay. The result is valid in HTML and in XML.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape_character(char) if _is_hidden(char) else char for char in text)


def limit_length(text: str, most: int) -> str:
    """Return the text, or its beginning with a mark that says how long it was: at most `most` characters."""
    if len(text) <= most:
        return text
    mark = f"… (cut; it has {len(text):,} characters)"
    return text[: most - len(mark)] + mark


def is_forbidden(char: str) -> bool:
    """Return whether this character is forbidden in a text of one line, such as a value of a space."""
    return char in _BIDI_OVERRIDES or unicodedata.category(char) in _FORBIDDEN_CATEGORIES


def describe_type(value: object) -> str:
    """Return the name of a value's type with its article: "an int", "a Reply"."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIO' else 'a'} {name}"


def describe_error(error: BaseException) -> str:
    """Return an error's type and text on one line, without a full stop; its type alone if its text cannot be
    made."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - the error's class may be of any package
        said = ""
    return " ".join(f"{type(error).__name__}: {said}".split()).rstrip(".: ")


def escape_markdown(text: str) -> str:
    """Return `text` on one line, escaped for Markdown: no HTML, link, image, emphasis, code or column.

    An underscore within a word has no meaning in Markdown and stays.
    """
    flat = " ".join(escape_invisible(text.replace("\u2028", " ").replace("\u2029", " ")).split())
    shown = _MEANS.sub(_write_out, flat)
    return _NO_LINK.sub(
        lambda one: f"{one[1]}&#58;" if one[1] else f"{one[2]}&#46;", shown
    )  # no automatic link


def _write_out(found: re.Match[str]) -> str:
    char = found[0]
    return _ENTITIES.get(char) or f"\\{char}"


_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "`": "&#96;", "@": "&#64;", "$": "&#36;"}
_MEANS = re.compile(r"[<>&|`@$\\*~\[\]!]|(?<!\w)_|_(?!\w)")
_NO_LINK = re.compile(r"\b(https?|ftp|mailto|javascript|data):|\b(www)\.", re.IGNORECASE)


def _is_hidden(char: str) -> bool:
    if char in _KEPT:
        return False
    return char in _BIDI or unicodedata.category(char) in ("Cc", "Cs", "Cn") or char in "\u2028\u2029"


def escape_character(char: str) -> str:
    """Return a character as its code: `\\x1b`, `\\u202e`."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, width: int) -> str:
    """Return one line of at most `width` columns, wide characters counted twice, with an ellipsis if cut."""
    line: list[str] = []
    used = 0
    flat = " ".join(escape_invisible(text[: width * 4]).split())
    for place, char in enumerate(flat):
        used += _count_cells(char)
        if used > width:
            while line and (used > width - 1 or line[-1] == " "):
                used -= _count_cells(line.pop())
            return "".join(line) + "…"
        line.append(flat[place])
    return "".join(line)


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if unicodedata.combining(char) else _count_cells(char) for char in text)


def _count_cells(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def number(value: float | None, digits: int | None = None) -> str:
    """Format a number: `47,234`, `14.2`, `0.183`: whole if it is whole, else three significant digits, or
    `digits` decimals."""
    if value is None or not math.isfinite(value):
        return NONE
    if digits is not None:
        return _fix_minus(f"{value:,.{digits}f}")
    if value == int(value) or abs(value) >= 1000:
        return _fix_minus(f"{value:,.0f}")
    if abs(value) >= 100:
        return _fix_minus(f"{value:,.1f}")
    if abs(value) >= 10:
        return _fix_minus(f"{value:.1f}")
    if abs(value) >= 0.1:
        return _fix_minus(f"{value:.3g}")
    return _fix_minus(f"{value:.4f}".rstrip("0") if abs(value) >= 0.00005 else "0.0000")


def percent(value: float | None, digits: int = 1) -> str:
    """Format a share in [0, 1] as `96.2%`."""
    return NONE if value is None else _fix_minus(f"{value * 100:.{digits}f}") + "%"


def format_points(value: float | None) -> str:
    """Format a difference of shares as `+4.1` percentage points."""
    return NONE if value is None else format_signed(value * 100, 1)


def format_signed(value: float | None, digits: int | None = None) -> str:
    """Format `+4.1`, `−4.1`, and zero without a sign."""
    text = number(value, digits)
    return text if value is None or value <= 0 or not text.strip("0.,") else f"+{text}"


INTERVAL = " ({} to {})"  # an interval after its value, on pages and in sentences
BRACKETS = " [{}, {}]"  # an interval after its value, in the terminal


def format_interval(
    low: float | None, high: float | None, form: Callable[[float], str], pattern: str = INTERVAL
) -> str:
    """Format an interval to stand after its value, as in ` (0.31 to 0.53)`, or ` [0.31, 0.53]` with
    `BRACKETS`.

    Empty if an end is unknown. `form` formats each end.
    """
    return "" if low is None or high is None else pattern.format(form(low), form(high))


def format_dollars(value: float | None) -> str:
    """Format `$1.27`; three significant digits below ten cents."""
    if value is None:
        return NONE
    sign, size = "−" if value < 0 else "", abs(value)
    digits = 2 if size >= 0.1 or size < 1e-12 else 2 - math.floor(math.log10(size))
    return f"{sign if size >= 1e-12 else ''}${size:,.{digits}f}"


def format_duration(value: float | None) -> str:
    """Format `12.4 s`, `340 ms`, `3 min 05 s`, `2 h 04 min`."""
    if value is None:
        return NONE
    if value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.001 else f"{value * 1000:.2g} ms"
    if value < 60:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def format_moment(epoch: float | None) -> str:
    """Format seconds since the epoch as `2026-03-01 04:12 UTC`."""
    if epoch is None:
        return NONE
    return f"{datetime.datetime.fromtimestamp(epoch, tz=datetime.UTC):%Y-%m-%d %H:%M} UTC"


def seconds(text: str) -> float:
    """Parse a span such as `6h`, `1h30m`, `45s` or `2.5d` as seconds. Raises ValueError for anything else, 0
    included."""
    compact = text.strip().lower().replace(" ", "")
    if not _SPAN.fullmatch(compact):
        raise ValueError(f"{text!r} is not a span of time; write it as in 45s, 30m, 6h or 1h30m")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(compact))
    if total <= 0:
        raise ValueError(f"{text!r} is not a span of time: it is empty")
    return total


def format_compact_duration(duration: float) -> str:
    """Format whole seconds, such as `45s`, `3m20s` or `6h05m`."""
    whole = round(duration)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """Format `1 conversation`, `2 conversations`; `plural` for irregular ones (used by the report's
    template)."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def readable_name(name: str) -> str:
    """Return `student_preference` as `student preference`."""
    return name.replace("_", " ")


def describe_value(value: object) -> str:
    """Return a value or a field of a space as text; a list by its items, with commas."""
    return ", ".join(map(describe_value, value)) if isinstance(value, list | tuple) else str(value)


def join_list(parts: Iterable[str]) -> str:
    """Join words as `a, b and c`."""
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def join_first(names: Sequence[str], most: int, what: str = "") -> str:
    """Join the first `most` names, and the number of the others, as in `a, b and 5 more gaps`. `what`: the
    word for the others, with a blank before it."""
    more = f" and {len(names) - most} more{what}" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _fix_minus(text: str) -> str:
    """Use a minus sign as wide as a plus, and none before zero."""
    if text.startswith("-") and not text.strip("-0.,"):
        return text[1:]
    return text.replace("-", "−", 1) if text.startswith("-") else text


# All characters that need a check: fast, as most texts are mostly ASCII.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
_SURROGATES = re.compile("[\ud800-\udfff]")


def replace_surrogates(value: Any) -> Any:
    """Return text, or lists and dicts with texts, with U+FFFD for every lone surrogate: no encoding takes
    one."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [replace_surrogates(child) for child in value]
    return value


def escape_for_terminal(text: str) -> str:
    """Return `text` with control and hidden characters written out: `\\x1b`, `\\u202e`.

    These are control characters (escape sequences, C1), marks and overrides of direction, zero-width
    characters except the two joiners that scripts and emoji need, separators of lines, lone surrogates. Line
    feeds and tabs stay.
    """
    return _UNUSUAL.sub(lambda found: _escape_hidden(found.group(), escape_character), text)


def escape_json_for_terminal(text: str) -> str:
    """Return JSON text of the same value, with escapes for the characters that `escape_for_terminal` writes
    out."""
    return _UNUSUAL.sub(lambda found: _escape_hidden(found.group(), _escape_units), text)


def _escape_hidden(run: str, escape: Callable[[str], str]) -> str:
    if run.isprintable():
        return run
    return "".join(escape(c) if unicodedata.category(c) in _HIDDEN and c not in _JOINERS else c for c in run)


def _escape_units(char: str) -> str:
    """Return a character as JSON escapes it, in one or two units of UTF-16; a lone surrogate is one unit."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def format_short(number: int) -> str:
    """Format a number in three or four characters."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def round_usd(usd: float | None) -> float | None:
    """Round US dollars for JSON: to a millionth, and below a cent to six significant digits; None stays
    None."""
    if usd is None or abs(usd) >= 0.01:
        return None if usd is None else round(usd, 6)
    return float(f"{usd:.6g}")


def count_utf8_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8, which are the most tokens that a tokenizer makes of it."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def describe_counts(counts: Mapping[str, int]) -> str:
    """Format a total with its parts, such as `17 (no_turns 14, too_short 3)`."""
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total:,} ({', '.join(f'{reason} {count:,}' for reason, count in counts.items())})"


def describe_reasons(reasons: Counter[str], most: int = 4) -> str:
    """Format counts with their reasons, the most frequent first, such as `14 no_turns, 3 too_short`."""
    return join_first([f"{count:,} {reason}" for reason, count in reasons.most_common()], most, " kinds")


def compile_later(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at first use. An invalid expression fails at first use, not at
    import."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str, flags: int) -> None:
        self._wanted = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        """Return a method; called only once per method."""
        if name == "_compiled":
            self._compiled = re.compile(*self._wanted)
            return self._compiled
        method = getattr(self._compiled, name)
        setattr(self, name, method)
        return method
