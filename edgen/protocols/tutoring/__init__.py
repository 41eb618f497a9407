"""Tutoring that is grounded in exercises with right answers: a student, and several tutors' responses to each turn.

What the protocol is to the rest of edgen; how a session goes is in `session`. The way of working is CIMA's (Stasaski, Kao
and Hearst, "CIMA: A Large Open Access Dialogue Dataset for Tutoring", BEA 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgen.config import Job, settings_of
from edgen.core.answer_kinds import AnswerKind
from edgen.core.errors import JobError, Problem
from edgen.core.values import Message, Scenario
from edgen.families.base import Recorded
from edgen.protocols.base import (
    ConversationProtocol,
    Conversing,
    ExpectedCall,
    Prompting,
    Rounds,
    Rules,
    Simulation,
    Starter,
    Template,
)
from edgen.protocols.tutoring.config import EXTRA_VARIABLES, Tutoring
from edgen.space.exercises.model import SHOWN
from edgen.space.model import Space, SpaceRole

_TURN = (15.0, 45.0, 160.0)  # tokens of an answer: low, expected, high


class TutoringProtocol(ConversationProtocol):
    """A student goes through exercises; each of its turns gets responses from tutors who do not see each other."""

    name = "tutoring"
    precedence = 20
    answers = (
        AnswerKind(
            "acted_turn",
            "what one side says next, and the actions of it, as JSON or with a line of actions",
            ("index", *SHOWN, *EXTRA_VARIABLES),
        ),
    )
    Config = Tutoring
    sends_schemas = True
    starter = Starter(
        "tutoring",
        {"tutor.j2": "tutoring_tutor", "student.j2": "tutoring_student"},
        "tutor",
        "exercises with right answers, three tutors a turn",
    )
    about_leaks = "The student is not told the answer: a leak is a tutor's, who told it."
    about_probability = "sessions of exercises have none; whether exercises were solved is in the outcome"

    def problems(self, job: Job) -> Iterator[Problem]:
        """A prompt for the whole conversation, tutors that are not as many as responses, actions that are not there."""
        settings: Tutoring = settings_of(job)
        if job.prompt is not None:
            yield Problem(
                "$.prompt", "tutoring has a prompt for each side: `prompts: {tutor: …, student: …}`"
            )
        if settings.tutors is not None:
            unknown = [name for name in settings.tutors if name not in job.backends]
            yield from (
                Problem(
                    "$.tutoring.tutors", f"there is no backend {name!r} (known: {', '.join(job.backends)})"
                )
                for name in unknown
            )
        sides = settings.named_actions
        yield from _round_problems(settings)
        if sides.keys() != {"student", "tutor"}:
            yield Problem("$.tutoring.actions", "expected actions of `student` and of `tutor`")
        for side, actions in sides.items():
            if not actions:
                yield Problem(f"$.tutoring.actions.{side}", "this is empty; name one action at least")
        known = sides.get("tutor", {})
        for action in settings.wanted or ():
            if action not in known:
                message = f"the tutor has no such action (known: {', '.join(known)})"
                yield Problem(f"$.tutoring.wanted.{action}", message)

    def roles(self, job: Job) -> tuple[str, ...]:
        """The tutors, and the student."""
        settings: Tutoring = settings_of(job)
        return tuple(dict.fromkeys((*settings.tutor_backends, *self._student_names(job))))

    def _student_names(self, job: Job) -> list[str]:
        """The roles of the space but the tutor's, as `backends` names them. Which is the tutor's, the space tells."""
        names = [role.lower() for role in job.speakers]
        return [name for name in names if name != "tutor"] or names[-1:]

    def prepare(self, job: Job, space: Space) -> Any:
        """The exercises, and who is who."""
        from edgen.protocols.tutoring.responses import Naming, ResponsePool
        from edgen.protocols.tutoring.session import Prepared
        from edgen.space.exercises.chain import ExercisePool
        from edgen.space.exercises.grammar import Grammar

        student, tutor = _sides(job, space)
        settings: Tutoring = settings_of(job)
        grammar = Grammar(space)
        responses = None
        if settings.choose == "pool":
            responses = ResponsePool(settings.pool, Naming(space, grammar.concepts))
        return Prepared(ExercisePool(grammar), student, tutor, self._tutor_uses(job), responses)

    def _tutor_uses(self, job: Job) -> dict[str, str]:
        """What the template of each tutor is for, by its backend: its own name where tutors have names."""
        settings: Tutoring = settings_of(job)
        (student,) = self._student_names(job)[:1]
        return {name: "tutor" if name == student else name for name in settings.tutor_backends}

    def rounds(self, job: Job) -> Rounds:
        """With a pool, as many as the settings say."""
        settings: Tutoring = settings_of(job)
        if settings.rounds == 1:
            return Rounds()
        return Rounds(
            settings.rounds, settings.sessions_per_round or -(-job.conversations // settings.rounds)
        )

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """With the responses of the sessions that were made."""
        if prepared.responses is None:
            return prepared
        return msgspec.structs.replace(prepared, responses=prepared.responses.grown(made))

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """A template for the student and one for each tutor; a tutor without one of its own has that of `tutor`."""
        (student,) = self._student_names(job)[:1]
        seats = [(student, "student", student)]
        seats += [(use, "tutor", backend) for backend, use in self._tutor_uses(job).items()]
        roles = {} if space is None else dict(zip(("student", "tutor"), _sides(job, space), strict=True))
        templates = {}
        for use, side, asked in seats:
            key = use if use in job.prompts or side == "student" else "tutor"
            seen = () if space is None else _variables(space, roles[side])
            templates[use] = Template(
                name=job.prompts.get(key, f"tutoring_{side}"),
                key=f"prompts.{key}",
                expects="acted_turn",
                variables=tuple(dict.fromkeys(("index", *seen, *EXTRA_VARIABLES))),
                reports=tuple(name for name in seen if name in SHOWN),
                asked=asked,
                stand_ins={
                    "about": ["Learner: shy"],
                    "actions": settings_of(job).named_actions.get(side, {}),
                    "exercise_number": 1,
                    "points": ["a point"],
                },
            )
        return templates

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Conversing:
        """Yields the student's request, then the tutors', turn by turn."""
        from edgen.protocols.tutoring.session import Session

        return Session(scenario, replicate, prompts, rules).play()

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """The brief of the student and of each tutor, with the first question."""
        from edgen.protocols.tutoring.session import Session

        return Session(scenario, 0, prompts, rules).opening()

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """A call for each turn of the student and for each response."""
        settings: Tutoring = settings_of(job)
        (student,) = self._student_names(job)[:1]
        uses = self._tutor_uses(job)
        turns = settings.student_turns if level else max(1, settings.student_turns // 4)
        calls = []
        for _ in range(turns):
            calls.append(ExpectedCall(student, student, _TURN, hears=True, heard=True))
            calls += [
                ExpectedCall(backend, uses[backend], _TURN, hears=True, heard=not place)
                for place, backend in enumerate(settings.tutor_backends)
            ]
        return tuple(calls)

    def role_of(self, job: Job, step: int) -> str:
        """The student, then each of the tutors."""
        settings: Tutoring = settings_of(job)
        order = [*self._student_names(job)[:1], *settings.tutor_backends]
        return order[step % len(order)]

    def caveats(self, settings: Tutoring) -> Iterator[str]:
        """How responses came about."""
        count = len(settings.tutor_backends)
        yield f"Each turn of the student has {count} responses of the tutor, made without knowledge of each other."
        if settings.choose == "pool":
            yield (
                f"None of them went on: in {settings.rounds} rounds, students were served responses that tutors gave to "
                "other sessions' turns in earlier rounds, or templates, which no tutor wrote; the first round had templates "
                "alone. Each served turn says where it comes from (`served` in its data). What was served may not fit."
            )
        else:
            yield "One of them was drawn and went on." if settings.choose == "draw" else "The first went on."
        yield "Actions are those that the speaker names."

    def simulated(self, request: Simulation) -> str | None:
        """A turn with its actions."""
        from edgen.protocols.tutoring.simulated import speak

        return speak(request)


def _sides(job: Job, space: Space) -> tuple[SpaceRole, SpaceRole]:
    """The student, who does not see the answer, and the tutor, who does. Raises JobError for a space without these."""
    if space.exercises is None:
        message = f"{space.name} has no exercises; shipped spaces that have some are italian_shapes, italian_prepositions and fractions"
        raise JobError(job.name, "1 problem:", (Problem("$.space", message),))
    tutors = [role for role in space.roles if "answer" in role.sees]
    students = [role for role in space.roles if "answer" not in role.sees]
    if len(tutors) != 1 or len(students) != 1 or tutors[0].name.lower() != "tutor":
        message = f"{space.name} has to have two roles: Tutor, who sees `answer`, and one who does not"
        raise JobError(job.name, "1 problem:", (Problem("$.space", message),))
    if taken := [name for name in space.names if name in EXTRA_VARIABLES]:
        message = f"{space.name} has a dimension {taken[0]}, which means something else to templates of tutoring; rename it"
        raise JobError(job.name, "1 problem:", (Problem("$.space", message),))
    return students[0], tutors[0]


def _round_problems(settings: Tutoring) -> Iterator[Problem]:
    """Rounds without a pool, a pool without rounds, a pool that does not fit the actions."""
    if settings.choose != "pool":
        if settings.rounds > 1:
            yield Problem("$.tutoring.rounds", "only `choose: pool` takes more rounds than one")
        return
    if settings.rounds == 1:
        message = "the pool of one round is empty; `choose: pool` needs two rounds or more, as in `rounds: 4`"
        yield Problem("$.tutoring.rounds", message)
    yield from settings.pool.problems(settings.named_actions, "$.tutoring.pool")


def _variables(space: Space, role: SpaceRole) -> tuple[str, ...]:
    """What the template of a role may use of scenario and exercise."""
    return tuple(name for name in (*space.names, *SHOWN) if name in role.sees)


TUTORING = TutoringProtocol()
