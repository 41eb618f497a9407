"""A Chat Completions server that gives several answers to one request, counts what it is asked, and counts tokens as
services do: the prompt once, and what all answers took together."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from edgen.core.values import Message
from edgen.simulator.text import respond

PROMPT, ANSWER = 1000, 100  # tokens that are counted


class Chooser:
    """`mode`: all answers that are asked for, one fewer, one alone, or a refusal of more than `most`. `garbage`: the place of
    an answer that is none, in requests for several. After `hold_after` requests the others wait for `released`."""

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
        """How many answers each request asked for."""
        return [body.get("n", 1) for body in self.bodies]

    def says(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer to a request."""
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
    """The server, on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, value = chooser.says(body)
            data = json.dumps(value).encode()
            with contextlib.suppress(OSError):  # who asked was killed
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    chooser = Chooser(f"http://127.0.0.1:{httpd.server_port}/v1")
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield chooser
    finally:
        chooser.released.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()
