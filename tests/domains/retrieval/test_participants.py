"""The table of participants."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

import edgen
from edgen.domains.retrieval.measures.participants import MEASURE
from edgen.evaluation.views import list_lines
from tests.cli.command import Command


@pytest.mark.integration
def test_a_forum_has_the_figures_of_msdialogs_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = edgen.generate("jobs/tech_support.yaml", conversations=30, output=tmp_path / "run", progress=False)
    value = run.stats(["participants"]).arms[""]["participants"]
    dialogs = [one.turns for one in run.conversations()]
    people = [len({turn.data["user_id"] for turn in turns}) for turns in dialogs]
    sizes = [len(turn.text.split()) for turns in dialogs for turn in turns]
    expected = {
        "turns": [len(turns) for turns in dialogs], "participants": people,
        "words": [sum(len(turn.text.split()) for turn in turns) for turns in dialogs], "words_per_utterance": sizes,
    }  # fmt: skip
    assert (value.dialogs, value.utterances) == (len(dialogs), len(sizes))
    for name, numbers in expected.items():
        found = getattr(value, name)
        assert (found.min, found.max) == (min(numbers), max(numbers))
        assert abs(found.mean - statistics.mean(numbers)) < 1e-9
        assert found.median == statistics.median_low(numbers)
    ended = Command(capsys)("stats", run.folder)
    table = [line for line in ended.out.splitlines() if "participants a dialog" in line]
    assert f"{statistics.mean(people):.1f}" in table[0]
    assert table[0].split()[-1] == str(max(people))


def test_it_is_said_only_of_data_that_tells_who_posted(tmp_path: Path) -> None:
    run = edgen.generate("jobs/quickstart.yaml", conversations=5, output=tmp_path / "run", progress=False)
    assert run.stats(["participants"]).arms[""]["participants"].dialogs == 0
    assert [*list_lines(MEASURE, run.stats(["participants"]).arms[""]["participants"])] == []
