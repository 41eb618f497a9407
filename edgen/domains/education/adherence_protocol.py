"""A judge reads one conversation and its scenario, and answers a sheet of five questions.

The sheet has a line for each question, such as `student_asks: yes`, with `yes`, `no` or `cannot tell`. It
counts only if every question has exactly one answer. Any other sheet is retried, and counts as unread in the
end.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from edgen.domains.education.keywords import MEASURES, Verdicts
from edgen.domains.education.layout import DIMENSIONS, TOPIC_FIELDS
from edgen.plugin import (
    Address,
    AnswerKind,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    SimulatedAnswers,
    Simulation,
    Turn,
    ask,
    scenario_variables,
)
from edgen.plugin.answers import drop_thinking, object_in
from edgen.plugin.forms import form_of, one_of
from edgen.plugin.protocols import (
    FENCED,
    Protocol,
    RejectionReason,
    TaskId,
    View,
    fence_turns,
    list_utterances,
    transcript_of,
    words_without_marks,
)

VARIABLES = ("index", *DIMENSIONS, *TOPIC_FIELDS, "conversation", *FENCED)
TEMPLATE = "adherence_guarded"
_SHOWN = 80  # characters kept of an unreadable answer

_LINE = re.compile(
    rf"^[^\w\n]{{0,12}}(?:\d{{1,2}}[.)])?[^\w\n]{{0,12}}({'|'.join(name.replace('_', '[_ ]') for name in MEASURES)})"
    r"[^\w\n:=]{0,12}[:=]([^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST = 60  # characters of a line with an answer and text around it
_BARE = re.compile(r"^[\W_]+|[\W_]+$")
_ANSWERS = {
    "yes": True,
    "no": False,
    **dict.fromkeys(("cannot tell", "can't tell", "cannot be told", "can not tell", "not applicable", "n/a")),
}


SHEET = form_of(dict.fromkeys(MEASURES, one_of(("yes", "no", "cannot tell"))))


class Adherence(SimulatedAnswers, Protocol):
    """A judge of how well one conversation keeps to its scenario."""

    name = "adherence"
    precedence = 10
    answers = (
        AnswerKind("sheet", "a sheet of questions about one conversation, answered a line each", VARIABLES),
    )

    def simulated(self, request: Simulation) -> str | None:
        """Return the answers to the five questions."""
        from edgen.domains.education import adherence_simulation

        return adherence_simulation.answer(request)


ADHERENCE = Adherence()


def ask_adherence(
    scenario: Scenario, task: TaskId, turns: Sequence[Turn], prompt: Prompting, rules: Rules
) -> Generator[Request, Reply, Verdicts | Rejection]:
    """Yield a request per ask; return the answers to all five questions, or a rejection.

    `task` identifies the conversation among those of its scenario.
    """
    shown = fence_turns(rules.seed, scenario.index, task, turns)
    variables = {**scenario_variables(scenario), **shown, "conversation": transcript_of(turns)}
    address = Address(scenario.index, task)
    messages = prompt.messages(variables)
    view = None
    if rules.by_people("judge"):
        plain = prompt.messages({**variables, "guarded": "", "conversation": ""})
        view = View(turns=list_utterances(turns), text=words_without_marks(plain, shown["fence"]))
    question = Question(
        address, messages, ADHERENCE.name, "judge", prompt.schema, form=prompt.form(SHEET), view=view
    )
    return (yield from ask(question, rules, _read))


def _read(reply: Reply) -> Verdicts | Rejection:
    answers = None if reply.refusal else read_sheet(reply.text)
    if answers is not None:
        return answers
    if reply.finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the sheet is cut off")
    said = " ".join((reply.refusal or reply.text).split())[:_SHOWN]
    return Rejection(RejectionReason.UNREAD, f"the answer is no sheet: {said or '(empty)'}")


def read_sheet(text: str) -> Verdicts | None:
    """Return the five answers of a sheet; None in doubt. Never raises; linear in the text's length."""
    found: dict[str, bool | None] = {}
    body = drop_thinking(text.replace("\r\n", "\n"), [])
    told = object_in(body) or {}
    lines = [(line[1], line[2]) for line in _LINE.finditer(body)]
    for name, said in [(key, str(value)) for key, value in told.items() if key in MEASURES] or lines:
        name = name.lower().replace(" ", "_")
        answer = _BARE.sub("", said).lower().replace("’", "'") if len(said) <= _LONGEST else ""
        if answer not in _ANSWERS or found.get(name, _ANSWERS[answer]) is not _ANSWERS[answer]:
            return None
        found[name] = _ANSWERS[answer]
    return Verdicts(**found) if len(found) == len(MEASURES) else None
