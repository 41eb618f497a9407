"""A judge of two conversations, in both orders, that names the better one.

The judge sees transcripts without the end marker, or the common turns and the two responses at which they
part. It sees only those values of the scenario that its template uses. An answer that names neither side is
retried; if it stays unreadable, it counts for neither.

A template takes the texts plain, like published judge prompts, or guarded: in a fence, so that no line can be
mistaken for the prompt's own. Every line of a turn after its first begins with a bar, so a line inside a
fence begins with a role that edgen wrote or with that bar. The mark of the fence is a digest of the job's
seed, the pair and the whole content. So the writer of the texts cannot know it, a later start makes the same
mark, and both orders have the same.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from edgen.config import PairSettings
from edgen.core.pair import UNKNOWN_SIDE, Compare, Order, Verdict
from edgen.plugin import (
    Address,
    AnswerKind,
    BackendConfig,
    Message,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    Turn,
    ask,
    scenario_variables,
    template_variables,
)
from edgen.plugin.families import defaults_of
from edgen.plugin.forms import form, one_of
from edgen.plugin.protocols import (
    Candidate,
    Offer,
    Protocol,
    RejectionReason,
    TaskId,
    View,
    describe_space,
    fence_texts,
    list_utterances,
    transcript_of,
    unread,
    words_without_marks,
)
from edgen.plugin.providers import Token
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.answers.verdict_logprobs import read_preference
from edgen.reading.answers.verdict_prose import Choice

# The plain texts for a judge's template, by what is compared.
PLAIN: dict[Compare, tuple[str, ...]] = {
    "conversation": ("conversation_1", "conversation_2"),
    "response": ("conversation", "response_1", "response_2"),
}
# The variables besides the plain texts, for every kind of comparison.
GUARDED: tuple[str, ...] = ("compare", "fence", "guarded", "guarded_1", "guarded_2")
# All variables of a judge's template besides the scenario, by what is compared.
COMPARED: dict[Compare, tuple[str, ...]] = {compare: (*names, *GUARDED) for compare, names in PLAIN.items()}
# The variables about the space: the roles, the scenario's values with their labels, and the space's
# description.
OF_SPACE: tuple[str, ...] = ("space_roles", "space_goal", "scenario_lines", "next_speaker")
# A judge's template must show both texts: plain, or guarded.
SHOWN: dict[Compare, tuple[tuple[str, ...], ...]] = {
    compare: (names[-2:], ("guarded_1", "guarded_2")) for compare, names in PLAIN.items()
}
ORDERS: tuple[Order, Order] = ("ab", "ba")
VERDICT = form(better=one_of((1, 2)))
_SHOWN = 200  # characters kept of an unreadable answer


class Oracle(SimulatedAnswers, Protocol):
    """A judge of two conversations."""

    name = "oracle"
    precedence = 20
    answers = (
        AnswerKind(
            "verdict",
            "1 or 2: which of two conversations or responses is the better one",
            tuple(dict.fromkeys((*COMPARED["conversation"], *COMPARED["response"], *OF_SPACE))),
            of_scenario=True,
        ),
    )

    def template(self, name: str, compare: Compare | None, space: Space) -> Template:
        """Return the judge's template; a run keeps a copy of it if its job names one. Without `compare`, it
        may be for either kind of comparison."""
        kinds = [*COMPARED] if compare is None else [compare]
        variables = dict.fromkeys(name for kind in kinds for name in COMPARED[kind])
        return Template(
            name=name,
            key="prompts.oracle",
            expects="verdict",
            variables=(*template_variables(space), *variables, *OF_SPACE),
            shows=tuple(dict.fromkeys(shown for kind in kinds for shown in SHOWN[kind])),
            why=f"pairs.compare: {' or '.join(kinds)}",
            asked="judge",
        )

    def simulated(self, request: Simulation) -> str | None:
        """Return the number of the better conversation."""
        return request.verdict()


ORACLE = Oracle()


def choose_template(space: Space) -> str:
    """Return the judge's default template."""
    return defaults_of(space).templates.get("judge", "oracle_roles")


