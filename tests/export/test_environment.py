"""An export with the environment's own template has in every prompt what the environment would show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import TemplateError, UsageError
from edgen.core.values import END_MARKER
from edgen.export.write import export
from edgen.planning.load import load_plan
from edgen.protocols.stage import PlayedTurn
from edgen.store.run_parts import AcceptedConversation
from edgen.store.run_reader import RunReader
from tests.export.runs import FORMATS, MemoryRun, compared, lesson, turns
from tests.export.runs import options as options_of
from tests.export.test_cli import _run

SPACES = {
    "education_dialogue": (("Teacher", "selfplay_teacher"), ("Student", "selfplay_student")),
    "language_learning": (("Teacher", "language_learning_teacher"), ("Learner", "language_learning_learner")),
}
LAST_BY_TEACHER = turns("T Hi.", "S Ok.", "T Bye.")
LAST_BY_STUDENT = turns("T Hi.", "S Bye.")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]


@pytest.fixture(scope="module", params=SPACES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of self-play."""
    folder = tmp_path_factory.mktemp("environment")
    values: dict[str, Any] = {
        "name": "shown", "seed": 3, "conversations": 6, "protocol": "selfplay", "space": request.param,
        "selfplay": {"max_turns": 8}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    if request.param != "education_dialogue":
        values["prompts"] = {role.lower(): template for role, template in SPACES[request.param]}
    (folder / "job.yaml").write_text(json.dumps(values))
    assert _run("generate", folder / "job.yaml", "-o", folder / "run") == 0
    return folder / "run"


@pytest.mark.parametrize("side", [0, 1])
def test_every_prompt_is_what_the_environment_shows(side: int, run: Path, tmp_path: Path) -> None:
    plan = load_plan(run.parent / "job.yaml", [])
    role, template = SPACES[plan.space.name][side]
    with RunReader(run) as reader:
        options = options_of("trl-prompts", train=role.lower(), opening_prompt=template)
        export(reader, FORMATS["trl-prompts"], tmp_path / "out", options)
        played = {one.candidate.id: one for one in reader.conversations()}
    found = rows(tmp_path / "out")
    assert len(found) > len(played)
    for row in found:
        assert row["prompt"] == _shown(plan, played[row["id"]], role, row["turn"])


def _shown(plan: Any, conversation: AcceptedConversation, role: str, turn: int) -> list[dict[str, str]]:
    """Return the messages with which self-play asks a role for the turn of this number."""
    said = conversation.candidate.turns
    at = [place for place, one in enumerate(said) if one.role == role][turn]
    asked = plan.stage(conversation.scenario).messages(role, [PlayedTurn(one) for one in said[:at]])
    return [{"role": message.role, "content": message.content} for message in asked]


def test_a_side_is_told_nothing_that_it_may_not_know(run: Path, tmp_path: Path) -> None:
    with RunReader(run) as reader:
        (first, _), (_, theirs) = SPACES[reader.space.name]
        options = options_of("trl-prompts", train=first.lower(), opening_prompt=theirs)
        with pytest.raises(TemplateError, match="variable"):
            export(reader, FORMATS["trl-prompts"], tmp_path / "out", options)


@pytest.mark.parametrize(
    ("template", "end_marker", "kept"),
    [
        ("selfplay_teacher", None, True),
        ("selfplay_teacher", "drop", False),
        (None, None, False),
        (None, "keep", True),
        ("export_opening", None, False),
    ],
)
def test_the_end_marker_is_kept_or_dropped(
    template: str | None, end_marker: str | None, kept: bool, tmp_path: Path
) -> None:
    run = MemoryRun(taught=[lesson(0, 0, LAST_BY_TEACHER), lesson(1, 0, LAST_BY_STUDENT)])
    options = options_of("trl-sft", opening_prompt=template, end_marker=end_marker)
    export(run, FORMATS["trl-sft"], tmp_path / "out", options)  # type: ignore[arg-type]
    ours, theirs = [row["messages"] for row in rows(tmp_path / "out")]
    assert ours[-1]["content"] == (f"Bye. {END_MARKER}" if kept else "Bye.")
    assert theirs[-1]["content"] == "Bye."  # the trained side never sees the other side's marker
    assert json.dumps([message["content"] for message in ours[1 if template else 0 : -1]]).count("Bye") == 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert ("its last message ends with `[end of conversation]`" in card) is kept
    assert ("No message holds the end marker." in card) is not kept
    assert ("opens with the messages that the environment shows" in card) is (template == "selfplay_teacher")


def test_pairs_keep_it_too(tmp_path: Path) -> None:
    run = MemoryRun(pairs=[compared(0, LAST_BY_TEACHER, turns("T Hi.", "S Ok.", "T Go on.", "S Why?"))])
    export(run, FORMATS["trl-dpo"], tmp_path / "out", options_of("trl-dpo", end_marker="keep"))  # type: ignore[arg-type]
    (row,) = rows(tmp_path / "out")
    assert (row["chosen"][0]["content"], row["rejected"][0]["content"]) == (f"Bye. {END_MARKER}", "Go on.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"opening_prompt": "selfplay_teacher", "opening": "both"}, "leave --opening out"),
        ({"end_marker": "maybe"}, "--end-marker maybe: expected one of keep, drop"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, str], said: str, tmp_path: Path) -> None:
    run = MemoryRun(taught=[lesson(0, 0, LAST_BY_TEACHER)])
    with pytest.raises(UsageError, match=said):
        export(run, FORMATS["trl-sft"], tmp_path / "out", options_of("trl-sft", **options))  # type: ignore[arg-type]


def test_a_template_for_another_use_is_refused(tmp_path: Path) -> None:
    run = MemoryRun(taught=[lesson(0, 0, LAST_BY_TEACHER)])
    with pytest.raises(TemplateError, match="it is for another use: it says `expects: verdict`"):
        export(
            run, FORMATS["trl-sft"], tmp_path / "out", options_of("trl-sft", opening_prompt="oracle_guarded")
        )  # type: ignore[arg-type]
