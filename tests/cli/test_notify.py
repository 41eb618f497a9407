"""`--notify`: a command or an address gets the final status without keys; the exit code does not change."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest
from aiohttp import web

from edgen.core.errors import UsageError
from tests.execution.service import Service, completion, edgen, end, job_text, serve, start, write


def job_file(folder: Path, url: str, conversations: int = 4) -> Path:
    return write(folder / "job.yaml", job_text(url, conversations=conversations, limits={"in_flight": 4}))


async def test_a_command_gets_the_status_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-you")
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=OPENAI_API_KEY")
    told, environ = tmp_path / "told.json", tmp_path / "env.txt"
    command = f"cat > {told}; echo $EDGEN_STATE $EDGEN_EXIT > {tmp_path}/end; env > {environ}; echo noise"
    async with serve(Service()) as service:
        made = await edgen(
            "generate", job_file(tmp_path, service.url), "-o", tmp_path / "run", "--json", "--notify", command
        )
    assert made.code == 0, made.err
    assert json.loads(made.out)["accepted"] == 4
    status = json.loads(told.read_text())
    assert (status["state"], status["accepted"], status["exit_code"]) == ("complete", 4, 0)
    assert (tmp_path / "end").read_text() == "complete 0\n"
    assert "sk-not-for-you" not in environ.read_text()


async def test_every_end_is_told(tmp_path: Path) -> None:
    """Too few conversations, an unreadable job, and a refused key."""

    async def refuse(_service: Service, _seed: int) -> web.StreamResponse | None:
        return web.Response(status=401, text="no")

    async def prose(_service: Service, _seed: int) -> web.StreamResponse | None:
        return completion("no turns here")

    told = tmp_path / "told.json"
    for trouble, code, reason in ((refuse, 5, "refused"), (prose, 3, "short")):
        async with serve(Service(trouble=trouble)) as service:
            run = tmp_path / reason
            made = await edgen(
                "generate", job_file(tmp_path, service.url), "-o", run, "--notify", f"cat > {told}"
            )
        assert made.code == code, made.err
        status = json.loads(told.read_text())
        assert (status["exit_code"], status["reason"]) == (code, reason)
        assert status["stopped"]["reason"] == reason
    made = await edgen("generate", tmp_path / "none.yaml", "--notify", f"cat > {told}")
    assert made.code == 2
    assert json.loads(told.read_text())["exit_code"] == 2


async def test_an_interrupted_run_tells_so(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    async with serve(Service(hold_after=2)) as service:
        process = await start(
            "generate", job_file(tmp_path, service.url), "-o", tmp_path / "run", "--notify", f"cat > {told}"
        )
        while service.asked.total() < 3:
            await _breathe()
        process.terminate()
        service.release()
        made = await end(process)
    assert made.code == 143, made.err
    status = json.loads(told.read_text())
    assert status["stopped"]["reason"] == "interrupted"


async def test_an_address_gets_it_by_post_and_neither_redirects_nor_proxies_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies: list[bytes] = []

    async def hook(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.Response()

    async def redirect(_request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/hook")

    app = web.Application()
    app.router.add_post("/hook", hook)
    app.router.add_post("/redirect", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    job = write(
        tmp_path / "job.yaml",
        json.dumps(
            json.loads(job_text("", conversations=2)) | {"backends": {"default": {"type": "simulator"}}}
        ),
    )
    run = tmp_path / "run"
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1 << 16))
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, place)
    try:
        made = await edgen("generate", job, "-o", run, "--notify", f"http://127.0.0.1:{port}/hook")
        assert made.code == 0, made.err
        assert json.loads(bodies[0])["state"] == "complete"
        assert asked == []
        made = await edgen("generate", job, "-o", run, "--notify", f"http://127.0.0.1:{port}/redirect")
        assert made.code == 0
        assert "redirects are not followed; the exit code stays 0" in made.err
        assert len(bodies) == 1
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://example.org/x", "use https"),
        ("https://user:word@example.org/", "without a user"),
        ("https:///x", "with a host"),
        (" ", "name a command"),
    ],
)
async def test_addresses_that_cannot_be_used_are_refused_first(
    tmp_path: Path, target: str, said: str
) -> None:
    made = await edgen("generate", tmp_path / "none.yaml", "--notify", target)
    assert made.code == 2
    assert said in made.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("slack://hooks/edgen", "slack:// addresses are not supported"),
        ("no-such-mailer me@example.org", "there is no command no-such-mailer here"),
        ("./none.sh", "there is no command ./none.sh here"),
        ("mail -s 'edgen", "the shell cannot read this command ("),
    ],
)
def test_a_command_that_cannot_run_is_refused_at_the_start(command: str, said: str) -> None:
    from edgen.cli.listeners.notifier import Notifier

    with pytest.raises(UsageError, match=re.escape(said)):
        Notifier(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat > /dev/null",
        "STATE=x true",
        "'true' now",
        "cd /; true",
        "~/bin/tell",
        "$HOME/tell",
        "if true; then true; fi",
    ],
)
def test_other_commands_are_taken_as_they_are(command: str) -> None:
    from edgen.cli.listeners.notifier import Notifier

    Notifier(command)


async def test_a_command_that_fails_or_hangs_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgen.cli.listeners import notifier

    monkeypatch.setattr(notifier, "PATIENCE", 0.3)
    facts = {"state": "complete", "exit_code": 0}
    assert notifier.Notifier("exit 3").send(facts, ()) == "the command ended with 3"
    failed = notifier.Notifier("echo one >&2; echo 'no such host' >&2; exit 6").send(facts, ())
    assert failed == "the command ended with 6 (no such host)"
    began = time.monotonic()
    assert "longer than" in str(notifier.Notifier("sleep 120 & sleep 120").send(facts, ()))
    assert time.monotonic() - began < 100  # of 120


async def _breathe() -> None:
    import asyncio

    await asyncio.sleep(0.02)


async def test_no_answer_is_in_what_is_told(tmp_path: Path) -> None:
    """The message about a hopeless run quotes an answer, which must stay on this machine."""

    async def prose(_service: Service, _seed: int) -> web.StreamResponse | None:
        return completion("A confidential “remark” ” and more of it")

    told = tmp_path / "told.json"
    async with serve(Service(trouble=prose)) as service:
        job = job_file(tmp_path, service.url, conversations=60)
        for _ in range(2):  # the second start sends no request and reports the first one's end
            made = await edgen("generate", job, "-o", tmp_path / "run", "--notify", f"cat > {told}")
            assert made.code == 3, made.err
            status = json.loads(told.read_text())
            assert status["stopped"]["reason"] == "useless"
            assert "confidential" not in told.read_text()
            assert "remark" not in told.read_text()
            assert "and more" not in told.read_text()
    assert "hardly any answer was usable" in status["message"]
