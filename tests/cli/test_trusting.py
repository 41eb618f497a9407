"""Keys and the hosts that may get them: asked on a terminal, reported on stderr, remembered,
and refused with exit 2."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgen.core.errors import InputError
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.trust import Allowed, decide_trust
from edgen.runtime.control import Trust, remember_consent
from edgen.simulator.config import SimulatorConfig
from tests.cli.command import Command
from tests.cli.terminal import at_terminal
from tests.execution.service import Service, job_text, serve, write

KEY = "sk-0123456789abcdef"
ELSEWHERE = OpenAIConfig(model="m", base_url="https://llm.example/v1", api_key_env="MY_KEY")
LOCAL = OpenAIConfig(model="m", base_url="http://127.0.0.1:8080/v1", api_key_env="MY_KEY")


class Asked:
    """A person at the terminal who gives the same answer to every question."""

    def __init__(self, says: bool) -> None:
        self.says = says
        self.questions: list[str] = []

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.says


def environ(home: Path) -> dict[str, str]:
    return {"MY_KEY": KEY, "GEMINI_API_KEY": KEY, "XDG_CONFIG_HOME": str(home)}


def test_a_command_is_asked_about_in_words_of_its_own_and_remembered(tmp_path: Path) -> None:
    gcloud = OpenAIConfig(
        model="m", base_url="https://llm.example/v1", key_command=("gcloud", "auth", "print-access-token")
    )
    with pytest.raises(InputError, match="wants to run a command") as caught:
        Trust((), environ(tmp_path)).settle([gcloud])
    assert caught.value.exit_code == 2
    told: list[str] = []
    person = Asked(says=True)
    trust = Trust((), environ(tmp_path), person)
    trust.tell = told.append
    trust.settle([gcloud])
    (question,) = person.questions
    assert (
        "run a command and to send llm.example what `gcloud auth print-access-token` prints. Run it?"
        in question
    )
    assert told == ["what `gcloud auth print-access-token` prints goes to llm.example."]
    again = Asked(says=False)
    Trust((), environ(tmp_path), again).settle([gcloud])
    assert not again.questions


def test_a_yes_is_remembered_for_that_pair_alone_and_asked_once(tmp_path: Path) -> None:
    told: list[str] = []
    person = Asked(says=True)
    trust = Trust((), environ(tmp_path), person)
    trust.tell = told.append
    for _ in range(2):  # two arms
        consents = trust.settle([ELSEWHERE, SimulatorConfig(), GeminiConfig(model="m"), LOCAL])
    (question,) = person.questions
    assert "MY_KEY sent to llm.example" in question
    assert told == [
        "the key in MY_KEY goes to llm.example.",
        "the key in GEMINI_API_KEY goes to generativelanguage.googleapis.com.",
    ]
    assert isinstance(decide_trust("MY_KEY", "https://llm.example/v1", consents), Allowed)
    file = tmp_path / "edgen" / "trusted_hosts.yaml"
    assert file.read_text().splitlines()[1:] == ["- llm.example=MY_KEY"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY not in file.read_text()
    again = Asked(says=False)
    Trust((), environ(tmp_path), again).settle([ELSEWHERE])
    assert again.questions == []
    other = OpenAIConfig(model="m", base_url="https://llm.example/v1", api_key_env="GEMINI_API_KEY")
    with pytest.raises(InputError):
        Trust((), environ(tmp_path), again).settle([other])
    assert len(again.questions) == 1


def test_a_no_and_nobody_there_are_the_same_sentence(tmp_path: Path) -> None:
    for confirm in (Asked(says=False), None):
        with pytest.raises(InputError, match=r"--trust-host llm\.example=MY_KEY") as caught:
            Trust((), environ(tmp_path), confirm).settle([ELSEWHERE])
        assert caught.value.exit_code == 2
    assert not (tmp_path / "edgen").exists()


def test_nobody_is_asked_what_no_consent_allows(tmp_path: Path) -> None:
    person = Asked(says=True)
    plain = OpenAIConfig(model="m", base_url="http://llm.example/v1", api_key_env="MY_KEY")
    secret = OpenAIConfig(model="m", base_url="https://llm.example/v1", api_key_env="GITHUB_TOKEN")
    for config in (plain, secret):
        with pytest.raises(InputError):
            Trust(["llm.example"], environ(tmp_path), person).settle([config])
    assert person.questions == []


def test_what_stands_in_the_users_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "trusted_hosts.yaml"
    file.write_text("# the one at work\n- work.example=WORK_KEY")
    remember_consent(file, "llm.example:8443=MY_KEY")
    assert file.read_text() == "# the one at work\n- work.example=WORK_KEY\n- llm.example:8443=MY_KEY\n"
    file.write_text("[work.example=WORK_KEY]\n")
    with pytest.raises(InputError, match="trusted_hosts"):
        remember_consent(file, "llm.example=MY_KEY")
    assert file.read_text() == "[work.example=WORK_KEY]\n"


def job(folder: Path, backend: dict[str, Any], **changes: Any) -> Path:
    backends = {"default": {"type": "openai", "model": "m", "seed": "auto", **backend}}
    keys = {"conversations": 2, "split": {"test": 0}, "backends": backends} | changes
    return write(folder / "job.yaml", job_text("", **keys))


@pytest.mark.parametrize("arguments", [["generate"], ["generate", "--via", "batch"], ["doctor"]])
def test_a_key_that_would_go_elsewhere_ends_with_exit_2_and_no_call(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    for backend, said in (
        (
            {"base_url": "https://elsewhere/v1", "api_key_env": "MY_KEY"},
            "the key in MY_KEY sent to elsewhere",
        ),
        ({"base_url": "http://elsewhere/v1", "api_key_env": "MY_KEY"}, "over plain http"),
        (
            {"base_url": "http://elsewhere/v1", "api_key_env": "AWS_SECRET_ACCESS_KEY"},
            "another service's secret",
        ),
    ):
        ended = command(arguments[0], job(tmp_path, backend), *arguments[1:])
        assert ended.code == 2, ended.err
        assert said in ended.err + ended.out
        assert KEY not in ended.err + ended.out
        assert not (tmp_path / "outputs").exists()


def test_an_arms_and_a_judges_backend_are_held_to_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    elsewhere = {"type": "openai", "model": "m", "base_url": "https://elsewhere/v1", "api_key_env": "MY_KEY"}
    simulator = {"default": {"type": "simulator"}}
    path = job(tmp_path, {}, backends=simulator, arms={"a": {}, "b": {"backends": {"default": elsewhere}}})
    ended = command("generate", path, "-o", tmp_path / "arms")
    assert ended.code == 2
    assert "the key in MY_KEY sent to elsewhere" in ended.err
    assert not (tmp_path / "arms").exists()
    path = job(tmp_path, {}, backends={**simulator, "judge": elsewhere}, replicates=2)
    run = tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    for arguments in (
        ["pairs", run, "--by", "oracle"],
        ["stats", run, "--judge", "1"],
        ["space", "expand", "broad", "--dimension", "topics", "--count", "1", "--job", f"{path}:judge"],
    ):
        ended = command(*map(str, arguments))
        assert ended.code == 2, ended.err
        assert "the key in MY_KEY sent to elsewhere" in ended.err


class Listening(Service):
    """A service that keeps the headers of its requests."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if request.method == "GET":
            return web.json_response({"data": []})
        return await super().handle(request)


