"""Folders whose names are not valid UTF-8: runs in them are selected from, compared and
exported like any others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import edgen
from tests.annotation.test_changed import JOB
from tests.cli.command import Command


def test_a_run_in_a_folder_whose_name_is_no_text(command: Command, tmp_path: Path) -> None:
    run, other = tmp_path / os.fsdecode(b"run\xff"), tmp_path / "other"
    for folder in (run, other):
        edgen.generate(JOB, output=folder, progress=False)
    chosen = tmp_path / os.fsdecode(b"chosen\xfe")
    ended = command("select", run, "--where", "turns > 0", "-o", chosen, "--json")
    assert ended.code == 0, ended.err
    assert command("status", chosen, "--json").code == 0
    compared = tmp_path / os.fsdecode(b"compared\xfd.json")
    ended = command("compare", run, other, "-o", compared)
    assert ended.code == 0, ended.err
    assert "run\ufffd" in json.dumps(json.loads(compared.read_text()), ensure_ascii=False)
    ended = command("export", run, "--to", "hf", "-o", tmp_path / os.fsdecode(b"data\xfc"))
    assert ended.code == 0, ended.err
