"""Uploads and downloads: complete or absent, abandoned if nothing moves, and rejected if they
cannot be result files."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import resource
import signal
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from yarl import URL

from edgen.core.errors import FailureKind
from edgen.core.files import choose_temporary_name
from edgen.core.values import MAX_ANSWER
from edgen.providers.base import Key
from edgen.providers.batches import OversizedError, Sending, is_id
from edgen.providers.credentials import Credentials
from edgen.providers.openai import online as online_openai
from edgen.providers.sdk import SdkCalls
from edgen.providers.sdk_batches import write_result_file
from tests.providers.batches.service import Service
from tests.providers.batches.test_openai import failing
from tests.providers.batches.test_sdk import FILES, NAMES, opened, sending, steps
from tests.providers.fakes import Answer, answer

PLACE = SdkCalls(
    URL("http://127.0.0.1:9/"),
    Credentials(Key(), lambda _: {}),
    online_openai.classify,
    ("openai", "OpenAIError"),
)

# --- services that hang --------------------------------------------------------------------------

PATIENCE = 0.3  # seconds
BOUND = 60.0


@contextlib.asynccontextmanager
async def hanging(says: bytes = b"", *, hears: bool = True) -> AsyncIterator[str]:
    """Run a server that sends these bytes to each client, then nothing more; yield its address. `hears`: it
    reads requests; otherwise it reads and answers only Google's announcement of an upload."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not hears and b" /upload/" in await reader.readuntil(b"\r\n\r\n"):
                await reader.read(1 << 16)
                port = writer.get_extra_info("sockname")[1]
                writer.write(ANNOUNCED.replace(b"PORT", str(port).encode()))
            writer.write(says)
            while hears and await reader.read(1 << 20):
                pass
            await asyncio.sleep(60)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


