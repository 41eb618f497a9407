"""A judge of single replies, and the reward functions that ask it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.errors import JobError, UsageError
from edgen.core.values import Turn
from edgen.env import replies, verl
from edgen.env.replies import ReplyJudge, Score
from edgen.execution.client.budget import BudgetExhausted
from edgen.planning.load import load_plan
from tests.env.jobs import SAID, Watching, job, served
from tests.execution.service import Service, completion, serve

pytestmark = pytest.mark.integration

BEFORE = (
    Turn("Teacher", "What do you know about it already?"),
    Turn("Student", "Nothing, and I like it so."),
)
REFERENCE = "Then let me talk for an hour."


def row(path: Path, index: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the row of `edgen export --to verl-rl` for a reply of the job's run."""
    return {
        "index": index, "id": "t-000000-r0", "turn": 1, "role": "Teacher",
        "before": msgspec.json.encode(BEFORE).decode(),
        "scenario": json.dumps(load_plan(path).scenario(max(index, 0)).values),
    } | changes  # fmt: skip


class Judge:
    """A judge with a known preference.

    It prefers the reply with the policy's sentence, the other, the first, or gives no verdict.
    """

    def __init__(self, how: str = "policy") -> None:
        self.how = how
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        is_first = prompt.rfind(SAID) < prompt.rfind(REFERENCE)
        return {
            "policy": "1" if is_first else "2",
            "reference": "2" if is_first else "1",
            "first": "1",
            "mute": "Hm.",
        }[self.how]


def judging(judge: Judge) -> Watching:
    service = Watching()

    async def trouble(_: Service, __: int) -> Any:
        role, prompt = service.seen[-1]
        assert role == "judge", "nobody else is asked"
        return completion(judge(prompt))

    service.trouble = trouble
    return service


async def scored(judge: ReplyJudge, reply: str, place: dict[str, Any], reference: str = REFERENCE) -> Score:
    return await asyncio.wrap_future(judge.score(reply, reference, place))


@pytest.mark.parametrize("compare", ["conversation", "response"])
@pytest.mark.parametrize(
    ("how", "score"),
    [
        ("policy", Score(1.0, True)),
        ("reference", Score(0.0, True)),
        ("first", Score(0.5, True)),
        ("mute", Score(0.5, False)),
    ],
)
async def test_both_orders_are_asked(tmp_path: Path, how: str, score: Score, compare: str) -> None:
    told = Judge(how)
    async with serve(judging(told)) as service:
        path = served(tmp_path, service.url, ("judge",), asks=1)
        judge = ReplyJudge.from_job(path, f"pairs.compare={compare}", "pairs.votes=2")
        assert await scored(judge, SAID, row(path)) == score
        await asyncio.to_thread(judge.close)
    assert len(told.prompts) == 4
    assert all(SAID in prompt and REFERENCE in prompt and BEFORE[1].text in prompt for prompt in told.prompts)


async def test_a_reply_is_read_as_in_a_conversation(tmp_path: Path) -> None:
    """Labels and the end marker are removed.

    A text that is no turn of the role gets no reward and makes no request.
    """
    told = Judge("first")
    async with serve(judging(told)) as service:
        path = served(tmp_path, service.url, ("judge",), asks=1)
        judge = ReplyJudge.from_job(path)
        for reply in ("", "[end of conversation]", "Student: I know it all."):
            assert await scored(judge, reply, row(path)) == Score(0.0, False)
        assert await scored(judge, f"Teacher: {REFERENCE}", row(path)) == Score(
            0.5, True
        )  # they have the same text
        assert told.prompts == []
        await scored(judge, f"Teacher: {SAID} [end of conversation]", row(path))
        assert all("[end of conversation]" not in prompt.split("Interaction")[-1] for prompt in told.prompts)
        await asyncio.to_thread(judge.close)


async def test_the_same_reply_is_paid_for_once(tmp_path: Path) -> None:
    told = Judge()
    async with serve(judging(told)) as service:
        path = served(tmp_path, service.url, ("judge",), asks=1)
        judge = ReplyJudge.from_job(path)
        many = [scored(judge, SAID, row(path)) for _ in range(8)]
        assert set(await asyncio.gather(*many)) == {Score(1.0, True)}
        assert len(told.prompts) == 2
        await scored(judge, SAID, row(path, turn=3))
        assert len(told.prompts) == 4
        await asyncio.to_thread(judge.close)


