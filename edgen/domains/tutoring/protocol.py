"""The protocol `tutoring`: a student works through exercises with right answers, and several tutors respond
to each turn.

This is the interface to the rest of edgen; `session` plays a session. The method is CIMA's (Stasaski, Kao and
Hearst, "CIMA: A Large Open Access Dialogue Dataset for Tutoring", BEA 2020).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgen.config.label_set import find_name_problems, load_label_set
from edgen.domains.tutoring.config import (
    EXTRA_VARIABLES,
    TutoringSettings,
    find_round_problems,
    find_wanted_problems,
)
from edgen.domains.tutoring.exercises.model import SHOWN, find_exercises
from edgen.domains.tutoring.judging import JUDGE, JUDGE_VARIABLES, SHOWN_TO_JUDGE
from edgen.domains.tutoring.served_turns import LABELLER
from edgen.plugin import (
    AnswerKind,
    ExpectedCall,
    Job,
    Recorded,
    RolesAndSettings,
    SelfDescription,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    settings_of,
)
from edgen.plugin.answers import NO_ACTIONS
from edgen.plugin.errors import JobError, Problem
from edgen.plugin.files import shorten_word
from edgen.plugin.protocols import (
    DeclaredReason,
    FindFile,
    PlayedProtocol,
    Rounds,
    Session,
    SharedPreparation,
    SpaceRole,
    Starter,
)
from edgen.protocols.labelling import make_labelling_template

_TURN = (15.0, 45.0, 160.0)  # tokens of an answer: low, expected, high
_OF_OTHERS = (10.0, 40.0, 120.0)  # tokens of a labeller's or a judge's answer


class TutoringProtocol(
    SimulatedAnswers, SelfDescription, RolesAndSettings, SharedPreparation, PlayedProtocol
):
    """The protocol in which a student works through exercises, and tutors who do not see each other respond
    to each of its turns."""

    name = "tutoring"
    summary = "A student goes through exercises with right answers; several tutors respond to each turn."
    precedence = 20
    reasons = (
        DeclaredReason(
            code=NO_ACTIONS,
            says="a turn states no action, or an unknown one",
            personal="it states no known action",
        ),
    )
    answers = (
        AnswerKind(
            "acted_turn",
            "what one side says next, and the actions of it, as JSON or with a line of actions",
            ("index", *SHOWN, *EXTRA_VARIABLES),
            spoken=True,
        ),
        AnswerKind(
            "best_worst",
            "the letters of the best and of the worst of several responses",
            ("index", *SHOWN, *EXTRA_VARIABLES, *JUDGE_VARIABLES),
        ),
    )
    Config = TutoringSettings
    sends_schemas = True
    starter = Starter(
        "tutoring",
        {"tutor.j2": "tutoring_tutor", "student.j2": "tutoring_student"},
        "tutor",
        "exercises with right answers, three tutors a turn",
    )
    about_leaks = "The student does not see the answer: a leak comes from a tutor who gave it away."

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield the problems of the settings: a prompt for the whole conversation, tutors without a backend,
        unknown actions, settings that exclude each other."""
        settings: TutoringSettings = settings_of(job)
        if job.prompt is not None:
            yield Problem(
                "$.prompt", "tutoring has a prompt for each role: `prompts: {tutor: …, student: …}`"
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
        if settings.actions is not None and settings.actions.keys() != {"student", "tutor"}:
            yield Problem("$.tutoring.actions", "expected actions of `student` and of `tutor`")
        for side, actions in sides.items():
            if not actions:
                yield Problem(f"$.tutoring.actions.{side}", "this is empty; name one action at least")
            yield from find_name_problems(
                {f"$.tutoring.actions.{side}.{shorten_word(name)}": name for name in actions}
            )
        if (
            settings.actions is None or sides.keys() == settings.actions.keys()
        ):  # otherwise label sets are still unread
            yield from find_round_problems(settings)
            yield from find_wanted_problems(settings)
        yield from _find_labelling_problems(settings)

    def with_files(self, job: Job, find: FindFile) -> Job:
        """Return the job with the labels of the label sets that `actions` names. Raises JobError if the
        settings do not fit the labels."""
        settings: TutoringSettings = settings_of(job)
        read = {
            side: load_label_set(find("label_sets", name, f"tutoring.actions.{side}")).definitions
            for side, name in (settings.actions or {}).items()
            if isinstance(name, str)
        }
        if not read:
            return job
        settings = msgspec.structs.replace(settings, actions={**(settings.actions or {}), **read})
        held = msgspec.structs.replace(job, protocol_settings={**job.protocol_settings, self.name: settings})
        if found := [*self.problems(held)]:
            raise JobError.of(job.name, found)
        return held

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the tutors, the student, and the labeller and judge if the job has them."""
        settings: TutoringSettings = settings_of(job)
        names = (*settings.tutor_backends, *self._list_students(job), *_list_other_backends(settings))
        return tuple(dict.fromkeys(names))

    def _list_students(self, job: Job) -> list[str]:
        """Return the roles of the space except the tutor's, by their names in `backends`. If `tutor` is the
        only role, return it; without a role `tutor`, return all."""
        names = [role.lower() for role in job.speakers]
        return [name for name in names if name != "tutor"] or names[-1:]

    def prepare(self, job: Job, space: Space) -> Any:
        """Return the exercises, and the roles of student and tutor."""
        from edgen.domains.tutoring.exercises.grammar import Grammar
        from edgen.domains.tutoring.exercises.pool import ExercisePool
        from edgen.domains.tutoring.response_pool import ResponsePool, ValueFinder
        from edgen.domains.tutoring.session import PreparedTutoring

        student, tutor = _find_sides(job, space)
        settings: TutoringSettings = settings_of(job)
        grammar = Grammar(space)
        responses = None
        if settings.choose == "pool":
            responses = ResponsePool(settings.pool, ValueFinder(space, grammar.concepts))
        return PreparedTutoring(ExercisePool(grammar), student, tutor, self._find_tutor_uses(job), responses)

    def _find_tutor_uses(self, job: Job) -> dict[str, str]:
        """Return the use of each tutor's template, by backend: the backend's name, or `tutor` for a backend
        that has the student's name."""
        settings: TutoringSettings = settings_of(job)
        (student,) = self._list_students(job)[:1]
        return {name: "tutor" if name == student else name for name in settings.tutor_backends}

    def rounds(self, job: Job) -> Rounds:
        """Return the rounds of the settings and the sessions of each; the default for one round."""
        settings: TutoringSettings = settings_of(job)
        if settings.rounds == 1:
            return Rounds()
        return Rounds(
            settings.rounds, settings.sessions_per_round or -(-job.conversations // settings.rounds)
        )

    def prepare_round(self, prepared: Any, made: Iterable[Recorded]) -> Any:
        """Return `prepared` with the responses of these sessions in its pool; unchanged without a pool."""
        if prepared.responses is None:
            return prepared
        return msgspec.structs.replace(prepared, responses=prepared.responses.grow(made))

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return a template for the student and one for each tutor. A tutor without its own template uses
        that of `tutor`."""
        (student,) = self._list_students(job)[:1]
        seats = [(student, "student", student)]
        seats += [(use, "tutor", backend) for backend, use in self._find_tutor_uses(job).items()]
        roles = {} if space is None else dict(zip(("student", "tutor"), _find_sides(job, space), strict=True))
        templates = {}
        images = () if space is None else [one.mark for one in space.pictures.values()]
        for use, side, asked in seats:
            key = use if use in job.prompts or side == "student" else "tutor"
            seen = () if space is None else _list_variables(space, roles[side])
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
                    "labelled_by": settings_of(job).labelled_by,
                    "points": ["a point"],
                    **({"picture": images[0]} if images else {}),
                },
            )
        tutor = templates[next(iter(self._find_tutor_uses(job).values()))]
        for use in _list_other_backends(settings_of(job)):
            if space is not None and use in templates:
                message = f"a role of the space and the job's {use} have the same name; rename the role"
                raise JobError.of(job.name, [Problem(f"$.prompts.{use}", message)])
            templates[use] = self._make_template_of_other(use, job, space, tutor)
        return templates

    def _make_template_of_other(self, use: str, job: Job, space: Space | None, tutor: Template) -> Template:
        """Return the template of the labeller or of the judge. The judge's may use the tutors' variables."""
        settings: TutoringSettings = settings_of(job)
        if use == LABELLER:
            sets = [settings.make_label_set(side) for side in settings.named_actions]
            return make_labelling_template(job.prompts.get(use), f"prompts.{use}", use, sets)
        seen = () if space is None else tutor.variables
        return dataclasses.replace(
            tutor,
            name=job.prompts.get(use, "tutoring_judge"),
            key=f"prompts.{use}",
            expects="best_worst",
            variables=(*seen, *JUDGE_VARIABLES),
            reports=(),
            shows=(SHOWN_TO_JUDGE,),
            why="a judge of responses",
            asked=use,
        )

    def session(self) -> type[Session]:
        """Return the class of sessions, which yield the student's request, then the tutors', turn by turn."""
        from edgen.domains.tutoring.session import TutoringSession

        return TutoringSession

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return a call for each turn of the student and for each response. With a pool, long exercises are
        not shown to tutors: the fewer exercises are solved, the fewer responses."""
        settings: TutoringSettings = settings_of(job)
        (student,) = self._list_students(job)[:1]
        uses = self._find_tutor_uses(job)
        turns = settings.student_turns if level else max(1, settings.student_turns // 4)
        calls = []
        of, shown = settings.turns_per_exercise, settings.shown_turns
        answered = (shown, (shown + of + 1) // 2, of)[level]
        for turn in range(turns):
            calls.append(ExpectedCall(student, student, _TURN, hears=True, heard=True))
            calls += [
                ExpectedCall(backend, uses[backend], _TURN, hears=True, heard=not place)
                for place, backend in enumerate(settings.tutor_backends)
                if turn % of < answered
            ]
            calls += [
                ExpectedCall(use, use, _OF_OTHERS, hears=True) for use in _list_other_backends(settings)
            ]
        return tuple(calls)

    def role_of(self, job: Job, step: int) -> str:
        """Return the student, then each of the tutors, then labeller and judge."""
        settings: TutoringSettings = settings_of(job)
        order = [*self._list_students(job)[:1], *settings.tutor_backends, *_list_other_backends(settings)]
        return order[step % len(order)]

    def caveats(self, settings: TutoringSettings) -> Iterator[str]:
        """Yield sentences about the responses: their number, choice and actions."""
        count = len(settings.tutor_backends)
        yield (
            f"Each turn of the student has {count} responses of the tutor, made independently of each other."
        )
        if settings.choose == "pool":
            yield (
                f"The conversation continues from none of them: in {settings.rounds} rounds, students were "
                "served responses that tutors gave to other sessions' turns in earlier rounds, or "
                "templates, which no tutor wrote; the first round had only templates. Each served turn "
                "states its source (`served` in its data). A served turn may not fit."
            )
        else:
            yield _WENT_ON[settings.choose]
        yield _LABELLED[settings.labelled_by]

    def simulated(self, request: Simulation) -> str | None:
        """Return a turn with its actions, or a judgement of responses."""
        from edgen.domains.tutoring.simulation import judge, speak

        return judge(request) or speak(request)

    def simulated_labels(self, role: str, text: str) -> tuple[str, ...] | None:
        """Return the actions that the simulator's words stand for."""
        from edgen.domains.tutoring.simulation import find_true_actions

        return find_true_actions(role, text)


def _find_sides(job: Job, space: Space) -> tuple[SpaceRole, SpaceRole]:
    """Return the student, who does not see the answer, and the tutor, who does. Raises JobError for a space
    without such roles."""
    if find_exercises(space) is None:
        message = (
            f"{space.name} has no exercises; shipped spaces that have some are italian_shapes, "
            "italian_prepositions and fractions"
        )
        raise JobError.of(job.name, [Problem("$.space", message)])
    tutors = [role for role in space.roles if "answer" in role.sees]
    students = [role for role in space.roles if "answer" not in role.sees]
    if len(tutors) != 1 or len(students) != 1 or tutors[0].name.lower() != "tutor":
        message = f"{space.name} has to have two roles: Tutor, who sees `answer`, and one who does not"
        raise JobError.of(job.name, [Problem("$.space", message)])
    return students[0], tutors[0]


def _list_other_backends(settings: TutoringSettings) -> tuple[str, ...]:
    """Return the backends besides student and tutors, in the order in which each turn asks them."""
    return (
        *((LABELLER,) if settings.labelled_by != "speaker" else ()),
        *((JUDGE,) if settings.choose == "judge" else ()),
    )


def _find_labelling_problems(settings: TutoringSettings) -> Iterator[Problem]:
    """Yield settings that need the student's actions before a labeller names them, and tutors with the name
    of the labeller or the judge."""
    if not settings.speaker_names and settings.wanted_by_student:
        late = "a labeller names only after the responses; set `labelled_by: both`"
        yield Problem("$.tutoring.wanted", f"it depends on the student's action, which {late}")
    for name in _list_other_backends(settings):
        if name in settings.tutor_backends:
            yield Problem(
                "$.tutoring.tutors", f"{name!r} is the {name} in this job, not a tutor; take another name"
            )


_WENT_ON = {
    "draw": "The conversation continues from one of them, drawn at random.",
    "first": "The conversation continues from the first.",
    "judge": "The conversation continues from the one that a judge called the best (from one drawn at "
    "random if the judge's answer was unreadable: `unjudged` among the flags).",
}
_LABELLED = {
    "speaker": "Actions are those that the speaker names.",
    "labeller": "Actions are those that a labeller names, who reads each turn in its context; turns "
    "without its labels have none (`unlabelled` among the flags).",
    "both": "Actions are those that the speaker names; a labeller's are in `data`.",
}


def _list_variables(space: Space, role: SpaceRole) -> tuple[str, ...]:
    """Return the variables of scenario and exercise for the template of a role."""
    return tuple(name for name in (*space.names, *SHOWN) if name in role.sees)


TUTORING = TutoringProtocol()