ANNOUNCED = (
    b"HTTP/1.1 200 OK\r\nX-Goog-Upload-URL: http://127.0.0.1:PORT/session/0\r\nX-Goog-Upload-Status: active\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"


@pytest.mark.parametrize(
    "says", [b"", HEADERS[:30], HEADERS + b"\r\n", HEADERS + b'\r\n{"id": "batch_1"}\n'],
    ids=["nothing", "half of the headers", "headers", "half of the answer"],
)  # fmt: skip
async def test_a_service_that_hangs_is_given_up(kind: str, says: bytes, tmp_path: Path) -> None:
    async with hanging(says) as url, opened(kind, url, patience=PATIENCE) as it:
        async with asyncio.timeout(BOUND):
            failures = await asyncio.gather(*(failing(call) for call in steps(it, kind, tmp_path)))
    assert {failure.kind for failure in failures} == {FailureKind.TIMEOUT}
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


async def test_an_upload_that_hangs_in_the_middle(kind: str, tmp_path: Path) -> None:
    large = tmp_path / "in"
    with large.open("wb") as file:
        file.truncate(50_000_000)
    async with hanging(hears=False) as url, opened(kind, url, patience=PATIENCE) as it:
        goes_up = it.create(Sending(file=large, token="t")) if kind == "anthropic" else it.upload(large, "t")
        async with asyncio.timeout(BOUND):
            assert (await failing(goes_up)).kind is FailureKind.TIMEOUT


async def test_patience_is_as_asked_and_not_the_client_s_own() -> None:
    """The HTTP library's default is 5 s; OpenAI's client mistakes 5 s for the default and
    uses 600 s instead."""
    async with opened("openai", "http://127.0.0.1:9", patience=5.0) as it:
        timeout = it.client.timeout  # type: ignore[attr-defined]
        assert (timeout.read, timeout.write, timeout.connect, timeout.pool) == (5.0, 5.0, 5.0, 5.0)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "Cannot find file file-1 in organization org-1.", FailureKind.SERVER_ERROR),
        (400, "No such File object: file-1", FailureKind.SERVER_ERROR),
        (404, "Input file not found", FailureKind.SERVER_ERROR),
        (404, "File 'file-1' does not exist", FailureKind.SERVER_ERROR),
        (400, "Invalid purpose of the input file", FailureKind.BAD_REQUEST),
        (404, "The model `m` does not exist", FailureKind.NOT_FOUND),
        (403, "Cannot find file file-1", FailureKind.PERMISSION),
    ],
)
async def test_a_file_that_is_not_known_yet(
    service: Service, status: int, message: str, kind: FailureKind
) -> None:
    """The file was uploaded a moment ago, so a retry may succeed. A created batch can fail
    with the same message."""
    async with opened("openai", service.url) as it:
        service.next = [answer({"error": {"message": message}}, status)]
        failure = await failing(it.create(Sending(file_id="file-1", token="t")))
        assert (failure.kind, failure.status, failure.message) == (kind, status, message)
        service.openai_batch(status="failed", errors={"data": [{"message": message}]})
        refused = (await it.state("batch_0")).failure
        assert refused is not None
        assert (refused.kind is FailureKind.SERVER_ERROR) == ("file-1" in message or "Input file" in message)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_download_that_breaks_off_leaves_nothing(
    service: Service, kind: str, size: int, tmp_path: Path
) -> None:
    async with opened(kind, service.url) as it:
        service.next = [Answer(b"x" * size, act="cut")]
        assert (await failing(it.download(FILES[kind], tmp_path / "out"))).kind is FailureKind.CONNECTION
        assert not list(tmp_path.iterdir())
        service.files[FILES[kind]] = b"{}\n"
        (left := choose_temporary_name(tmp_path / "out")).write_bytes(
            b"what a killed process left, which is longer\n"
        )
        await it.download(FILES[kind], tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == b"{}\n"
        assert {path.name for path in tmp_path.iterdir()} == {"out", left.name}


BIG = b'{"custom_id": "%s"}\n' % (b"x" * 1_000_000)


@pytest.mark.parametrize("size", [1, 4])
async def test_a_download_larger_than_asked_for_leaves_nothing(
    service: Service, kind: str, size: int, tmp_path: Path
) -> None:
    async with opened(kind, service.url) as it:
        service.files[FILES[kind]] = BIG * size
        failure = await failing(it.download(FILES[kind], tmp_path / "out", len(BIG) * size - 1))
        assert isinstance(failure, OversizedError)
        assert "larger than" in failure.message
        assert not list(tmp_path.iterdir())
        await it.download(FILES[kind], tmp_path / "out", len(BIG) * size)


async def test_what_is_compressed_is_not_asked_for_and_not_unpacked(
    service: Service, kind: str, tmp_path: Path
) -> None:
    """A few megabytes could unpack to gigabytes."""
    packed = {"Content-Encoding": "gzip"}
    async with opened(kind, service.url) as it:
        for call in steps(it, kind, tmp_path):
            service.next = [Answer(gzip.compress(b"{}\n" * 10), headers=packed)]
            failure = await failing(call)
            assert (failure.kind, "compressed" in failure.message) == (FailureKind.BAD_RESPONSE, True)
            assert service.seen[-1].headers["accept-encoding"] == "identity"


async def test_an_answer_about_a_batch_has_a_bound(service: Service, kind: str, tmp_path: Path) -> None:
    async with opened(kind, service.url) as it:
        service.next = [Answer(b'{"id": "%s"}' % (b"x" * MAX_ANSWER))]
        assert "larger than" in (await failing(it.state("batch_0"))).message


@pytest.mark.parametrize(
    "name", ["../../v1/files", "a/b", "a?b", "a#b", "a%2fb", "", "..", "batches/..", "a\nb", "é"]
)
async def test_what_a_service_gives_as_an_id_is_one(
    service: Service, kind: str, name: str, tmp_path: Path
) -> None:
    assert not is_id(name)
    async with opened(kind, service.url) as it:
        service.next = [answer({"id": name, "name": name, "object": "batch"})]
        assert (await failing(it.create(sending(kind, tmp_path)))).kind is FailureKind.BAD_RESPONSE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x00" * 3_000_000, "no JSON lines; it begins with b'"),
        (b"<html>busy</html>\n", "no JSON lines; it begins with b'<htm'"),
        (b'[{"custom_id": "a"}]\n', "no JSON lines"),
        (b'{"custom_id": "a"}\n{"custom_id": "b", "resp', "cut off in the middle of a line"),
        (b'{"custom_id": "a"}\n' + b"\x00" * 2_000_000, "cut off in the middle of a line"),
        (b"", "empty, though its batch has answers"),
        (b" \n", "empty, though its batch has answers"),
    ],
)
async def test_what_can_be_no_result_file_is_not_kept(
    service: Service, kind: str, content: bytes, words: str, tmp_path: Path
) -> None:
    ended(service, kind, answered=1)
    service.files[FILES[kind]] = content
    async with opened(kind, service.url) as it:
        remote = await it.state(NAMES[kind])
        assert (remote.files, remote.done) == ((FILES[kind],), 1)
        failure = await failing(it.download(FILES[kind], tmp_path / "out"))
        assert failure.kind is FailureKind.BAD_RESPONSE
        assert words in failure.message
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "answered"),
    [
        (b'{"a":1}\nsome odd line\n\n\x00\n{"b":2}', 2),
        (b'\xef\xbb\xbf{"a":1}\r\n', 1),
        (b"\n" * 3_000_000 + b"{}" + b"\n" * 3_000_000, 1),
        (b"", 0),
        (b"", None),
    ],
)
async def test_odd_result_files_are_kept(
    service: Service, kind: str, content: bytes, answered: int | None, tmp_path: Path
) -> None:
    """An empty file is valid if no request was answered, or if the provider reports no count."""
    ended(service, kind, answered)
    service.files[FILES[kind]] = content
    async with opened(kind, service.url) as it:
        await it.state(NAMES[kind])
        await it.download(FILES[kind], tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == content


def ended(service: Service, kind: str, answered: int | None) -> None:
    """End a batch with one result file."""
    if kind == "anthropic":
        service.anthropic_batch(requests=2)
        if answered is None:
            service.batches[FILES[kind]]["request_counts"] = None
            service.batches[FILES[kind]].update(processing_status="ended", results_url="there")
        else:
            service.anthropic_ended(FILES[kind], succeeded=answered, expired=2 - answered)
        return
    if kind == "openai":
        batch = service.openai_batch(status="completed", output_file_id=FILES[kind])
        if answered is not None:
            batch["request_counts"] = {"total": 2, "completed": answered, "failed": 0}
        return
    metadata = service.gemini_batch()["metadata"]
    metadata.update(state="BATCH_STATE_SUCCEEDED", output={"responsesFile": FILES[kind]})
    if answered is not None:
        metadata["batchStats"] = {"requestCount": "2", "successfulRequestCount": str(answered)}


async def test_a_download_that_is_cancelled_leaves_nothing(
    service: Service, kind: str, tmp_path: Path
) -> None:
    service.files[FILES[kind]] = b"x" * 50_000_000
    async with opened(kind, service.url) as it:
        task = asyncio.create_task(it.download(FILES[kind], tmp_path / "out"))
        while not list(tmp_path.iterdir()):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not list(tmp_path.iterdir())


async def test_a_disk_that_fills_is_the_disk_s_error(service: Service, kind: str, tmp_path: Path) -> None:
    """A limit on file sizes acts like a full disk: the same call fails, with EFBIG for ENOSPC."""
    service.files[FILES[kind]] = b"x" * 3_000_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with opened(kind, service.url) as it:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                await it.download(FILES[kind], tmp_path / "out")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        assert not list(tmp_path.iterdir())
        with pytest.raises(FileNotFoundError):
            await it.download(FILES[kind], tmp_path / "no" / "out")
        with pytest.raises(FileNotFoundError):
            await it.upload(tmp_path / "none", "t")


async def test_what_cannot_be_renamed_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OSError, match="directory"):
        async with write_result_file(tmp_path / "out", PLACE) as sink:
            await sink.write(b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


async def test_files_go_up_and_down_in_pieces(service: Service, kind: str, tmp_path: Path) -> None:
    size = 36_000_000
    service.large = tmp_path / "in"
    with service.large.open("wb") as file:
        file.write(b"{")
        file.truncate(size - 1)
        file.seek(0, os.SEEK_END)
        file.write(b"}")
    async with opened(kind, service.url) as it:
        tracemalloc.start()
        try:
            await it.download(FILES[kind], tmp_path / "out", size)
            if kind == "anthropic":  # the file is sent with the call that creates the batch
                await it.create(Sending(file=service.large, token="t"))
                service.uploaded -= len('{"requests":[]}') - 1
            else:
                await it.upload(service.large, "t")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (tmp_path / "out").stat().st_size == service.uploaded == size
    assert peak < 33_000_000  # pieces of Google's client are 8 MiB, and the test's server holds some