@pytest.fixture
def service() -> Iterator[Listening]:
    """Run a service in a thread of its own, so that commands run in this process; yield it."""
    made, ready, ended = Listening(), threading.Event(), threading.Event()

    async def work() -> None:
        async with serve(made):
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    assert ready.wait(30)
    yield made
    ended.set()
    thread.join()


@pytest.fixture
def commands(command: Command, tmp_path: Path, service: Listening) -> dict[str, list[str]]:
    """Return every command that calls a model, for backends of the local server whose key is in MY_KEY."""
    backend = {"type": "openai", "model": "m", "base_url": service.url, "api_key_env": "MY_KEY"}
    online = str(job(tmp_path, backend))
    (tmp_path / "judged").mkdir()
    backends = {"default": {"type": "simulator"}, "judge": backend}
    run = str(tmp_path / "run")
    assert (
        command("generate", job(tmp_path / "judged", {}, backends=backends, replicates=2), "-o", run).code
        == 0
    )
    return {
        "generate": ["generate", online, "-o", "OUT"],
        "doctor": ["doctor", online],
        "pairs": ["pairs", run, "--by", "oracle", "--set", "asks=1"],
        "stats": ["stats", run, "--judge", "1", "--only", "adherence", "--set", "asks=1"],
        "expand": ["space", "expand", "broad", "--dimension", "topics", "--count", "1", "--job", online,
                   "-o", "OUT.yaml"],
    }  # fmt: skip


