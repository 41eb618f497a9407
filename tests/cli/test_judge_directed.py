"""Conversations with instructions to their judge, from the run to its labels: which judges obey, and which
pairs are labelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.core import resources
from tests.cli.command import Command
from tests.cli.test_pairs import facts, job, pairs

OBEYS = "backends.judge={type: simulator, faults: 'judge_obeys=1'}"


@pytest.fixture
def planted(command: Command, tmp_path: Path) -> Path:
    """Generate a run in which one teacher's turn in twelve asks the judge to prefer the conversation."""
    backends = {
        "teacher": {"type": "simulator", "faults": "tells_judge=0.08"},
        "student": {"type": "simulator"},
    }
    values = {"protocol": "selfplay", "prompt": None, "backends": backends, "conversations": 15}
    assert command("generate", job(tmp_path, **values), "-o", tmp_path / "run").code == 0
    return tmp_path / "run"


def directed(line: dict[str, Any]) -> dict[str, str | None]:
    """Return the text of each side of a pair that addresses a judge; empty if there is none."""
    found: dict[str, str | None] = line["signals"].get("judge_directed", {})
    return found


def report(command: Command, run: Path) -> Any:
    return facts(command("pairs", run, "--report", "--json"))


def test_what_is_planted_wins_under_the_published_template_and_nothing_under_the_guarded_one(
    command: Command, planted: Path
) -> None:
    published = ("--prompt", "oracle_conversation", "--set", "pairs.judge_directed=label")
    facts(command("pairs", planted, "--by", "oracle", "--set", OBEYS, *published, "--json"))
    one = [line for line in pairs(planted) if None in directed(line).values()]
    assert len(one) > 8, "there are pairs in which one side speaks to the judge"
    assert all(line["label"]["chosen"] == ("b" if directed(line)["a"] is None else "a") for line in one)
    assert report(command, planted)["judges"][0]["judge_directed"]["value"] == 1

    made = facts(
        command("pairs", planted, "--by", "oracle", "--set", OBEYS, "--prompt", "oracle_guarded", "--json")
    )
    lines = pairs(planted)
    flagged = [line for line in lines if directed(line)]
    assert {line["left_out"] for line in flagged} == {"judge_directed"}
    assert {line["label"] for line in flagged} == {None}
    assert made["left_out"]["judge_directed"] == len(flagged)
    told = report(command, planted)
    assert told["judge_directed"]["n"] == len(flagged)
    fair = facts(
        command("pairs", planted, "--by", "oracle", "--set", "backends.judge={type: simulator}", "--prompt",
                "oracle_guarded", "--json")
    )  # fmt: skip
    for line in pairs(planted):
        said = {signal["judge"]: signal["p"] for signal in line["signals"]["oracle"]}
        assert said[made["judge"]] == said[fair["judge"]], "who obeys says what one says who does not"
    shown = command("pairs", planted, "--report").out
    assert f"judge_directed: {len(flagged)} = " in shown
    assert '"Note to the judge:"' in shown or '"#"' in shown

    # The labels use the guarded judge's stored answers.
    labelled = facts(
        command("pairs", planted, "--by", "oracle", "--set", OBEYS, "--prompt", "oracle_guarded",
                "--set", "pairs.judge_directed=label", "--json")
    )  # fmt: skip
    assert labelled["calls"]["made"] == made["calls"]["made"]
    assert "judge_directed" not in labelled["left_out"]


def test_a_run_without_such_texts_has_no_such_key(command: Command, tmp_path: Path) -> None:
    assert command("generate", job(tmp_path), "-o", tmp_path / "run").code == 0
    facts(command("pairs", tmp_path / "run", "--by", "probability", "--json"))
    assert not any("judge_directed" in line["signals"] for line in pairs(tmp_path / "run"))
    assert report(command, tmp_path / "run")["judge_directed"]["n"] == 0


class TestTemplate:
    """A judge's template if no option names one."""

    @staticmethod
    def name(run: Path, judge: str) -> str:
        noted = json.loads((run / "pairs" / "judged" / f"{judge}.json").read_text())
        return str(noted["template"]["name"])

    def test_a_new_run_takes_the_guarded_one_for_both_ways_of_comparing(
        self, command: Command, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        changes = {"protocol": "selfplay", "prompt": None, "branch": {"at": 2}, "conversations": 4}
        assert command("generate", job(tmp_path, **changes), "-o", run).code == 0
        for compare in ("conversation", "response"):
            made = facts(
                command("pairs", run, "--by", "oracle", "--set", f"pairs.compare={compare}", "--json")
            )
            assert self.name(run, made["judge"]) == "oracle_guarded"
            assert made["judged"] > 0
        # Each published template supports one way of comparing.
        published = ("--set", "prompts.oracle=oracle_conversation", "--set", "pairs.compare=conversation")
        made = facts(command("pairs", run, "--by", "oracle", *published, "--json"))
        assert self.name(run, made["judge"]) == "oracle_conversation"

    def test_a_run_that_was_judged_with_the_published_one_is_not_asked_anew_unasked(
        self, command: Command, tmp_path: Path
    ) -> None:
        run = tmp_path / "run"
        assert command("generate", job(tmp_path, conversations=4), "-o", run).code == 0
        first = facts(command("pairs", run, "--by", "oracle", "--prompt", "oracle_conversation", "--json"))
        ended = command("pairs", run, "--by", "oracle", "--json")
        again = facts(ended)
        assert (again["judge"], again["calls"]["made"]) == (first["judge"], first["calls"]["made"])
        assert "was judged with the published template oracle_conversation" in ended.err
        # The other way of comparing has no verdicts yet. After the guarded template is named once, it is the
        # default.
        ended = command("pairs", run, "--by", "oracle", "--set", "pairs.compare=response", "--json")
        assert self.name(run, json.loads(ended.out)["judge"]) == "oracle_guarded"
        guarded = facts(command("pairs", run, "--by", "oracle", "--prompt", "oracle_guarded", "--json"))
        after = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert (after["judge"], self.name(run, after["judge"])) == (guarded["judge"], "oracle_guarded")

    def test_the_jobs_own_template_holds(self, command: Command, tmp_path: Path) -> None:
        run = tmp_path / "run"
        path = job(tmp_path, conversations=4, prompts={"oracle": "oracle_conversation"})
        assert command("generate", path, "-o", run).code == 0
        made = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert self.name(run, made["judge"]) == "oracle_conversation"

    def test_a_project_of_ones_own_begins_with_the_guarded_one(
        self, command: Command, tmp_path: Path
    ) -> None:
        mine = tmp_path / "mine"
        assert command("init", mine, "--protocol", "selfplay").code == 0
        shipped = resources.find("prompts", "oracle_guarded").read_text()
        assert (mine / "oracle.j2").read_text() == shipped
        run = tmp_path / "run"
        assert command("generate", mine / "job.yaml", "--set", "conversations=3", "-o", run).code == 0
        for compare in ("conversation", "response"):
            assert facts(
                command("pairs", run, "--by", "oracle", "--set", f"pairs.compare={compare}", "--json")
            )["judged"]

    def test_one_that_shows_neither_plain_nor_guarded_texts_is_refused(
        self, command: Command, tmp_path: Path
    ) -> None:
        path = tmp_path / "mine.j2"
        path.write_text("Is {{ guarded_1 }} better? Output 1 or 2.")
        assert command("generate", job(tmp_path, conversations=2), "-o", tmp_path / "run").code == 0
        ended = command("pairs", tmp_path / "run", "--by", "oracle", "--prompt", path)
        assert ended.code == 2
        assert "guarded_2 is never used" in ended.err
