"""People against a model: arms of one job, in one of which a person is the student."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from edgen.store.run_reader import RunReader
from tests import ROOT
from tests.cli.command import call
from tests.web.players import Pages, Player, generate, token_in, wait_for_mailbox

pytestmark = pytest.mark.integration

JOB = f"""
name: arms
seed: 7
conversations: 2
space: {ROOT}/preference_space/tutoring/italian_prepositions.yaml
protocol: tutoring
prompts: {{tutor: tutoring_tutor, student: tutoring_student}}
tutoring: {{student_turns: 2, responses: 2, choose: draw}}
backends:
  student: {{type: simulator}}
  tutor: {{type: simulator}}
arms:
  model: {{}}
  people:
    backends: {{student: {{type: human, consent: consent.md}}}}
split: {{test: 0}}
"""


def test_people_and_a_model_are_arms_of_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, run = tmp_path / "arms.yaml", tmp_path / "run"
    job.write_text(JOB, "utf-8")
    (tmp_path / "consent.md").write_text("You take part in a study.", "utf-8")
    making = generate(job, run, people=())
    try:
        wait_for_mailbox(run)
        with Pages(run) as pages:
            ann = Player.enter("ann", pages.port, pages.invite("student", "ann")["ann"])
            assert ann.until("paper") == "paper"
            assert "You take part in a study." in ann.page
            ann.send_paper({})
            for _ in range(2):
                while ann.until("answer", "over") == "answer":
                    time.sleep(0.05)  # a page counts hundredths of seconds
                    ann.say("il libro è sul tavolo, I think")
                ann.page = ann.browser.post("/play/next", {"token": token_in(ann.page)})
            assert making.wait(180) in (0, 3)
    finally:
        making.kill()
    with RunReader(run) as reader:
        made = {
            arm: [one.record for one in reader.conversations() if one.candidate.arm == arm]
            for arm in ("model", "people")
        }
    _have_one_schema(made)
    for one in made["people"]:
        times = one["provenance"]["times"]
        assert [time["role"] for time in times] == ["student"] * 2
        assert all(0 < time["seconds"] < 60 and time["answered"] > 1e9 for time in times)
        assert all(1e9 < time["asked"] <= time["seen"] <= time["answered"] for time in times)
    for folder in (run, run / "arms" / "people"):
        assert (folder / "inputs" / "consent.md").read_text("utf-8") == "You take part in a study."
    assert str(tmp_path) not in (run / "arms" / "people" / "shards" / "manifest.json").read_text("utf-8")
    before = {path: path.read_bytes() for path in sorted(run.glob("arms/*/shards/*.json"))}
    assert generate(job, run, people=()).wait(180) in (0, 3)  # from the stored answers
    assert {path: path.read_bytes() for path in before} == before
    assert call("validate", run) == 0
    assert call("stats", run) == 0
    for arm in made:
        assert call("export", run / "arms" / arm, "--to", "cima", "-o", tmp_path / arm) == 0
    capsys.readouterr()
    assert call("compare", run) == 0
    assert "people against model (paired by scenario)" in capsys.readouterr().out


def _have_one_schema(made: dict[str, list[dict[str, Any]]]) -> None:
    """Check that the records of both arms have the same fields, except for people's times."""
    (model, people), keys = made.values(), {}
    for arm, records in made.items():
        keys[arm] = {tuple(sorted(one)) for one in records}
        keys[arm] |= {tuple(sorted({*one["provenance"]} - {"times"})) for one in records}
        keys[arm] |= {tuple(sorted(turn)) for one in records for turn in one["conversation"]}
    assert keys["model"] == keys["people"]
    assert not any("times" in one["provenance"] for one in model)
    assert [one["scenario"] for one in model] == [one["scenario"] for one in people]