async def test_the_jobs_budget_holds(tmp_path: Path) -> None:
    async with serve(judging(Judge())) as service:
        path = served(tmp_path, service.url, ("judge",), asks=1, limits={"max_tokens": 6000})
        judge = ReplyJudge.from_job(path)
        found: list[Any] = []
        for number in range(20):
            found += await asyncio.gather(
                scored(judge, f"{SAID} {number}", row(path)), return_exceptions=True
            )
        assert [type(one) for one in (found[0], found[-1])] == [Score, BudgetExhausted]
        assert judge.spent is not None
        assert judge.spent.tokens <= 6000
        await asyncio.to_thread(judge.close)


def test_a_row_of_another_job_or_of_none_is_refused(tmp_path: Path) -> None:
    path = job(tmp_path)
    judge = ReplyJudge.from_job(path)
    other = row(path, 0, scenario=row(path, 1)["scenario"])
    for wrong in (other, row(path, index=-1), row(path, role="Pirate")):
        with pytest.raises(UsageError, match="take the job of the exported run"):
            judge.score(SAID, REFERENCE, wrong)
    for wrong in ({}, row(path, before="[1]"), row(path, before=None), row(path) | {"index": "x"}):
        with pytest.raises(UsageError, match="take `extra_info` as"):
            judge.score(SAID, REFERENCE, wrong)
    judge.close()


def test_a_judge_of_teachers_says_so(tmp_path: Path) -> None:
    path = job(tmp_path)
    judge = ReplyJudge.from_job(path, "pairs.compare=response")
    with pytest.raises(UsageError, match=r"set pairs\.compare to conversation"):
        judge.score(SAID, REFERENCE, row(path, role="Student")).result()
    judge.close()


def test_a_job_with_arms_is_refused(tmp_path: Path) -> None:
    path = job(tmp_path, arms={"plain": {}, "other": {"selfplay": {"max_turns": 4}}})
    with pytest.raises(JobError, match="take a job without arms"):
        ReplyJudge.from_job(path)


@pytest.fixture
def _own_judges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: dict[Any, ReplyJudge] = {}
    monkeypatch.setattr(replies, "_judges", made)
    yield
    for judge in made.values():
        judge.close()


@pytest.mark.usefixtures("_own_judges")
def test_verl_is_given_numbers(tmp_path: Path) -> None:
    """Both functions return numbers, called as by verl's reward managers; the simulator judges."""
    path = job(tmp_path, backends={"default": {"type": "simulator", "faults": "judge_first=0.5"}})
    given = {"data_source": "edgen", "ground_truth": REFERENCE, "extra_info": {**row(path), "num_turns": 2}}

    async def several() -> list[dict[str, float]]:
        return await asyncio.gather(
            *(
                verl.compute_score_async(
                    **given, solution_str=f"{SAID} {n}", job=str(path), reward_router_address=None
                )
                for n in range(12)
            )
        )

    found = asyncio.run(several())
    assert {one["score"] for one in found} <= {0.0, 0.5, 1.0}
    assert len({one["score"] for one in found}) > 1
    for number, one in enumerate(found):  # the simulator gives the same text again
        assert verl.compute_score(**given, solution_str=f"{SAID} {number}", job=str(path)) == one
    assert len(replies._judges) == 1


@pytest.mark.usefixtures("_own_judges")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data_source": "openai/gsm8k"}, "data_source is edgen, and this one's is 'openai/gsm8k'"),
        ({"job": ""}, "the job with the judge is missing"),
        ({"extra_info": None}, "take `extra_info` as"),
    ],
)
def test_verl_is_told_what_is_wrong(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = job(tmp_path)
    given: dict[str, Any] = {
        "data_source": "edgen", "solution_str": SAID, "ground_truth": REFERENCE, "extra_info": row(path),
        "job": str(path),
    }  # fmt: skip
    with pytest.raises(UsageError, match=said):
        verl.compute_score(**(given | changes))
