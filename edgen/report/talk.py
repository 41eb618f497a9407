"""Pictures of the conversations: how long, whose words, which words, how probable, how they keep to their scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edgen.pairing.intervals import Estimate
from edgen.quality.results import Distribution, Quality
from edgen.report import charts
from edgen.report.charts import Axis, Bar, Curve, Shape, Span
from edgen.report.model import Part, Picture, Table
from edgen.report.pictures import series
from edgen.report.text import mean_of, named, number, percent, share_of, signed

_WHOLE = Axis("", number, low=0, whole=True)
_SHARE = Axis("", lambda value: percent(value, 0), low=0, high=1)
_PROBABILITY = Axis("", lambda value: f"{value:g}", low=0, high=1)
_ROLES = {"Teacher": "blue", "Student": "orange"}
_KINDS = {"match": "sky", "mismatch": "purple", "untold": "muted"}  # no arm's colours
_MOST_CURVES = 7
_MOST_BARS = 24


def shapes(parts: Sequence[Part], name: str) -> Iterator[Picture]:
    """Lengths and balance."""
    yield from _distribution(
        "turns", "Turns a conversation", _each(parts, name, lambda q: q.lengths.turns), _WHOLE,
        "Look for a pile at one end: talks cut off at a limit, or ended at once.",
    )  # fmt: skip
    yield from _distribution(
        "words", "Words a conversation", _each(parts, name, lambda q: q.lengths.words), _WHOLE,
        "Look for a long tail to the right: a few very long ones weigh most in training.",
    )  # fmt: skip
    by_role = [
        Shape(_with(role, part.label), found, _ROLES.get(role, "grey"))
        for part in parts
        for role, found in part.quality.lengths.words_per_turn.items()
    ]
    yield from _distribution(
        "words-a-turn", "Words a turn, by role", by_role, _WHOLE,
        "Look for how far apart the two are: a teacher that lectures, a student that only nods.",
    )  # fmt: skip
    yield from _distribution(
        "balance", "The teacher's share of the words", _each(parts, name, lambda q: q.balance.teacher_words), _SHARE,
        "One half is an even talk. Look for conversations near the right edge: nobody but the teacher speaks.",
    )  # fmt: skip
    yield from _bars(
        "endings", "Where the end marker stands", parts, lambda q: q.overview.markers,
        "suffix: behind the last turn's text; own turn: a turn of its own; inside: within a text; absent: nobody said it.",
    )  # fmt: skip
    yield from _bars(
        "repairs", "Repaired while the replies were read", parts, lambda q: q.overview.repairs,
        "Conversations with each repair. Look for one that most need: the template could ask for what is meant.",
    )  # fmt: skip
    yield from _bars(
        "defects", "Debris that is still in the turns", parts, lambda q: q.overview.defects,
        "Conversations with each kind that edgen validate finds. Look for any: what stands here was accepted as it is.",
    )  # fmt: skip


def language(parts: Sequence[Part]) -> Iterator[Picture]:
    """Type-token growth, distinct n-grams, self-BLEU."""
    grown = [part for part in parts if part.quality.diversity.growth]
    drawn = grown[:_MOST_CURVES]
    if drawn:
        yield _growth(drawn, len(grown))
    for place, (title, get, caption) in enumerate(_VARIETY):
        rows = [
            Bar(_with(label, part.label), value, number(value), series(arm))
            for arm, part in enumerate(parts)
            for label, value in get(part.quality).items()
            if value is not None
        ]
        if rows:
            yield _barred(f"variety-{place}", title, rows, caption)


_VARIETY: tuple[tuple[str, Callable[[Quality], dict[str, float | None]], str], ...] = (
    (
        "Distinct n-grams",
        lambda q: {f"distinct-{n}": value for n, value in q.diversity.distinct_in_blocks.items()},
        "Different n-grams for each n-gram, in equally long blocks, so that the size of the data does not matter. 1: nothing is said twice. These are blocks of words over all conversations; a comparison of arms has blocks of scenarios, so its values are others.",
    ),
    (
        "Self-BLEU",
        lambda q: {f"self-BLEU of {number(q.diversity.self_bleu_sampled)} conversations": q.diversity.self_bleu},
        "How much of a conversation is in others too, from 0 to 1; lower is more varied. Over all conversations; a comparison of arms has it within blocks, where it is another number.",
    ),
)  # fmt: skip


def _growth(drawn: Sequence[Part], total: int) -> Picture:
    rows, said, cells = [], [], []
    for place, part in enumerate(drawn):
        found = part.quality.diversity
        label = f"{part.label}: " if part.label else ""
        if found.heaps_k is not None and found.heaps_beta is not None:
            ends = (found.growth[0].tokens, found.growth[-1].tokens)
            fitted = [found.heaps_k * end**found.heaps_beta for end in ends]
            rows.append(Curve(ends, fitted, series(place), dashed=True))
        rows.append(Curve([g.tokens for g in found.growth], [g.types for g in found.growth], series(place)))
        beta = "" if found.heaps_beta is None else f", exponent {number(found.heaps_beta)}"
        said.append(f"{label}{number(found.types)} different among {number(found.tokens)} words{beta}")
        cells += [(part.label, number(g.tokens), number(g.types)) for g in found.growth]
    alternative = f"Curve of different words against words, on logarithmic axes. {'; '.join(said)}."
    return Picture(
        name="growth",
        title="Growth of the vocabulary",
        svg=charts.curves("growth", alternative, rows, "words", "different words"),
        caption=f"Dashed: Heaps' law fitted{' to each, in its colour' if len(drawn) > 1 else ''}. Look for a curve that bends away below it: new conversations bring no new words. "
        f"{'; '.join(said)}." + (f" The first {len(drawn)} of {total} arms." if total > len(drawn) else ""),
        label=alternative,
        tables=(Table(head=("", "words", "different words"), rows=tuple(cells)),),
        legend=tuple((series(place), part.label) for place, part in enumerate(drawn)) if total > 1 else (),
    )


def understanding(parts: Sequence[Part]) -> Iterator[Picture]:
    """The stated probability, by match of preferences; calibration."""
    stated = [part for part in parts if part.quality.probability.all.distribution.n]
    by_kind = [
        Shape(_with(kind, part.label), found.distribution, _KINDS.get(kind, "grey"))
        for part in stated
        for kind, found in part.quality.probability.by.items()
    ]
    yield from _distribution(
        "probability", "Probability of understanding, by preferences", by_kind, _PROBABILITY,
        "match: both prefer the same way of teaching and learning; mismatch: they do not; untold: no keyword tells. "
        "Look for a mismatch that lies further left.",
    )  # fmt: skip
    means = [
        Span(_with(kind, part.label), *_ends(found.mean), mean_of(found.mean), _KINDS.get(kind, "grey"))
        for part in stated
        for kind, found in part.quality.probability.by.items()
        if found.mean is not None
    ]
    differences = [
        f"{f'{part.label}: ' if part.label else ''}{mean_of(part.quality.probability.difference, worded=signed)}"
        for part in stated
        if part.quality.probability.difference is not None
    ]
    if means:
        yield _spanned(
            "probability-means", "Mean probability", means, _PROBABILITY,
            (
                "Lines are 95% intervals: look for some that do not overlap."
                if any(row.low is not None for row in means)
                else "There are too few conversations for intervals."
            )
            + (f" Match minus mismatch: {'; '.join(differences)}." if differences else ""),
        )  # fmt: skip
    judges = [
        (part, judge)
        for part in parts
        for judge in (part.quality.calibration or {}).get("judges", ())
        if judge["calibration"]
    ]
    for place, (part, judge) in enumerate(judges):
        yield _calibration(place, part, judge)


def _calibration(place: int, part: Part, judge: dict[str, Any]) -> Picture:
    found = judge["calibration"]
    bins = [b for b in found["bins"] if b.get("n") and b.get("share")]
    said = f"{number(found['n'])} pairs judged by {judge['model'] or judge['judge']}; expected calibration error {number(found['expected_calibration_error'])}"
    alternative = f"Reliability curve. {said}."
    rows = [
        Curve((0, 1), (0, 1), "muted", dashed=True),
        Curve([b["mean"] for b in bins], [b["share"]["value"] for b in bins]),
    ]
    return Picture(
        name=f"calibration-{place}",
        title=_with("Calibration", part.label),
        svg=charts.curves(
            f"calibration-{place}", alternative, rows, "probability said", "share that came true", log=False
        ),
        caption=f"On the dashed line, what is said with probability p holds in a share p. {said}.",
        label=alternative,
        tables=(
            Table(
                head=("said", "pairs", "mean said", "came true"),
                rows=tuple(
                    (
                        f"{b['from']:g} to {b['to']:g}",
                        number(b["n"]),
                        number(b["mean"]),
                        number(b["share"]["value"]),
                    )
                    for b in bins
                ),
            ),
        ),
    )


_QUESTIONS = {
    "student_asks": "Student asks for its way",
    "student_reaction": "Student's reaction shows",
    "teacher_reaction": "Teacher's reaction shows",
    "teacher_keeps": "Teacher keeps to its way",
    "teacher_leaves": "Teacher goes over to the other's",
}


_HABITS: tuple[tuple[str, Callable[[Quality], Estimate | None]], ...] = (
    ("Says what only the other knows", lambda q: q.leaks.share),
    ("Gives the answer when asked", lambda q: q.answers.rate),
    ("Teacher's turns, no question", lambda q: q.answers.telling),
)


def behaviour(parts: Sequence[Part]) -> Iterator[Picture]:
    """Adherence by whoever told it, leaks, answers."""
    judges = list(dict.fromkeys(found.by for part in parts for found in part.quality.adherence))
    for place, judge in enumerate(judges):
        rows = [
            Span(_with(said, part.label), *_ends(estimate), share_of(estimate), series(number_))
            for field, said in _QUESTIONS.items()
            for number_, part in enumerate(parts)
            for found in part.quality.adherence
            if found.by == judge and (estimate := getattr(found, field)) is not None
        ]
        if rows:
            by = "keywords" if judge == "keywords" else f"the judge {judge}"
            notes = {f.note for part in parts for f in part.quality.adherence if f.by == judge and f.note}
            yield _spanned(
                f"adherence-{place}", f"Keeping to the scenario, by {by}", rows, _SHARE,
                "Shares of the conversations that it can be told of, with 95% intervals. Look for what rarely shows: "
                "the scenario asks for it and the model does not do it. " + " ".join(sorted(notes)),
            )  # fmt: skip
    rows = [
        Span(_with(words, part.label), *_ends(estimate), share_of(estimate), series(place))
        for words, get in _HABITS
        for place, part in enumerate(parts)
        if (estimate := get(part.quality)) is not None
    ]
    if rows:
        yield _spanned(
            "habits", "Leaks and answers", rows, _SHARE,
            f"{_about_leaks(parts)} Look for a teacher that tells more often than it asks.",
        )  # fmt: skip


def _about_leaks(parts: Sequence[Part]) -> str:
    """What a leak is depends on who knows what."""
    protocols = {part.job["protocol"] for part in parts}
    said = []
    if "oneshot" in protocols:
        said.append(
            "Where one prompt writes both sides (oneshot), the writer knows both descriptions: a leak is its slip, "
            "which a student or a teacher could not make."
        )
    if protocols != {"oneshot"}:
        said.append(
            "Where each side has a prompt of its own (selfplay), it is told nothing of the other's description: look for "
            "any leak, which is a guess or a prompt that says too much."
        )
    return " ".join(said)


def sides(parts: Sequence[Part]) -> Iterator[Picture]:
    """What of the test side was to be seen in train."""
    rows = []
    for place, part in enumerate(parts):
        found = part.quality.leakage
        for said, shared in (
            ("topic", found.topic), ("persona", found.persona), ("topic with persona", found.topic_and_persona),
        ):  # fmt: skip
            if shared is not None and shared.share is not None:
                words = f"{percent(shared.share)} ({number(shared.shared_conversations)} of {number(shared.test_conversations)})"
                rows.append(
                    Bar(_with(f"{said} is in train too", part.label), shared.share, words, series(place))
                )
        if found.near_duplicates is not None and found.topic is not None and found.topic.test_conversations:
            many, total = found.near_duplicates, found.topic.test_conversations
            words = f"{percent(many / total)} ({number(many)} of {number(total)})"
            rows.append(
                Bar(_with("nearly the same one is in train", part.label), many / total, words, series(place))
            )
    if rows:
        yield _barred(
            "leakage", "Test conversations that train knows", rows,
            "Which of these matters depends on what is to be generalised to; split.by in the job keeps topics or personas "
            "apart. Nearly the same conversation on both sides is bad for any use.",
        )  # fmt: skip


def _each(parts: Sequence[Part], name: str, get: Callable[[Quality], Distribution]) -> list[Shape]:
    return [Shape(part.label or name, get(part.quality), series(place)) for place, part in enumerate(parts)]


def _with(words: str, label: str) -> str:
    return f"{words} · {label}" if label else words


def _ends(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)


def _distribution(
    name: str, title: str, rows: Sequence[Shape], axis: Axis, caption: str
) -> Iterator[Picture]:
    rows = [row for row in rows if row.distribution.n]
    if not rows:
        return
    said = "; ".join(
        f"{row.label}: median {axis.tick(row.distribution.median or 0.0)}, "
        f"5% to 95%: {axis.tick(row.distribution.p5 or 0.0)} to {axis.tick(row.distribution.p95 or 0.0)}"
        for row in rows
    )
    alternative = f"Distribution of: {title}. {said}."
    yield Picture(
        name=name,
        title=title,
        svg=charts.distributions(name, alternative, rows, axis),
        caption=f"{caption} {charts.read(rows)}",
        label=alternative,
        tables=tuple(_tables(rows, axis)),
    )


def _tables(rows: Sequence[Shape], axis: Axis) -> Iterator[Table]:
    summary = []
    for row in rows:
        found = row.distribution
        values = (
            found.mean, found.sd, found.min, found.p5, found.p25, found.median, found.p75, found.p95, found.max,
        )  # fmt: skip
        summary.append((row.label, number(found.n), *(number(value) for value in values)))
    yield Table(
        head=("", "n", "mean", "sd", "least", "5%", "25%", "median", "75%", "95%", "most"),
        rows=tuple(summary),
    )
    if len(rows) <= 3:
        for row in rows:
            bins = row.distribution.bins
            yield Table(
                head=(row.label, "count"),
                rows=tuple((_bin(b.low, b.high, axis), number(b.count)) for b in bins),
            )


def _bin(low: float, high: float, axis: Axis) -> str:
    if axis.whole and high - low == 1:
        return number(low)
    return f"{axis.tick(low)} to {axis.tick(high - 1) if axis.whole else axis.tick(high)}"


def _bars(
    name: str, title: str, parts: Sequence[Part], get: Callable[[Quality], dict[str, int]], caption: str
) -> Iterator[Picture]:
    """Shares of the conversations of each kind, the largest first, every arm beside every other."""
    drawn = [(place, part) for place, part in enumerate(parts) if part.quality.overview.records]
    largest: dict[str, float] = {}
    for _, part in drawn:
        for kind, count in get(part.quality).items():
            if count:
                largest[kind] = max(largest.get(kind, 0.0), count / part.quality.overview.records)
    rows = []
    for kind in sorted(largest, key=lambda kind: (-largest[kind], kind)):
        for place, part in drawn:
            count, total = get(part.quality).get(kind, 0), part.quality.overview.records
            said = f"{number(count)} ({percent(count / total)})"
            rows.append(Bar(_with(named(kind), part.label), count / total, said, series(place)))
    if rows:
        # whole kinds, so that an arm is not missing beside the others
        most = max(_MOST_BARS // len(drawn), 3)
        yield _barred(name, title, rows, caption, most * len(drawn))


def _barred(name: str, title: str, rows: Sequence[Bar], caption: str, most: int | None = None) -> Picture:
    """The first `most` of the rows (None: all) as bars; the table has all."""
    drawn = rows[:most]
    if len(rows) > len(drawn):
        caption += f" The first {len(drawn)} of {len(rows)} bars; the numbers have all."
    alternative = f"Bars: {title}. {'; '.join(f'{row.label}: {row.said}' for row in drawn)}."
    return Picture(
        name=name,
        title=title,
        svg=charts.bars(name, alternative, drawn, top=1),
        caption=caption,
        label=alternative,
        tables=(Table(head=("", "value"), rows=tuple((row.label, row.said) for row in rows)),),
    )


def _spanned(name: str, title: str, rows: Sequence[Span], axis: Axis, caption: str) -> Picture:
    alternative = (
        f"Dots with 95% intervals: {title}. {'; '.join(f'{row.label}: {row.said}' for row in rows)}."
    )
    return Picture(
        name=name,
        title=title,
        svg=charts.spans(name, alternative, rows, axis),
        caption=caption.strip(),
        label=alternative,
        tables=(Table(head=("", "value (95% interval)"), rows=tuple((row.label, row.said) for row in rows)),),
    )
