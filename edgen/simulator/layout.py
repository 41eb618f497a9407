"""A dialogue as the text of an answer, in the layout that the prompt shows.

`entries` is what every layout, and every defect, is made of: (role, text) with the end marker where
it was spoken, as the suffix of the last turn or as an entry of its own.
"""

from __future__ import annotations

import msgspec

from edgen.core.values import END_MARKER, Role
from edgen.simulator.conversation_prompt import ConversationPrompt
from edgen.simulator.dialogue import Dialogue

Entries = list[tuple[Role, str]]


def entries(dialogue: Dialogue, task: ConversationPrompt) -> Entries:
    """The entries of the conversation, end marker included if the prompt speaks of one."""
    result = list(dialogue.turns)
    if not task.end_marker:
        return result
    role, text = result[-1]
    if dialogue.marker_alone:
        result.append(("Student" if role == "Teacher" else "Teacher", END_MARKER))
    else:
        result[-1] = (role, f"{text} {END_MARKER}")
    return result


def render(spoken: Entries, probability: float | None, task: ConversationPrompt) -> str:
    """The answer as asked for. `probability` None: the answer has none."""
    if task.layout == "published":
        return as_published(spoken, probability)
    if task.layout == "json":
        return as_json(spoken, probability)
    return lines(spoken, probability)


def as_published(spoken: Entries, probability: float | None) -> str:
    """The layout of the prompt published with the Education Dialogue data set."""
    out = ["Conversation:", "["]
    for role, text in spoken:
        quoted = text.replace('"', '\\"') if '"' in text else text
        out.append(f'   {role}:  "{quoted}",')
    out.append("]")
    if probability is not None:
        out.append(f'Probability:  "{probability}",')
    return "\n".join(out)


def as_json(spoken: Entries, probability: float | None) -> str:
    """`{"conversation": [{"role": …, "text": …}, …], "probability": 0.2}`, indented."""
    value: dict[str, object] = {"conversation": [{"role": role, "text": text} for role, text in spoken]}
    if probability is not None:
        value["probability"] = probability
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def lines(spoken: Entries, probability: float | None) -> str:
    """One `Role: text` a line."""
    out = [f"{role}: {text}" for role, text in spoken]
    if probability is not None:
        out.append(f"Probability: {probability}")
    return "\n".join(out)
