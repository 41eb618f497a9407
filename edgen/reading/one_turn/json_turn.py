"""Read one turn in JSON, such as `{"role": "Teacher", "text": "…"}`, if the whole reply is JSON.

Other JSON belongs to the turn's text, for example in a lesson about JSON, and stays as it is.
"""

from __future__ import annotations

from typing import Any

from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.loose_json.conversation import JsonConversation, find_in_json
from edgen.reading.loose_json.parser import JsonMembers, parse
from edgen.reading.repairs import Repair
from edgen.reading.roles import CHAT_OTHER, CHAT_SELF, RolePattern, RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import is_silent

_WHO = frozenset({"role", "speaker", "name", "who", "from", "author", "character"})
_WHAT = (
    "text", "content", "message", "utterance", "response", "reply", "says", "said", "speech", "line",
    "dialogue",
    "turn", "statement", "words",
)  # fmt: skip
_ENDED = frozenset({"ended", "end", "end_of_conversation", "end_conversation", "is_end", "done", "finished"})
# Other keys that models put next to a turn. An object with any further key belongs to the lesson.
_NEXT_TO_TURN = frozenset(
    {
        *(_WHO - {"name"}), *_ENDED, "ended_by", "emotion", "tone", "mood", "action", "thought", "thoughts",
            "thinking", "reasoning",
        "turn", "turn_number", "number", "id", "step", "type", "probability", "language",
    }
)  # fmt: skip
# The marks of JSON that names speakers, after other words.
_EMBEDDED = RolePattern(r"(?im)[\"'](?:role|speaker)[\"']\s{0,9}:|^[^\S\n]{0,20}[\"“](?:ROLE)[^\n:\"]{0,20}:")
# Words of a model before its answer.
ASIDE = compile_later(
    r"(?i)\A(?:(?:sure|certainly|of\scourse|okay|ok|alright|absolutely|understood|here)\b[^\n]{0,150}"
    r"|[^\n]{0,150}:)[*_]{0,3}\s*\Z"
)
MAX_DEPTH = 6


