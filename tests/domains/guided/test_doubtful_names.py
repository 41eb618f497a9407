"""A bare machine name means the shipped machine; a note says so if the user has one of the same name."""

from __future__ import annotations

from pathlib import Path

from tests.planning.test_doubtful_names import doubts


def test_a_machine_next_to_the_job(tmp_path: Path) -> None:
    (tmp_path / "machines" / "lesson_plan").mkdir(parents=True)
    (tmp_path / "machines" / "lesson_plan" / "one.yaml").write_text("name: one")
    said, *_ = doubts(tmp_path, space="lesson_plan", protocol="guided", guided="{machine: lesson_plan}")
    assert "`guided.machine: lesson_plan` means the shipped file, not " in said
