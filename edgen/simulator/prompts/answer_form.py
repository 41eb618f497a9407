"""Answer layouts that prompts request: read from examples or descriptions, then rendered.

Supported are JSON (with any keys), the published brackets, XML, and lines that begin with a name: bold, in
brackets, as headings, numbered, in a table. The default is `Role: text` lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.simulator.prompts.shown_names import PLACEHOLDERS, TEXT

Entries = Sequence[tuple[str, str]]


class LineForm(NamedTuple):
    """Layout of turns as text."""

    line: str = "{name}: {text}"  # a turn's line; holds {name}, {text} and {number}
    head: str = ""  # lines before all turns
    foot: str = ""  # lines after all turns
    chance: str = "Probability: {value}"  # the line of the probability; holds {value}
    names: str = "as they are"  # spelling of names
    percent: bool = False  # the probability is a percentage

    def render(self, spoken: Entries, probability: float | None) -> str:
        """Render the answer, without a probability if it is None."""
        out = [self.head] if self.head else []
        for number, (name, text) in enumerate(spoken, 1):
            name = {"upper": name.upper(), "lower": name.lower()}.get(self.names, name)
            out.append(_fill(self.line, {"name": name, "text": text, "number": str(number)}))
        out += [self.foot] if self.foot else []
        if probability is not None:
            value = f"{round(probability * 100)}%" if self.percent else str(probability)
            out.append(_fill(self.chance, {"value": value}))
        return "\n".join(out)


class Json(NamedTuple):
    """Layout of turns as JSON."""

    whole: str | None = "conversation"  # key of the turns; None: they are the whole answer
    name: str | None = "role"  # key of the speaker; None: each turn is an object keyed by its speaker
    text: str = "text"  # key of a turn's text
    chance: str = "probability"  # key of the probability
    percent: bool = False  # the probability is a percentage
    rows: bool = False  # one object per line

    def render(self, spoken: Entries, probability: float | None) -> str:
        """Render the answer, without a probability if it is None."""
        turns: Any = [
            {name: text} if self.name is None else {self.name: name, self.text: text} for name, text in spoken
        ]
        value = probability if probability is None or not self.percent else round(probability * 100)
        if self.rows:
            rows = turns if value is None else [*turns, {self.chance: value}]
            return "\n".join(msgspec.json.encode(row).decode() for row in rows)
        if value is not None:
            turns = {self.whole or "conversation": turns, self.chance: value}
        elif self.whole is not None:
            turns = {self.whole: turns}
        return msgspec.json.format(msgspec.json.encode(turns), indent=2).decode()


Form = LineForm | Json


def _fill(line: str, values: dict[str, str]) -> str:
    """Replace all marks of a line at once, so that a text may contain braces."""
    return re.sub(r"\{(name|text|number|value)\}", lambda mark: values[mark[1]], line)


_NOT = r"(?:\bno|\bnot|n't|\bwithout|\bnever|\binstead of|\brather than|\bavoid)\b[^.\n]{0,24}"
_CHANCE_WORD = (
    r"(?:probab(?:ility|ilidade?|ilité|ilità)|likelihood|chance|wahrscheinlichkeit|вероятност\w*|概率|機率|확률"
    r"|확률은|確率)"
)
_A_NUMBER = r"(?:an?|une?|una|uma?|eine?) (?:number|value|nombre|valeur|n[úu]mero|valore?|zahl|wert)\b"
# A request for a probability, not a mere mention: a lesson may be about the "Probability of two events".
CHANCE = compile_later(
    r"\b(?:the|its|your|give|state|estimate|add|with a|die|a|la|el) (?:\w+ "
    rf")?{_CHANCE_WORD[:-1]}(?<!chance))(?! theory)"
    rf"|{_CHANCE_WORD}[^\n:=]{{0,60}}[:=][ \t]*(?:[\[<\"“.…\d({{NnXx]|{_A_NUMBER})|[\"'`<]{_CHANCE_WORD}"
    r"|\bhow (?:likely|probable)\b|\bchance (?:that|of)\b[^.\n]{0,80}\b(?:number|percent|0|%)|概率|機率|확률|確率",
    re.IGNORECASE,
)
_PERCENT = compile_later(
    r"\b(?:percent(?:age)?|per cent|prozent|porcentaje|pourcentage)\b|\b0[ ]?%?[ ]?(?:to|and|-|–)[ ]?100\b"
    r"|[\dxXnN][ ]?%|\b(?:in|as a) %",
    re.IGNORECASE,
)
_PERCENT_REACH = 160  # characters around a word for probability that are searched for a percentage

_KEY = r"[\"'`“]([A-Za-z_][\w -]{0,30})[\"'`”]"
_WHOLE_KEYS = ("conversation", "dialogue", "dialog", "turns", "messages", "transcript", "chat", "exchange",
    "exchanges",
               "utterances", "lines", "script", "items", "lesson", "history")  # fmt: skip
_NAME_KEYS = (
    "role",
    "speaker",
    "from",
    "who",
    "name",
    "character",
    "agent",
    "author",
    "person",
    "participant",
)
_TEXT_KEYS = (
    "text",
    "content",
    "utterance",
    "message",
    "value",
    "says",
    "said",
    "line",
    "words",
    "reply",
    "speech",
    "dialogue",
)
_LIST_OF = compile_later(r"[\"'`“]([A-Za-z_]\w{0,30})[\"'`”]\s*:\s*\[")
_ROWS = compile_later(
    r"\bJSON[ -]?lines\b|\bJSONL\b|\bndjson\b|\bone JSON object (?:per|on each|a) (?:line|turn)",
    re.IGNORECASE,
)
_TOP_LIST = compile_later(
    r"\bJSON (?:list|array)\b|\b(?:list|array) of (?:JSON )?objects\b|(?:^|\n|: ?)\s*\[\s*\{", re.IGNORECASE
)
# A line of a shown layout with the probability, up to its value.
_CHANCE_LINE = compile_later(
    r"(?im)^[^\n:=]{0,80}?((?:[*_#]{1,3}[ ]?)?(?:probability|likelihood|chance|wahrscheinlichkeit"
    r"|probabilidad|probabilité|probabilità)"
    rf"[^\n:=]{{0,60}}[:=][*_]{{0,3}}[ \t]*)[\"“]?(?:{TEXT}|[01]?\.\d+|\d+[ ]?%|[01]\b|[xXnNpP]{{1,2}}\b)"
)
_CHANCE_TAG = compile_later(r"<((?:probability|likelihood|chance|p)\w{0,20})>", re.IGNORECASE)


def read_form(text: str, names: Sequence[str]) -> Form:
    """Return the layout that a prompt requests for the turns of these speakers."""
    percent = _asks_percent(text)
    if re.search(r"\bJSON|\"(?:role|speaker)\"\s*:", text, re.IGNORECASE) and not re.search(
        rf"{_NOT}JSON", text, re.IGNORECASE
    ):
        return _read_json(text, names, percent)
    form = _read_lines(text, names)
    if (line := _CHANCE_LINE.search(text)) is not None:
        form = form._replace(chance=_escape(line[1].strip()) + " {value}")
    elif (tag := _CHANCE_TAG.search(text)) is not None and form.line.startswith("<"):
        form = form._replace(chance=f"<{tag[1]}>{{value}}</{tag[1]}>")
    return form._replace(percent=percent)


def _escape(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")


def _asks_percent(text: str) -> bool:
    for chance in CHANCE.finditer(text):
        near = text[max(0, chance.start() - _PERCENT_REACH) : chance.end() + _PERCENT_REACH]
        if _PERCENT.search(near):
            return True
    return False


def _read_json(text: str, names: Sequence[str], percent: bool) -> Json:
    keys = list(re.findall(_KEY, text))
    low = [key.lower() for key in keys]

    def find_first_key(known: Sequence[str]) -> str | None:
        return next((key for key, lowered in zip(keys, low, strict=True) if lowered in known), None)

    listed = _LIST_OF.search(text)
    whole = listed[1] if listed else find_first_key(_WHOLE_KEYS)
    rows = _ROWS.search(text) is not None
    if whole is None and (rows or _TOP_LIST.search(text)):
        pass
    elif whole is None:
        whole = "conversation"
    taken = [whole] if whole else []
    speaker = find_first_key([key for key in _NAME_KEYS if key not in taken])
    said = find_first_key([key for key in _TEXT_KEYS if key not in taken])
    by_name = speaker is None and any(
        re.search(rf"\{{\s*[\"']{re.escape(name)}[\"']\s*:", text, re.IGNORECASE) for name in names
    )
    chance = next(
        (
            key
            for key in keys
            if re.match(_CHANCE_WORD, key, re.IGNORECASE) or re.match(r"(?i)p(?:_|rob\b|$)|chance|likel", key)
        ),
        "probability",
    )
    return Json(whole, None if by_name else speaker or "role", said or "text", chance, percent, rows)


def _read_lines(text: str, names: Sequence[str]) -> LineForm:
    """Return the layout of a turn's line: a style shown around a name, or else a described one."""
    who = "|".join(map(re.escape, sorted({*names, *PLACEHOLDERS}, key=len, reverse=True)))
    flags = re.IGNORECASE | re.MULTILINE
    if found := re.search(
        rf"<([A-Za-z_]\w*)[ ]+(\w+)=[\"'“]?(?:\.\.\.|…|[<\[{{]?(?P<who>{who})[>\]}}]?)[\"'”]?[ ]*>",
        text,
        flags,
    ):
        frame = f'<{found[1]} {found[2]}="{{name}}">{{text}}</{found[1]}>'
        return _wrap_in_tag(text, LineForm(frame, names=_spell_names(found["who"], names)))
    tags = re.search(rf"</(?P<who>{who})>", text, flags)
    if tags or (
        re.search(r"\bXML\b|\btags?\b", text) and not re.search(rf"{_NOT}(?:XML|tags?)\b", text, flags)
    ):
        case = _spell_names(tags["who"], names) if tags else "lower"
        return _wrap_in_tag(text, LineForm("<{name}>{text}</{name}>", names=case))
    if found := re.search(rf"^(#{{1,6}})[ ]+(?P<who>{who})[ ]*$", text, flags):
        return LineForm(f"{found[1]} {{name}}\n{{text}}\n", names=_spell_names(found["who"], names))
    if found := re.search(rf"\|[ ]*(?P<who>{who})[ ]*\|", text, flags):
        return LineForm(
            "| {name} | {text} |",
            head="| Speaker | Text |\n|---|---|",
            names=_spell_names(found["who"], names),
        )
    if found := re.search(rf"(\*\*|__)(?P<who>{who})(:?)\1(:?)", text, flags):
        mark, colon = found[1], (found[3], found[4] if found[3] or found[4] else ":")
        return LineForm(
            f"{mark}{{name}}{colon[0]}{mark}{colon[1]} {{text}}", names=_spell_names(found["who"], names)
        )
    if re.search(r"\bbold(?:ed|face)?\b|\bin \*\*", text, flags) and not re.search(
        rf"{_NOT}bold|no markdown", text, flags
    ):
        return LineForm("**{name}:** {text}")
    if found := re.search(rf"\[(?P<who>{who})\](:?)(?=[ \t]*\S)", text, flags):
        return LineForm(f"[{{name}}]{found[2]} {{text}}", names=_spell_names(found["who"], names))
    return _read_plain(text, who, names)


