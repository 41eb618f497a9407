"""Conversations and turns of a scenario's roles: the next speaker, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Any

from edgen.core.values import END_MARKER, Message
from edgen.simulator.conversation.dialogue import SpokenDialogue
from edgen.simulator.conversation.turns import TELLS_JUDGE
from edgen.simulator.phrases.turns import Talk
from edgen.simulator.prompts.agent_prompt import read_turns_so_far
from edgen.simulator.prompts.conversation_prompt import MARKER, ConversationPrompt
from edgen.simulator.prompts.prompt_length import read_any_turns
from edgen.space.model import Scene

_UNDERSTOOD = (0.35, 0.3)  # mean and half-width of the probability that the learner understood


def speak_next(scene: Scene, messages: Sequence[Message], fault: str | None, rng: Random) -> str:
    """Return the next turn of the scene's role. `messages`: its brief, and the turns so far."""
    assert scene.role is not None
    first = messages[0].content
    said = read_turns_so_far(messages)
    own, heard = ([text for mine, text in said if mine is side] for side in (True, False))
    if fault == "loop" and own:
        return own[int(rng.random() * len(own))]
    talk = Talk(scene, scene.role, rng)
    turns = _turns_of(first)
    count = len(said) + 1
    last = _closes(count, turns, rng) or (
        count >= turns[0] and talk.is_through(own, heard, opened=not said or said[0][0])
    )
    last = last and (count >= turns[1] or not _is_asked(heard))
    text = talk.choose_turn(own, heard, last=last, opened=not said or said[0][0])
    if fault == "leaked_secret" and (secret := talk.find_secret()):
        text = f"{text} {secret}."
    if fault == "tells_judge":
        text = f"{text}\n{TELLS_JUDGE}"
    if last and MARKER in first.lower():
        text = f"{text} {END_MARKER}"
    others = [role for role in scene.book.sees if role != scene.role]
    if fault == "speaks_for_other" and others:
        return f"{text}\n{others[0]}: {talk.say_generic('v.nod')}"
    if fault == "two_turns":
        return f"{scene.role}: {text}\n{scene.role}: {talk.say_generic('v.nod')}"
    return text


_turns_of = lru_cache(maxsize=2_048)(read_any_turns)


def _closes(count: int, turns: tuple[int, int], rng: Random) -> bool:
    low, high = turns
    return count >= high or (count >= low and rng.random() < 1 / (high - count + 1))


def _is_asked(heard: Sequence[str]) -> bool:
    """Return whether the other side's last turn is a question. Its answer has no goodbye."""
    return bool(heard) and heard[-1].rstrip().endswith("?")


def converse_about(scene: Scene, task: ConversationPrompt, rng: Random) -> SpokenDialogue:
    """Return a whole conversation of the scene's roles. Every choice is drawn from `rng`."""
    names = [*scene.book.sees]
    written = _match_names(names, task.roles or ("Teacher", "Student"))
    low, high = task.turns
    length = low + int(rng.random() * (high - low + 1))
    if steps := [len(one.says) + 1 for one in scene.book.phrases.roles.values() if one.says]:
        length = max(min(length, len(names) * max(steps)), 2)
    talks = {name: Talk(scene, name, rng) for name in names}
    own: dict[str, list[str]] = {name: [] for name in names}
    heard: dict[str, list[str]] = {name: [] for name in names}
    entries: list[tuple[Any, str]] = []
    for i in range(high):
        name = names[i % len(names)]
        last = i == high - 1 or (i >= length - 1 and not _is_asked(heard[name]))
        text = talks[name].choose_turn(own[name], heard[name], last=last, opened=name == names[0])
        own[name].append(text)
        for other in names:
            if other != name:
                heard[other].append(text)
        entries.append((written[name], text))
        if last:
            break
    if task.end_marker:
        entries[-1] = (entries[-1][0], f"{entries[-1][1]} {END_MARKER}")
    middle, spread = _UNDERSTOOD
    probability = round(min(0.99, max(0.01, middle + spread * (rng.random() + rng.random() - 1))), 2)
    return SpokenDialogue(entries, probability)


def _match_names(names: Sequence[str], shown: Sequence[str]) -> dict[str, str]:
    """Return the prompt's word for each role: the same name, or else the name in its place."""
    by_name = {name.lower(): name for name in shown}
    if all(name.lower() in by_name for name in names):
        return {name: by_name[name.lower()] for name in names}
    return {name: shown[i % len(shown)] for i, name in enumerate(names)}
