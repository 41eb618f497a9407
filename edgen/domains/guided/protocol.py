"""The protocol `guided`: a state machine offers one role its utterances, and a world changes.

This is the interface to the rest of edgen; the machine's rules are in `course`, the requests in `session`.
The method is CRWIZ's (Chiyah Garcia, Lopes, Liu and Hastie, "CRWIZ: A Framework for Crowdsourcing Real-Time
Wizard-of-Oz Dialogues", LREC 2020), where a person chooses among the offered utterances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgen.domains.guided.config import (
    OF_CHOICE,
    OF_PARAPHRASE,
    OF_PARTNER,
    OF_QUESTIONNAIRE,
    PARAPHRASER,
    Guided,
)
from edgen.plugin import (
    AnswerKind,
    ExpectedCall,
    Job,
    RecordContents,
    RolesAndSettings,
    SelfDescription,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    part_of,
    settings_of,
    template_variables,
)
from edgen.plugin.answers import NO_ACTIONS, NOT_OFFERED
from edgen.plugin.errors import JobError, Problem
from edgen.plugin.families import family_of
from edgen.plugin.protocols import (
    DeclaredReason,
    FindFile,
    PlayedProtocol,
    Session,
    SharedPreparation,
    Starter,
)

if TYPE_CHECKING:
    from edgen.domains.guided.machines.model import Machine
    from edgen.plugin.protocols import Session

# Tokens of an answer: low, expected, high.
_CHOICE = (1.0, 3.0, 40.0)
_TURN = (8.0, 30.0, 120.0)
_ANSWERS = (25.0, 50.0, 150.0)


class GuidedProtocol(SimulatedAnswers, SelfDescription, RolesAndSettings, SharedPreparation, PlayedProtocol):
    """The protocol in which a machine offers the utterances of one role, and its partner speaks freely."""

    name = "guided"
    summary = "A state machine offers what one role may say, while a world changes."
    precedence = 15
    Config = Guided
    sends_schemas = True
    starter = Starter(
        "incident_response",
        {
            "wizard.j2": "guided_wizard_guarded",
            "partner.j2": "guided_partner",
            "questionnaire.j2": "guided_questionnaire_guarded",
        },
        "operator",
        "a state machine says what one role may say",
        {"machine": ("machines", "incident_response")},
    )
    about_leaks = (
        "The partner sees what its role may know of scenario and world; repeating the conversation is no "
        "leak."
    )
    reasons = (
        DeclaredReason(
            code=NOT_OFFERED,
            says="the answer is neither one of the offered utterances nor an allowed one",
            personal="it is neither offered nor allowed",
        ),
        DeclaredReason(code=NO_ACTIONS, says="a turn states no label, or an unknown one"),
    )
    answers = (
        AnswerKind(
            "choice",
            "the number of one of several utterances, or something else that is said",
            OF_CHOICE,
            spoken=True,
        ),
        AnswerKind(
            "turn",
            "what one side of a self-play conversation says next",
            (*OF_PARTNER, *OF_PARAPHRASE),
            spoken=True,
        ),
        AnswerKind(
            "ratings",
            "the answers to a questionnaire, as JSON or a line an item",
            ("index", *OF_QUESTIONNAIRE),
        ),
    )

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield problems: a missing machine, a prompt for the whole conversation."""
        settings: Guided = settings_of(job)
        if settings.machine is None:
            message = "this key is missing; name a machine, as in `guided: {machine: incident_response}`"
            yield Problem("$.guided.machine", message)
        if job.prompt is not None:
            yield Problem("$.prompt", "guided has a prompt for each role: `prompts: {wizard: …, partner: …}`")

    def with_files(self, job: Job, find: FindFile) -> Job:
        """Return the job with the contents of machine and questionnaire in place of their names, as JSON.
        Raises MachineError and QuestionnaireError."""
        from edgen.domains.guided.files import read_files

        return read_files(job, find)

    def guide(self, job: Job) -> Machine | None:
        """Return the machine in the settings. Raises MachineError if they hold no readable one."""
        from edgen.domains.guided.files import find_machine

        return find_machine(settings_of(job))

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the two roles, the guided one only if a model plays it, and the backend that rewords."""
        settings: Guided = settings_of(job)
        wizard, partner = _find_names(job)
        chooses = (wizard,) if settings.chooser == "model" else ()
        return (*chooses, partner, *((PARAPHRASER,) if settings.paraphrase else ()))

    def prepare(self, job: Job, space: Space) -> Any:
        """Return the machine and its roles in the space. Raises JobError if machine and space do not fit."""
        from edgen.domains.guided.files import prepare

        family = family_of(space, job.family)
        if not part_of(family, RecordContents).holds_events:
            message = (
                f"guided records hold events, which the {family.name} layout does not have; add `family: "
                "dialogue`"
            )
            raise JobError.of(job.name, [Problem("$.family", message)])
        return prepare(job, space)

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return a template for each role that a model plays, for rewording and for the questionnaire."""
        settings: Guided = settings_of(job)
        wizard, partner = _find_names(job)
        sees = (
            {}
            if space is None
            else {role.name.lower(): template_variables(space, role.sees) for role in space.roles}
        )
        asked = {
            "wizard": ("choice", wizard, OF_CHOICE, settings.chooser == "model"),
            "partner": ("turn", partner, OF_PARTNER, True),
            "paraphrase": ("turn", PARAPHRASER, OF_PARAPHRASE, settings.paraphrase),
            "questionnaire": ("ratings", partner, OF_QUESTIONNAIRE, settings.questionnaire is not None),
        }
        return {
            use: Template(
                name=job.prompts.get(use, _DEFAULTS.get(use, f"guided_{use}")),
                key=f"prompts.{use}",
                expects=expects,
                variables=("index", *more)
                if use == "questionnaire"
                else tuple(dict.fromkeys((*sees.get(role, ("index",)), *more))),
                shows=_SHOWS.get(use, ()),
                why=f"the {use}'s prompt of guided",
                asked=role,
                also=(wizard,) if use == "questionnaire" and settings.chooser == "model" else (),
                stand_ins=_STAND_INS,
            )
            for use, (expects, role, more, used) in asked.items()
            if used or use in job.prompts  # a template that an arm does not need is no mistake
        }

    def session(self) -> type[Session]:
        """Return the session class, which yields the guided role's choices, its partner's turns, and the
        questionnaires."""
        from edgen.domains.guided.session import GuidedSession

        return GuidedSession

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return a call for each turn by a model, and calls for rewording and questionnaires. `lengths`
        estimates the number of turns."""
        from edgen.domains.guided.lengths import list_sides_of_turns

        settings: Guided = settings_of(job)
        wizard, partner = _find_names(job)
        calls = []
        for side in list_sides_of_turns(settings, level):
            if side == "p":
                calls.append(ExpectedCall(partner, "partner", _TURN, hears=True, heard=True))
                continue
            if settings.chooser == "model":
                calls.append(ExpectedCall(wizard, "wizard", _CHOICE, hears=True, heard=True))
            if settings.paraphrase:
                calls.append(ExpectedCall(PARAPHRASER, "paraphrase", _TURN, hears=True))
        if settings.questionnaire is not None:
            asked = (wizard, partner) if settings.chooser == "model" else (partner,)
            calls += [ExpectedCall(role, "questionnaire", _ANSWERS, hears=True) for role in asked]
        return tuple(calls)

    def role_of(self, job: Job, step: int) -> str:
        """Return the guided role and its partner in turn, if models play both."""
        wizard, partner = _find_names(job)
        return partner if settings_of(job).chooser != "model" or step % 2 else wizard

    def caveats(self, settings: Guided) -> Iterator[str]:
        """Yield a sentence about the origin of the guided role's turns."""
        who = {
            "model": "a model chose among them by number, or wrote free text, which is marked",
            "chance": "chance chose among them, by the machine's probabilities",
            "likeliest": "the most probable one was taken",
        }[settings.chooser]
        words = "; a model reworded them" if settings.paraphrase else ""
        yield f"A state machine offered the guided role's utterances; {who}{words}."
        yield (
            "Times are those of a simulated clock, by words. They do not show how long people or models "
            "took. Ratings of questionnaires are the models' own."
        )

    def simulated(self, request: Simulation) -> str | None:
        """Return a choice, a partner's turn, other words, or answers to a questionnaire."""
        from edgen.domains.guided.simulation import respond

        return respond(request)


# Templates that show others' turns between fences.
_DEFAULTS = {use: f"guided_{use}_guarded" for use in ("wizard", "paraphrase", "questionnaire")}
# Variables that a prompt must show, since its answers could not be read otherwise.
_SHOWS = {"wizard": (("options",),), "paraphrase": (("utterance",),), "questionnaire": (("items",),)}
_STAND_INS: dict[str, Any] = {
    "about": ["Weather: calm"],
    "world": ["Fire: 2"],
    "options": ["Hello."],
    "replies": ["Okay."],
    "items": ["task: The task was easy. (1 to 7)"],
    "keep": ["north"],
    "labels": ["agrees"],
    "hint": 1,
    "free": True,
    "success": True,
    "seconds_left": 300,
    "form": '{"task": 1}',
}


def _find_names(job: Job) -> tuple[str, str]:
    """Return the guided role and its partner, by their names in `backends`. Before the machine is read, these
    are the first and the last role."""
    from edgen.domains.guided.files import find_machine

    machine = find_machine(settings_of(job))
    if machine is not None:
        return machine.players.wizard.lower(), machine.players.partner.lower()
    return job.speakers[0].lower(), job.speakers[-1].lower()


GUIDED = GuidedProtocol()
