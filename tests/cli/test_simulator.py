"""`edgen simulator` as a process."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import fork_server


@contextmanager
def simulator(*options: str) -> Iterator[tuple[fork_server.Popen, str]]:
    """Run `edgen simulator` on a free port; yield its OpenAI base URL."""
    process = fork_server.Popen("simulator", "--port", "0", *options, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.match(r"listening on (http://127\.0\.0\.1:\d+/v1) ", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def ask(url: str) -> str:
    """Return the content of one answer."""
    body = json.dumps({"messages": [{"role": "user", "content": "hello"}], "seed": 1}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body)) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run("simulator", *options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_told_to_stop(number: signal.Signals) -> None:
    with simulator() as (process, url):
        assert ask(url)
        process.send_signal(number)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_options_reach_the_server() -> None:
    with simulator("--faults", "500=1", "--latency-ms", "5") as (_, url):
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(url)
        assert caught.value.code == 500
        caught.value.close()


def test_what_is_no_http_is_answered_without_a_traceback() -> None:
    with simulator() as (process, url):
        for sent in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other.example\r\n\r\n",
            b"\x16\x03\x01\x00\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0])), 10) as caller:
                caller.sendall(sent)
                assert b" 400 " in caller.recv(1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_port_in_use_is_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "is in use. Choose another one with --port" in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_faults_are_a_sentence() -> None:
    done = run("--faults", "nonsense=1")
    assert done.returncode == 2
    assert "there is no fault 'nonsense'. Known are refusal" in done.stderr
    assert "Traceback" not in done.stderr


def test_faults_are_listed() -> None:
    done = run("--list-faults")
    assert done.returncode == 0
    for name in ("refusal", "code_fence", "429"):
        assert f"\n  {name}: " in done.stdout
