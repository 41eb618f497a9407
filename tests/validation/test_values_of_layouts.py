"""Values of the scenario are checked under the key that a family names, and against its vocabulary."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import edgen
from edgen.api.validating import validate
from edgen.core import registry
from edgen.families import base, reader
from edgen.families.reader import RecordContents
from edgen.validation.layout import LayoutChecks
from tests import ROOT

pytestmark = pytest.mark.integration


@pytest.fixture
def shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a shard of a run by the example package's family, which names the place of its values."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "plugin")
    monkeypatch.setattr(registry, "_added", dict(registry._added))
    notes = importlib.import_module("edgen_example.notes").FAMILY

    class Notes(LayoutChecks, RecordContents, type(notes)):  # type: ignore[misc]
        values_key = "about"

    registry.add("family", "notes", Notes())
    for cached in (base._list_other_families, reader.list_other_readers):
        cached.cache_clear()
    job = {
        "name": "t", "seed": 3, "conversations": 6, "space": "education_dialogue", "family": "notes",
        "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    run = edgen.generate(job, output=tmp_path / "run", progress=False)
    (found, *_) = sorted((run.folder / "shards").glob("conversations_train*.json"))
    yield found
    for cached in (base._list_other_families, reader.list_other_readers):
        cached.cache_clear()


def test_a_value_that_the_space_does_not_have(shard: Path) -> None:
    records = json.loads(shard.read_bytes())
    assert records[0]["about"]["topic"]
    records[0]["about"]["topic"] = "Something else"
    shard.write_text(json.dumps(records))
    reports = validate([shard.parent.parent]).files
    every = [one for report in reports for one in report.problems]
    found = {(one.path, one.problem) for one in every if one.kind == "vocabulary"}
    assert found == {("$.about.topic", '"Something else" is not in the preference space')}
