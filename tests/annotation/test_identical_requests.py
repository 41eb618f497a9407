"""Several answers to one prompt.

Requests carry seeds of their own where the service takes a seed. Where it takes none, the agreement of
annotators is one model's agreement with itself, and votes at temperature 0 are copies.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgen.core.kept_files import write_kept_texts
from tests import ROOT
from tests.cli.command import Command, Ended, call
from tests.json_server import serving_json

LABELS = ("--labels", "teacher_moves")


class Service:
    """A service that answers every prompt with `says`, and refuses `seed` if it is `strict`."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, path: str, body: Any) -> tuple[int, Any]:
        self.bodies.append(body)
        if self.strict and "seed" in body:
            return 422, {
                "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]
            }
        asked = json.dumps(body)
        text = '{"better": 1}' if "etter" in asked and "Interaction" in asked else '{"1": "Focus"}'
        if path.endswith("/messages"):  # Anthropic's
            return 200, {
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "model": "m",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }  # fmt: skip
        message = {"role": "assistant", "content": text}
        return 200, {
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "model": "m",
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }  # fmt: skip

    @property
    def copies(self) -> int:
        """The number of times that the most frequent request was sent, fence marks aside."""
        sent = [re.sub(r"\[[0-9a-z]{4,}\]", "", json.dumps(body, sort_keys=True)) for body in self.bodies]
        return max(Counter(sent).values())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "run"
    changes = ("conversations=2", "replicates=2", "backends={default: {type: simulator}}")
    given = [word for one in changes for word in ("--set", one)]
    assert call("generate", ROOT / "jobs" / "selfplay.yaml", *given, "-o", folder) == 0
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    one = Service()
    with serving_json(one) as url:
        yield one, url


def backend(url: str, kind: str = "openai", **more: Any) -> str:
    return json.dumps({"type": kind, "model": "m", "base_url": url, "max_tokens": 50, **more})


def facts(ended: Ended) -> Any:
    assert ended.code in (0, 3), ended.err
    return json.loads(ended.out)


def annotate(command: Command, run: Path, configured: str, *more: str) -> Ended:
    setting = ("--set", f"backends.annotator={configured}", "--trust-host", "127.0.0.1")
    return command("annotate", run, *LABELS, "--annotators", "3", *setting, *more)


def test_annotators_of_one_model_send_seeds_of_their_own(
    command: Command, run: Path, service: tuple[Service, str]
) -> None:
    one, url = service
    figures = facts(annotate(command, run, backend(url), "--json"))["figures"]
    assert one.copies == 1
    assert len({body["seed"] for body in one.bodies}) == len(one.bodies)
    assert "not_available" not in figures
    assert figures["agreement"]["units"] > 0


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        pytest.param("openai", {"seed": 7}, id="a fixed seed"),
        pytest.param(
            "openai", {"extra_body": {"seed": 3}}, id="a seed in extra_body", marks=pytest.mark.only_long
        ),
        pytest.param("anthropic", {}, id="a service without seeds", marks=pytest.mark.only_long),
    ],
)
def test_agreement_of_identical_requests_is_not_available(
    kind: str, more: dict[str, Any], command: Command, run: Path, service: tuple[Service, str]
) -> None:
    one, url = service
    told = facts(annotate(command, run, backend(url, kind, **more), "--json"))
    assert one.copies >= 3
    figures = told["figures"]
    assert figures["identical"] == [["annotator", "annotator-2", "annotator-3"]]
    assert "these annotators send identical requests" in figures["not_available"]
    agreement = figures["agreement"]
    assert (agreement["alpha"], agreement["fleiss"], agreement["between"]) == (None, None, [])
    shown = annotate(command, run, backend(url, kind, **more)).out
    assert "not available for annotator, annotator-2 and annotator-3" in " ".join(shown.split())
    assert "alpha" not in shown
    stats = json.loads(command("stats", run, "--only", "labels", "--json").out)
    assert stats["labels"]["teacher_moves"]["not_available"] == figures["not_available"]
    assert command("report", run).code == 0
    assert "these annotators send identical requests" in (run / "report.html").read_text()


