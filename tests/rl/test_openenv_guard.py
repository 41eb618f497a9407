"""OpenEnv's own server and client with edgen's guard between them."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from edgen.env import EducationEnv
from edgen.env import openenv as edgen_openenv
from edgen.env.openenv import ConversationClient
from tests.env.jobs import job
from tests.rl.served import Served


def request(url: str, body: bytes | None = None, **headers: str) -> int:
    """Return the status of a request to the server."""
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=120) as answered:
            return int(answered.status)
    except urllib.error.HTTPError as refused:
        return int(refused.code)


def test_openenv_is_guarded(tmp_path: Path) -> None:
    shared = EducationEnv.from_job(job(tmp_path))
    app = edgen_openenv.serve(shared, token="x" * 16)
    with Served(app) as url:
        bare = url.removesuffix(f"/{app.token}")
        assert request(f"{bare}/health") == 401
        assert request(f"{url}/health") == 200
        assert request(f"{url}/health", Host="evil.example") == 403
        assert request(f"{url}/health", Origin="https://evil.example") == 403
        bodies = [
            b'{"scenario": "abc"}', b'{"scenario": 1e400}', b'{"scenario": true}', b'{"seed": NaN}', b'{"scenario": -1}',
            b'{"seed": 1' + b"0" * 4000 + b"}", b'{"episode_id": "\\ud800"}', b"[", b'{"scenario": [[]]}',
        ]  # fmt: skip
        assert [request(f"{url}/reset", body) for body in bodies] == [422] * len(bodies)
        assert request(f"{url}/reset", b" " * (1 << 23)) == 413
        assert request(f"{bare}/reset", b" " * (1 << 23)) == 401
        assert request(f"{url}/reset", b'{"self": 1}') == 200
        assert request(f"{url}/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}') == 404
        texts: list[Any] = ["x" * 200_000, 7, None, ["a"]]
        steps = [json.dumps({"action": {"text": text}}).encode() for text in texts]
        assert [request(f"{url}/step", body) for body in steps] == [422] * len(steps)
        assert request(f"{url}/step", b'{"action": {"text": "hello"}}') == 422, "no episode is running"
        with pytest.raises(ConnectionError), ConversationClient(bare).sync() as client:
            client.reset()
        with ConversationClient(url).sync() as client:
            for bad in ("abc", 2**70, True, 1.5):
                with pytest.raises(RuntimeError, match="expected a whole number"):
                    client.reset(scenario=bad)
            assert client.reset(scenario=0).observation.messages
    asyncio.run(shared.aclose())
