"""A Chat Completions server of a judge: a reason, then the verdict with its log probabilities.

Its probability depends on the two texts alone, apart from a share `slot` by which it favours the text shown
first.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Literal

from edgen.core.values import Message
from edgen.simulator import judge
from tests.json_server import serving_json

FIELDS = {"model", "messages", "seed", "max_tokens", "logprobs", "top_logprobs", "response_format"}


class SoftJudge:
    """The server's judge.

    `mode`: it returns log probabilities, accepts the request for them and returns none, or refuses the
    request. `asked` counts requests by their seed; after `hold_after` of them the others wait until it is
    None.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.mode: Literal["tells", "silent", "refuses"] = "tells"
        self.refusal = 400  # the 403 of OpenAI's reasoning models
        self.slot = 0.1
        self.asked: Counter[int] = Counter()
        self.hold_after: int | None = None
        self.held = threading.Event()
        self.released = threading.Event()

    def says(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and answer to a request."""
        self.asked[body.get("seed", -1)] += 1
        if self.hold_after is not None and self.asked.total() > self.hold_after:
            self.held.set()
            self.released.wait(60)
        if extra := body.keys() - FIELDS:
            return 400, {"error": {"message": f"Unrecognized request argument supplied: {min(extra)}"}}
        if body.get("logprobs") and self.mode == "refuses":
            return self.refusal, {"error": {"message": "logprobs are not supported with this model"}}
        return 200, self.answer(body)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        p = self.first_is_better([Message(one["role"], one["content"]) for one in body["messages"]])
        said, other = ("1", "2") if p >= 0.5 else ("2", "1")
        tokens = ["Interaction", " 1", " is", " calm", ";", " interaction", " 2", " is", " not", ".", "\n\n"]
        tokens += ["Answer", ":", f" {said}"]
        entries = [{"token": one, "logprob": -0.01, "top_logprobs": []} for one in tokens]
        if body.get("top_logprobs"):
            shares = {f" {said}": max(p, 1 - p) * 0.9, f" {other}": min(p, 1 - p) * 0.9, " Both": 0.05}
            top = [{"token": one, "logprob": math.log(share)} for one, share in shares.items()]
            entries[-1] = top[0] | {"top_logprobs": top[: body["top_logprobs"]]}
        told = {"content": entries} if body.get("logprobs") and self.mode == "tells" else None
        message = {"role": "assistant", "content": "".join(tokens)}
        return {"choices": [{"message": message, "logprobs": told, "finish_reason": "stop"}], "model": "soft"}

    def first_is_better(self, messages: list[Message]) -> float:
        """Return the probability at which it prefers the first text."""
        shown = judge.read(messages)
        if shown is None:
            return 0.5
        return min(0.99, planted(shown.first, shown.second) + self.slot)


def planted(first: str, second: str) -> float:
    """Return a probability in [0.1, 0.9]; for the two in the other order, the complement to 1."""
    one, two = (blake2b(text.encode(), digest_size=4).digest() for text in (first, second))
    return 0.5 + 0.4 * (int.from_bytes(one, "big") - int.from_bytes(two, "big")) / 2**32


@contextlib.contextmanager
def serving() -> Iterator[SoftJudge]:
    """Run the judge on a free port of this machine."""
    with serving_json(lambda _, body: soft.says(body)) as url:
        soft = SoftJudge(f"{url}/v1")
        try:
            yield soft
        finally:
            soft.released.set()
