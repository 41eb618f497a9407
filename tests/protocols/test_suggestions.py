"""Messages about runs of a package's protocol and family suggest only options that these have."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

import edgen
from edgen.cli.generate import _render_record
from edgen.config import parse_job
from edgen.core import registry
from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Request
from edgen.families import base
from edgen.protocols.suggestions import find_probability_setting, list_branching, list_playable
from edgen.space.model import SpaceRole
from tests import ROOT

pytestmark = pytest.mark.integration

PLUGIN = ROOT / "examples" / "plugin"
OF_TWO = (SpaceRole("Guide", ()), SpaceRole("Visitor", ()))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> edgen.Run:
    """Return a run by the protocol and the family of the example package."""
    monkeypatch.syspath_prepend(PLUGIN)
    monkeypatch.setattr(registry, "_added", dict(registry._added))
    registry.add("protocol", "teach_back", importlib.import_module("edgen_example.teach_back").PROTOCOL)
    registry.add("family", "notes", importlib.import_module("edgen_example.notes").FAMILY)
    job = {
        "name": "t", "seed": 3, "conversations": 6, "replicates": 2, "space": "education_dialogue",
        "protocol": "teach_back", "family": "notes", "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    return edgen.generate(job, output=tmp_path / "run", backends={"default": answer}, progress=False)


async def answer(request: Request) -> str:
    """Answer every request with other words."""
    return f"It has {request.seed} parts."


def test_a_protocol_without_probabilities_is_told_of_no_setting(run: edgen.Run) -> None:
    with pytest.raises(ShortError, match="the protocol teach_back has no setting for them") as caught:
        run.pairs("probability")
    assert "selfplay" not in str(caught.value)


def test_a_protocol_that_cannot_be_continued_is_told_of_one_that_can(run: edgen.Run) -> None:
    with pytest.raises(UsageError, match="cannot continue a conversation from a turn") as caught:
        run.pairs("oracle", credit="rollouts")
    assert f"Generate with {' or '.join(list_playable())}, or use --credit whole" in str(caught.value)
    assert "oneshot" not in str(caught.value)


def test_the_report_names_groups_in_the_family_s_words(run: edgen.Run, tmp_path: Path) -> None:
    page = run.report(tmp_path / "report.html").read_text("utf-8")
    assert "split.by in the job keeps dimensions apart" in page


def test_a_record_of_any_layout_is_shown(run: edgen.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`generate --show` works with any content under the keys of edgen's own layouts."""
    monkeypatch.setattr(base, "find_family_of_record", lambda _: registry.find("family", "notes"))
    (shard, *_) = sorted((run.folder / "shards").glob("conversations_train*.json"))
    record = json.loads(shard.read_bytes())[0]
    for more in ({}, {"scenario": "a text"}, {"background_info": ["a list"]}):
        shown = [*_render_record({**record, **more})]
        assert any(line.startswith("  topic: ") for line in shown)
        assert [line.partition(":")[0] for line in shown[-2:]] == ["Teacher", "Student"]


@pytest.mark.unit
def test_protocols_are_suggested_by_what_they_say_of_themselves() -> None:
    assert (list_branching(), list_playable()) == (["selfplay"], ["selfplay"])
    job = {"name": "t", "conversations": 1, "space": "x", "backends": {"default": {"type": "simulator"}}}
    settings = {
        name: find_probability_setting(parse_job({**job, "protocol": name}, "t"), OF_TWO)
        for name in ("selfplay", "oneshot")
    }
    assert settings == {"selfplay": "selfplay: {closing: visitor}", "oneshot": ""}
