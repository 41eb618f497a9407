"""The metrics of a comparison: each is a ratio of two columns of sums, with a definition and a source.

A data set has no plan, calls or prices, and may lack roles, ends, probabilities and labels. Metrics that need
these do not apply to it; they are left out, and the comparison names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from edgen.core.text import join_list
from edgen.core.values import ROLES
from edgen.evaluation.compared import Compared
from edgen.evaluation.comparison.arms import ArmSums
from edgen.evaluation.comparison.result import NotCompared
from edgen.evaluation.measure import list_comparisons
from edgen.evaluation.shared import Faults, leave_out

Kind = Literal["share", "number", "usd"]
BLOCK = 20  # conversations
BLOCK_METRICS = ("distinct_1", "distinct_2", "distinct_3", "self_bleu")


class MetricSpec(msgspec.Struct, frozen=True):
    """A metric: the sum of `top` divided by the sum of `bottom`."""

    name: str  # stable name, as in the result's JSON
    title: str  # for people
    kind: Kind  # share, number or usd
    top: str  # the column of the numerator
    bottom: str  # the column of the denominator
    definition: str  # for people
    within: str | None = None  # a scenario counts if this column is not 0 (in both arms); None: `bottom`
    group: str = ""  # the section that shows it
    what: str = ""  # the units of the average, if `bottom` does not name them
    about: Literal["", "end", "probability", "cost"] = ""
    """The fact that an arm must state to have the metric; "" for none."""
    in_blocks: bool = False
    """Whether its columns are computed only after all arms are known."""

    @property
    def over(self) -> str:
        """The units of the average."""
        return (
            self.what
            or _OVER.get(self.bottom)
            or f"turns of the {self.bottom.removeprefix('turns of ').lower()}"
        )

    @property
    def counts(self) -> str:
        """The column that must not be 0 for a scenario to count."""
        return self.within or self.bottom


_OVER = {
    "settled": "settled conversations",
    "accepted": "accepted conversations",
    "words": "words",
    "with_probability": "accepted conversations with a probability",
    "compared": "accepted conversations",
    "blocks": "blocks",
}
_OF_RUNS = ("outcomes", "effort")
_NOTHING = "the data contain nothing for this metric"
_WORDS = "Words are counted as in `edgen stats`."


def list_metric_specs(tables: Sequence[ArmSums], faults: Faults) -> Iterator[MetricSpec]:
    """Yield the metrics of these arms in the order of display, without metrics that occur in no arm and
    without those of measures in `faults`. A further measure of a plugin that raises is noted there."""
    for group, specs in (
        ("outcomes", _list_outcome_specs(tables)),
        ("effort", _list_effort_specs(tables)),
        ("conversations", _list_conversation_specs(tables)),
        ("measures", _list_measure_metrics(tables, faults)),
        ("diversity", _DIVERSITY),
    ):
        for spec in specs:
            yield msgspec.structs.replace(spec, group=group, in_blocks=specs is _DIVERSITY)


def _list_outcome_specs(tables: Sequence[ArmSums]) -> Iterator[MetricSpec]:
    definition = "Accepted conversations among those that are settled (accepted, rejected or failed)."
    yield MetricSpec("accepted", "accepted", "share", "accepted", "settled", definition)
    for status, why in (
        ("rejected", "the model answered, and no answer was a conversation"),
        ("failed", "the service gave no answer"),
    ):
        for column in _list_occurring(tables, f"{status}_"):
            reason = column.removeprefix(f"{status}_")
            definition = f"Settled conversations that were {status} ({why}) for this reason: {reason}."
            yield MetricSpec(column, f"{status}: {reason}", "share", column, "settled", definition)


def _list_effort_specs(tables: Sequence[ArmSums]) -> Iterator[MetricSpec]:
    definition = (
        "Answers in the ledger for each settled conversation: including repeated requests and the turns of "
        "two agents."
    )
    yield MetricSpec("calls", "calls a conversation", "number", "calls", "settled", definition)
    definition = "Accepted conversations in which the reader fixed anything."
    yield MetricSpec("repaired", "repaired", "share", "repaired", "accepted", definition)
    for column in _list_occurring(tables, "repair_"):
        kind = column.removeprefix("repair_")
        definition = f"Accepted conversations in which the reader fixed this: {kind}."
        yield MetricSpec(column, f"repair: {kind}", "share", column, "accepted", definition)
    # Scenarios without an accepted conversation count, too, with their tokens and cost.
    definition = (
        "Prompt and completion tokens of all answers, rejected ones included, for each accepted conversation."
    )
    yield MetricSpec("tokens", "tokens per accepted", "number", "tokens", "accepted", definition, "settled")
    definition = (
        "US dollars for all answers at the job's price, rejected ones included, for each accepted "
        "conversation."
    )
    if any(table.priced for table in tables):
        yield MetricSpec(
            "cost", "cost per accepted", "usd", "cost", "accepted", definition, "settled", about="cost"
        )


def _list_occurring(tables: Iterable[ArmSums], beginning: str) -> list[str]:
    return sorted({name for table in tables for name in table.list_names(beginning)})


def _list_conversation_specs(tables: Sequence[ArmSums]) -> Iterator[MetricSpec]:
    """Yield the metrics of conversations. With a teacher and a student, only the teacher's share is shown;
    otherwise each role's."""
    roles = tuple(dict.fromkeys(role for table in tables for role in table.roles))
    leading = roles[:1] if {*roles} == {*ROLES} else roles
    definition = "Turns of an accepted conversation, without an end marker on a turn of its own."
    yield MetricSpec("turns", "turns a conversation", "number", "turns", "accepted", definition)
    for role, name in ((role, role.lower()) for role in roles):
        yield MetricSpec(
            f"{name}_words", f"words a turn, {name}", "number", f"words of {role}", f"turns of {role}",
            f"Words in a turn of the {name}. {_WORDS}",
        )  # fmt: skip
    for role, name in ((role, role.lower()) for role in leading):
        yield MetricSpec(
            f"{name}_share", f"{name}'s words", "share", f"words of {role}", "words",
            f"The {name}'s words among all words of accepted conversations. {_WORDS}",
        )  # fmt: skip
    if any(table.find_total("with_probability") for table in tables):
        yield from _list_probability_specs(tables[0].arm.probability_words)
    definition = "Accepted conversations that a role ends with the end marker."
    yield MetricSpec("ended", "end marker spoken", "share", "ended", "accepted", definition, about="end")
    for role, name in ((role, role.lower()) for role in leading):
        definition = f"Accepted conversations that the {name} ends with the end marker."
        yield MetricSpec(
            f"ended_by_{name}",
            f"ended by the {name}",
            "share",
            f"ended by {role}",
            "accepted",
            definition,
            about="end",
        )


