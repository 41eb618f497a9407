"""The protocol `selfplay`: agents talk, turn by turn, and each knows only its role's view.

This is the interface to the rest of edgen; `play` and `stage` play a conversation.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence

from edgen.plugin import (
    AnswerKind,
    Conversation,
    ConversationProtocol,
    ExpectedCall,
    Job,
    Message,
    Prompting,
    Rejection,
    Reply,
    Request,
    RolesAndSettings,
    Rules,
    Scenario,
    SelfDescription,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    Turn,
    settings_of,
    template_variables,
)
from edgen.plugin.errors import Problem
from edgen.plugin.forms import Form, turn_form
from edgen.plugin.protocols import (
    CLOSING,
    CLOSING_STEP,
    FENCED,
    MOST_TURNS,
    TURN_VARIABLES,
    AnswerForms,
    Labels,
    Selfplay,
    SharedPreparation,
    Stage,
    Starter,
    TurnByTurn,
    find_turn_templates,
    labels_of,
    play,
)

# Tokens of one answer: low, expected and high.
_TURN = (10.0, 40.0, 150.0)
_CLOSING = (1.0, 10.0, 60.0)
_TURNS = (4, 12)  # turns of a conversation; at most the job's max_turns


class SelfplayProtocol(
    SimulatedAnswers,
    SelfDescription,
    RolesAndSettings,
    AnswerForms,
    SharedPreparation,
    TurnByTurn,
    ConversationProtocol,
):
    """The protocol in which each side is asked for its own turns."""

    name = "selfplay"
    summary = "Agents talk turn by turn."
    precedence = 40
    answers = (
        AnswerKind(
            "turn",
            "what one side of a self-play conversation says next",
            TURN_VARIABLES,
            spoken=True,
            of_scenario=True,
        ),
        AnswerKind(
            "probability",
            "one number from 0 to 1: a probability, such as that the student understood",
            ("conversation", *FENCED),
            of_scenario=True,
        ),
        # Exports may give the side's brief to a model that they train on its turns.
        AnswerKind(
            "opening",
            "nothing: it is put in front of the conversations of an export",
            TURN_VARIABLES,
            of_scenario=True,
        ),
    )
    Config = Selfplay
    branches = True
    sends_schemas = True
    starter = Starter(
        "selfplay",
        {
            "teacher.j2": "selfplay_teacher",
            "student.j2": "selfplay_student",
            "closing.j2": "closing_student",
            "oracle.j2": "oracle_guarded",
        },
        "teacher",
        "two agents, and pairs of what they say",
    )
    probability_setting = "selfplay: {closing: {role}}"
    about_leaks = (
        "Where each side has a prompt of its own (selfplay), it does not see the other's description: look "
        "for any leak, which is a guess or a prompt that says too much."
    )

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield a problem if the job names a prompt for the whole conversation."""
        if job.prompt is not None:
            yield Problem(
                "$.prompt",
                "selfplay has a prompt for each role, under the names of the space's roles, "
                "as in `prompts: {teacher: …, student: …}`",
            )

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """Yield problems of roles: unknown ones, an order without an answering role, a branch after the last
        turn."""
        settings: Selfplay = settings_of(job)
        roles = [role.lower() for role in job.speakers]
        order = [role.lower() for role in settings.order or roles]
        named = {
            "selfplay.first": [settings.first] if settings.first else [],
            "selfplay.order": [*(settings.order or ())],
            "selfplay.closing": [settings.closing] if settings.closing not in (None, "judge") else [],
            "branch.role": [job.branch.role] if job.branch and job.branch.role else [],
        }
        unknown = [(key, name) for key, names in named.items() for name in names if name.lower() not in roles]
        yield from (
            Problem(f"$.{key}", f"the space has no role {name!r} (known: {', '.join(roles)})")
            for key, name in unknown
        )
        if len({*order}) < 2:
            yield Problem("$.selfplay.order", "a conversation needs two roles at least")
        elif not unknown and settings.first and settings.first.lower() not in order:
            yield Problem("$.selfplay.first", f"{settings.first} is not in selfplay.order")
        elif not unknown and job.branch is not None:
            yield from self._find_branch_problems(job, settings)

    def _find_branch_problems(self, job: Job, settings: Selfplay) -> Iterator[Problem]:
        assert job.branch is not None
        turns = _list_branch_turns(job)
        if not turns:
            yield Problem("$.branch.role", f"{job.branch.role} is not in selfplay.order")
        elif isinstance(job.branch.at, int):
            turn = turns[job.branch.at - 1] + 1 if job.branch.at <= len(turns) else MOST_TURNS
            if turn > settings.max_turns:
                yield Problem(
                    "$.branch.at", f"that is turn {turn}, and selfplay.max_turns is {settings.max_turns}"
                )

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return each speaker, and the judge if it is asked the closing question."""
        roles = tuple(role.lower() for role in job.speakers)
        return (*roles, "judge") if settings_of(job).closing == "judge" else roles

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return a template for each role, and one for the closing question if the job asks it."""
        templates = {}
        sees = {} if space is None else {role.name: role.sees for role in space.roles}
        usual = find_turn_templates(None if space is None else space.names)
        for role in job.speakers:
            use = role.lower()
            variables = () if space is None else template_variables(space, sees[role])
            templates[use] = Template(
                name=job.prompts.get(use, usual.get(use, "plain_turn")),
                key=f"prompts.{use}",
                expects="turn",
                variables=(*variables, *(TURN_VARIABLES if variables else ())),
                reports=variables[1:],  # the index means nothing to a model
                wholes=("brief",),
                asked=use,
            )
        if closing := (settings_of(job).closing or "").lower():
            judge = closing == "judge"
            variables = () if space is None else (*template_variables(space), "conversation", *FENCED)
            templates["closing"] = Template(
                name=job.prompts.get("closing", "closing_judge_guarded" if judge else "closing_student"),
                key="prompts.closing",
                expects="probability",
                variables=variables if judge or closing not in templates else templates[closing].variables,
                shows=(("conversation",), ("guarded",)) if judge else (),
                why="closing: judge",
                asked=closing,
            )
        return templates

    def prepare(self, job: Job, space: Space) -> Labels:
        """Return the labels of the space's dimensions."""
        return labels_of(space)

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Generator[Request, Reply, Conversation | Rejection]:
        """Yield the request of each turn; return the conversation, or a rejection."""
        return play(self.stage(scenario, prompts, rules), replicate)

    def stage(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Stage:
        """Return the agents of a scenario."""
        return Stage(scenario, prompts, rules)

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """Return each side's brief, and the closing question."""
        stage = self.stage(scenario, prompts, rules)
        names = [role.name for role in rules.roles]
        opening = {name.lower(): stage.messages(name, []) for name in names}
        if "closing" in prompts:
            opening["closing"] = stage.closing([Turn(name, "…") for name in names])
        return opening

    def forms(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Mapping[str, Form]:
        """Return the form of a turn for each side, and that of the closing answer."""
        return {**{role.name.lower(): turn_form() for role in rules.roles}, "closing": CLOSING}

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return a call per turn, and one for the closing question."""
        settings: Selfplay = settings_of(job)
        turns = settings.max_turns if level == 2 else min(_TURNS[level], settings.max_turns)
        calls = [
            ExpectedCall(role.lower(), role.lower(), _TURN, hears=True, heard=True)
            for role in itertools.islice(settings.speakers(job.speakers), turns)
        ]
        if settings.closing is not None:
            calls.append(ExpectedCall(settings.closing.lower(), "closing", _CLOSING, hears=True, own=True))
        return tuple(calls)

    def leaves(self, job: Job, calls: int, level: int) -> Sequence[int]:
        """Return the turn that the job names; without one, the role's last turn for the low level, its first
        for the high level and all of its turns for the expected level."""
        assert job.branch is not None
        turns = _list_branch_turns(job)
        if job.branch.at != "sampled":
            return [min(turns[job.branch.at - 1], calls - 1)]
        turns = [turn for turn in turns if turn < calls] or [0]
        return {0: turns[-1:], 2: turns[:1]}.get(level, turns)

    def role_of(self, job: Job, step: int) -> str:
        """Return the speaker at a step, or the role that answers the closing question."""
        settings: Selfplay = settings_of(job)
        if step >= CLOSING_STEP:
            return (settings.closing or job.speakers[-1]).lower()
        return next(itertools.islice(settings.speakers(job.speakers), step, None)).lower()

    def probability_by(self, settings: Selfplay) -> str:
        """Return the role that is asked at the end."""
        return f"{self.name}, {settings.closing}"

    def caveats(self, settings: Selfplay) -> Iterator[str]:
        """Yield a sentence about the agents' knowledge."""
        yield (
            "An agent plays each role and sees only what that role sees. The text contains whatever agents "
            "give away of it."
        )

    def simulated(self, request: Simulation) -> str | None:
        """Return a probability for the closing question, else a turn."""
        return request.probability() or request.turn()


def _list_branch_turns(job: Job) -> list[int]:
    """Return the turns, counted from 0, at which the job may branch."""
    assert job.branch is not None
    role = (job.branch.role or job.speakers[0]).lower()
    order = itertools.islice(settings_of(job).speakers(job.speakers), MOST_TURNS)
    return [turn for turn, speaker in enumerate(order) if speaker.lower() == role]


SELFPLAY = SelfplayProtocol()
