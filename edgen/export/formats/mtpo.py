"""Rows for multi-turn preference optimisation (MTPO, arXiv 2405.14655): two whole conversations of one
scenario and a soft preference, with ties and contradicted verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from edgen.export.formats.shared.pair_rows import have_equal_messages, is_near_end, list_messages
from edgen.export.formats.shared.trials import DATASETS
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    ComparedPair,
    Label,
    OracleSignal,
    Pair,
    ScenarioColumns,
    evidence_of,
    find_label_signal,
)

TIE = 0.5


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per pair."""
    given = (compared.pair.label for compared in run.compared())
    # All labels of a run's pairs have one source, whose signal is also used for pairs without a label.
    source = next((label for label in given if label is not None), None)
    columns = ScenarioColumns(run.space)
    for compared in run.compared():
        yield _make_row(compared, chat, columns, source)


def compute_soft_preference(pair: Pair, source: Label | None) -> float | None:
    """Return the probability that side a is preferred, by the source of the pairs' labels; None if that
    source has no signal, or if the user requested fewer pairs. A judge's log probabilities take precedence
    over its verdicts. Otherwise a tie is one half; a verdict that the strengths contradict counts unchanged.
    `source` is any label of the same run."""
    if pair.label is None and pair.left_out not in ("tie", "contradicted"):
        return None
    if (told := _read_logprob_preference(pair, source)) is not None:
        return told
    if pair.label is not None:
        return pair.label.p if pair.label.chosen == "a" else 1 - pair.label.p
    if pair.left_out == "tie":
        return TIE
    signal = find_label_signal(
        pair, source
    )  # strengths come from a judge's verdicts, so they contradict only these
    return None if signal is None else signal.p


def _read_logprob_preference(pair: Pair, source: Label | None) -> float | None:
    """Return the preference for side a by log probabilities of the labelling judge; None without any."""
    if source is None or source.by != "oracle":
        return None
    signal = find_label_signal(pair, source)
    if not isinstance(signal, OracleSignal) or signal.logprobs is UNSET:  # rollouts are a mean over verdicts
        return None
    return signal.logprobs.p


def _make_row(
    compared: ComparedPair, chat: Chat, columns: ScenarioColumns, source: Label | None
) -> Row | LeftOut:
    pair = compared.pair
    p = compute_soft_preference(pair, source)
    if p is None:
        return LeftOut(pair.left_out or "no_label")
    if is_near_end(compared, chat):
        return LeftOut("turns_left")
    first, second = (list_messages(one, compared, chat) for one in (compared.a, compared.b))
    if isinstance(first, LeftOut):
        return first
    if isinstance(second, LeftOut):
        return second
    if have_equal_messages(first, second):
        return LeftOut("identical")
    value = {
        "first": first,
        "second": second,
        "p": p,
        "scenario": {"index": compared.scenario.index, **columns.read_texts(compared.scenario)},
        "id": pair.id,
    }
    return Row(pair.split, value, evidence=evidence_of(compared, pair.label or source))


FORMAT = Format(
    name="mtpo",
    needs=("pairs",),
    summary="Two whole conversations of a scenario and a soft preference, for MTPO and other methods that "
    "learn from p.",
    rows=rows,
    tables={
        "first": "all messages of one conversation",
        "second": "all messages of the other one",
        "p": "the probability that the first is preferred; 0.5 is a tie",
        "scenario": "the scenario of both: its index, and a text for each dimension of the space and each "
        "field of its entries, empty where there is none",
        "id": "the pair",
    },
    use="""\
from datasets import load_dataset
row = load_dataset("THIS_FOLDER", split="train")[0]
loss = -(row["p"] * log_sigmoid(SCORE(row["first"]) - SCORE(row["second"])) + ...)""",
    layout=FormatLayout(level="conversation"),
    card=FormatCard(
        notes=(
            "The order of the two conversations does not depend on which is preferred.",
            (
                "Where the judge was asked for log probabilities (pairs.logprobs), p is theirs, the mean of "
                "both orders. If a "
                "service listed one side alone, p is the bound nearer to even, and is theirs only if both "
                "bounds favour the same side. The two points that follow are about other pairs."
            ),
            "Where the two orders of a judge disagree, p is 0.5, whatever their mean.",
            (
                "p is the source's own preference. A verdict that goes against the strengths of the "
                "scenario's candidates (contradicted) gives no label in other formats; here it has its own "
                "p, as ties have."
            ),
            "Pairs below the margin or beyond the number given to `edgen pairs` are left out.",
        ),
        tried=(DATASETS("load_dataset took the folder."),),
        tags=("mtpo", "preference"),
    ),
)