def test_one_more_model_is_compared_with_one_of_the_copies(
    command: Command, run: Path, service: tuple[Service, str]
) -> None:
    _, url = service
    facts(annotate(command, run, backend(url, seed=7), "--json"))
    other = ("--set", f"backends.other={backend(url, seed=8)}", "--backend", "other")
    told = command("annotate", run, *LABELS, *other, "--trust-host", "127.0.0.1", "--json")
    between = facts(told)["figures"]["agreement"]["between"]
    assert [one["annotators"] for one in between] == [["annotator", "other"]]


def test_a_service_that_refuses_a_seed_nobody_asked_for_is_sent_none(command: Command, run: Path) -> None:
    strict = Service(strict=True)
    with serving_json(strict) as url:
        told = facts(annotate(command, run, backend(url), "--set", "limits.in_flight=1", "--json"))
    assert all(not one["failed"] for one in told["annotators"])
    assert sum("seed" in body for body in strict.bodies) <= 3  # one for each annotator, and no more later


def pairs(command: Command, run: Path, configured: str, votes: int = 3) -> Ended:
    given = ("--set", f"backends.judge={configured}", "--set", f"pairs.votes={votes}")
    return command(
        "pairs", run, "--signal", "oracle", "--credit", "whole", *given, "--trust-host", "127.0.0.1", "--json"
    )


def votes_in(run: Path) -> set[int]:
    lines = [json.loads(line) for line in (run / "pairs" / "pairs.jsonl").read_text().splitlines()]
    return {len(one["verdicts"]) for line in lines for one in line["signals"]["oracle"]}


def test_votes_at_temperature_0_carry_seeds(
    command: Command, run: Path, service: tuple[Service, str]
) -> None:
    one, url = service
    pairs(command, run, backend(url, temperature=0))
    assert one.copies == 1
    assert votes_in(run) == {6}


@pytest.mark.parametrize(("kind", "more"), [("openai", {"seed": 7}), ("anthropic", {})])
def test_votes_at_temperature_0_that_would_be_copies_are_not_asked_for(
    kind: str, more: dict[str, Any], command: Command, run: Path, service: tuple[Service, str]
) -> None:
    one, url = service
    ended = pairs(command, run, backend(url, kind, temperature=0, **more))
    assert one.copies == 1
    assert votes_in(run) == {2}
    assert "the judge votes once in each order, not 3 times" in ended.err
    needs = command(
        "pairs", run, "--signal", "oracle", "--credit", "response", "--dry-run", "--json",
        "--set", f"backends.judge={backend(url, kind, temperature=0, **more)}", "--set", "pairs.votes=3",
    )  # fmt: skip
    found = json.loads(needs.out)["judged"]
    assert found["calls"]["expected"] == 2 * found["to_judge"]


def test_replicates_carry_seeds_and_a_single_conversation_none(
    command: Command, tmp_path: Path, service: tuple[Service, str]
) -> None:
    one, url = service
    job = {
        "name": "t", "conversations": 2, "replicates": 1, "space": "education_dialogue", "prompt": "education_dialogue",
        "asks": 1, "backends": {"default": json.loads(backend(url))},
    }  # fmt: skip
    for replicates, seeded in ((1, False), (3, True)):
        one.bodies.clear()
        path = tmp_path / f"{replicates}.yaml"
        path.write_text(json.dumps({**job, "replicates": replicates}))
        command("generate", path, "-o", tmp_path / f"run{replicates}", "--trust-host", "127.0.0.1")
        assert one.bodies
        assert all(("seed" in body) is seeded for body in one.bodies)
        assert one.copies == 1


def test_an_old_annotator_goes_on_without_seeds(
    command: Command, run: Path, service: tuple[Service, str]
) -> None:
    """An annotator that began without seeds resumes without them and sends no request twice."""
    one, url = service
    facts(annotate(command, run, backend(url), "--sample", "1", "--json"))
    folder = run / "layers" / "teacher_moves" / "annotators"
    for path in folder.glob("*.json"):
        noted = json.loads(path.read_text())
        assert noted.pop("seeds") == "auto"
        write_kept_texts(run, {path: json.dumps(noted, indent=2, ensure_ascii=False) + "\n"})
    one.bodies.clear()
    told = facts(annotate(command, run, backend(url), "--json"))
    assert all("seed" not in body for body in one.bodies)
    assert "these annotators send identical requests" in told["figures"]["not_available"]
