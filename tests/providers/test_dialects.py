"""The settings in docs/providers.md for each service, in whole runs with servers that accept nothing else."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.cli.command import Command
from tests.providers.dialects import DIALECTS, NEWER, OLDER, Server, serving

KEY = "the-key-of-this-service-0123456789"


def documented() -> dict[str, dict[str, Any]]:
    """Return the backend of each service in the list."""
    page = (ROOT / "docs" / "providers.md").read_text()
    rows = re.findall(r"^- ([^:\n]+): `(\{type: openai.*?\})`", page, re.MULTILINE)
    return {name: yaml.safe_load(backend) for name, backend in rows}


BACKENDS = documented()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set every key's variable, a `gcloud` that prints the key, and consent to send it to this machine."""
    for backend in BACKENDS.values():
        monkeypatch.setenv(backend.get("api_key_env", "OPENAI_API_KEY"), KEY)
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nassert sys.argv[1:] == ['auth', 'print-access-token']\nprint({KEY!r})\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    names = " ".join(f"127.0.0.1={b['api_key_env']}" for b in BACKENDS.values() if "api_key_env" in b)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", f"{names} '127.0.0.1=!gcloud auth print-access-token'")


def job(folder: Path, backend: dict[str, Any], url: str) -> Path:
    """Write a job with a budget, whose backend is moved to this machine."""
    here = re.sub(r"^https?://[^/]+", url, backend["base_url"])
    path = folder / "job.yaml"
    whole = {
        "name": "j",
        "seed": 1,
        "conversations": 4,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": backend | {"base_url": here, "max_tokens": 2000}},
        "limits": {"max_tokens": 1_000_000, "attempts": 2, "give_up_after": 10},
    }
    path.write_text(yaml.safe_dump(whole))
    return path


def typed(backend: dict[str, Any]) -> list[str]:
    """Return the option that a user types for a variable that clearly belongs to another service."""
    name = backend.get("api_key_env", "")
    return ["--trust-host", f"127.0.0.1={name}"] if name.startswith("AWS_") else []