class UnreadableError(Exception):
    """Raised if the reply is not a turn; `read_turn` catches it."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(detail)
        self.rejection = Rejection(reason, detail)


def read_json_turn(text: str, own: str, roles: RoleWords) -> tuple[str, bool, list[str]] | None:
    """Return (text, whether it ends the conversation, repairs) of a turn in JSON in a reply; or None.

    Raises UnreadableError if the JSON holds the other side's words or several turns, or breaks off.
    """
    if not text.startswith(("{", "[")) and (":" not in text or not _EMBEDDED.of(roles).search(text)):
        return None
    marked = find_marker(text)
    if marked is not None and not marked.said.rstrip("\r\n\t `").endswith(("}", "]")):
        marked = None  # it is in the JSON, if at all
    parsed = parse(text if marked is None else marked.said, roles)
    if parsed is None:
        return None
    preamble = surroundings.has_words(parsed.before)
    values = tuple(_as_own(_unwrap_value(value, roles), own, roles) for value in parsed.values)
    spoken = find_in_json(values, roles)
    said = _of_entries(spoken, own) if spoken.entries else _read_lone_turn(values)
    if said is None and not spoken.entries:
        said = next(iter(spoken.texts), None)
    # Words after an object that names no speaker belong to the turn, and the object with them.
    if said is None or (not spoken.entries and (preamble or surroundings.has_words(parsed.after))):
        return None
    if preamble and not ASIDE.match(parsed.before.rstrip("`json \r\n")):
        return None
    if parsed.cut:
        raise UnreadableError(RejectionReason.TRUNCATED, "the JSON breaks off inside a string")
    noted = {
        Repair.PREAMBLE: preamble,
        Repair.CODE_FENCE: surroundings.FENCE.search(parsed.before) is not None,
        Repair.LAYOUT: True,
        Repair.JSON_REPAIRED: parsed.mended,
        Repair.JSON_ESCAPES: parsed.escaped,
        Repair.ROLE_NAME: spoken.named,
        Repair.ROLE_ALIAS: spoken.aliased,
        Repair.POSTAMBLE: surroundings.has_words(parsed.after),
        Repair.MARKER_FORM: marked is not None and not marked.standard,
    }
    ended = marked is not None or any(_says_ended(value) for value in values) or spoken.ended_by is not None
    return said, ended, [name for name, found in noted.items() if found]


def _unwrap_value(value: Any, roles: RoleWords) -> Any:
    """Return the value inside objects and lists that hold nothing else: `{"response": {…}}`, `[[…]]`."""
    for _ in range(MAX_DEPTH):
        inner = [child for _, child in value] if isinstance(value, JsonMembers) else value
        if len(inner) != 1 or not isinstance(inner[0], list):
            break
        if isinstance(value, JsonMembers) and value[0][0].strip().lower() in roles.by_name:
            break
        value = inner[0]
    return value


def _as_own(value: Any, own: str, roles: RoleWords) -> Any:
    """Return the value with a chat's names (`assistant`, `user`) replaced by the two sides' names."""
    turns = [value] if isinstance(value, JsonMembers) else value
    names = {
        child.strip().lower()
        for turn in turns
        if isinstance(turn, JsonMembers)
        for key, child in turn
        if isinstance(child, str) and key.strip().lower() in _WHO and len(child) < 20
    }
    if not names & CHAT_SELF or not names <= CHAT_SELF | CHAT_OTHER:
        return value
    other = roles.find_other_role(own)

    def rename_role(key: str, child: Any) -> tuple[str, Any]:
        name = child.strip().lower() if isinstance(child, str) and key.strip().lower() in _WHO else ""
        return key, own if name in CHAT_SELF else other if name in CHAT_OTHER else child

    renamed = [
        JsonMembers(rename_role(*member) for member in turn) if isinstance(turn, JsonMembers) else turn
        for turn in turns
    ]
    return renamed[0] if isinstance(value, JsonMembers) else renamed


def _of_entries(spoken: JsonConversation, own: str) -> str:
    """Return the text of its own only turn, followed by an end marker that stands as a turn of its own.

    Raises UnreadableError if the other side speaks, or if there are several turns.
    """
    if any(role != own for role, _ in spoken.entries):
        raise UnreadableError(
            RejectionReason.SPEAKS_FOR_OTHER, f"the {own.lower()} also speaks for the other, in JSON"
        )
    texts = [text for _, text in spoken.entries if not is_silent(text)]
    turns = [text for text in texts if not _is_only_marker(text)]
    if len(turns) > 1:
        raise UnreadableError(RejectionReason.TWO_TURNS, f"JSON with {len(turns)} turns")
    return "\n".join(texts)


def _is_only_marker(text: str) -> bool:
    marked = find_marker(text)
    return marked is not None and is_silent(marked.said.strip())


def _read_lone_turn(values: tuple[Any, ...]) -> str | None:
    """Return the text of an object that holds only a turn and the keys known next to one; None otherwise."""
    if len(values) != 1:
        return None
    value = values[0][0] if len(values[0]) == 1 and not isinstance(values[0], JsonMembers) else values[0]
    if not isinstance(value, JsonMembers):
        return None
    keys = [key.strip().lower() for key, _ in value]
    texts = [
        child for key, (_, child) in zip(keys, value, strict=True) if key in _WHAT and isinstance(child, str)
    ]
    strange = [key for key in keys if key not in _WHAT and key not in _NEXT_TO_TURN]
    return texts[0] if len(texts) == 1 and not strange else None


def _says_ended(value: Any) -> bool:
    return isinstance(value, JsonMembers) and any(
        child is True and key.strip().lower().replace(" ", "_") in _ENDED for key, child in value
    )
