"""Drawings of exercises for vision models: a PNG picture of each, priced, and recorded by its digest."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import EdgenError, SpaceError
from edgen.core.pictures import parse_picture, pictures_in
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.pool import iterate_values
from edgen.space import load_space
from tests.json_server import serving_json

pytest.importorskip("resvg_py")

SPACE = """
name: mine
dimensions:
  object: [cat, dog, box]
  colour: [red, blue]
roles:
  Tutor: {sees: [question, picture, answer, points]}
  Student: {sees: [question, picture]}
exercises:
  tiers:
    things:
      concepts: [object, colour]
      question: "What is this?"
      answers: "a {{ colour }} {{ object }}"
      picture: "a {{ colour }} {{ object }}"
      draw:
        - {thing: "{{ object }}", colour: "{{ colour }}"}
"""


def space(folder: Path, more: str = "      send: drawing\n") -> Path:
    """Write a space whose drawings are sent."""
    path = folder / "mine.yaml"
    path.write_text(SPACE + more, "utf-8")
    return path


def test_each_exercise_is_sent_as_its_own_picture(tmp_path: Path) -> None:
    made = load_space(space(tmp_path))
    again = load_space(space(tmp_path))
    grammar = Grammar(made)
    exercises = [grammar.tiers["things"].make(values) for values in iterate_values(grammar, "things")]
    shown = [pictures_in(one.picture or "") for one in exercises]
    assert len({one.digest for (one,) in shown}) == len(exercises) == 6
    assert {one.media_type for (one,) in shown} == {"image/png"}
    assert made.pictures == again.pictures


def test_words_are_sent_unless_the_space_says_so(tmp_path: Path) -> None:
    made = load_space(space(tmp_path, ""))
    assert not made.pictures


def test_pictures_with_words_are_refused_with_their_place(tmp_path: Path) -> None:
    path = space(tmp_path)
    path.write_text(
        path.read_text().replace('colour: "{{ colour }}"}', 'colour: "{{ colour }}", label: "x"}')
    )
    with pytest.raises(
        SpaceError, match=r"exercises\.tiers\.things\.draw: .*fonts differ from machine to machine"
    ):
        load_space(path)


@pytest.mark.integration
def test_a_student_gets_them_and_the_run_keeps_them(tmp_path: Path) -> None:
    sent: list[bytes] = []

    def says(_path: str, body: Any) -> tuple[int, Any]:
        parts = [
            part for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]
        ]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        sent.extend(base64.b64decode(url.partition(",")[2], validate=True) for url in urls)
        choice = {
            "message": {"role": "assistant", "content": "Guess\nIt is a red cat."},
            "finish_reason": "stop",
        }
        return 200, {"choices": [choice]}

    space(tmp_path)
    run = tmp_path / "run"
    with serving_json(says) as url:
        student = {
            "type": "openai",
            "model": "eyes",
            "base_url": f"{url}/v1",
            "max_tokens": 200,
            "forms": "prose",
        }
        job = {
            "name": "seen", "seed": 1, "conversations": 1, "space": "mine.yaml", "protocol": "tutoring",
            "tutoring": {"student_turns": 1, "responses": 1},
            "backends": {"default": {"type": "simulator"}, "student": student},
        }  # fmt: skip
        (tmp_path / "job.yaml").write_text(json.dumps(job), "utf-8")
        try:
            edgen.generate(tmp_path / "job.yaml", output=run, progress=False)
        except EdgenError:
            assert sent, "too few are accepted where a server says the same each time"
    kept = json.loads((run / "inputs" / "space.pictures.json").read_bytes())
    digests = {parse_picture(base64.b64decode(text)).digest for text in kept.values()}
    assert sent
    assert {parse_picture(data).digest for data in sent} <= digests
