"""What the measures found in words, for a terminal of 80 columns: a section each, with how to read it.

Takes the values of `results` and gives lines without line ends. What a data set does not tell has no line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from edgen.pairing.intervals import Estimate
from edgen.quality.results import (
    Adherence,
    Coverage,
    Dimension,
    Distribution,
    MeasureName,
    Quality,
    Shared,
    Value,
)
from edgen.quality.significance import SIGNIFICANT

WIDTH = 80
_BARS = " ▁▂▃▄▅▆▇█"
_LABEL = 28
_FEW = 5

_NO_PAIRS = (
    "No pairs were judged here that the conversations' own probabilities could be held against; `edgen pairs` has "
    "a run's conversations judged."
)

ASKED = {
    "student_asks": "student asks for its way",
    "student_reaction": "student's reaction shows",
    "teacher_reaction": "teacher's reaction shows",
    "teacher_keeps": "teacher keeps its way",
    "teacher_leaves": "teacher goes over",
}


def render(quality: Quality, only: Collection[MeasureName] | None = None) -> Iterator[str]:
    """The sections in `only`, or all, and the notes."""
    yield f"{quality.name}: {_count(quality.overview.records, 'conversation')}"
    told: Collection[str] = _SECTIONS if only is None else only
    if not quality.overview.records:
        yield from _nothing(quality)
        told = {"coverage"} & set(told)
    for name, section in _SECTIONS.items():
        if name not in told:
            continue
        lines = list(section(quality))
        if not lines and only is not None:
            lines = list(_wrapped(_NO_PAIRS))
        if lines:
            yield ""
            yield name
            yield from (f"  {line}" for line in lines)
    if quality.notes:
        yield ""
    for note in quality.notes:
        yield from _wrapped(f"Note: {note}")


def _nothing(quality: Quality) -> Iterator[str]:
    """What there is to say where no conversation was accepted."""
    found = quality.coverage
    why = f" of {found.planned:,} planned ({_listed(found.reasons)})" if found.planned else ""
    left = "Only what became of the plan can be told." if found.planned else "There is nothing to measure."
    yield ""
    yield from _wrapped(f"Nothing was accepted{why}. {left}")


def _overview(quality: Quality) -> Iterator[str]:
    found = quality.overview
    yield _row("records", f"{found.records:,} ({_listed(found.splits, {'none': 'of no split'})})")
    if found.simulated:
        yield _row("simulated", f"{found.simulated:,}")
    names = {"own_turn": "as a turn of its own", "suffix": "as suffix"}
    yield _row("end marker", _listed(found.markers, names))
    yield _row("spoken by", _listed(found.ended_by))
    for label, counts in (("debris, in records", found.defects), ("repairs, in records", found.repairs)):
        yield from _rows(label, _listed(counts) if counts else "none")
    if found.unread:
        yield from _rows("no records", "; ".join(f"{n:,} × {why}" for why, n in found.unread.items()))


def _lengths(quality: Quality) -> Iterator[str]:
    found = quality.lengths
    heads = ("mean", "sd", "min", "5%", "median", "95%", "max")
    yield _columns("", heads)
    yield _numbers("turns", found.turns)
    yield _numbers("words", found.words)
    for role, distribution in found.words_per_turn.items():
        yield _numbers(f"words a turn, {role}", distribution)
    yield from _histogram("turns", found.turns)
    yield from _histogram("words", found.words)


def _balance(quality: Quality) -> Iterator[str]:
    found = quality.balance
    for label, shares in (("words", found.teacher_words), ("turns", found.teacher_turns)):
        if shares.mean is not None:
            spread = f"{shares.mean:.0%} of {label}, from {shares.p5:.0%} (5%) to {shares.p95:.0%} (95%)"
            yield _row(f"teacher's {label}", spread)
            yield from _histogram("  share, 0 to 1", shares)
    yield _row("begins", _listed(found.begins))


def _diversity(quality: Quality) -> Iterator[str]:
    found = quality.diversity
    yield _row("words", f"{found.tokens:,} tokens, {found.types:,} types")
    if found.distinct:
        orders = ", ".join(found.distinct)
        estimated = f", estimated to ± {found.distinct_error:.2%}" if found.distinct_error else ""
        yield _row(f"distinct-{orders}", f"{_threes(found.distinct)} (falls as data grow{estimated})")
    if found.distinct_in_blocks:
        label = f"  by {found.block_words:,} words"
        yield _row(label, f"{_threes(found.distinct_in_blocks)} (does not)")
    if found.heaps_k is not None and found.heaps_beta is not None:
        yield _row("growth", f"types = {found.heaps_k:.2f} × tokens^{found.heaps_beta:.2f} (Heaps)")
    if found.self_bleu is not None:
        yield _row(
            "self-BLEU", f"{found.self_bleu:.3f} over {found.self_bleu_sampled} sampled; lower is more varied"
        )


def _duplicates(quality: Quality) -> Iterator[str]:
    found = quality.duplicates
    yield from _wrapped(
        f"Nearly the same: at least {found.threshold} of all word 3-grams of two conversations are in both."
    )
    yield _row("the same to the letter", f"{found.exact:,} as an earlier one")
    yield _row("nearly the same", f"{found.near:,} = {_percent(found.share)}")
    within = ", ".join(
        f"{n:,} in {'no split' if name == 'none' else name}" for name, n in found.within.items()
    )
    if within:
        yield _row("  within", within)
    if {"train", "test"} <= found.within.keys():
        yield _row("  across", f"{found.across:,} of test with one in train")
    for pair in found.examples[:3]:
        yield _row("  for example", f"{_ends(pair.a)} {_ends(pair.b)} {pair.similarity:.2f}")


def _leakage(quality: Quality) -> Iterator[str]:
    found = quality.leakage
    if found.topic is None:
        yield "Nothing tells train and test apart, so there is nothing to leak."
        return
    for label, shared in (
        ("topics", found.topic), ("personas", found.persona), ("topic and persona", found.topic_and_persona),
    ):  # fmt: skip
        if shared is not None:
            yield _row(label, _shared(shared))
    yield _row("near-duplicates", f"{found.near_duplicates:,} conversations of test")
    yield from _wrapped(
        "A persona is both sides' preferences and reactions. Split by topic or persona and that row is 0."
    )


def _shared(found: Shared) -> str:
    share = "" if found.share is None else f": {found.share:.1%} of test"
    return f"{found.shared_groups:,} of test's {found.test_groups:,} in train{share}"


def _coverage(quality: Quality) -> Iterator[str]:
    found = quality.coverage
    plan = any(value.survived is not None for dimension in found.dimensions for value in dimension.values)
    of = "" if found.cells is None else f" of {found.cells:,}"
    cells = f"{found.planned:,} in {found.planned_cells:,}{of} cells"
    yield _row("planned" if plan else "there (no plan is known)", cells)
    if plan:
        yield _row("accepted", f"{found.accepted:,} in {found.accepted_cells:,} cells")
        yield _row("lost", f"{_count(found.lost_cells, 'cell')} of which nothing was accepted")
        for lost in found.lost[:2]:
            topic = f"a cell with the topic {_short(lost.cell['topic'], 24)}"
            yield from _rows("  for example", f"{topic}: {_listed(lost.reasons)}")
    head = f"{'planned':>9}{'accepted':>10}" if plan else f"{'there':>9}"
    yield f"{'evenness: 1 if all as often':<{_LABEL}}{'values':>8}{head}{'evenness':>10}"
    for dimension in found.dimensions:
        evenness = "–" if dimension.evenness is None else f"{dimension.evenness:.3f}"
        came = f"{dimension.planned:>9,}{dimension.seen:>10,}" if plan else f"{dimension.seen:>9,}"
        yield f"{dimension.name.replace('_', ' '):<{_LABEL}}{dimension.size:>8,}{came}{evenness:>10}"
    for dimension in found.dimensions:
        if found.accepted and dimension.unseen:
            several = ", ".join(_short(value, 40) for value in dimension.unseen[:3])
            more = ", …" if len(dimension.unseen) > 3 else ""
            yield from _rows(
                "planned, never accepted", f"{dimension.name.replace('_', ' ')}: {several}{more}"
            )
    yield from _survivors(found)


def _survivors(found: Coverage) -> Iterator[str]:
    """The values that lose the most, those that stand out first."""
    if found.accepted in (0, found.planned):
        return
    values = [
        (value, dimension)
        for dimension in found.dimensions
        for value in dimension.values
        if value.survived is not None and value.survived.value < 1
    ]
    values.sort(key=lambda item: (_p(item[0]), item[0].survived.value))  # type: ignore[union-attr]
    if not values:
        return
    yield "the lowest shares                                accepted        95%   p (Holm)"
    for value, dimension in values[:_FEW]:
        yield _survivor(value, dimension)
    if not any(_p(value) < SIGNIFICANT for value, _ in values):
        yield "No value stands out: with so many values some lose more by chance."


def _survivor(value: Value, dimension: Dimension) -> str:
    held = value.survived
    assert held is not None
    label = _short(f"{dimension.name.replace('_', ' ')}: {value.value}", 46)
    span = "" if held.low is None or held.high is None else f"{held.low:.0%}–{held.high:.0%}"
    p = "" if value.p_holm is None else f"{value.p_holm:.3f}"
    return f"{label:<47}{held.value:>9.1%}{span:>11}{p:>10}"


def _p(value: Value) -> float:
    return 1.0 if value.p_holm is None else value.p_holm


def _adherence(quality: Quality) -> Iterator[str]:
    for found in quality.adherence:
        kappa = "; kappa: agreement with the keywords" if found.agreement else ""
        yield f"by {found.by}, {_count(found.n, 'conversation')}{kappa}"
        yield from _adherence_rows(found)


def _adherence_rows(found: Adherence) -> Iterator[str]:
    for name, label in ASKED.items():
        share: Estimate | None = getattr(found, name)
        agreed = found.agreement.get(name)
        kappa = "" if agreed is None else f", kappa {agreed:.2f}"
        untold = f"; {found.untold[name]:,} untold" if found.untold.get(name) else ""
        yield _row(f"  {label}", f"{_percent(share)}{kappa}{untold}")
    if found.note:
        yield from _wrapped(found.note)


def _leaks(quality: Quality) -> Iterator[str]:
    found = quality.leaks
    yield from _wrapped(
        "A side says word for word what only the other side's description holds. Under `protocol: oneshot` one "
        "writer plays both and knows everything, and these are its slips; only under selfplay nobody could know."
    )
    yield _row("conversations", f"{found.conversations:,} = {_percent(found.share)}")
    if found.conversations:
        yield from _rows("of the other's", _listed({key.replace("_", " "): n for key, n in found.by.items()}))
        yield from _rows("for example", ", ".join(found.examples[:3]))


def _answers(quality: Quality) -> Iterator[str]:
    found = quality.answers
    yield _row("student asks for it", _count(found.asked, "turn"))
    yield _row("teacher gives it", f"{found.given:,} = {_percent(found.rate)}")
    yield _row("teacher tells", f"{_percent(found.telling)} without a question")


def _probability(quality: Quality) -> Iterator[str]:
    found = quality.probability
    yield _row("without one", f"{found.missing:,}")
    kinds = {"all": found.all, **found.by}
    for name, kind in kinds.items():
        if kind.mean is not None:
            label = {"match": "preferences match", "mismatch": "they do not", "untold": "untold"}.get(
                name, name
            )
            yield _row(
                label, f"{_number(kind.mean)}  {_sparkline(kind.distribution)}  n={kind.distribution.n:,}"
            )
    if found.difference is not None:
        yield _row("match minus mismatch", _number(found.difference, signed=True))
    if any(kind.mean is not None and kind.mean.low is None for kind in kinds.values()):
        yield "No interval where fewer than 5 scenarios are of a kind."
    if found.all.mean is not None:
        yield "The bars go from 0 to 1 in tenths."


def _calibration(quality: Quality) -> Iterator[str]:
    for judge in (quality.calibration or {}).get("judges", ()):
        found: Mapping[str, Any] = judge["calibration"]
        brier = found["brier"]
        yield from _rows(
            _short(judge["model"], _LABEL - 2),
            f"{_count(found['n'], 'pair')}, calibration error {found['expected_calibration_error']:.3f}, "
            f"Brier score {brier['value']:.3f} (a coin: 0.250)",
        )


_SECTIONS = {
    "overview": _overview, "lengths": _lengths, "balance": _balance, "diversity": _diversity, "duplicates": _duplicates,
    "leakage": _leakage, "coverage": _coverage, "adherence": _adherence, "leaks": _leaks, "answers": _answers,
    "probability": _probability, "calibration": _calibration,
}  # fmt: skip


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _rows(label: str, text: str) -> Iterator[str]:
    """A row that may run over several lines."""
    lines = textwrap.wrap(text, WIDTH - _LABEL - 2, break_on_hyphens=False) or [""]
    yield _row(label, lines[0])
    yield from (_row("", line) for line in lines[1:])


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH - 2, subsequent_indent="  " if text.startswith(" ") else "")


def _numbers(label: str, found: Distribution) -> str:
    if found.mean is None:
        return _row(label, "none")
    places = 1 if found.mean < 10_000 else 0
    sd = "–" if found.sd is None else f"{found.sd:,.{places}f}"
    whole = (found.min, found.p5, found.median, found.p95, found.max)
    return _columns(label, (f"{found.mean:,.{places}f}", sd, *(f"{number:,.0f}" for number in whole)))


def _columns(label: str, cells: Sequence[str]) -> str:
    widths = (7, 7, 5, 5, 7, 7, 9)
    return f"{label:<22}" + "".join(f" {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _histogram(label: str, found: Distribution) -> Iterator[str]:
    """The bars in a line, with the ends of the first and the last."""
    if len(found.bins) > 1:
        low, high = found.bins[0].low, found.bins[-1].high
        whole = high > 1
        ends = (f"{low:,.0f} ", f" {high - 1:,.0f}") if whole else ("", "")
        yield f"{label:<16}{ends[0]}{_sparkline(found)}{ends[1]}"


def _sparkline(found: Distribution) -> str:
    """A character a bar, as high as its count; what is there at all is seen."""
    most = max((bar.count for bar in found.bins), default=0)
    return "▕" + "".join(_BARS[-(-8 * bar.count // most)] if most else " " for bar in found.bins) + "▏"


def _percent(found: Estimate | None) -> str:
    """`12.3% [8.1%, 17.0%]`."""
    if found is None:
        return "nothing tells"
    if found.low is None or found.high is None:
        return f"{found.value:.1%}"
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]"


def _number(found: Estimate, *, signed: bool = False) -> str:
    form = "+.2f" if signed else ".2f"
    if found.low is None or found.high is None:
        return f"{found.value:{form}}"
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def _listed(counts: Mapping[str, int], names: Mapping[str, str] | None = None) -> str:
    """`12 Teacher, 6 Student`, what is 0 left out."""
    names = names or {}
    return ", ".join(f"{n:,} {names.get(key, key)}" for key, n in counts.items() if n) or "none"


def _threes(values: Mapping[str, float]) -> str:
    return " ".join(f"{value:.3f}" if value > 0.01 else f"{value:.2g}" for value in values.values())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(text: str, width: int) -> str:
    """The text on one line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _ends(name: str) -> str:
    """A long name with its middle left out: ids differ at their ends."""
    line = " ".join(name.split())
    return line if len(line) <= 22 else f"{line[:6]}…{line[-15:]}"