def test_the_page_has_a_line_for_every_dialect() -> None:
    assert list(BACKENDS) == list(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_page_says_is_what_the_service_takes(command: Command, tmp_path: Path, name: str) -> None:
    dialect, backend = DIALECTS[name], BACKENDS[name]
    with serving(dialect, KEY) as server:
        path = job(tmp_path, backend | dialect.settings, server.url)
        run = command("generate", path, "-o", tmp_path / "run", "--json", *typed(backend))
        assert run.code == 0, (run.err, server.said)
        assert json.loads(run.out)["accepted"] == 4
        # A server of the table accepts its own fields only: a form is refused once, which costs nothing.
        refused = [line for line in server.said if " POST " in line and not line.startswith("200")]
        assert bool(refused) is ("response_format" not in dialect.fields)
        assert len(refused) <= 2 * 4, server.said
        room = backend.get("max_tokens_field", OLDER)
        assert {(body.get(OLDER), body.get(NEWER)) for body in server.bodies} == {
            (2000, None) if room == OLDER else (None, 2000)
        }
        for key, value in dialect.settings.items():
            sent = value if key == "extra_body" else {key: value} if value != "auto" else {}
            assert all(sent.items() <= body.items() for body in server.bodies)
        doctor = command("doctor", path, *typed(backend))
        assert doctor.code == 0, doctor.out
    kept = run.out + run.err + doctor.out + doctor.err
    kept += "".join(
        file.read_bytes().decode("latin-1") for file in (tmp_path / "run").rglob("*") if file.is_file()
    )
    assert KEY not in kept


@pytest.mark.parametrize("name", [name for name, dialect in DIALECTS.items() if dialect.key is not None])
def test_a_key_that_is_not_taken_ends_the_run_with_a_sentence(
    command: Command, tmp_path: Path, name: str
) -> None:
    backend = BACKENDS[name]
    with serving(DIALECTS[name], "another-key") as server:
        run = command("generate", job(tmp_path, backend, server.url), "-o", tmp_path / "run", *typed(backend))
    assert run.code == 5, run.err
    assert "The service refused" in run.err
    assert KEY not in run.err + run.out
    assert not server.bodies


NEEDED = [
    (name, setting)
    for name, backend in BACKENDS.items()
    for setting in ("auth", "query", "headers", "key_command", "api_key_env")
    if setting in backend
]


@pytest.mark.parametrize(("name", "setting"), NEEDED)
def test_without_what_the_page_says_the_service_takes_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, setting: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    backend = {key: value for key, value in BACKENDS[name].items() if key != setting}
    with serving(DIALECTS[name], KEY) as server:
        run = command("generate", job(tmp_path, backend, server.url), "-o", tmp_path / "run", *typed(backend))
    assert run.code in (3, 5), run.err
    assert not server.bodies


@pytest.mark.parametrize("name", ["Azure OpenAI, classic", "Azure OpenAI, v1"])
def test_azure_is_understood_without_its_field(command: Command, tmp_path: Path, name: str) -> None:
    backend = {key: value for key, value in BACKENDS[name].items() if key != "max_tokens_field"}
    with serving(DIALECTS[name], KEY) as server:
        run = command("generate", job(tmp_path, backend, server.url), "-o", tmp_path / "run")
    assert run.code == 0, run.err
    assert {body[NEWER] for body in server.bodies} == {2000}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_wrong_path_is_a_sentence(command: Command, tmp_path: Path, name: str) -> None:
    backend = BACKENDS[name] | {"base_url": "http://host/nowhere"}
    with serving(DIALECTS[name], KEY) as server:
        run = command("generate", job(tmp_path, backend, server.url), "-o", tmp_path / "run", *typed(backend))
    assert run.code in (3, 5), run.err
    assert not server.bodies


# --- odd answers ---------------------------------------------------------------------------------

UNREADABLE = {"code": 500, "message": "Failed to parse input at pos 8: <think>", "type": "server_error"}


class Odd(Server):
    """A server whose answers are updated by `change`; without a change, it fails with status 500."""

    change: Any = None

    def _completion(self, body: dict[str, Any]) -> Any:
        return super()._completion(body) | (self.change or {})

    def _answer(self, request: Any, raw: bytes) -> tuple[int, Any]:
        status, answer = super()._answer(request, raw)
        return (500, {"error": UNREADABLE}) if self.change is None and status == 200 else (status, answer)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (None, 5, "bad_output"),
        ({"usage": {}}, 0, "reports no token counts"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "tired"}]}, 3, "does not know (tired)"),
    ],
)
def test_odd_answers_end_in_a_sentence_and_lose_nothing(
    command: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Any, code: int, said: str
) -> None:
    with serving(DIALECTS["llama.cpp"], made=Odd) as server:
        server.change = change  # type: ignore[attr-defined]
        path = job(tmp_path, BACKENDS["llama.cpp"], server.url)
        run = command("generate", path, "-o", tmp_path / "run", "--json", "--set", "limits.attempts=6")
    assert run.code == code, run.err
    facts = json.loads(run.out)
    assert said in run.err + run.out + caplog.text
    assert facts["accepted"] + sum(facts["rejected"].values()) + sum(facts["failed"].values()) == 4
    if change is None:
        assert facts["failed"] == {"bad_output": 4}
        answered = [line for line in server.said if line.startswith("500 POST")]
        assert len(answered) == 8


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"message": {"content": " \n"}, "finish_reason": "stop"}, "check the model's chat template"),
        ({"message": {"content": ""}, "finish_reason": "length"}, "went into thoughts"),
        ({"message": {"content": None, "refusal": "I cannot."}}, "the service refuses: I cannot."),
    ],
)
def test_doctor_does_not_call_a_blank_answer_fine(
    command: Command, tmp_path: Path, choice: dict[str, Any], said: str
) -> None:
    with serving(DIALECTS["llama.cpp"], made=Odd) as server:
        server.change = {"choices": [choice]}  # type: ignore[attr-defined]
        ended = command("doctor", job(tmp_path, BACKENDS["llama.cpp"], server.url), "--json")
    assert ended.code == 5
    checks = {row["check"]: row for row in json.loads(ended.out)["checks"]}
    assert not checks["call"]["well"]
    assert said in checks["call"]["detail"]


BROKEN = [
    ("import sys; sys.exit(1)", "the key_command ended with 1"),
    ("print('one-key'); print('two-key')", "printed 2 lines"),
]


@pytest.mark.parametrize(("program", "said"), BROKEN)
def test_a_key_command_that_gives_no_key_ends_the_run_with_exit_5(
    command: Command, tmp_path: Path, program: str, said: str
) -> None:
    (tmp_path / "bin" / "gcloud").write_text(f"#!{sys.executable}\n{program}\n")
    backend = BACKENDS["Google Vertex AI"]
    with serving(DIALECTS["Google Vertex AI"], KEY) as server:
        path = job(tmp_path, backend, server.url)
        run = command("generate", path, "-o", tmp_path / "run")
        doctor = command("doctor", path)
        assert (run.code, doctor.code) == (5, 5)
        assert said in run.err
        assert said in doctor.out
        assert "-key" not in (run.err + run.out + doctor.out).replace("--", "")
        assert not server.said
        # No work is lost: with a key, the same command resumes.
        (tmp_path / "bin" / "gcloud").write_text(f"#!{sys.executable}\nprint({KEY!r})\n")
        assert command("generate", path, "-o", tmp_path / "run").code == 0
