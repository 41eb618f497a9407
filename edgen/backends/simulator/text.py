"""Text in, text out: the simulated model itself.

`respond` is a function of its arguments: the same messages and seed give the same reply in any
process on any machine. VERSION goes up whenever any answer changes; it is part of what a ledger
files replies under.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random

import msgspec

from edgen.backends.simulator import defects, layout, prompt
from edgen.backends.simulator.dialogue import converse
from edgen.backends.simulator.faults import NO_FAULTS, Faults, struck
from edgen.backends.simulator.phrases import Voice
from edgen.model import FinishReason, Message, Reply, Usage

VERSION = 3
CHARS_PER_TOKEN = 4  # the usual rule of thumb for English; no tokenizer is simulated


def request_key(messages: Sequence[Message], seed: int, salt: int = 0) -> bytes:
    """16 bytes that stand for a request: who says what, the seed, and the simulator's own seed."""
    parts = [f"{VERSION}\0{salt}\0{seed}"]
    for message in messages:
        parts += (message.role, message.content)
    # Lengths keep ("ab", "c") apart from ("a", "bc").
    text = "\0".join([f"{len(part)}\0{part}" for part in parts])
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def respond(
    messages: Sequence[Message],
    *,
    seed: int,
    max_tokens: int | None = None,
    faults: Faults = NO_FAULTS,
    salt: int = 0,
    stop: Sequence[str] = (),
    json_mode: bool = False,
    model: str | None = None,
) -> Reply:
    """The reply to the messages.

    Of `faults` only the content faults count here. `stop` ends the text before any of its strings.
    `json_mode` makes JSON of an answer that would have been a sentence, a turn or a number. Usage is counted in
    tokens of four characters, and `max_tokens` cuts there.
    """
    key = request_key(messages, seed, salt)
    rng = Random(int.from_bytes(key[:8], "big"))  # noqa: S311 - reproducible, not secret
    fault = struck(faults.content, int.from_bytes(key[8:], "big") / 2**64)
    text, finish, refusal = _answer(messages, fault.name if fault else None, rng, json_mode)
    for sequence in stop:
        text = text.split(sequence, 1)[0]
    if max_tokens is not None and len(text) > max_tokens * CHARS_PER_TOKEN:
        text, finish = text[: max_tokens * CHARS_PER_TOKEN], "length"
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    usage = Usage(sum([tokens(message.content) for message in messages]), tokens(text))
    return Reply(text=text, finish_reason=finish, refusal=refusal, usage=usage, model=model, simulated=True)


def tokens(text: str) -> int:
    """About how many tokens the text is."""
    return -(-len(text) // CHARS_PER_TOKEN)


def _answer(
    messages: Sequence[Message], fault: str | None, rng: Random, json_mode: bool
) -> tuple[str, FinishReason, str | None]:
    if fault == "empty":
        return "", "stop", None
    if fault == "filtered":
        return "", "content_filter", "The answer was blocked by a content filter."
    if fault == "refusal":
        words = Voice(rng, {}).say("refusal")
        return ("", "stop", words) if rng.random() < 0.3 else (words, "stop", None)
    text = _text(messages, fault, rng, json_mode)
    if fault == "truncated":
        return text[: int(len(text) * (0.2 + 0.6 * rng.random()))], "length", None
    return text, "stop", None


def _text(messages: Sequence[Message], fault: str | None, rng: Random, json_mode: bool) -> str:
    """What the messages ask for: a verdict, a number, a turn, a conversation, or just any answer."""
    if not prompt.asks_for_nothing_else(messages):
        from edgen.backends.simulator import agents

        said = agents.answer(messages, fault, rng)
        if said is not None:
            return _as_json(*said, json_mode)
    if fault == "garbage":
        voice = Voice(rng, {})
        return " ".join(voice.say("garbage") for _ in range(1 + int(rng.random() * 4)))
    task = prompt.read(messages)
    return _plain(rng, json_mode) if task is None else _conversation(task, fault, rng)


def _as_json(key: str, words: str, json_mode: bool) -> str:
    return msgspec.json.encode({key: words}).decode() if json_mode else words


def _plain(rng: Random, json_mode: bool) -> str:
    return _as_json("answer", Voice(rng, {}).say("plain"), json_mode)


def _conversation(task: prompt.Task, fault: str | None, rng: Random) -> str:
    dialogue = converse(task, rng)
    spoken = layout.entries(dialogue, task)
    if fault == "one_speaker":
        spoken = [entry for entry in spoken if entry[0] == "Teacher"]
    clean = layout.render(spoken, dialogue.probability if task.probability else None, task)
    if fault == "defects" or fault in defects.FAMILIES:
        return defects.spoil(fault, defects.Answer(spoken, dialogue.probability, clean), rng)
    return clean
