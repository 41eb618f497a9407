"""Take away what is around the lines of a reply: lone surrogates, thinking, and the markup of its turns."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.characters import holds_pair, list_marks, replace_surrogates
from edgen.reading.text.markup import without_markup
from edgen.reading.text.thinking import drop_thinking

# Two labels in a text without line feeds, and the characters between them that stand for a line break.
_LABEL = r"[^\w\n{]{0,12}(?:ROLE|CALLED)\b[^\n:]{0,20}:"
_BREAKS = RolePattern(rf"(?i){_LABEL}[^\n]*?(\\n|<br\s?/?>){_LABEL}")
_BREAK = compile_later(r"(?i)<br\s?/?>(?![^\S\n]*(?:\n|\Z))")  # not at the end of a line
_WRAPPING = frozenset("<>&\\")  # without one of these and `[/`, there is no markup and no thinking
_TURN_TOKENS = ("<start_of_turn>", "[INST]", "</s>")  # of chat templates
_INSTRUCTION = compile_later(r"<s>[ ]?|[ ]?</s>(?=[ \t]*\n\S)|[ ]?\[/?INST\][ ]?")
_FEW_BREAKS = 3  # line breaks of HTML that turns may hold


def without_wrappers(text: str, repairs: list[str], roles: RoleWords) -> str:
    """Return the text in characters that can be stored, with line feeds, without its thinking, and with turns
    in tags as lines."""
    text = replace_surrogates(text, repairs)
    if "\n" not in text:
        breaks = _BREAKS.of(roles).match(text)
        text = text.replace("\r" if breaks is None else breaks[1], "\n")
    elif (
        "<" in list_marks(text)
        and text.count("<br") > _FEW_BREAKS
        and len(_BREAK.findall(text)) > _FEW_BREAKS
    ):
        text = _BREAK.sub("\n", text)
    if "<" in list_marks(text) and "<|" in text:
        text = text.replace("<|end_header_id|>", "").replace("|><|", "|>\n<|")
    elif "<" in list_marks(text) and any(map(text.__contains__, _TURN_TOKENS)):
        text = _INSTRUCTION.sub("\n", text).replace("<start_of_turn>", "<|im_start|>")
        text = text.replace("<end_of_turn>", "<|im_end|>")
    text = text.removeprefix("\ufeff")
    if _WRAPPING.isdisjoint(list_marks(text)) and not holds_pair(text, "[/"):  # most
        return text
    return without_markup(drop_thinking(text, repairs, roles), roles)
