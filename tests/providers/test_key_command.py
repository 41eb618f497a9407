"""Keys that a command prints: run without a shell, once for many calls, again on a 401, and never shown."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.providers import make, make_batch_service
from edgen.providers.key_command import KeyCommand
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.trust import Allowed, NoKey, Refused, decide_trust, gather_consents, write_command
from tests.providers.fakes import FakeServer, answer, request

COMPLETION = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
EXPIRED = {"error": {"message": "the token token-number-1 has expired", "code": "invalid_api_key"}}


def script(folder: Path, body: str) -> tuple[str, ...]:
    """Return a command that runs Python code, which can count its runs in `runs`."""
    path = folder / "token.py"
    path.write_text(f"import pathlib, sys, time\nruns = pathlib.Path({str(folder / 'runs')!r})\n{body}\n")
    return (sys.executable, str(path))


def counting(folder: Path) -> tuple[str, ...]:
    """Return a command that prints another token each time."""
    body = "n = len(runs.read_text()) + 1 if runs.exists() else 1\nruns.write_text('x' * n)\nprint(f'token-number-{n}')"
    return script(folder, body)


def backend(fake: FakeServer, command: tuple[str, ...], **settings: Any) -> Any:
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", key_command=command, **settings)
    consents = gather_consents({}, [f"127.0.0.1={write_command(command)}"])
    return make(config, timeout=60, connections=300, environ={}, consents=consents)


def sent(fake: FakeServer) -> list[str | None]:
    return [seen.headers.get("authorization") for seen in fake.seen]


async def test_a_key_is_printed_once_for_all_calls(fake: FakeServer, tmp_path: Path) -> None:
    fake.says(answer(COMPLETION))
    it = backend(fake, counting(tmp_path))
    await asyncio.gather(*(it.complete(request()) for _ in range(20)))
    await it.aclose()
    assert set(sent(fake)) == {"Bearer token-number-1"}
    assert (tmp_path / "runs").read_text() == "x"


async def test_a_key_that_expired_is_printed_again_once_and_the_attempt_goes_on(
    fake: FakeServer, tmp_path: Path
) -> None:
    it = backend(fake, counting(tmp_path), auth="api-key")
    fake.says(answer(COMPLETION))
    await it.complete(request())
    fake.says(*[answer(EXPIRED, 401)] * 8, answer(COMPLETION))
    replies = await asyncio.gather(*(it.complete(request()) for _ in range(8)))
    await it.aclose()
    assert {reply.text for reply in replies} == {"hi"}
    assert [seen.headers["api-key"] for seen in fake.seen] == ["token-number-1"] * 8 + ["token-number-2"] * 8
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_new_key_that_is_refused_as_well_is_the_end(fake: FakeServer, tmp_path: Path) -> None:
    fake.says(answer(EXPIRED, 401))
    it = backend(fake, counting(tmp_path))
    with pytest.raises(CallError) as caught:
        await it.complete(request())
    await it.aclose()
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert len(fake.seen) == 2
    assert "token-number" not in repr(caught.value)
    assert "the token [key] has expired" in caught.value.message


async def test_the_same_key_again_is_not_sent_twice(fake: FakeServer, tmp_path: Path) -> None:
    fake.says(answer(EXPIRED, 401))
    it = backend(fake, script(tmp_path, "print('the-same-token')"))
    with pytest.raises(CallError):
        await it.complete(request())
    await it.aclose()
    assert sent(fake) == ["Bearer the-same-token"]


async def test_a_batch_s_calls_renew_their_key_too(fake: FakeServer, tmp_path: Path) -> None:
    batch = {"id": "batch_1", "object": "batch", "status": "in_progress", "created_at": 1,
             "endpoint": "/v1/chat/completions", "input_file_id": "f", "completion_window": "24h"}  # fmt: skip
    command = counting(tmp_path)
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", key_command=command)
    made = backend(fake, command)
    it = make_batch_service(config, made, environ={})
    fake.says(answer(EXPIRED, 401), answer(batch))
    assert (await it.state("batch_1")).id == "batch_1"
    await it.aclose()
    await made.aclose()
    assert sent(fake) == ["Bearer token-number-1", "Bearer token-number-2"]


async def test_a_batch_whose_command_fails_says_so(fake: FakeServer, tmp_path: Path) -> None:
    command = script(tmp_path, "sys.exit(3)")
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", key_command=command)
    made = backend(fake, command)
    it = make_batch_service(config, made, environ={})
    with pytest.raises(CallError, match="the key_command ended with 3"):
        await it.state("batch_1")
    await it.aclose()
    await made.aclose()
    assert not fake.seen


# --- commands that give no key -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(3)", "ended with 3"),
        ("print('secret-on-stderr', file=sys.stderr); sys.exit('secret-at-the-end')", "ended with 1"),
        ("print('secret-one'); print('secret-two')", "printed 2 lines, and a key is one"),
        ("print()", "printed no lines, and a key is one"),
        ("print('secret one')", "characters that no key has"),
        ("print('secret-ü')", "characters that no key has"),
        ("sys.stdout.buffer.write(b'secret\\xff')", "characters that no key has"),
        ("print('secret' * 20000)", "printed more than a key has"),
    ],
)
async def test_what_prints_no_key_is_a_sentence_without_what_was_printed(
    tmp_path: Path, body: str, said: str
) -> None:
    command = script(tmp_path, body)
    with pytest.raises(CallError) as caught:
        await KeyCommand(command, {}).key_after(None)
    assert (caught.value.kind, caught.value.unsent) == (FailureKind.AUTHENTICATION, True)
    assert said in caught.value.message
    assert "run it yourself to see why" in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("command", [("/nowhere/at-all",), ("a\0b",)])
async def test_what_cannot_be_started_is_a_sentence(command: tuple[str, ...]) -> None:
    with pytest.raises(CallError, match="the key_command cannot be started"):
        await KeyCommand(command, {}).key_after(None)


async def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """The command's child holds the pipe open, so it must end too."""
    child = "import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\ntime.sleep(60)"
    started = time.monotonic()
    with pytest.raises(CallError, match=r"printed no key within 0\.5 s"):
        await KeyCommand(script(tmp_path, child), {}, patience=0.5).key_after(None)
    assert time.monotonic() - started < 50  # of 60


