"""Runs and commands with a model in edgen's own process; with SmolLM2 if its package is installed."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shlex
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from edgen.config import load_job
from edgen.core.errors import InputError
from edgen.providers.llamacpp.installed import SMALLEST_PACKAGE, SMALLEST_VERSION, find_installed
from tests import ROOT
from tests.dose import dose
from tests.execution.service import edgen_alone as edgen
from tests.execution.service import end, files, job_text, start
from tests.providers import llama


def _has_smollm2() -> bool:
    try:
        return find_installed("smollm2").path.is_file()
    except InputError:
        return False


TURN = {"type": "string", "pattern": "^[a-z]{3,12}$"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a folder with weights and a template; a JSON Schema keeps the random model's answers in form."""
    llama.write_model(tmp_path / "tiny.gguf", 1024)
    (tmp_path / "short.j2").write_text("Talk about {{ topic }}.")
    turns = [shape(role={"const": role}, text=TURN) for role in ("Teacher", "Student")]
    talk = {"type": "array", "prefixItems": turns, "items": False, "minItems": 2}
    schema = shape(conversation=talk, probability={"enum": [0.1, 0.5, 0.9]})
    (tmp_path / "short.schema.json").write_text(json.dumps(schema))
    return tmp_path


def shape(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object", "properties": properties, "required": [*properties], "additionalProperties": False,
    }  # fmt: skip


def write_job(project: Path, **changes: Any) -> Path:
    path = project / "job.yaml"
    backend = {"type": "llamacpp", "path": "./tiny.gguf", "temperature": 1.0}
    usual = {"prompt": "./short.j2", "backends": {"default": backend}, "limits": {"in_flight": 4}}
    path.write_text(job_text("", **{"conversations": 30, "split": {"test": 0}} | usual | changes))
    return path


async def test_doctor_estimate_and_a_run_in_short(project: Path) -> None:
    job = write_job(project, conversations=6)
    doctor = await edgen("doctor", job)
    assert doctor.code == 0, doctor.out + doctor.err
    assert "sent as grammar: the answer fits" in doctor.out
    estimate = await edgen("estimate", job, "--json")
    assert estimate.code == 0, estimate.err
    ended = await edgen("generate", job, "-o", project / "run", "--json")
    assert ended.code == 0, ended.out + ended.err
    assert ended.facts["accepted"] == 6
    assert ended.facts["cost_usd"] == 0
    record = json.loads(files(project / "run")["conversations_train1.json"])[0]
    assert record["provenance"]["simulated"] is False
    assert record["provenance"]["model"] == "tiny"
    assert (await edgen("validate", project / "run")).code == 0


