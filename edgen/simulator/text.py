"""The simulated model: text in, text out.

`respond` is a pure function: the same messages and seed give the same reply in any process on any machine.
VERSION increases whenever an answer changes that makes a conversation, a judgement or a label, and is part of
the ledger's keys. DRAWS is part of every draw, and increases if all answers may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from random import Random

from edgen.core.pictures import BEGIN, pictures_in, without_pictures
from edgen.core.values import FinishReason, Message, Reply, Usage
from edgen.simulator.config import CHARS_PER_TOKEN
from edgen.simulator.faults import NO_FAULTS, Fault, Faults, select_fault
from edgen.simulator.simulated_request import SimulatedRequest
from edgen.space.model import Scene

VERSION = 10
DRAWS = 3


def make_request_key(messages: Sequence[Message], seed: int, salt: int = 0) -> bytes:
    """Return 16 bytes that identify a request: roles and texts, the seed, and the simulator's own seed."""
    parts = [f"{DRAWS}\0{salt}\0{seed}"]
    for message in messages:
        parts += (message.role, message.content)
    # Lengths distinguish ("ab", "c") from ("a", "bc").
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
    schema: bytes | None = None,
    model: str | None = None,
    protocol: str | None = None,
    speakers: Sequence[tuple[str, ...]] = (),
    scene: Scene | None = None,
    find_scene: Callable[[Sequence[Message]], Scene | None] | None = None,
    planted: int | None = None,
    confusion: Mapping[str, Mapping[str, float]] | None = None,
    top: int | None = None,
) -> Reply:
    """Return the reply to the messages.

    Only the content faults count here. `stop` ends the text before any of its strings. `json_mode` wraps a
    sentence, a turn or a number in JSON. An answer without a fault fits `schema`. `max_tokens` cuts at tokens
    of four characters, as usage counts them. `protocol`: the requesting one; None to infer it from the
    prompt. `speakers`: the roles of the requested conversation. `scene`: its scenario; None to look for it by
    `find_scene`. `planted`: the seed of planted worths; None without them. `confusion`: how often a labeller
    confuses each label with others. `top`: give log probabilities, of at most so many tokens at a position.
    """
    key, sent = make_request_key(messages, seed, salt), messages
    messages = _replace_pictures(messages)
    rng = Random(int.from_bytes(key[:8], "big"))  # noqa: S311 - reproducible, not secret
    fault = choose_content_fault(faults, key)
    request = SimulatedRequest(
        messages,
        fault.name if fault else None,
        rng,
        json_mode=json_mode,
        speakers=speakers,
        scene=scene,
        find_scene=find_scene,
        planted=planted,
        confusion=confusion,
    )
    text, finish, refusal = _answer(request, protocol)
    if schema is not None and fault is None:
        from edgen.simulator.schemas import form_filling, structured

        text = structured.fit_to_schema(form_filling.fill_form(text, schema), schema, rng)
    for sequence in filter(None, stop):
        text = text.split(sequence, 1)[0]
    if max_tokens is not None and len(text) > max_tokens * CHARS_PER_TOKEN:
        text, finish = text[: max_tokens * CHARS_PER_TOKEN], "length"
    text = text.encode("utf-8", "replace").decode()
    usage = Usage(sum([count_tokens(message.content) for message in messages]), count_tokens(text))
    reply = Reply(text=text, finish_reason=finish, refusal=refusal, usage=usage, model=model, simulated=True)
    if top is None:
        return reply
    from edgen.simulator.logprobs import score

    return score(reply, sent, key, request.fault, top)


def _replace_pictures(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with words in place of pictures, which the simulator does not read."""
    if not any(BEGIN in message.content and pictures_in(message.content) for message in messages):
        return messages
    return [Message(message.role, without_pictures(message.content)) for message in messages]


def choose_content_fault(faults: Faults, key: bytes) -> Fault | None:
    """Return the content fault of the request with this key; None without one."""
    return select_fault(faults.content, int.from_bytes(key[8:], "big") / 2**64)


def count_tokens(text: str) -> int:
    """Return the approximate number of tokens in the text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def _answer(request: SimulatedRequest, protocol: str | None) -> tuple[str, FinishReason, str | None]:
    fault = request.fault
    if fault == "empty":
        return "", "stop", None
    if fault == "filtered":
        return "", "content_filter", "The answer was blocked by a content filter."
    if fault == "refusal":
        words = request.say("refusal")
        return ("", "stop", words) if request.random() < 0.3 else (words, "stop", None)
    text = request.answer(protocol)
    if fault == "truncated":
        return text[: int(len(text) * (0.2 + 0.6 * request.random()))], "length", None
    return text, "stop", None