class CandidatePair(msgspec.Struct, frozen=True):
    """Two candidates of a scenario of a space. `task` identifies them among all pairs of the scenario."""

    space: Space
    scenario: Scenario
    task: TaskId
    a: Candidate
    b: Candidate

    @property
    def address(self) -> Address:
        """The address of the pair's first request."""
        return Address(self.scenario.index, self.task)


def count_shared_turns(a: Candidate, b: Candidate) -> int:
    """Return the number of turns that two candidates share from the start."""
    count = 0
    for one, other in zip(a.turns, b.turns, strict=False):
        if one != other:
            break
        count += 1
    return count


def judge_pair(
    comparison: CandidatePair, prompt: Prompting, pairs: PairSettings, rules: Rules
) -> Generator[Request, Reply, list[Verdict] | Rejection]:
    """Yield a request per vote and order (and per retry). Return every verdict, with equal numbers for both
    orders, or a rejection.

    `pairs` gives the kind of comparison, the votes and the log probabilities. A judge that would give the
    same answer to identical requests votes once: see `count_votes`.
    """
    compare, votes = pairs.compared, count_votes(pairs, rules.backend("judge"))
    if comparison.a.turns == comparison.b.turns:
        return Rejection(RejectionReason.IDENTICAL, "both conversations say the same")
    shown = select_turns(comparison, compare)
    if isinstance(shown, Rejection):
        return shown
    messages = _make_messages(comparison, shown, prompt, compare, rules)
    views = _make_views(comparison, shown, prompt, compare, rules) if rules.by_people("judge") else {}
    verdicts = []
    for vote in range(votes):
        for step, order in enumerate(ORDERS):
            address = Address(comparison.scenario.index, comparison.task, step=2 * vote + step)
            later = range(1, votes) if vote == 0 else ()
            same_prompt = tuple(msgspec.structs.replace(address, step=2 * other + step) for other in later)
            question = Question(
                address,
                messages[order],
                ORACLE.name,
                "judge",
                prompt.schema,
                pairs.logprobs,
                same_prompt,
                form=prompt.form(VERDICT),
                several=votes > 1,
                view=views.get(order),
            )
            said = yield from ask(question, rules, _read)
            verdicts.append(_make_verdict(said, order, vote, told=pairs.logprobs is not None))
    return verdicts


def count_votes(pairs: PairSettings, judge: BackendConfig | None) -> int:
    """Return the number of votes of a judge on a pair in each order.

    It is one if people answer for the judge, or if a model answers at temperature 0 without seeds of its own:
    further votes would be paid copies of the first, counted as independent evidence.
    """
    if judge is not None and (judge.BY_PEOPLE or (judge.repeats and not judge.draws_anew)):
        return 1
    return pairs.votes


def _make_verdict(said: _Said | Rejection, order: Order, vote: int, *, told: bool) -> Verdict:
    """Return a verdict about sides from a verdict about texts. `told`: log probabilities were requested."""
    if isinstance(said, Rejection):
        verdict = Verdict(order=order, vote=vote, choice=None, text=said.detail)
        return msgspec.structs.replace(verdict, logprob_p=None, logprob_gap="unread") if told else verdict
    verdict = Verdict(order=order, vote=vote, choice="a" if (said.choice == 1) == (order == "ab") else "b")
    if not told:
        return verdict
    found = read_preference(said.text, said.choice, said.tokens)
    if isinstance(found, str):
        return msgspec.structs.replace(verdict, logprob_p=None, logprob_gap=found)
    bounds = found if order == "ab" else found.other
    if bounds.low == bounds.high:
        return msgspec.structs.replace(verdict, logprob_p=bounds.low)
    p = bounds.preference
    gap: str | UnsetType = UNKNOWN_SIDE if p is None else UNSET
    return msgspec.structs.replace(
        verdict, logprob_p=p, logprob_gap=gap, logprob_bounds=(bounds.low, bounds.high)
    )


class _Said(NamedTuple):
    """A verdict about the texts in the order shown, with the answer and its tokens."""

    choice: Choice
    text: str
    tokens: Sequence[Token] | None


def _read(reply: Reply) -> _Said | Rejection:
    """Return the better text, 1 or 2; else a rejection whose detail is the beginning of the answer."""
    said = read_verdict(reply.text, finish_reason=reply.finish_reason, refusal=reply.refusal)
    if said is not None:
        return _Said(said, reply.text, reply.tokens)
    return unread(reply, (reply.refusal or reply.text)[:_SHOWN])