def _read_plain(text: str, who: str, names: Sequence[str]) -> LineForm:
    """Read lines that begin with a bare name, possibly numbered, in a list, or with quoted text."""
    flags = re.IGNORECASE | re.MULTILINE
    pattern = (
        r"(?P<mark>(?:^|(?<=[`\"'“]))[ \t]*(?:\d{1,2}[.)][ ]|[-*•][ "
        rf"]))?(?<![\w*])[<{{]?(?P<who>{who})[>}}]?"
        rf"(?P<sign>[ ]?(?:[:：>]|[-–—](?=[ ])))[ \t]*(?P<quote>[\"“„«]?){TEXT}"
    )
    found = re.search(pattern, text, flags)
    if found is None:
        script = re.search(rf"^(?P<who>{who})[ ]*\n[ \t]*{TEXT}", text, flags)
        return (
            LineForm("{name}\n{text}\n", names=_spell_names(script["who"], names)) if script else LineForm()
        )
    mark = (found["mark"] or "").strip()
    before = "" if not mark else f"{{number}}{mark[-1]} " if mark[0].isdigit() else f"{mark} "
    sign = found["sign"]
    opening = found["quote"]
    closing = {'"': '"', "“": "”", "„": "“", "«": "»"}.get(opening, "")
    after = f"{sign} " if sign.strip() in (":", "：", ">") else f"{sign.rstrip()} "
    return LineForm(
        f"{before}{{name}}{after}{opening}{{text}}{closing}", names=_spell_names(found["who"], names)
    )


def _spell_names(shown: str | None, names: Sequence[str]) -> str:
    """Return the spelling of names from a shown one; placeholders must be all capitals."""
    if not shown or shown in names:
        return "as they are"
    if shown.isupper() and len(shown) > 1:
        return "upper"
    return "lower" if shown.islower() and shown.lower() not in PLACEHOLDERS else "as they are"


def _wrap_in_tag(text: str, form: LineForm) -> LineForm:
    found = re.search(r"<(conversation|dialogue|dialog|transcript|chat|lesson)>", text, re.IGNORECASE)
    return form._replace(head=f"<{found[1]}>", foot=f"</{found[1]}>") if found else form
