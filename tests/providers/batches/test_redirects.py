"""A batch service that redirects: to another port, into endless chains, to files, to
addresses in the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import FailureKind
from tests.providers.batches.service import Service
from tests.providers.batches.test_openai import failing
from tests.providers.batches.test_sdk import FILES, KINDS, opened, steps
from tests.providers.fakes import FakeServer, answer, raw_serving, serving

# Targets that no client may follow from a service on this machine.
REFUSED = [
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fe80::1]/x",
    "http://[::ffff:169.254.169.254]/x",
    "http://10.0.0.1/x",
    "https://api.openai.com/v1/files/1/content",
    "http://user@127.0.0.1/x",
    "http://127.0.0.1.example/x",
    "data:text/plain,x",
    "unix:/var/run/docker.sock",
    "http://[",
    "http://127.0.0.1:99999/x",
]


def holds_key(server: FakeServer | Service, key: str) -> bool:
    """Return whether a request to a server held the key, in its path, headers or body."""
    return any(key in f"{seen.path} {seen.headers} {seen.body!r}" for seen in server.seen)


async def test_a_download_is_followed_to_another_port_without_the_key(
    service: Service, kind: str, tmp_path: Path
) -> None:
    key = KINDS[kind].KEY
    async with serving() as other, opened(kind, service.url) as it:
        other.says(answer(b"{}\n"))
        service.next = [answer(b"", 302, Location=f"{other.url}/file?sig=1")]
        await it.download(FILES[kind], tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"{}\n"
    assert holds_key(service, key)
    assert len(other.seen) == 1
    assert not holds_key(other, key)


async def test_an_endless_chain_ends(service: Service, kind: str, tmp_path: Path) -> None:
    """An address that leads to itself, two that lead to each other, and a chain that never repeats."""
    chains: list[Any] = [
        lambda _other, _number: f"{service.url}/again",
        lambda other, number: f"{other.url if number % 2 else service.url}/next",
        lambda _other, number: f"{service.url}/{number}",
    ]
    for chain in chains:
        async with serving() as other, opened(kind, service.url) as it:
            service.seen.clear()
            other.says(*(answer(b"", 302, Location=chain(other, number)) for number in range(0, 400, 2)))
            service.next = [answer(b"", 302, Location=chain(other, number)) for number in range(1, 401, 2)]
            failure = await failing(it.download(FILES[kind], tmp_path / "out"))
            assert "redirects" in failure.message, failure
            assert failure.kind is FailureKind.PERMISSION  # not LOST: the file is not made again
            assert len(service.seen) + len(other.seen) <= 25
            assert not holds_key(other, KINDS[kind].KEY)
            assert not (tmp_path / "out").exists()


async def test_what_is_not_followed(service: Service, kind: str, tmp_path: Path) -> None:
    """An invalid redirect is refused, at first and after a valid one."""
    async with opened(kind, service.url) as it:
        for location in REFUSED:
            for before in ([], [answer(b"", 302, Location=f"{service.url}/first")]):
                service.seen.clear()
                service.next = [*before, answer(b"", 302, Location=location)]
                failure = await failing(it.download(FILES[kind], tmp_path / "out"))
                assert "put that into base_url" in failure.message, (location, failure)
                assert "\n" not in failure.message
                assert len(service.seen) == 1 + len(before), location
                assert not (tmp_path / "out").exists()


async def test_no_other_step_follows_one(service: Service, kind: str, tmp_path: Path) -> None:
    async with serving() as other, opened(kind, service.url) as it:
        for status in (301, 302, 303, 307, 308):
            for number, call in enumerate(steps(it, kind, tmp_path)):
                if number == 3:  # the download
                    call.close()
                    continue
                service.seen.clear()
                service.next = [answer(b"", status, Location=f"{other.url}/elsewhere")]
                failure = await failing(call)
                assert "moved to" in failure.message
                assert len(service.seen) == 1
        assert other.seen == []


@pytest.mark.parametrize(
    "location", [b"http://127.0.0.1:1/\xff\xfe", b"\x1b[2Jhttp://x/", b"//", b"\xe2\x80\xae"]
)
async def test_an_address_that_is_no_text_is_worded(kind: str, location: bytes, tmp_path: Path) -> None:
    script = b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    async with raw_serving(script) as raw, opened(kind, raw.url) as it:
        failure = await failing(it.download(FILES[kind], tmp_path / "out"))
    assert failure.message.isprintable()
    assert KINDS[kind].KEY not in failure.message