async def test_prompts_that_do_not_fit_the_context_are_told_and_fit_a_larger_one(project: Path) -> None:
    (project / "short.j2").write_text("{% block user %}" + "many words " * 25 + "{{ topic }}{% endblock %}")
    backend = {"type": "llamacpp", "path": "./tiny.gguf", "temperature": 1.0}
    run = project / "run"
    small = {"default": {**backend, "context": 128}}
    ended = await edgen("generate", write_job(project, conversations=2, backends=small), "-o", run)
    assert ended.code == 3
    assert "context_overflow 2" in ended.err
    assert "shorten the template, or give it more context" in ended.err
    large = {"default": {**backend, "context": 2048}}
    ended = await edgen("generate", write_job(project, conversations=2, backends=large), "-o", run, "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 2


async def test_other_weights_are_asked_anew_and_the_same_ones_elsewhere_are_not(project: Path) -> None:
    job = write_job(project, conversations=3)
    assert (await edgen("generate", job, "-o", project / "run")).code == 0
    (project / "moved.gguf").write_bytes((project / "tiny.gguf").read_bytes())
    named = ("--set", "backends.default.path=moved.gguf")
    again = await edgen("generate", job, "-o", project / "run", "--json", *named)
    assert again.facts["calls"]["now"] == 0
    data = bytearray((project / "moved.gguf").read_bytes())
    data[-400_000] ^= 1
    (project / "moved.gguf").write_bytes(data)
    changed = await edgen("generate", job, "-o", project / "run", "--json", "--yes", *named)
    assert changed.code == 0, changed.err
    assert changed.facts["calls"]["now"] == 3


def test_files_are_named_from_the_jobs_folder_in_arms_as_well(project: Path) -> None:
    (project / "chat.jinja").write_text(llama.CHAT_TEMPLATE)
    arms = {
        "one": {"backends": {"default": {"path": "sub/other.gguf"}}},
        "two": {"backends": {"default": {"chat_template": "./chat.jinja"}}},
        "three": {"backends": {"default": {"chat_template": "{{ messages }}", "threads": 2}}},
    }
    job = load_job(write_job(project, arms=arms))
    assert job.backends["default"].path == str(project / "tiny.gguf")  # type: ignore[attr-defined]
    changed = {arm: keys["backends"]["default"] for arm, keys in job.arms.items()}
    assert changed == {
        "one": {"path": str(project / "sub/other.gguf")},
        "two": {"chat_template": str(project / "chat.jinja")},
        "three": {"chat_template": "{{ messages }}", "threads": 2},
    }


async def test_runs_side_by_side_share_one_file(project: Path) -> None:
    job = write_job(project, conversations=8)
    both = [edgen("generate", job, "-o", project / f"run{number}") for number in range(2)]
    assert [ended.code for ended in await asyncio.gather(*both)] == [0, 0]
    assert files(project / "run0") == files(project / "run1")


async def test_a_run_that_only_a_model_could_end_stops_and_goes_on(project: Path) -> None:
    job = write_job(project, conversations=4)
    whole = (project / "tiny.gguf").read_bytes()
    place = whole.index(b"\x01\0\0\0\0\0\0\0A\x01\0\0\0\0\0\0\0B") + 8
    (project / "tiny.gguf").write_bytes(whole[:place] + b"B" + whole[place + 1 :])
    stopped = await edgen("generate", job, "-o", project / "run")
    assert stopped.code == 2
    assert "its process ended by signal 6 (GGML_ASSERT" in stopped.err
    (project / "tiny.gguf").write_bytes(whole)
    assert (await edgen("generate", job, "-o", project / "run", "--yes")).code == 0


COUNT = dose(60, 120)


@pytest.mark.long
@pytest.mark.crash
async def test_killed_and_resumed_a_run_has_the_same_bytes(project: Path) -> None:
    job = write_job(project, conversations=COUNT)
    calm = await edgen("generate", job, "-o", project / "calm", "--json")
    assert calm.code == 0, calm.err
    rng, kills = random.Random(4), 0
    folder = project / "killed"
    while kills < dose(1, 4):
        before = stored(folder)
        process = await start("generate", job, "-o", folder, "--json")
        aim = before + rng.randint(1, 25)
        deadline = time.monotonic() + 60
        while process.returncode is None and stored(folder) < aim and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        if process.returncode is None:
            process.kill()
            kills += 1
        await end(process)
        assert stored(folder) < COUNT, "it was killed too late to show anything"
    ended = await edgen("generate", job, "-o", folder, "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["calls"]["made"] == calm.facts["calls"]["made"]
    assert files(folder) == files(project / "calm")


def stored(folder: Path) -> int:
    """Return the number of answers in the ledger."""
    try:
        with sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True) as ledger:
            return int(ledger.execute("SELECT count(*) FROM replies").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


# --- SmolLM2 -------------------------------------------------------------------------------------


def test_what_demo_real_installs_is_what_the_lock_and_the_code_name() -> None:
    def pins(name: str) -> dict[str, set[str]]:
        text = (ROOT / name).read_text(encoding="utf-8")
        found = re.findall(r"(?m)^(\S+==\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", text)
        return {pin: set(re.findall(r"sha256:\w{64}", hashes)) for pin, hashes in found}

    local, locked = pins("requirements-local.txt"), pins("requirements-dev.txt")
    (weights, library) = local
    assert weights == f"{SMALLEST_PACKAGE}=={SMALLEST_VERSION}"
    assert len(local[weights]) == 1
    assert library.startswith("xllamacpp==")
    assert local[library] == locked[library]


async def test_local_lists_models_and_says_how_to_install_one() -> None:
    ended = await edgen("local", "--json")
    assert ended.code == 0
    library, model = map(shlex.split, ended.facts["install"])
    assert {"install", "--no-deps", "--require-hashes", "requirements-local.txt"} <= {
        Path(word).name for word in model
    }
    assert any("local" in word for word in library)
    for line in ended.facts["install"]:
        assert line in (await edgen("local")).out
    assert ended.facts["xllamacpp"]
    if _has_smollm2():
        (found,) = [one for one in ended.facts["models"] if one["name"] == "smollm2"]
        assert (found["version"], found["context"], found["problem"]) == (SMALLEST_VERSION, 8192, "")
