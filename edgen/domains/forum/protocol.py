"""The protocol `forum`: a member asks, members with different knowledge answer, others have the same
question.

This is the interface to the rest of edgen; `session` runs a thread, `members` makes its members. A record of
a thread has the fields of MSDialog (Qu, Yang, Croft, Trippas, Zhang and Qiu, "Analyzing and Characterizing
User Intent in Information-seeking Conversations", SIGIR 2018).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from edgen.domains.forum.config import MODERATOR, OF_MEMBER, OF_MODERATOR, Forum, Member
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
from edgen.plugin.answers import NOT_OFFERED
from edgen.plugin.errors import JobError, Problem
from edgen.plugin.families import family_of
from edgen.plugin.files import suggest_name
from edgen.plugin.protocols import (
    DeclaredReason,
    PlayedProtocol,
    Session,
    SharedPreparation,
    Starter,
    TurnByTurn,
)

# Tokens of an answer: low, expected, high.
_POST = (15.0, 80.0, 300.0)
_PASS = (6.0, 10.0, 40.0)
_CHOICE = (1.0, 4.0, 20.0)
_POSTS = (3, 6)  # posts of a thread; at most the job's `turns`
_YEARS = range(1900, 2201)


class ForumProtocol(
    SimulatedAnswers,
    SelfDescription,
    RolesAndSettings,
    SharedPreparation,
    TurnByTurn,
    PlayedProtocol,
):
    """The protocol of threads: one member asks, the others answer."""

    name = "forum"
    summary = "One member asks in a forum; several who know different things answer."
    precedence = 12
    Config = Forum
    sends_schemas = True
    starter = Starter(
        "homework_help",
        {
            "asker.j2": "forum_asker",
            "tutor.j2": "forum_agent",
            "classmate.j2": "forum_agent",
            "newcomer.j2": "forum_user",
        },
        "asker",
        "one asks in a forum, several answer",
    )
    about_leaks = "Every member of a forum sees only what its own role sees; repeating the thread is no leak."
    reasons = (
        DeclaredReason(
            code=NOT_OFFERED,
            says="the moderator chooses nothing that was offered",
            personal="it is neither offered nor allowed",
        ),
    )
    answers = (
        AnswerKind(
            "post", "what a member of a forum posts, with its votes and marks", OF_MEMBER, spoken=True
        ),
        AnswerKind(
            "choice", "the number of one of several utterances, or something else that is said", OF_MODERATOR
        ),
    )

    def problems(self, job: Job) -> Iterator[Problem]:
        """Yield problems: a prompt for the whole conversation, an invalid first day."""
        if job.prompt is not None:
            yield Problem("$.prompt", "forum has a prompt for each role: `prompts: {asker: …, tutor: …}`")
        if _parse_day(settings_of(job).begins) is None:
            message = f"expected a day of the years {_YEARS[0]} to {_YEARS[-1]}, as in `begins: 2024-01-01`"
            yield Problem("$.forum.begins", message)

    def role_problems(self, job: Job) -> Iterator[Problem]:
        """Yield problems of roles: one that the space lacks, a thread that nobody may answer, a role with the
        moderator's name."""
        settings: Forum = settings_of(job)
        known = {role.lower(): role for role in job.speakers}
        named = [("forum.asker", settings.asker)] if settings.asker else []
        named += [(f"forum.members.{name}", name) for name in settings.members]
        unknown = [(key, name) for key, name in named if name.lower() not in known]
        for key, name in unknown:
            hint = suggest_name(name, [*known.values()])
            yield Problem(f"$.{key}", f"the space has no role {name!r}{hint}")
        if MODERATOR in known:
            taken = known[MODERATOR]
            yield Problem("$.space", f"the role {taken} has the name of the backend that chooses; rename it")
        if not unknown and not any(_find_member(settings, role).weight for role in _list_roles(job)[1:]):
            yield Problem(
                "$.forum.members",
                "nobody may answer: every role but the asker has `weight: 0`; give one of them a weight",
            )

    def roles(self, job: Job) -> tuple[str, ...]:
        """Return the roles that may post, and the moderator if the job has one."""
        roles = tuple(role.lower() for role in _list_roles(job))
        return (*roles, MODERATOR) if settings_of(job).chooser == "moderator" else roles

    def prepare(self, job: Job, space: Space) -> Any:
        """Return the roles, the category and the first day that all threads share. Raises JobError for a
        space that does not fit a forum."""
        from edgen.domains.forum.members import PreparedForum

        settings: Forum = settings_of(job)
        family = family_of(space, job.family)
        if not part_of(family, RecordContents).holds_events:
            message = (
                f"records of a forum hold events, which the {family.name} layout does not have; "
                "add `family: dialogue`"
            )
            raise JobError.of(job.name, [Problem("$.family", message)])
        named = {role.name: role for role in space.roles}
        roles = tuple(named[name] for name in _list_roles(job))
        begins = _parse_day(settings.begins)
        assert begins is not None, "checked before"
        category = settings.category or next(iter(roles[0].sees), space.names[0])
        return PreparedForum(space, roles, category, begins)

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return a template for each role, and the moderator's if the job has one."""
        settings: Forum = settings_of(job)
        sees = {} if space is None else {role.name: role.sees for role in space.roles}
        found = {}
        for place, role in enumerate(_list_roles(job)):
            use = role.lower()
            kind = (
                "asker" if not place else "user" if _find_member(settings, role).actor == "User" else "agent"
            )
            variables = () if space is None else template_variables(space, sees[role])
            found[use] = Template(
                name=job.prompts.get(use, f"forum_{kind}"),
                key=f"prompts.{use}",
                expects="post",
                variables=(*variables, *OF_MEMBER),
                asked=use,
                stand_ins=_STAND_INS,
            )
        if settings.chooser == "moderator" or MODERATOR in job.prompts:
            found[MODERATOR] = Template(
                name=job.prompts.get(MODERATOR, "forum_moderator_guarded"),
                key=f"prompts.{MODERATOR}",
                expects="choice",
                variables=("index", *OF_MODERATOR),
                shows=(("names",),),
                why="the moderator's prompt of forum",
                asked=MODERATOR,
                stand_ins=_STAND_INS,
            )
        return found

    def session(self) -> type[Session]:
        """Return the class of threads, which yield a request per post and the moderator's requests between
        them."""
        from edgen.domains.forum.session import Thread

        return Thread

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return a call for each post and each member who passes, and one of the moderator before each but
        the first. The asker has about every other post."""
        settings: Forum = settings_of(job)
        posts = settings.turns if level == 2 else min(_POSTS[level], settings.turns)
        asker, *others = [
            role.lower()
            for role in _list_roles(job)
            if _find_member(settings, role).weight or role == _list_roles(job)[0]
        ]
        passes = (0, 1, 4 * settings.silence - 4)[level]  # after four posts
        calls: list[ExpectedCall] = []
        for number in range(posts):
            role = others[number // 2 % len(others)] if number % 2 else asker
            silent = passes * (number + 1) // 4 - passes * number // 4 if number else 0
            asked = [ExpectedCall(role, role, _PASS, hears=True)] * silent
            for call in (*asked, ExpectedCall(role, role, _POST, hears=True, heard=True)):
                if number and settings.chooser == "moderator":
                    calls.append(ExpectedCall(MODERATOR, MODERATOR, _CHOICE, hears=True))
                calls.append(call)
        return tuple(calls)

    def trained(self, job: Job) -> str | None:
        """Return the role that answers: the first that provides information and may speak. The asker does so
        only if the job says so."""
        settings: Forum = settings_of(job)
        asker, *others = _list_roles(job)
        agents = [role for role in others if _find_actor(settings, role) == "Agent"]
        agents += [asker] if _find_member(settings, asker).actor == "Agent" else []
        return next((role for role in agents if _find_member(settings, role).weight), None)

    def role_of(self, job: Job, step: int) -> str:
        """Return the asker's role for the first step, then the roles that may answer."""
        roles = _list_roles(job)
        return roles[min(step, 1)].lower()

    def caveats(self, settings: Forum) -> Iterator[str]:
        """Yield sentences about how threads were made, and which of their facts are invented."""
        who = (
            "a model that reads the thread chose"
            if settings.chooser == "moderator"
            else "chance, by weights, chose"
        )
        yield (
            f"In a thread, {who} the next member to post. Every member saw only what its own role sees; some "
            "answers may be wrong by intent."
        )
        yield (
            "Times, user ids and affiliations are made up. Votes and accepted answers are the models' own, "
            "and do not show what is right."
        )

    def simulated(self, request: Simulation) -> str | None:
        """Return a post, or the moderator's choice of the next speaker."""
        from edgen.domains.forum.simulation import respond

        return respond(request)


_STAND_INS: dict[str, Any] = {
    "about": ["Subject: algebra"],
    "names": ["user_1 (User, Common User)", "nobody"],
}


def _list_roles(job: Job) -> tuple[str, ...]:
    """Return the roles of the space, the asker first."""
    asker = (settings_of(job).asker or job.speakers[0]).lower()
    return tuple(sorted(job.speakers, key=lambda role: role.lower() != asker))


def _find_member(settings: Forum, role: str) -> Member:
    """Return the job's settings of a role, or the defaults."""
    said = (member for name, member in settings.members.items() if name.lower() == role.lower())
    return next(said, Member())


def _find_actor(settings: Forum, role: str) -> str:
    """Return `User` or `Agent` for a role that may answer: whether it seeks or provides information."""
    return _find_member(settings, role).actor or "Agent"


def _parse_day(text: str) -> dt.datetime | None:
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        return None
    return dt.datetime(day.year, day.month, day.day) if day.year in _YEARS else None  # noqa: DTZ001 - a made-up clock


FORUM = ForumProtocol()