def test_no_command_sends_a_local_server_the_key_until_it_is_told_to(
    command: Command,
    commands: dict[str, list[str]],
    service: Listening,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)

    def sent(name: str, *more: str) -> tuple[set[str | None], str]:
        service.headers.clear()
        out = str(tmp_path / f"{name}{len(more)}")
        ended = command(*(word.replace("OUT", out) for word in commands[name]), *more)
        assert KEY not in ended.err + ended.out
        assert service.headers, ended.err
        return {headers.get("authorization") for headers in service.headers}, ended.err + ended.out

    for name in commands:
        keys, said = sent(name)
        assert keys == {None}, name
        assert ("--trust-host 127.0.0.1=MY_KEY" in said) == (name == "doctor")
    anew = ("--set", "backends.judge.temperature=0.5")  # a judge without stored verdicts
    for name, more in (("generate", ()), ("doctor", ()), ("pairs", anew), ("stats", anew)):
        keys, said = sent(name, "--trust-host", "127.0.0.1=MY_KEY", *more)
        assert keys == {f"Bearer {KEY}"}
        assert said.count("edgen: the key in MY_KEY goes to 127.0.0.1.") == 1


def test_a_server_that_wants_the_key_after_all_is_told_with_how_to_send_it(
    command: Command, service: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)

    async def unauthorised(_service: Service, _seed: int) -> web.StreamResponse:
        return web.json_response({"error": {"message": "a key is needed"}}, status=401)

    service.trouble = unauthorised
    path = job(tmp_path, {"base_url": service.url, "api_key_env": "MY_KEY"})
    ended = command("generate", path, "-o", tmp_path / "run")
    assert ended.code == 5
    assert "a key is needed; the key in MY_KEY is not sent to 127.0.0.1" in ended.err
    assert "--trust-host 127.0.0.1=MY_KEY" in ended.err
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=MY_KEY")
    ended = command("generate", path, "-o", tmp_path / "run", "--log-format", "json")
    events = [json.loads(line) for line in ended.err.splitlines()]
    assert sum("the key in MY_KEY goes to 127.0.0.1" in str(event) for event in events) == 1
    assert KEY not in ended.err


SETTLED = """
from edgen.cli.control import make_control
from edgen.providers.openai.config import OpenAIConfig
make_control().trust.settle([OpenAIConfig(model="m", base_url="https://llm.example:8443/v1", api_key_env="MY_KEY")])
"""


def test_a_person_at_the_terminal_is_asked_and_a_yes_is_remembered(tmp_path: Path) -> None:
    path = job(tmp_path, {"base_url": "https://llm.example:8443/v1", "api_key_env": "MY_KEY"})
    env = {"MY_KEY": KEY, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    code, seen = at_terminal(["generate", path], "n\n", env=env, cwd=tmp_path)
    assert code == 2, seen
    assert "the key in MY_KEY sent to llm.example:8443. Send it?" in seen
    assert not (tmp_path / "config").exists()
    assert not (tmp_path / "outputs").exists()
    code, seen = at_terminal([], "y\n", code=SETTLED, env=env, cwd=tmp_path)
    assert (code, seen.count("Send it?")) == (0, 1)
    assert "- llm.example:8443=MY_KEY" in (tmp_path / "config" / "edgen" / "trusted_hosts.yaml").read_text()
    code, seen = at_terminal([], code=SETTLED, env=env, cwd=tmp_path)
    assert (code, seen.count("Send it?")) == (0, 0)
    assert "the key in MY_KEY goes to llm.example:8443." in seen


def test_an_interrupt_at_the_question_ends_the_command(tmp_path: Path) -> None:
    path = job(tmp_path, {"base_url": "https://nowhere.invalid/v1", "api_key_env": "MY_KEY"})
    env = {"MY_KEY": KEY, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    code, seen = at_terminal(["generate", path, "-o", tmp_path / "run"], interrupt=True, env=env)
    assert code == 130, seen
    assert not (tmp_path / "run").exists()