def _list_measure_metrics(tables: Sequence[ArmSums], faults: Faults) -> Iterator[MetricSpec]:
    """Yield the metrics of measures, without metrics that occur in no arm."""
    for measure in dict.fromkeys(measure for table in tables for measure in table.arm.measures):
        prefix = f"{measure.name}: "
        columns = [column.removeprefix(prefix) for column in _list_occurring(tables, prefix)]
        compared: Iterable[Compared] = ()
        try:
            compared = [] if measure.name in faults else [*list_comparisons(measure, columns)]
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            leave_out(measure.name, error, faults)
        for one in compared:
            if one.bottom in columns:
                top, bottom = f"{prefix}{one.top}", f"{prefix}{one.bottom}"
                yield MetricSpec(one.name, one.title, one.kind, top, bottom, one.definition, what=one.over)


def _list_probability_specs(words: str) -> Iterator[MetricSpec]:
    """Yield the metrics of the conversations' probability; `words` is its name."""
    definition = f"Mean {words}, as the model gave it, over conversations that have one."
    yield MetricSpec(
        "probability",
        "probability",
        "number",
        "probability",
        "with_probability",
        definition,
        about="probability",
    )
    definition = "Accepted conversations without a probability that is a number from 0 to 1."
    yield MetricSpec(
        "no_probability",
        "no probability",
        "share",
        "without_probability",
        "accepted",
        definition,
        about="probability",
    )


