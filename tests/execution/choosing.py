"""A Chat Completions server that gives several answers to one request, counts requests, and counts tokens as
services do: the prompt once, and the sum of all answers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Literal

from edgen.core.values import Message
from edgen.simulator.text import respond
from tests.json_server import serving_json

PROMPT, ANSWER = 1000, 100  # counted tokens


class Chooser:
    """A server. `mode`: it gives all requested answers, one fewer or only one, or refuses more than `most`.
    `garbage`: the index of an invalid answer in requests for several. After `hold_after` requests, others
    wait for `released`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.mode: Literal["all", "fewer", "one", "refuses"] = "all"
        self.most = 1
        self.garbage: int | None = None
        self.bodies: list[dict[str, Any]] = []
        self.hold_after: int | None = None
        self.held, self.released = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._answers = 0

    @property
    def wanted(self) -> list[int]:
        """Return how many answers each request asked for."""
        return [body.get("n", 1) for body in self.bodies]

    def says(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the answer to a request."""
        with self._lock:
            self.bodies.append(body)
            wanted, first = body.get("n", 1), self._answers
            self._answers += wanted
            count = len(self.bodies)
        if self.hold_after is not None and count > self.hold_after:
            self.held.set()
            self.released.wait(60)
        if wanted > self.most and self.mode == "refuses":
            return 400, {"error": {"message": f"Field 'n': Value must be between 1 and {self.most}"}}
        given = {"fewer": max(1, wanted - 1), "one": 1}.get(self.mode, wanted)
        messages = [Message(one["role"], one["content"]) for one in body["messages"]]
        texts = [respond(messages, seed=first + number).text for number in range(given)]
        if self.garbage is not None and wanted > 1:
            texts[self.garbage] = "I have nothing to say."
        choices = [
            {"index": number, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for number, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": PROMPT, "completion_tokens": ANSWER * given}
        return 200, {"model": "chooser", "choices": choices, "usage": usage}


@contextlib.contextmanager
def choosing() -> Iterator[Chooser]:
    """Run the server on a free port of this machine."""
    with serving_json(lambda _, body: chooser.says(body)) as url:
        chooser = Chooser(f"{url}/v1")
        try:
            yield chooser
        finally:
            chooser.released.set()