async def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    words = ("a b", "$HOME", "`id`", "; rm -rf x", "*")
    body = "import urllib.parse\nprint(urllib.parse.quote('|'.join(sys.argv[1:])))"
    printed = await KeyCommand((*script(tmp_path, body), *words), {}).key_after(None)
    assert printed == "a%20b%7C%24HOME%7C%60id%60%7C%3B%20rm%20-rf%20x%7C%2A"


async def test_a_line_end_and_blanks_around_the_key_are_no_part_of_it(tmp_path: Path) -> None:
    assert await KeyCommand(script(tmp_path, "print('  a-key \\r')"), {}).key_after(None) == "a-key"


# --- consent -------------------------------------------------------------------------------------

GCLOUD = ("gcloud", "auth", "print-access-token")
PAIR = f"llm.example={write_command(GCLOUD)}"


def test_a_job_s_command_is_not_run_without_a_word_to_that_very_command(tmp_path: Path) -> None:
    file = tmp_path / "edgen" / "trusted_hosts.yaml"
    file.parent.mkdir()
    url, home = "https://llm.example/v1", {"XDG_CONFIG_HOME": str(tmp_path)}
    command = write_command(GCLOUD)
    for consents in (["llm.example"], ["llm.example=MY_KEY"], ["other.example=!gcloud auth print-access-token"],
                     ["llm.example=!gcloud auth print-access-token --impersonate"]):  # fmt: skip
        refused = decide_trust(command, url, gather_consents({}, consents))
        assert isinstance(refused, Refused)
        assert "--trust-host 'llm.example=!gcloud auth print-access-token'" in refused.sentence
    in_environment = {"EDGEN_TRUSTED_HOSTS": f"a.example=A_KEY, {shlex.quote(PAIR)} b.example"}
    for consents_ in (gather_consents({}, [PAIR]), gather_consents(in_environment)):
        assert isinstance(decide_trust(command, url, consents_), Allowed)
    assert len(gather_consents(in_environment).entries) == 3
    file.write_text(f'- "{PAIR}"\n')
    assert isinstance(decide_trust(command, url, gather_consents(home)), Allowed)
    assert isinstance(decide_trust(command, "http://127.0.0.1:1", gather_consents({})), NoKey)
    assert isinstance(decide_trust(command, "http://llm.example", gather_consents({}, [PAIR])), Refused)


@pytest.mark.parametrize("text", ["llm.example=!", "llm.example=! ", "llm.example=!a 'b"])
def test_what_is_no_command_is_no_consent(text: str) -> None:
    with pytest.raises(InputError, match="expected HOST or HOST=VARIABLE"):
        gather_consents({}, [text])


async def test_a_server_on_this_machine_is_called_without_the_command(
    fake: FakeServer, tmp_path: Path
) -> None:
    fake.says(answer(COMPLETION))
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", key_command=counting(tmp_path))
    it = make(config, timeout=60, connections=1, environ={})
    await it.complete(request())
    await it.aclose()
    assert sent(fake) == [None]
    assert not (tmp_path / "runs").exists()
