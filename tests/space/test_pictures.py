"""Pictures that a space names: in templates, in a run's folder, in requests' identity, in estimates."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.estimating import estimate_job
from edgen.core.errors import JobError, SpaceError
from edgen.core.pictures import pictures_in
from edgen.cost.options import EstimateOptions
from edgen.space import digest_content, dump_space, load_space, parse_space, render_space_files
from tests import pictures
from tests.json_server import serving_json

SPACE = """\
name: zoo
dimensions:
  animal:
    - {value: cat, picture: img/cat.png}
    - {value: dog, picture: dog.jpg}
  mood: [calm, wild]
roles:
  Teacher: {sees: [animal, mood]}
  Student: {sees: [mood]}
"""


def zoo(folder: Path, text: str = SPACE, grey: int = 9) -> Path:
    (folder / "img").mkdir(parents=True, exist_ok=True)
    (folder / "img" / "cat.png").write_bytes(pictures.png(64, 48, grey))
    (folder / "dog.jpg").write_bytes(pictures.jpeg(800, 600))
    path = folder / "zoo.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_field_that_names_an_image_file_is_that_picture(tmp_path: Path) -> None:
    space = load_space(zoo(tmp_path))
    assert [*space.pictures] == ["img/cat.png", "dog.jpg"]
    marks = [entry.fields["picture"] for entry in space["animal"].entries]
    assert [one.media_type for mark in marks for one in pictures_in(mark)] == ["image/png", "image/jpeg"]
    assert parse_space(dump_space(space), "again", tmp_path / "zoo.yaml") == space
    assert "img/cat.png" in dump_space(space)
    words = load_space(zoo(tmp_path, SPACE.replace("img/cat.png", "a sleeping cat")))
    assert words["animal"].find_entry("cat").fields["picture"] == "a sleeping cat"


def test_another_picture_is_another_space(tmp_path: Path) -> None:
    one, two = (load_space(zoo(tmp_path / str(grey), grey=grey)) for grey in (1, 2))
    assert digest_content(one) != digest_content(two)
    assert one["animal"].find_entry("dog") == two["animal"].find_entry("dog")


def test_a_run_s_copy_of_a_space_brings_its_pictures_along(tmp_path: Path) -> None:
    space = load_space(zoo(tmp_path / "own"))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, text in render_space_files(space).items():
        (copy / name).write_text(text, "utf-8")
    assert load_space(copy / "space.yaml") == space
    (copy / "space.pictures.json").write_text('{"dog.jpg": 5}')
    with pytest.raises(SpaceError, match="pictures by name in base64"):
        load_space(copy / "space.yaml")


@pytest.mark.parametrize("name", ["../out.png", "/etc/out.png", "link.png", "linked/out.png", "gone.png"])
def test_files_outside_of_the_space_s_folder_are_out_of_reach(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "space"
    zoo(folder)
    (tmp_path / "out.png").write_bytes(pictures.png())
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "linked").symlink_to(tmp_path)
    path = zoo(folder, SPACE.replace("dog.jpg", name))
    with pytest.raises(SpaceError) as refused:
        load_space(path)
    (problem,) = refused.value.problems
    assert problem.path == "$.dimensions.animal[1].picture"
    assert "cannot be used" in problem.message


@pytest.mark.parametrize(
    "data",
    [b"", b"not a picture", b"<svg/>", pictures.png(9_000, 2), pictures.png()[:40]],
    ids=["empty", "text", "svg", "wide", "cut"],
)
def test_the_content_says_what_a_picture_is(tmp_path: Path, data: bytes) -> None:
    path = zoo(tmp_path)
    (tmp_path / "dog.jpg").write_bytes(data)
    with pytest.raises(SpaceError, match=r"the picture dog.jpg cannot be used: it"):
        load_space(path)


def test_too_many_bytes_of_pictures_are_refused(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(3)]
    for number, name in enumerate(names):
        data = pictures.png(10, 10, number)
        (tmp_path / name).write_bytes(data[:-12] + bytes(2_500_000) + data[-12:])
    entries = "\n".join(f"    - {{value: v{name[0]}, picture: {name}}}" for name in names)
    (tmp_path / "s.yaml").write_text(f"name: s\ndimensions:\n  animal:\n{entries}\n")
    with pytest.raises(SpaceError, match="more than 6,000,000 bytes together"):
        load_space(tmp_path / "s.yaml")


# ---- in a job

TEMPLATE = "Look: {{ animal.picture }} It is {{ mood }}.\nWrite a conversation of a Teacher and a Student about it.\n"


def job(folder: Path, **changes: Any) -> Path:
    zoo(folder)
    (folder / "look.j2").write_text(changes.pop("template", TEMPLATE), "utf-8")
    value: dict[str, Any] = {
        "name": "zoo",
        "seed": 3,
        "conversations": 4,
        "space": "zoo.yaml",
        "prompt": "look.j2",
        "backends": {"default": {"type": "simulator"}},
        **changes,
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(value), "utf-8")
    return path


@pytest.mark.parametrize("shown", ["animal.picture", "picture"])
def test_any_template_can_show_a_picture(tmp_path: Path, shown: str) -> None:
    path = job(tmp_path, template=TEMPLATE.replace("animal.picture", shown))
    run = edgen.generate(path, output=tmp_path / "run", progress=False)
    assert len([*run.conversations()]) == 4
    for conversation in run.conversations():
        assert not any("⟦" in turn.text for turn in conversation.turns)
    mentioned = run.stats(only=["mentioned"], progress=False).as_json()["mentioned"]
    assert mentioned["parts"] == 4, "the animals, without their pictures and the persona's mood"
    kept = json.loads((tmp_path / "run" / "inputs" / "space.pictures.json").read_bytes())
    assert [*kept] == ["img/cat.png", "dog.jpg"]
    again = edgen.generate(tmp_path / "run" / "job.yaml", output=tmp_path / "run", progress=False)
    assert [one.id for one in again.conversations()] == [one.id for one in run.conversations()]


def test_a_backend_without_eyes_is_refused_before_any_call(tmp_path: Path) -> None:
    path = job(tmp_path, backends={"default": {"type": "llamacpp", "model": "smollm2"}})
    with pytest.raises(JobError, match=r"backends\.default.*shows a picture.*takes no pictures"):
        edgen.generate(path, output=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_without_a_picture_in_the_template_any_backend_will_do(tmp_path: Path) -> None:
    path = job(tmp_path, template=TEMPLATE.replace("{{ animal.picture }}", "{{ animal }}"))
    assert edgen.generate(path, output=tmp_path / "run", progress=False).folder.exists()


LESSON = "\n".join(f"{role}: Line {n} about it." for n in range(4) for role in ("Teacher", "Student"))
PRICED: dict[str, Any] = {"price": {"prompt": 1.0, "completion": 1.0}, "max_tokens": 300}


class Seer:
    """A local server of a vision model: it answers requests whose prompts follow Chat Completions."""

    def __init__(self) -> None:
        self.pictures: list[bytes] = []

    def says(self, path: str, body: Any) -> tuple[int, Any]:
        assert path == "/v1/chat/completions"
        (message,) = body["messages"]
        for part in message["content"]:
            if part["type"] == "image_url":
                head, data = part["image_url"]["url"].split(",")
                assert head in ("data:image/png;base64", "data:image/jpeg;base64")
                self.pictures.append(base64.b64decode(data, validate=True))
            else:
                assert part.keys() == {"type", "text"}
        choice = {"message": {"role": "assistant", "content": LESSON}, "finish_reason": "stop"}
        return 200, {"choices": [choice]}


@pytest.mark.integration
def test_pictures_are_sent_once_a_call_and_recorded_by_digest(tmp_path: Path) -> None:
    seer = Seer()
    with serving_json(seer.says) as url:
        backend = {"type": "openai", "model": "eyes", "base_url": f"{url}/v1", **PRICED}
        path = job(tmp_path, backends={"default": backend}, limits={"max_cost": 5})
        run = edgen.generate(path, output=tmp_path / "run", progress=False)
        assert len(seer.pictures) == 4
        edgen.generate(path, output=tmp_path / "run", progress=False)
        assert len(seer.pictures) == 4, "answered from the ledger"
        files = {pictures.png(64, 48, 9), pictures.jpeg(800, 600)}
        assert {*seer.pictures} <= files
        # another picture under the same name is another request
        (tmp_path / "img" / "cat.png").write_bytes(pictures.png(64, 48, 10))
        (tmp_path / "dog.jpg").write_bytes(pictures.jpeg(810, 600))
        edgen.generate(path, output=tmp_path / "other", progress=False)
        assert len(seer.pictures) == 8
    assert len([*run.conversations()]) == 4
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        replies = [str(row) for row in db.execute("SELECT * FROM replies")]
    coded = base64.b64encode(pictures.png(64, 48, 9)).decode()
    assert replies
    assert not any(coded in row for row in replies)


def test_pictures_have_a_price(tmp_path: Path) -> None:
    backend = {"type": "openai", "model": "eyes", "base_url": "http://127.0.0.1:1/v1", **PRICED}
    with_picture = job(tmp_path / "a", backends={"default": backend})
    without = job(tmp_path / "b", backends={"default": backend}, template=TEMPLATE.replace(".picture", ""))
    seen, unseen = (estimate_job(one, EstimateOptions(runs=tmp_path)) for one in (with_picture, without))
    more = seen.tokens.prompt.expected - unseen.tokens.prompt.expected
    # 3 × 2 and 29 × 22 patches of 28 pixels, each for two of the four conversations
    assert 2 * (6 + 638) <= more <= 2 * (6 + 638) + 100
