"""`edgen space show`: sizes, cells, weights, and how many conversations a balanced design needs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from edgen.core import resources
from edgen.planning.sizes import compute_needed_conversations, list_strata
from edgen.space import load_space
from edgen.space.sampling import Sampler
from tests.cli.command import Command

WEIGHTED = """\
name: mine
topics: [{value: A, subject: S, level: L}, {value: B}, {value: C}]
student_preferences: [{value: "often", weight: 6}, {value: "now and then", weight: 3}, {value: "seldom"}]
student_reactions: [x, y]
teacher_preferences: [x, y]
teacher_reactions: [x]
"""


def test_sizes_cells_and_weights(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WEIGHTED)
    facts = json.loads(command("space", "show", path, "--json").out)
    assert facts["cells"] == 3 * 3 * 2 * 2
    assert {name: about["values"] for name, about in facts["dimensions"].items()} == {
        "topic": 3,
        "student_preference": 3,
        "student_reaction": 2,
        "teacher_preference": 2,
        "teacher_reaction": 1,
    }
    weights = facts["dimensions"]["student_preference"]
    assert weights["most_probable"][0] == {"value": "often", "probability": 0.6}
    assert weights["least_probable"] == [{"value": "seldom", "probability": 0.1}]
    assert (facts["dimensions"]["topic"]["values"], facts["dimensions"]["topic"]["weighted"]) == (3, False)
    assert facts["dimensions"]["topic"]["fields"] == {"subject": 1, "level": 1}
    cells, pairs, *_ = facts["balanced"]
    assert [need["in_each"] for need in cells["needed"]] == [36, 72, 180]
    assert (pairs["by"], pairs["cells"]) == (["student_preference", "teacher_preference"], 6)
    assert [need["on_average"] for need in pairs["needed"]] == [6, 12, 30]


def test_a_table_says_how_often_each_value_occurs_in_n_conversations(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WEIGHTED)
    facts = json.loads(command("space", "show", path, "-n", "30", "--json").out)
    assert facts["gives"]["conversations"] == 30
    even = facts["gives"]["designs"]["even"]
    assert even["topic"] == {"least": 10, "most": 10, "off": 0}
    assert even["student_preference"] == {"least": 3, "most": 18, "off": 0}
    random = Sampler(load_space(path), 0, "random").scenario
    counts = Counter(random(index)["topic"] for index in range(30))
    assert facts["gives"]["designs"]["random"]["topic"]["most"] == max(counts.values())
    shown = command("space", "show", path, "-n", "30").out
    assert "How often each value occurs in the first 30 conversations" in shown
    assert "With `design: even`, each count is within 0 of the value's weighted share." in shown


def test_the_table_names_dimensions_whose_values_conditions_shift(command: Command) -> None:
    shown = command("space", "show", "math_misconceptions").out
    assert "Conditions or exclusions shift the values of: misconception." in shown


def test_the_groups_help_has_an_example(command: Command) -> None:
    assert "Example: edgen space show broad" in command("space", "--help").out


def test_per_cell(command: Command) -> None:
    facts = json.loads(command("space", "show", "broad", "--per-cell", "3", "--json").out)
    assert [need["per_cell"] for need in facts["balanced"][0]["needed"]] == [3]
    assert facts["balanced"][0]["needed"][0]["in_each"] == 3 * facts["cells"]


@pytest.mark.parametrize("name", resources.list_shipped("preference_space"))
def test_it_reads_well_in_eighty_columns(command: Command, name: str) -> None:
    ended = command("space", "show", name, "--per-cell", "2")
    assert ended.code == 0
    # Only a file's path and a long value may exceed the width.
    assert all(len(line) <= 80 for line in ended.out.splitlines() if not line.startswith("space"))
    assert ("student x teacher preference" in ended.out) is (
        name in ("broad", "education_dialogue", "education_dialogue_faithful")
    )


def test_mistakes(command: Command, tmp_path: Path) -> None:
    for arguments, sentence in (
        (("brod",), "no such space (did you mean 'broad'?)"),
        ((tmp_path / "none.yaml",), "there is no such file"),
        (("broad", "--per-cell", "0"), "0 is not in the range"),
    ):
        ended = command("space", "show", *arguments)
        assert ended.code == 2
        assert sentence in " ".join(ended.err.replace("│", " ").split())


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("by", ["student_preference", "student_reaction", "topic"])
def test_so_many_conversations_have_each_of_them_in_nineteen_of_twenty_seeds(k: int, by: str) -> None:
    space = load_space(resources.find("preference_space", "education_dialogue"))
    fields = {
        "student_preference": ("student_preference", "teacher_preference"),
        "student_reaction": ("student_reaction", "teacher_reaction"),
        "topic": ("topic",),
    }[by]
    (count,) = [count for names, count in list_strata(space) if names[0] == by and len(names) < 5]
    number = compute_needed_conversations(count, space.product, k)
    enough = 0
    for seed in range(60):
        scenario = Sampler(space, seed, "balanced").scenario
        drawn = (scenario(index) for index in range(number))
        seen = Counter(tuple(one[field] for field in fields) for one in drawn)
        enough += len(seen) == count and min(seen.values()) >= k
    assert enough >= 54  # 57 of 60 are promised; three fewer are within the luck of sixty seeds
    assert number > k * count


def test_whole_passes_are_certain_and_enough() -> None:
    assert compute_needed_conversations(36, 36, 4) == 144
    assert compute_needed_conversations(6, 36, 6) == 36  # all cells of one pass
    assert 36 < compute_needed_conversations(6, 36, 7) <= 72
    assert compute_needed_conversations(1, 36, 10) == 10
    assert compute_needed_conversations(20_000**2, 20_000**5, 5) < 20_000**5


def test_exercises_are_shown_with_their_answers(command: Command) -> None:
    tiers = json.loads(command("space", "show", "fractions", "--exercises", "2", "--json").out)["exercises"]
    assert {name: tier["exercises"] for name, tier in tiers.items()} == {"comparing": 132, "adding": 132}
    assert all(len(tier["shown"]) == 2 for tier in tiers.values())
    printed = command("space", "show", "italian_shapes", "--exercises", "30").out
    assert "quadrato rosso" in printed
    assert printed.count("answers ") == 30


def test_a_job_with_a_wrong_grammar_is_refused_before_anything_is_made(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(
        """\
name: own
dimensions: {word: [{value: house, f: true}, {value: dog, f: false}], learner: [shy, bold]}
exercises:
  rules: {article: [{gives: la, when: {word.f: true}}]}
  tiers: {words: {concepts: [word], question: "{{ word }}?", answers: "{{ article }}"}}
"""
    )
    (tmp_path / "one.j2").write_text("{{ word }} {{ learner }}")
    (tmp_path / "job.yaml").write_text(
        "{name: j, conversations: 2, space: own.yaml, prompt: one.j2, backends: {default: {type: simulator}}}"
    )
    ended = command("generate", tmp_path / "job.yaml", "-o", tmp_path / "out")
    assert ended.code == 2
    assert "$.exercises.rules.article: no case applies with word.f False" in ended.err
    assert not (tmp_path / "out").exists()