# The turns that both sides share, and each side's own.
_ShownTurns = tuple[tuple[Turn, ...], tuple[Turn, ...], tuple[Turn, ...]]


def select_turns(comparison: CandidatePair, compare: Compare) -> _ShownTurns | Rejection:
    """Return the turns to show to a judge: the shared ones, and those of each side."""
    a, b = comparison.a, comparison.b
    if compare == "conversation":
        return (), a.turns, b.turns
    prefix = count_shared_turns(a, b)
    if min(len(a.turns), len(b.turns)) <= prefix or a.turns[prefix].role != b.turns[prefix].role:
        return Rejection(
            RejectionReason.NO_RESPONSES, "one of them ends where they part: there is no response to judge"
        )
    judged, role = defaults_of(comparison.space).judged, a.turns[prefix].role
    if judged is not None and role != judged:
        return Rejection(
            RejectionReason.NO_RESPONSES,
            f"they part at a turn of the {role.lower()}, and the judge compares {judged.lower()}s",
        )
    return a.turns[:prefix], a.turns[prefix : prefix + 1], b.turns[prefix : prefix + 1]


def _list_common_variables(comparison: CandidatePair, shown: _ShownTurns, compare: Compare) -> dict[str, Any]:
    """Return the variables of the judge's template that are the same in each order."""
    return {
        **describe_space(comparison.space, comparison.scenario),
        "next_speaker": shown[1][0].role,
        **scenario_variables(comparison.scenario),
        "compare": compare,
    }


def _fence_candidates(
    comparison: CandidatePair, shown: _ShownTurns, compare: Compare, rules: Rules, first: int, second: int
) -> dict[str, str]:
    """Return the guarded texts of the judge's template, and their mark, which is the same in each order."""
    noun = "Interaction" if compare == "conversation" else "Response"
    texts = {
        "guarded": ("Interaction", shown[0]),
        "guarded_1": (f"{noun} 1", shown[first]),
        "guarded_2": (f"{noun} 2", shown[second]),
    }
    return fence_texts(rules.seed, comparison.scenario.index, comparison.task, texts)


def _make_messages(
    comparison: CandidatePair, shown: _ShownTurns, prompt: Prompting, compare: Compare, rules: Rules
) -> dict[Order, tuple[Message, ...]]:
    """Return the judge's messages in each order. They have the texts plain (by the names of PLAIN) and
    guarded."""
    known = _list_common_variables(comparison, shown, compare)
    messages: dict[Order, tuple[Message, ...]] = {}
    for order in ORDERS:
        first, second = (1, 2) if order == "ab" else (2, 1)
        plain = {
            "conversation": transcript_of(shown[0]),
            "conversation_1": transcript_of(shown[first]),
            "conversation_2": transcript_of(shown[second]),
            "response_1": shown[first][0].text,
            "response_2": shown[second][0].text,
        }
        messages[order] = prompt.messages(
            {
                **known,
                **{name: plain[name] for name in PLAIN[compare]},
                **_fence_candidates(comparison, shown, compare, rules, first, second),
            }
        )
    return messages


def _make_views(
    comparison: CandidatePair, shown: _ShownTurns, prompt: Prompting, compare: Compare, rules: Rules
) -> dict[Order, View]:
    """Return what a person who judges sees, in each order: the texts side by side, and the template's
    criteria without its lines about marks."""
    known = _list_common_variables(comparison, shown, compare) | _fence_candidates(
        comparison, shown, compare, rules, 1, 2
    )
    without = {name: "" for name in (*PLAIN[compare], *GUARDED) if name not in ("compare", "fence")}
    both = list_utterances(shown[1]), list_utterances(shown[2])
    view = View(
        turns=list_utterances(shown[0]),
        text=words_without_marks(prompt.messages({**known, **without}), known["fence"]),
        offers=(Offer("better", 1, "The first"), Offer("better", 2, "The second")),
        questions=(("better", "Which is better?"),),
    )
    return {"ab": view.with_(sides=both), "ba": view.with_(sides=both[::-1])}
