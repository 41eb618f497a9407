"""One prompt asks for the whole conversation, the method of Education Dialogue."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from edgen.plugin import (
    Address,
    AnswerKind,
    Conversation,
    ConversationProtocol,
    ExpectedCall,
    Job,
    Message,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    SelfDescription,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    ask,
    read,
    scenario_variables,
    template_variables,
)
from edgen.plugin.families import defaults_of
from edgen.plugin.forms import Form, form, probability, turns
from edgen.plugin.protocols import (
    CONVERSATION_VARIABLES,
    AnswerForms,
    Labels,
    SharedPreparation,
    SpaceRole,
    Starter,
    conversation_variables,
    labels_of,
    learner,
)

_TURNS = (4, 24)  # turns in the form of an answer: least and most
_LONGEST = 500  # characters of a turn in the form of an answer
_USUAL = 200  # characters of a turn if tokens are few
_CHARACTERS = 3.5  # characters of a token, for a small vocabulary
_AROUND = 14, 20  # tokens of the JSON around a turn, and around the conversation
_TOKENS = (150.0, 400.0, 1200.0)  # tokens of a whole conversation: low, expected, high


class _Told(NamedTuple):
    """Variables of templates about a space, besides a scenario's."""

    labels: Labels
    goal: str


def _make_form(rules: Rules) -> Form:
    """Return the form of a conversation between a space's roles. It has the probability if one of the roles
    learns."""
    backend = rules.backend("default")
    return _make_form_of_roles(rules.roles, None if backend is None else backend.room())


@lru_cache(maxsize=64)
def _make_form_of_roles(roles: tuple[SpaceRole, ...], room: int | None) -> Form:
    """Return the form of a conversation between these roles, in an answer of at most `room` tokens."""
    conversation = turns(tuple([role.name for role in roles]), _TURNS[0], *_limit_turns(room))
    if learner(roles) is None:
        return form(conversation=conversation)
    return form(conversation=conversation, probability=probability())


def _limit_turns(room: int | None) -> tuple[int, int]:
    """Return the most turns of a conversation and the most characters of a turn that fit into `room` tokens,
    since a cut-off answer is lost."""
    least, most = _TURNS
    if room is None:
        return most, _LONGEST
    of_turn, of_all = _AROUND
    left = room - of_all
    count = min(max(int(left / (of_turn + _USUAL / _CHARACTERS)), least), most)
    return count, min(max(int((left / count - of_turn) * _CHARACTERS), _USUAL // 4), _LONGEST)


class Oneshot(SimulatedAnswers, SelfDescription, AnswerForms, SharedPreparation, ConversationProtocol):
    """A prompt for the whole conversation."""

    name = "oneshot"
    summary = "One prompt plays both sides."
    precedence = 90  # a prompt for a conversation may contain any text
    answers = (
        AnswerKind(
            "conversation",
            "a whole conversation by all roles, and a probability, such as that the student understood",
            CONVERSATION_VARIABLES,
            spoken=True,
            of_scenario=True,
        ),
    )
    sends_schemas = True
    starter = Starter(
        "quickstart", {"prompt.j2": "education_dialogue"}, "default", "one prompt plays both sides"
    )
    about_leaks = (
        "Where one prompt writes both sides (oneshot), the writer knows both descriptions: a leak is a slip "
        "that a separate {roles} could not make."
    )

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """Return the one template, which may use everything in a scenario."""
        variables = () if space is None else template_variables(space)
        usual = "plain_conversation"
        if space is not None:
            usual = defaults_of(space).templates.get("conversation", usual)
        return {
            "default": Template(
                name=job.prompt or usual,
                key="prompt",
                expects="conversation",
                variables=(*variables, *(CONVERSATION_VARIABLES if variables else ())),
                reports=variables[1:],  # the index means nothing to a model
                wholes=("scenario_lines",),
                stand_ins={"roles": {}},
            )
        }

    def prepare(self, job: Job, space: Space) -> _Told:
        """Return the labels of the space's dimensions, and its description."""
        return _Told(labels_of(space), space.description or "")

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Generator[Request, Reply, Conversation | Rejection]:
        """Yield one request per ask; return the first conversation, or the last rejection."""

        def read_reply(reply: Reply) -> Conversation | Rejection:
            return read(reply.text, **rules.reading(reply))

        messages = self.opening(scenario, prompts, rules)["default"]
        address = Address(scenario.index, replicate)
        prompt = prompts["default"]
        question = Question(
            address,
            messages,
            self.name,
            schema=prompt.schema,
            speakers=rules.speakers,
            form=prompt.form(partial(_make_form, rules)),
            scene=rules.scene(scenario),
        )
        return (yield from ask(question, rules, read_reply))

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """Return the one prompt."""
        prompt, variables = prompts["default"], scenario_variables(scenario)
        if not prompt.variables_used.isdisjoint(CONVERSATION_VARIABLES):
            told: _Told = rules.prepared or _Told({}, "")
            variables = conversation_variables(scenario, rules.roles, told.labels, told.goal) | variables
        return {"default": prompt.messages(variables)}

    def forms(self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules) -> Mapping[str, Form]:
        """Return the form of a conversation."""
        return {"default": _make_form(rules)}

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """Return one call."""
        return (ExpectedCall("default", "default", _TOKENS),)

    def caveats(self, settings: Any) -> Iterator[str]:
        """Yield a sentence about the writer's knowledge."""
        yield "One prompt plays all roles, so the writer of a turn knew what only the other roles see."

    def simulated(self, request: Simulation) -> str | None:
        """Return a conversation that follows the prompt."""
        return request.conversation()


ONESHOT = Oneshot()
