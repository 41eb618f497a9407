"""`edgen space expand`: a model suggests more values, and a new file contains the old and the new ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgen.api.spaces.growth import write_new_space
from edgen.core import resources
from edgen.core.errors import UsageError
from edgen.space import Space, digest_content, dump_space, load_space
from edgen.space.similar_values import KnownValues
from tests.cli.command import Command
from tests.execution.service import Service, completion, edgen, end, error, serve, start
from tests.scenarios import DIMENSIONS

SMALL = """\
name: small
source: "Written for this test"
topics: ["Photosynthesis", "The Water Cycle", "World War 1"]
student_preferences: [{value: "lectures", weight: 3}, {value: "quizzes", weight: 1}, {value: "games", weight: 2}]
student_reactions: ["and gets rude otherwise"]
teacher_preferences: ["lectures"]
teacher_reactions: ["and gives up otherwise"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder with a space in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def values(space: Space, dimension: str) -> list[str]:
    return [*space[dimension].values]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_grows_in_a_new_file(command: Command, here: Path, dimension: str) -> None:
    ended = command("space", "expand", "small.yaml", "--dimension", dimension, "--count", "60", "--json")
    assert ended.code == 0, ended.err
    assert "the simulator: its values are made up, and no model is called" in ended.err
    facts = json.loads(ended.out)
    old, new = load_space(here / "small.yaml"), load_space(here / "small-expanded.yaml")
    assert (here / "small.yaml").read_text() == SMALL
    for name in DIMENSIONS:
        expected = values(old, name) + (facts["values"] if name == dimension else [])
        assert values(new, name) == expected
    assert facts["kept"] == len(facts["values"]) == 60
    dropped = facts["dropped"]
    assert dropped["identical"] + dropped.get("near_duplicate", 0) > 5, "the simulator plants them"
    known = KnownValues(values(old, dimension))
    for value in facts["values"]:
        assert known.find_similar(value) is None
        known.add(value)


@pytest.mark.parametrize("dimension", ["topic", "misconception", "learner", "tutor_move"])
def test_any_dimension_of_any_space_grows_by_values_of_its_kind(
    command: Command, here: Path, dimension: str
) -> None:
    shipped = load_space(resources.find("preference_space", "math_misconceptions"))
    arguments = (
        "space",
        "expand",
        "math_misconceptions",
        "--dimension",
        dimension,
        "--count",
        "60",
        "--json",
    )
    ended = command(*arguments)
    assert ended.code == 0, ended.err
    new = json.loads(ended.out)["values"]
    grown = here / "math_misconceptions-expanded.yaml"
    if dimension == "topic":  # a misconception names its topics, and none fits a new one
        assert "fix this by hand before you use the new file" in ended.err
        assert "no value of misconception is possible with topic" in ended.err
        assert all(json.dumps(value) in grown.read_text() for value in new)
    else:
        assert values(load_space(grown), dimension)[-60:] == new
    begun = {value.split()[0] for value in values(shipped, dimension)}
    assert {value.split()[0] for value in new} <= begun, "they begin as the values of the dimension do"
    words = {word for value in values(shipped, dimension) for word in value.split()}
    own = [{*value.split()} <= words for value in new]
    assert sum(own) >= 12, "many are made of the dimension's words alone"


def test_where_it_comes_from_is_said(command: Command, here: Path) -> None:
    facts = json.loads(
        command(
            "space", "expand", "small.yaml", "--dimension", "student_preferences", "--count", "4", "--json"
        ).out
    )
    new = load_space(here / "small-expanded.yaml")
    assert new.name == "small-expanded"
    assert new.source is not None
    for said in (
        digest_content(load_space(here / "small.yaml")),
        facts["template"]["sha256"],
        "4 more values of student_preference after its own 3, by a simulator (edgen-simulator)",
        "no model wrote them",
        *[f"{reason} {count}" for reason, count in facts["dropped"].items()],
        "The source of the space before: Written for this test",
    ):
        assert said in new.source, said
    # The weight of a new value is the median of the old ones: 3, 1 and 2.
    assert {entry.weight for entry in new["student_preference"].entries[3:]} == {2.0}


def test_asked_again_it_asks_nothing_and_overwrites_nothing(command: Command, here: Path) -> None:
    arguments = ("space", "expand", "small.yaml", "--dimension", "topics", "--count", "80", "--json")
    first = json.loads(command(*arguments).out)
    made = first["calls"]["made"]
    text = (here / "small-expanded.yaml").read_text()
    refused = command(*arguments)
    assert refused.code == 2
    assert "is not overwritten" in refused.err
    assert (here / "small-expanded.yaml").read_text() == text
    (here / "small-expanded.yaml").unlink()
    again = json.loads(command(*arguments).out)
    assert again["calls"]["made"] == made, "an answer that was stored was asked for again"
    assert again["calls"]["replayed"] == made
    assert (here / "small-expanded.yaml").read_text() == text
    # A larger request begins with the same answers.
    (here / "small-expanded.yaml").unlink()
    more = json.loads(command(*arguments[:-2], "140", "--json").out)
    assert more["calls"]["replayed"] == made
    assert more["values"][:80] == first["values"]


def test_what_runs_dry_is_written_and_said(command: Command, here: Path) -> None:
    ended = command("space", "expand", "small.yaml", "--dimension", "teacher_reactions", "--count", "400")
    assert ended.code == 3
    assert "of 400 new values were found; the last answers brought nothing new" in ended.err
    assert 100 < len(load_space(here / "small-expanded.yaml")["teacher_reaction"].entries) < 400


def test_a_new_value_weighs_as_those_that_are_drawn(command: Command, here: Path) -> None:
    weights = [0, 0, 0, 2, 8, 4]
    entries = [{"value": f"way {'abcdef'[i]}", "weight": weight} for i, weight in enumerate(weights)]
    text = SMALL.splitlines()
    text[3] = f"student_preferences: {json.dumps(entries)}"
    (here / "small.yaml").write_text("\n".join(text))
    command("space", "expand", "small.yaml", "--dimension", "student_preferences", "--count", "3")
    grown = load_space(here / "small-expanded.yaml")["student_preference"].entries
    assert [entry.weight for entry in grown] == [*weights, 4, 4, 4]


class TestPublish:
    def test_what_has_come_meanwhile_stays(self, tmp_path: Path) -> None:
        (tmp_path / "out.yaml").write_text("theirs")
        with pytest.raises(UsageError, match="has made this file meanwhile"):
            write_new_space(tmp_path / "out.yaml", "mine")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


def test_a_ledger_beside_the_new_file_that_is_a_link_is_refused(command: Command, here: Path) -> None:
    (here / "small-expanded.yaml.db").symlink_to(here / "theirs")
    ended = command("space", "expand", "small.yaml", "--dimension", "topics", "--count", "3")
    assert ended.code == 2
    assert "small-expanded.yaml.db: this is a link" in ended.err
    assert not (here / "theirs").exists()


MISTAKES = {
    "no such space": (("smal", "--dimension", "topics", "--count", "5"), "no such space"),
    "no such dimension": (("small.yaml", "--dimension", "subject", "--count", "5"), "no such dimension"),
    "too many": (("small.yaml", "--dimension", "topics", "--count", "20000"), "at most 20,000 values"),
    "no such folder": (
        ("small.yaml", "--dimension", "topics", "--count", "5", "-o", "none/x.yaml"),
        "there is no folder none",
    ),
    "the space itself": (
        ("small.yaml", "--dimension", "topics", "--count", "5", "-o", "small.yaml"),
        "is not overwritten",
    ),
    "another template": (
        ("small.yaml", "--dimension", "topics", "--count", "5", "--prompt", "education_dialogue"),
        "it says `expects: conversation`",
    ),
    "no such job": (
        ("small.yaml", "--dimension", "topics", "--count", "5", "--job", "none.yaml"),
        "there is no such file",
    ),
    "no such role": (
        ("small.yaml", "--dimension", "topics", "--count", "5", "--job", "job.yaml:judge"),
        "this job has no backend 'judge' (known: default)",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_get_a_sentence_and_leave_nothing(command: Command, here: Path, case: str) -> None:
    arguments, sentence = MISTAKES[case]
    job = {
        "name": "t",
        "conversations": 1,
        "space": "-",
        "prompt": "-",
        "backends": {"default": {"type": "simulator"}},
    }
    (here / "job.yaml").write_text(json.dumps(job))
    before = sorted(here.iterdir())
    ended = command("space", "expand", *arguments)
    assert ended.code == 2
    assert sentence in " ".join(ended.err.replace("│", " ").split())
    assert sorted(here.iterdir()) == before


# -- a real server


def job_for(url: str, here: Path, **limits: Any) -> Path:
    job = {
        "name": "grow",
        "seed": 3,
        "conversations": 1,
        "space": "-",
        "prompt": "-",
        "backends": {"default": {"type": "openai", "model": "recorded", "base_url": url, "seed": "auto"}},
        "limits": {"attempts": 2, "give_up_after": 5, **limits},
    }
    path = here / "grow.yaml"
    path.write_text(json.dumps(job))
    return path


def wish(here: Path, job: Path, count: int, out: str = "out.yaml") -> tuple[str | Path, ...]:
    small = here / "small.yaml"
    numbers = ("--dimension", "topics", "--count", str(count))
    return ("space", "expand", small, *numbers, "--job", job, "-o", here / out, "--json")


@pytest.mark.crash
async def test_killed_in_the_middle_it_goes_on_and_asks_nothing_twice(here: Path) -> None:
    async with serve(Service(hold_after=3)) as service:
        arguments = wish(here, job_for(service.url, here), 160)
        process = await start(*arguments)
        while service.asked.total() < 4:
            await asyncio.sleep(0.01)
        process.kill()
        await end(process)
        service.release()
        assert not (here / "out.yaml").exists()
        killed = service.asked.copy()
        ended = await edgen(*arguments)
        assert ended.code == 0, ended.err
        facts = ended.facts
        assert facts["calls"]["replayed"] >= 2
        again = [seed for seed in killed if service.asked[seed] > killed[seed]]
        assert len(again) <= 1, "only what was in flight may be asked again"
        calm = await edgen(*wish(here, job_for(service.url, here), 160, "calm.yaml"))
        assert calm.facts["values"] == facts["values"]
    space = load_space(here / "out.yaml")
    assert len(space["topic"].entries) == 163
    assert "by the model recorded" in (space.source or ""), "a server's values are its model's"


@pytest.mark.crash
async def test_a_signal_stops_it_cleanly(here: Path) -> None:
    async with serve(Service(latency=0.2)) as service:
        arguments = wish(here, job_for(service.url, here), 160)
        process = await start(*arguments)
        while service.asked.total() < 2:
            await asyncio.sleep(0.01)
        process.terminate()
        ended = await end(process)
        assert ended.code == 143
        assert "the answers so far are stored in" in ended.err
        assert not (here / "out.yaml").exists()
        asked = service.asked.copy()
        resumed = await edgen(*arguments)
        assert resumed.code == 0, resumed.err
        assert all(service.asked[seed] == asked[seed] for seed in asked), "what was answered is asked once"


def answering(*texts: str) -> Callable[[Service, int], Awaitable[web.StreamResponse | None]]:
    """Return a service's function that gives these answers in order, and repeats the last one."""
    left = list(texts)

    async def answer(_service: Service, _seed: int) -> web.StreamResponse | None:
        return completion(left.pop(0) if len(left) > 1 else left[0])

    return answer


BOMB = "&a [*a,*a]: {{ 7*7 }} !!python/object:os.system"


async def test_hostile_answers_do_no_harm(here: Path) -> None:
    answers = (
        "x" * 1_000_000,
        "\n".join(
            ["1. Ze\x1b[31mus", "2. \u202eAres", "3. " + "y" * 300, f"4. {BOMB}", "5. \x00", '6. "', "7.   "]
        ),
        "[" * 100_000,
        "1. The water cycle\n2. WORLD WAR 1\n3. World War 2\n4. Photosyntesis\n5. Hera",
        "I'm sorry, but I can't help with that.",
        "\n" * 100_000,
        '{"topics": ["Poseidon", null, 3, {"topic": "Hermes"}, ["x"]]}',
        "",
    )
    async with serve(Service(trouble=answering(*answers))) as service:
        ended = await edgen(*wish(here, job_for(service.url, here), 50))
    assert ended.code == 3, ended.err
    assert ended.facts["values"] == [BOMB, "World War 2", "Hera", "Poseidon", "Hermes"]
    # A terminal code, an override, a null, a lone quote; the line of 300 characters; known values.
    assert ended.facts["dropped"] == {"identical": 2, "near_duplicate": 1, "not_allowed": 4, "too_long": 1}
    space = load_space(here / "out.yaml")
    assert values(space, "topic")[3:] == ended.facts["values"]
    assert "\x1b" not in (here / "out.yaml").read_text()
    assert dump_space(space) == (here / "out.yaml").read_text()


async def test_nothing_found_writes_nothing(here: Path) -> None:
    async with serve(Service(trouble=answering("I would rather talk about something else."))) as service:
        ended = await edgen(*wish(here, job_for(service.url, here), 5))
        assert service.asked.total() == 3
    assert ended.code == 3
    assert "None of the 3 answers lists values. Nothing was written." in ended.err
    assert not (here / "out.yaml").exists()


async def test_a_service_that_refuses_ends_it_resumably(here: Path) -> None:
    async def refuse(_service: Service, _seed: int) -> web.StreamResponse | None:
        return error(401)

    async with serve(Service(trouble=refuse)) as service:
        ended = await edgen(*wish(here, job_for(service.url, here), 5))
        assert ended.code == 5
        assert "The key is missing or not accepted" in ended.err
        service.trouble = lambda _service, _seed: _bad_request()
        ended = await edgen(*wish(here, job_for(service.url, here), 5))
        assert ended.code == 5
        assert "The request as it stands is not taken" in ended.err
        service.trouble = None
        assert (await edgen(*wish(here, job_for(service.url, here), 5))).code == 0


async def _bad_request() -> web.StreamResponse | None:
    return error(400)


async def test_two_at_once_do_not_meet(here: Path) -> None:
    async with serve(Service(hold_after=0)) as service:
        arguments = wish(here, job_for(service.url, here), 60)
        first = await start(*arguments)
        while not service.asked:
            await asyncio.sleep(0.01)
        second = await edgen(*arguments)
        assert second.code == 6
        assert "another process is using it" in second.err
        service.release()
        assert (await end(first)).code == 0
