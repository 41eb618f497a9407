"""A whole run on a real model server: llama.cpp, with random words in the form of a JSON schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.execution.service import edgen_alone as edgen
from tests.execution.service import files, job_text
from tests.providers import llama

TURN = {
    "type": "object",
    "properties": {"text": {"type": "string", "pattern": "^[a-z]{3,9}$"}},
    "required": ["text"],
}
TEACHER, STUDENT = (
    {**TURN, "properties": {"role": {"const": role}, **TURN["properties"]}, "required": ["role", "text"]}  # type: ignore[dict-item]
    for role in ("Teacher", "Student")
)
SCHEMA = {
    "type": "object",
    "properties": {
        "conversation": {"type": "array", "prefixItems": [TEACHER, STUDENT], "minItems": 2, "maxItems": 2},
        "probability": {"enum": [0.1, 0.5, 0.9]},
    },
    "required": ["conversation", "probability"],
}


async def test_a_data_set_from_a_real_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short.j2").write_text("Talk about {{ topic }}.")
    with llama.running(tmp_path, context=1024) as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=OPENAI_API_KEY")
        backend = {
            "type": "openai", "model": server.model, "base_url": server.base_url,
            "seed": "auto", "temperature": 1.0, "max_tokens": 600,
            "extra_body": {
                "response_format": {"type": "json_schema", "json_schema": {"name": "talk", "schema": SCHEMA}}
            },
        }  # fmt: skip
        job = tmp_path / "job.yaml"
        job.write_text(
            job_text(
                "", conversations=6, prompt="./short.j2", backends={"default": backend}, split={"test": 0}
            )
        )
        doctor = await edgen("doctor", job)
        assert doctor.code == 0, doctor.out
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.out + ended.err
    assert ended.facts["accepted"] == 6
    assert ended.facts["tokens"]["completion"] > 100
    record = json.loads(files(tmp_path / "run")["conversations_train1.json"])[0]
    assert [turn["role"] for turn in record["conversation"]] == ["Teacher", "Student"]
    assert record["probability"] in (0.1, 0.5, 0.9)
    assert record["provenance"]["simulated"] is False
    assert (await edgen("validate", tmp_path / "run")).code == 0
