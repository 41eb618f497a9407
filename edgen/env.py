"""An environment for online methods: a policy teaches, a simulated or real model plays the student.

The scenarios are those of the job's data: episode `index` is scenario `index`. The student, with its
secrets, is played by the job's `student` backend; the policy sees what a teacher may know. With the
simulator the same words get the same answers.

    async with EducationEnv.from_job("jobs/selfplay.yaml") as env:
        messages = await env.reset(0)
        messages, done, info = await env.step("Good morning! What do you know about it already?")
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from edgen.config import backend_name, own_words
from edgen.core.errors import JobError, UsageError
from edgen.core.values import Rejection, Reply, Request
from edgen.execution.client.model_client import budget_of, make_clients
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.protocols.stage import Played, PlayedTurn, Stage
from edgen.providers import Backend, make
from edgen.reading.one_turn.reader import read_turn

T = TypeVar("T")
Messages = list[dict[str, str]]


class EducationEnv:
    """One conversation at a time: `reset`, then `step` until done. Not to be shared between tasks.

    An observation is what the teacher would be asked with: chat messages, `{"role", "content"}`, the
    teacher's own turns as assistant, the student's as user. `scenario(index)` is the scenario itself,
    with the student's secrets. Use as an async context manager.
    """

    def __init__(self, plan: Plan) -> None:
        job = plan.job
        if plan.stage(plan.scenario(0)) is None:
            raise JobError(job.name, "an environment needs two agents: `protocol: selfplay`.")
        if {*job.speakers} != {"Teacher", "Student"}:
            speakers = ", ".join(job.speakers)
            raise JobError(
                job.name,
                f"an environment is a teacher's with a student, and the space has the roles {speakers}.",
            )
        if job.arms:
            raise JobError(job.name, "an environment has one student: take a job without arms.")
        self._plan = plan
        self.scenario = plan.scenario
        roles = [role for role in plan.roles if role != "teacher"]
        self._backends: dict[str, Backend] = {
            name: make(job.backends[name], timeout=job.limits.timeout, connections=8, environ=os.environ)
            for name in sorted({backend_name(job, role) for role in roles})
        }
        self._lines = make_clients(plan.call_settings, self._backends, roles, budget_of(job.limits))
        self._stage: Stage | None = None
        self._entries: list[PlayedTurn] = []

    @classmethod
    def from_job(cls, path: str | Path, *overrides: str) -> EducationEnv:
        """The environment of a job file; `overrides` as for --set. Raises JobError, SpaceError, TemplateError."""
        return cls(load_plan(Path(path), list(overrides)))

    async def __aenter__(self) -> EducationEnv:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for backend in self._backends.values():
            await backend.aclose()

    def __len__(self) -> int:
        """How many scenarios the job plans; `reset` takes any index, beyond these too."""
        return self._plan.job.conversations

    async def reset(self, index: int) -> Messages:
        """Begin scenario `index`; returns what the teacher sees. Where the student opens, it has spoken.

        Raises CallError if the student's backend gives no answer, UsageError if the student's first words
        are none.
        """
        if index < 0:
            raise UsageError(f"scenario {index}: they are counted from 0.")
        self._stage = self._plan.stage(self._plan.scenario(index))
        self._entries = []
        assert self._stage is not None
        if self._stage.speaker(0) == "Student":
            opening = await self._drive(self._stage.speak(0, self._entries))
            if isinstance(opening, Rejection) or not opening.turn.text or opening.ended:
                raise UsageError(f"scenario {index}: the student has nothing to open with.")
            self._entries.append(opening)
        return self._observe(self._stage)

    async def step(self, teacher_text: str) -> tuple[Messages, bool, dict[str, Any]]:
        """Say what the teacher says and hear the student: (observation, done, info).

        `info` holds `turns` (so far), `ended_by` ("Teacher", "Student" or None), `rejected` (why a side's
        words are no turn, else None: the episode is then over), `flags` of the last turns, and, once done and
        if the job asks a closing question, `probability` that the student understood. Raises UsageError
        where no episode is running, CallError if the backend gives no answer, and BudgetExhausted where the job's
        budget takes no more calls; then the teacher's words are not taken, and the step can be tried again.
        """
        stage = self._stage
        if stage is None:
            raise UsageError("no episode is running: call reset(index) first.")
        entries, most = list(self._entries), self._plan.settings.max_turns
        said = read_turn(teacher_text, "Teacher", words=own_words(self._plan.job))
        heard = said if isinstance(said, Rejection) else stage.hear("Teacher", entries, said)
        if isinstance(heard, Rejection):
            return self._end(stage, heard)
        new = [heard]
        if heard.turn.text:
            entries.append(heard)
        if not heard.ended and len(entries) < most:
            answer = await self._drive(stage.speak(0, entries))
            if isinstance(answer, Rejection):
                return self._end(stage, answer)
            new.append(answer)
            if answer.turn.text:
                entries.append(answer)
        last = new[-1]
        done = last.ended or len(entries) >= most
        flags = [flag for entry in new for flag in entry.flags]
        ended_by = last.turn.role if last.ended else None
        info: dict[str, Any] = {
            "turns": len(entries), "ended_by": ended_by, "rejected": None, "flags": flags
        }  # fmt: skip
        if done:
            info["probability"] = await self._drive(stage.close(0, Played(entries)))
            self._stage = None
        self._entries = entries
        return self._observe(stage), done, info

    def _end(self, stage: Stage, rejection: Rejection) -> tuple[Messages, bool, dict[str, Any]]:
        """The end of an episode in which a side's words are no turn."""
        self._stage = None
        why: dict[str, Any] = {"rejected": str(rejection.reason), "detail": rejection.detail}
        info = {"turns": len(self._entries), "ended_by": None, **why, "flags": [], "probability": None}
        return self._observe(stage), True, info

    def _observe(self, stage: Stage) -> Messages:
        shown = stage.messages("Teacher", self._entries)
        return [{"role": message.role, "content": message.content} for message in shown]

    async def _drive(self, asking: Generator[Request, Reply, T]) -> T:
        """Run a generator of requests to its end against the backends."""
        try:
            request = next(asking)
            while True:
                answer = await self._lines[request.role].ask(request)
                request = asking.send(answer.reply)
        except StopIteration as end:
            result: T = end.value
            return result
