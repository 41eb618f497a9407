"""An ASGI application in a real server."""

from __future__ import annotations

import threading
from typing import Any

import uvicorn


class Served:
    """uvicorn in a thread, on a port of its own."""

    def __init__(self, app: Any) -> None:
        self._address = getattr(app, "address", str)  # with the token, if it has one
        self._server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            threading.Event().wait(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return str(self._address(f"http://127.0.0.1:{port}"))

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
