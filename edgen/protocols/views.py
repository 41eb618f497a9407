"""Views of requests that people answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from edgen.core.people.requests import View
from edgen.core.values import Message, Request, Scenario, Turn
from edgen.space.model import Scene

CLOSING = "[end of conversation]"
"""The end of a person's text that closes a conversation, as templates ask models to end theirs."""
TURN = frozenset({"text"})  # properties of an answer that is only a turn


def view_of(request: Request) -> View:
    """Return the view for a person who answers a request: the protocol's own view, else a chat if the answer
    is a turn, else the texts of the request."""
    if request.view is not None:
        view: View = request.view
        return view
    messages = request.prose or request.messages
    scene = request.scene
    role = (scene.role or "") if isinstance(scene, Scene) else ""
    if not _is_turn(request):
        return View(role, text="\n\n".join(message.content for message in messages))
    facts: tuple[tuple[str, str], ...] = ()
    if role:
        facts = list_facts(scene.scenario, scene.list_visible(role), scene.book.labels)
    brief, chat = _split(messages)
    turns = tuple((role if one.role == "assistant" else "", one.content) for one in chat)
    return View(role, facts, turns, text=brief)


def list_facts(
    scenario: Scenario, sees: Collection[str], labels: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the label and the value of each dimension of a scenario that a role sees."""
    known = [name for name in scenario.values if name in sees]
    return tuple((labels.get(name, name.replace("_", " ")), scenario.values[name]) for name in known)


def words_without_marks(messages: Iterable[Message], fence: str) -> str:
    """Return the text of a template for a person, without the lines that hold the mark `fence`."""
    lines = (line.strip() for message in messages for line in message.content.split("\n"))
    return "\n".join(line for line in lines if line and fence not in line)


def list_utterances(turns: Iterable[Turn]) -> tuple[tuple[str, str], ...]:
    """Return the speaker and the text of each turn."""
    return tuple((turn.role, turn.text) for turn in turns)


def _is_turn(request: Request) -> bool:
    """Return whether the answer is one turn: by its form, or because the request is a chat with an earlier
    answer."""
    if request.schema is not None:
        return {*(msgspec.json.decode(request.schema).get("properties") or ())} == TURN
    return any(message.role == "assistant" for message in request.messages)


def _split(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Split messages into the brief and the utterances after it."""
    chat = [*messages]
    brief = [chat.pop(0).content]
    # The line that asks the opening side for its first turn is not an utterance.
    if chat and chat[0].role == "user" and (len(chat) == 1 or chat[1].role == "assistant") and len(chat) % 2:
        brief.append(chat.pop(0).content)
    return "\n\n".join(brief), tuple(chat)
