"""A hopeless job stops early with the reason, and sends no request until something changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.execution.service import Service, completion, edgen, error, job_text, serve, write

PROSE = "Sure! Here is a warm and friendly lesson about the topic that you asked for."


async def _prose(_service: Service, _seed: int) -> web.StreamResponse | None:
    return completion(PROSE)


def job_file(folder: Path, service: Service, **changes: Any) -> Path:
    backend = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 400}
    values: dict[str, Any] = {"backends": {"default": backend}, "limits": {"in_flight": 4}, **changes}
    return write(folder / "job.yaml", job_text("", **values))


async def test_a_hopeless_job_stops_early_and_says_what_would_help(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=3000), tmp_path / "run"
        made = await edgen("generate", job, "-o", run, "--json", "--metrics", tmp_path / "m.prom")
        assert made.code == 3, made.err
        assert service.asked.total() <= 50
        for said in (
            "0 of 40 answers are usable",
            "no_turns",
            PROSE[:40],
            "in words alone, since the service takes the schema of an answer and ignores it",
            "stop_when_useless=false",
        ):
            assert said in made.err
        status = json.loads(made.out)
        assert status["stopped"]["reason"] == "useless"
        assert status["stopped"]["at"].endswith("Z")
        assert status["retried"]["no_turns"] >= 20
        metrics = (tmp_path / "m.prom").read_text()
        assert 'edgen_stopped{run="t",reason="useless"} 1' in metrics
        assert "edgen_retries_total" in metrics

        command = made.err.split("`edgen show ")[1].split("`")[0].split()
        shown = await edgen("show", *command)
        assert shown.code == 0, shown.err
        assert PROSE in shown.out


ONE_SIDED = {
    "conversation": [{"role": "Teacher", "text": f"Part {i}."} for i in range(4)],
    "probability": 0.5,
}
DOCTOR = "Doctor: Where does it hurt?\nPatient: Here.\nDoctor: I see.\n"
BY_SCHEMA = "its form was requested by a JSON Schema with conversation and probability. "
REFUSED = "its form was requested in words alone, since the service refuses the schema of an answer"


@pytest.mark.parametrize(
    ("said", "refuses", "changes", "told"),
    [
        (json.dumps(ONE_SIDED), None, {}, (BY_SCHEMA, "although the service gets the form as a schema")),
        (PROSE, "schema", {}, (REFUSED, "take a service that keeps to a JSON Schema")),
        (PROSE, None, {"forms": "prose"}, ("in the template's own words. ", "request it with `forms: schema`")),
        (
            DOCTOR,
            None,
            {"forms": "prose"},
            ("In it Doctor and Patient speak; this space has Teacher and Student.", "Name the roles of the space"),
        ),
    ],
    ids=["by a schema", "refused", "own words", "others speak"],
)  # fmt: skip
async def test_the_report_names_the_form_as_it_was_sent(
    tmp_path: Path, said: str, refuses: str | None, changes: dict[str, Any], told: tuple[str, ...]
) -> None:
    class Asked(Service):
        async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
            if refuses is not None and "response_format" in await request.text():
                return error(400, "json_schema is not supported")
            return await super().handle(request)

    async def say(_service: Service, _seed: int) -> web.StreamResponse:
        return completion(said)

    async with serve(Asked(trouble=say)) as service:
        made = await edgen(
            "generate", job_file(tmp_path, service, conversations=60, **changes), "-o", tmp_path / "run"
        )
    assert made.code == 3
    for words in told:
        assert words in made.err


async def test_who_speaks_is_named_in_the_rejection(tmp_path: Path) -> None:
    async def say(_service: Service, _seed: int) -> web.StreamResponse:
        return completion(DOCTOR)

    async with serve(Service(trouble=say)) as service:
        job = job_file(tmp_path, service, conversations=2, asks=1, forms="prose")
        assert (await edgen("generate", job, "-o", tmp_path / "run")).code == 3
        shown = await edgen("show", tmp_path / "run", "0")
    said = " ".join(shown.out.split())
    assert "Doctor and Patient speak; this space has Teacher and Student (no line that a role speaks:" in said


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (
            "Write a visit on {{ topic }}.\nDoctor: <text>\nPatient: <text>",
            "strange.j2: Doctor and Patient speak; this space has Tutor and Learner. Their turns cannot be read",
        ),
        (
            "Write a lesson on {{ topic }}.\nTutor: <text>\nStudent: <text>",
            "strange.j2: Student speaks; this space has Tutor and Learner. Replies are read as if these roles spoke",
        ),
        ("Write a lesson on {{ topic }}.\nTutor: <text>\nLearner: <text>", ""),
    ],
)
async def test_a_template_that_lets_others_speak_is_reported_before_the_first_call(
    tmp_path: Path, template: str, told: str
) -> None:
    (tmp_path / "strange.j2").write_text(template)
    async with serve(Service(trouble=_prose)) as service:
        changes = {"space": "math_misconceptions", "prompt": "./strange.j2", "split": {"test": 0}}
        job = job_file(tmp_path, service, conversations=1, asks=1, **changes)
        preview = await edgen("preview", job, "--json")
        assert service.asked.total() == 0
        made = await edgen("generate", job, "-o", tmp_path / "run")
    warnings = [said for said in json.loads(preview.out)["warnings"] if "speak" in said]
    assert [told in said for said in warnings] == ([True] if told else [])
    if told:
        assert told in made.err.split("0/1")[0], "it is told before the first call"
    else:
        assert "strange.j2" not in made.err


async def test_the_same_start_again_asks_nothing(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=200), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        asked = service.asked.total()
        again = await edgen("generate", job, "-o", run)
        assert again.code == 3
        assert "Nothing was requested" in again.err
        assert service.asked.total() == asked


async def test_a_mended_job_goes_on_and_the_old_answers_do_not_stop_it(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=60), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        service.trouble = None
        mended = await edgen("generate", job, "-o", run, "--yes", "--set", "backends.default.temperature=0.5")
        assert mended.code == 0, mended.err


async def test_it_goes_on_regardless_where_it_is_told_to(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=30), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        made = await edgen("generate", job, "-o", run, "--set", "stop_when_useless=false", "--json")
        assert made.code == 3
        status = json.loads(made.out)
        assert status["rejected"] == {"no_turns": 30}
        assert "stopped" in status
        assert status["stopped"]["reason"] == "short"


async def test_one_hopeless_arm_leaves_the_others_at_work(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as bad, serve(Service()) as good:
        address = {"backends": {"default": {"base_url": good.url}}}
        job = job_file(tmp_path, bad, conversations=25, arms={"bad": {}, "good": address})
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 3
        assert "bad: 0 of 40" in made.err
        status = json.loads(made.out)
        assert status["arms"]["good"]["accepted"] == 25
        assert status["arms"]["bad"]["stopped"]["reason"] == "useless"
        assert bad.asked.total() <= 50


async def test_gates_that_nothing_passes_stop_a_job(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = job_file(tmp_path, service, conversations=1000, gates={"long": "turns >= 500"}, asks=1)
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 3
        assert "0 of 50 passed the gates" in made.err
        assert "gate:long" in made.err
        assert service.asked.total() <= 60


@pytest.mark.parametrize("share", [3, 10])
async def test_a_job_with_some_usable_answers_goes_on(tmp_path: Path, share: int) -> None:
    """One answer in `share` is usable."""

    async def mostly_prose(_service: Service, seed: int) -> web.StreamResponse | None:
        return None if service.asked.total() % share == 1 else completion(PROSE)

    async with serve(Service(trouble=mostly_prose)) as service:
        job = job_file(tmp_path, service, conversations=60, limits={"in_flight": 1})
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert json.loads(made.out)["pending"] == 0


async def test_a_hopeless_annotator_stops_by_the_same_rule(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job, run = job_file(tmp_path, service, conversations=30), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 0
        service.trouble = _prose
        before = service.asked.total()
        made = await edgen("annotate", run, "--labels", "teacher_moves")
        assert made.code == 3
        assert "of the backend annotator are usable" in made.err
        assert service.asked.total() - before <= 50
        again = await edgen("annotate", run, "--labels", "teacher_moves")
        assert again.code == 3
        assert "Nothing was requested" in again.err
