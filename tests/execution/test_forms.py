"""Forms of answers with services that support them, support a part of them, refuse them, or ignore them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.forms import BOUNDS
from tests.execution.service import ROOT, edgen, job_text, write
from tests.json_server import serving_json

SAID = {
    "conversation": [
        {"role": role, "text": f"{word} is the {number}. thing that we look at."}
        for number, (role, word) in enumerate(
            [("Teacher", "Light"), ("Student", "Water"), ("Teacher", "Air"), ("Student", "Sugar")], 1
        )
    ],
    "probability": 0.35,
}
PROSE = "\n".join(f"{turn['role']}: {turn['text']}" for turn in SAID["conversation"]) + "\nProbability: 0.35"
BOUNDED = tuple(f'"{word}"' for word in sorted(BOUNDS))


class Service:
    """A service that records its requests. `refuses` returns why a body is refused, "" to answer it."""

    def __init__(self, refuses: Callable[[str], str], *, obeys: bool = True) -> None:
        self.refuses, self.obeys = refuses, obeys
        self.bodies: list[dict[str, Any]] = []
        self.answered: list[bool] = []  # did the request have a schema?
        self._lock = threading.Lock()

    def __call__(self, _path: str, body: dict[str, Any]) -> tuple[int, Any]:
        form = body.get("response_format")
        with self._lock:
            self.bodies.append(body)
            if why := self.refuses(json.dumps(form)):
                return 400, {"error": {"message": why}}
            self.answered.append(form is not None)
        text = json.dumps(SAID) if form is not None and self.obeys else PROSE
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 20}
        return 200, {"model": "m", "choices": [choice], "usage": usage}


def job_file(folder: Path, url: str, **changes: Any) -> Path:
    backend = {"type": "openai", "model": "m", "base_url": url, "seed": "auto", **changes.pop("backend", {})}
    values = {"backends": {"default": backend}, "limits": {"in_flight": 2}, "conversations": 12, **changes}
    return write(folder / "job.yaml", job_text("", **values))


def refuse_nothing(_form: str) -> str:
    return ""


def refuse_bounds(form: str) -> str:
    return "response_format: minLength is not supported" if any(word in form for word in BOUNDED) else ""


def refuse_closed_objects(form: str) -> str:
    return "unsupported keyword: additionalProperties" if "additionalProperties" in form else ""


def refuse_schemas(form: str) -> str:
    return "" if form == "null" else "unknown field: response_format"


@pytest.mark.parametrize(
    ("refuses", "obeys", "way", "wasted"),
    [
        (refuse_nothing, True, "schema", 0),
        (refuse_bounds, True, "no_bounds", 2),
        (refuse_closed_objects, True, "plain", 4),
        (refuse_schemas, True, "prose", 6),
        (refuse_nothing, False, "ignored", 0),
    ],
)
async def test_a_job_finds_out_what_its_service_takes(
    tmp_path: Path, refuses: Callable[[str], str], obeys: bool, way: str, wasted: int
) -> None:
    service = Service(refuses, obeys=obeys)
    with serving_json(service) as url:
        job, run = job_file(tmp_path, f"{url}/v1"), tmp_path / "run"
        made = await edgen("generate", job, "-o", run, "--json")
        assert made.code == 0, made.err
        assert made.facts["accepted"] == 12
        assert made.facts["calls"]["made"] == 12, "a refused form is no answer"
        assert len(service.bodies) <= 12 + wasted, "what is refused once is not tried again"
        last = service.bodies[-1]
        words = last["messages"][-1]["content"]
        if way in ("schema", "no_bounds", "plain"):
            assert all(service.answered)
            assert "Answer with one JSON object" in words
            form = last["response_format"]["json_schema"]["schema"]
            assert form["required"] == ["conversation", "probability"]
            assert any(word in json.dumps(form) for word in BOUNDED) is (way == "schema")
        else:
            assert "response_format" not in last
            assert "Answer with one JSON object" not in words, "the prompt is the template's own again"
        told = {
            "schema": "",
            "no_bounds": "bounds",
            "plain": "only names, types",
            "prose": "only the words",
            "ignored": "ignores it",
        }[way]
        assert told in made.err
        assert ("From now on" in made.err) is bool(told)

        before = len(service.bodies)
        again = await edgen("generate", job, "-o", run, "-n", "16", "--json")
        assert again.code == 0, again.err
        assert again.facts["calls"]["replayed"] == 0
        assert len(service.bodies) == before + 4, (
            "a resumed run knows what was found, and pays for nothing twice"
        )


async def test_a_form_that_is_required_is_not_left_out(tmp_path: Path) -> None:
    service = Service(refuse_schemas)
    with serving_json(service) as url:
        job = job_file(tmp_path, f"{url}/v1", forms="schema", conversations=3)
        made = await edgen("generate", job, "-o", tmp_path / "run")
        assert made.code != 0
        assert "response_format" in made.err + (tmp_path / "run" / "rejected.jsonl").read_text()
        assert not service.answered


async def test_prose_and_own_templates_keep_their_words(tmp_path: Path) -> None:
    service = Service(refuse_nothing)
    own = write(
        tmp_path / "own.j2", "Write a lesson about {{ topic }} as lines `Teacher: …` and `Student: …`."
    )
    with serving_json(service) as url:
        for changes in ({"forms": "prose"}, {"backend": {"forms": "prose"}}, {"prompt": str(own)}):
            job = job_file(tmp_path, f"{url}/v1", conversations=2, **changes)
            made = await edgen("generate", job, "-o", tmp_path / f"run{len(service.bodies)}")
            assert made.code == 0, made.err
        assert service.answered == [False] * 6
        job = job_file(tmp_path, f"{url}/v1", conversations=2, prompt=str(own), forms="auto")
        assert (await edgen("generate", job, "-o", tmp_path / "opted")).code == 0
        assert service.answered[6:] == [True, True]


async def test_a_kill_before_the_way_is_known_costs_no_answer(tmp_path: Path) -> None:
    service = Service(refuse_nothing, obeys=False)
    with serving_json(service) as url:
        job, run = job_file(tmp_path, f"{url}/v1"), tmp_path / "run"
        first = await edgen("generate", job, "-o", run, "-n", "2")
        assert first.code == 0, first.err
        made = await edgen("generate", job, "-o", run, "--json")
        assert made.code == 0, made.err
        seeds = [body["seed"] for body in service.bodies]
        assert len(seeds) == len(set(seeds)) == 12


def test_the_forms_of_a_job_are_part_of_its_estimate(tmp_path: Path) -> None:
    from edgen.planning.load import load_plan

    counts = {}
    for forms in ("prose", "auto"):
        plan = load_plan(job_file(tmp_path, "http://127.0.0.1:9/v1", forms=forms))
        (asked,) = plan.list_first_requests(plan.scenario(0)).values()
        counts[forms] = len(asked.messages[-1].content) + len(asked.schema or b"")
    assert counts["auto"] > counts["prose"] + 300


def test_simulators_and_functions_are_asked_in_prose(tmp_path: Path) -> None:
    from edgen.planning.load import load_plan

    job = write(
        tmp_path / "sim.yaml", job_text("", backends={"default": {"type": "simulator"}}, forms="auto")
    )
    assert load_plan(job).prompts["default"].forms == "prose"
    required = write(
        tmp_path / "req.yaml", job_text("", backends={"default": {"type": "simulator"}}, forms="schema")
    )
    assert load_plan(required).prompts["default"].forms == "schema"
    assert msgspec.json.decode(
        load_plan(required).list_first_requests(load_plan(required).scenario(0))["default"].schema or b""
    )


@pytest.mark.parametrize("name", ["quickstart", "selfplay", "tutoring", "lesson_plan", "homework_help"])
async def test_the_simulator_says_the_same_kind_of_things_in_a_form(tmp_path: Path, name: str) -> None:
    job, run = ROOT / f"jobs/{name}.yaml", tmp_path / "run"
    made = await edgen("generate", job, "-n", "2", "-o", run, "--set", "forms=schema", "--json")
    assert made.code == 0, made.err
    assert made.facts["accepted"] == made.facts["planned"]
    texts = [path.read_text() for path in (run / "shards").glob("conversations_*.json")]
    assert texts
    assert not any("simulated answer" in text or "I'm a simulator" in text for text in texts)
