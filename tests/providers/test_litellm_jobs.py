"""Jobs whose models are called through litellm: whole runs, caps and prices, and invalid jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.config import load_job
from edgen.config.backends import find_prices
from edgen.core.errors import InputError, JobError
from edgen.providers.litellm.config import LitellmConfig
from tests import ROOT
from tests.cli.command import Command
from tests.execution.service import files, job_text
from tests.providers.dialects import COMMON, OLDER, Dialect
from tests.providers.dialects import serving as serving_dialect
from tests.providers.litellm_service import (
    KEY,
    backend,
)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


# --- whole runs ----------------------------------------------------------------------------------

_SERVICE = Dialect(path="/v1/chat/completions", model="m", fields=COMMON | {OLDER, "seed"})


@pytest.fixture
def run_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=MY_KEY")

    def write(url: str, **changes: Any) -> Path:
        settings = {"base_url": f"{url}/v1", "api_key_env": "MY_KEY", "max_tokens": 2000, "seed": "auto"}
        default = {"type": "litellm", "model": "hosted_vllm/m", **settings, **changes.pop("backend", {})}
        path = tmp_path / "job.yaml"
        path.write_text(job_text("", backends={"default": default}, **changes))
        return path

    return write


def test_a_cap_stops_a_run_and_a_higher_one_ends_it_with_the_same_bytes(
    command: Command, tmp_path: Path, run_job: Callable[..., Path]
) -> None:
    price = {"price": {"prompt": 1000, "completion": 1000}}  # an answer of this server costs 0.03 dollars
    with serving_dialect(_SERVICE, KEY) as server:
        path = run_job(server.url, conversations=12, limits={"max_cost": 8, "in_flight": 2}, backend=price)
        stopped = command("generate", path, "-o", tmp_path / "run", "--json", "--set", "limits.max_cost=4.2")
        assert stopped.code == 4, stopped.err
        assert 0 < len(server.bodies) < 12
        assert json.loads(stopped.out)["cost_usd"] <= 4.2
        ended = command("generate", path, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert len(server.bodies) == 12, "nothing is paid twice"
        calm = command("generate", path, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
    assert files(tmp_path / "run") == files(tmp_path / "calm")
    assert KEY not in ended.err + ended.out


def test_batches_are_refused_with_a_sentence(command: Command, run_job: Callable[..., Path]) -> None:
    done = command("generate", run_job("http://127.0.0.1:9"), "--via", "batch")
    assert done.code == 2
    assert "litellm has no batch service. Leave --via batch out" in " ".join(done.err.split())


def test_doctor_makes_its_call(command: Command, run_job: Callable[..., Path]) -> None:
    with serving_dialect(_SERVICE, KEY) as server:
        done = command("doctor", run_job(server.url))
        assert done.code == 0, done.out
        assert len(server.bodies) == 1
    assert KEY not in done.out + done.err


# --- jobs ----------------------------------------------------------------------------------------


def job(**backend: Any) -> Any:
    return {
        "name": "j",
        "conversations": 2,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "litellm", **backend}},
        "limits": {"max_cost": 1},
    }


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ({"model": "gpt-5"}, "model"),
        ({"model": "watsonx/m", "api_key_env": "MY_KEY"}, "does not know where watsonx is"),
        ({"model": "watsonx/m", "base_url": "https://a.example.org"}, "name it with api_key_env"),
        ({"model": "bedrock/m", "base_url": "https://a.example.org", "auth": "library", "api_key_env": "K"}, "takes no key"),
        ({"model": "groq/m", "options": {"api_base": "https://a.example.org"}}, "edgen writes this argument itself"),
        ({"model": "groq/m", "options": {"aws_secret_access_key": "x"}}, "no key belongs here"),
        ({"model": "groq/m", "options": {"extra": "sk-0123456789abcdef"}}, "no key belongs here"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_job(tmp_path: Any, backend: dict[str, Any], said: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job(max_tokens=100, price={"prompt": 1, "completion": 1}, **backend)))
    with pytest.raises(JobError, match=said) as caught:
        load_job(path)
    assert "sk-0123456789abcdef" not in str(caught.value)


def test_prices_are_those_of_litellms_list() -> None:
    def price(**backend: Any) -> Any:
        config = LitellmConfig(**backend)
        return find_prices(config).list_price(config)

    found = price(model="groq/openai/gpt-oss-20b")
    assert 0 < found.prompt < found.completion < 10
    assert found.source.startswith("the price list of litellm 1.")
    assert price(model="openai/gpt-4o").completion == 10
    assert price(model="anthropic/claude-sonnet-4-5").prompt == 3
    for unknown in (
        {"model": "groq/of-tomorrow"},
        {"model": "openai/claude-sonnet-4-5"},  # another service's model
        {"model": "groq/openai/gpt-oss-20b", "base_url": "https://a.example.org"},
        {"model": "openai/gpt-4o", "service_tier": "priority"},
    ):
        assert price(**unknown) is None


def test_a_cap_without_a_price_names_one_to_start_from(tmp_path: Path) -> None:
    elsewhere = job(model="groq/openai/gpt-oss-20b", base_url="https://a.example.org", max_tokens=100)
    (tmp_path / "job.yaml").write_text(json.dumps(elsewhere))
    with pytest.raises(JobError) as caught:
        load_job(tmp_path / "job.yaml")
    (line,) = re.findall(r"price: (\{.*\})", str(caught.value))
    elsewhere["backends"]["default"]["price"] = yaml.safe_load(line)
    (tmp_path / "job.yaml").write_text(json.dumps(elsewhere))
    assert (
        load_job(tmp_path / "job.yaml")
        .backends["default"]
        .price.source.startswith("the price list of litellm")
    )


def test_a_job_is_read_and_priced_without_importing_litellm(tmp_path: Any) -> None:
    (tmp_path / "job.yaml").write_text(json.dumps(job(model="groq/openai/gpt-oss-20b", max_tokens=100)))
    script = (
        "import sys\nfrom pathlib import Path\nfrom edgen.config import load_job\njob = load_job(Path('job.yaml'))\n"
        "assert job.backends['default'].price.prompt > 0\nprint('litellm' in sys.modules, 'openai' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.split() == ["False", "False"]


def test_without_the_extra_there_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(InputError, match=r"type litellm needs more packages: .*litellm"):
        backend("http://127.0.0.1:9/v1")


def test_a_service_that_litellm_does_not_know_is_a_sentence() -> None:
    with pytest.raises(InputError, match=r"litellm 1\.\S+ does not know the service 'nonsense'"):
        backend("http://127.0.0.1:9/v1", "nonsense/m")


@pytest.mark.parametrize("name", ["drop_params", "modify_params"])
def test_litellm_is_not_to_change_what_is_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    import litellm

    monkeypatch.setattr(litellm, name, True)
    with pytest.raises(InputError, match=f"Unset LITELLM_{name.upper()}"):
        backend("http://127.0.0.1:9/v1")