_CUT = (
    f"Mean over blocks of {BLOCK} scenarios, with one conversation each. Each is cut to the length of the "
    "shortest one that an arm has in its place, so all arms are measured on equally many words and on the "
    "beginnings of conversations. The figures depend on which arms are compared and differ from those of "
    "`edgen stats`."
)
_DIVERSITY = (
    MetricSpec(
        "near_duplicates", "near-duplicates", "share", "near_duplicates", "compared",
        "Accepted conversations that nearly repeat another one of the arm, found as in `edgen stats` "
        "(MinHash: Broder 1997) among equally many scenarios of each arm. Scenarios that near-duplicates "
        "link in either of the two compared arms form one cluster.",
    ),
    *(
        MetricSpec(
            f"distinct_{n}", f"distinct-{n} in blocks", "number", f"distinct_{n}", "blocks",
            f"Different {n}-grams of words among all {n}-grams (Li et al. 2016, arXiv:1510.03055). {_CUT}",
        )
        for n in (1, 2, 3)
    ),
    MetricSpec(
        "self_bleu", "self-BLEU in blocks", "number", "self_bleu", "blocks",
        "BLEU-4 of each conversation against the others of its block; higher is more alike (Zhu et al. 2018, "
        f"arXiv:1802.01886). {_CUT}",
    ),
)  # fmt: skip


def applies(spec: MetricSpec, table: ArmSums) -> bool:
    """Return whether a metric applies to an arm. Every metric applies to a run."""
    return table.arm.data is None or _explain_inapplicable(spec, table) is None


def _explain_inapplicable(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the reason why a metric does not apply to a data set; None if it does."""
    if spec.group in _OF_RUNS:
        return "a data set does not record how it was made"
    if spec.about == "end":
        return None if table.arm.marks_ends else "its layout does not mark who ends a conversation"
    if spec.about == "probability":
        return None if table.find_total("with_probability") else "it holds no probabilities"
    if (role := _find_silent_role(spec, table)) is not None:
        return f"no {role} speaks in it"
    if spec.group == "measures" and not table.find_total(spec.bottom):
        return _NOTHING
    return None


def _find_silent_role(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the role that a metric is about, if it never speaks in this arm."""
    for column in (spec.top, spec.bottom):
        role = column.removeprefix("words of ").removeprefix("turns of ")
        if role != column and not table.find_total(f"turns of {role}"):
            return role
    return None


def select_applicable(
    tables: Sequence[ArmSums], specs: Sequence[MetricSpec]
) -> tuple[list[MetricSpec], list[NotCompared]]:
    """Return the metrics that apply to the first arm and at least one other, and the metrics left out, with
    reasons."""
    if all(table.arm.data is None for table in tables):
        return list(specs), []
    kept: list[MetricSpec] = []
    left_out: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for spec in specs:
        lacking = {one.arm.label: why for one in tables if (why := _explain_lack(spec, one)) is not None}
        if tables[0].arm.label in lacking or len(lacking) > len(tables) - 2:
            key = tuple(lacking), join_list(dict.fromkeys(lacking.values()))
            left_out.setdefault(key, []).append(spec.title)
        else:
            kept.append(spec)
    return kept, [
        NotCompared(what=", ".join(titles), arms=arms, why=why) for (arms, why), titles in left_out.items()
    ]


def _explain_lack(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the reason why a metric does not apply to an arm, or has no data there; None if it has."""
    why, role = _explain_inapplicable(spec, table), _find_silent_role(spec, table)
    has_any = spec.in_blocks or bool(table.find_total(spec.bottom))
    if has_any and role is None and (why is None or table.arm.data is None):
        return None
    return why or (_NOTHING if role is None else f"no {role} speaks in it")
