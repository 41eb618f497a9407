"""`edgen estimate`: the expected cost of a job. It makes no call and writes nothing.

`--json` prints one object; the structs of `edgen.api.estimating` explain its keys.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.cli import options as o
from edgen.cli.output import align_columns, print_value
from edgen.core.text import format_compact_duration, format_dollars, quantity
from edgen.cost.options import EstimateOptions

if TYPE_CHECKING:
    from edgen.api.estimating import BackendPrice, EstimatedNeeds, EstimateInterval, ExistingWork, JobEstimate
    from edgen.cost.estimate import CapForecast


def command(
    job: o.JobArgument,
    options: EstimateOptions,
    json: o.JsonOption = False,
) -> None:
    """Estimate the calls, tokens, money and time that a job will take.

    Each figure has an interval and its basis. The command calls and writes nothing and needs no key. Stored
    answers of the job's run are not counted. Earlier runs of the same templates narrow the intervals; without
    any, lengths of answers are assumed.

    Example: edgen estimate jobs/quickstart.yaml -n 5000 --via batch
    """
    print_estimate(job, options, json=json)


def print_estimate(job: Path, options: EstimateOptions, *, json: bool) -> None:
    """Print the estimate of a job."""
    from edgen.api.estimating import estimate_job

    estimate = estimate_job(job, options)
    print_value(estimate, _render(estimate), json=json)


_WIDE = 79  # columns of the longest line


def _render(estimate: JobEstimate) -> Iterator[str]:
    batch, there = estimate.via == "batch", estimate.already
    how = "by the provider's batch service" if batch else "call by call"
    conversations = quantity(estimate.conversations, "conversation")
    yield f"{estimate.job}: {conversations}, {estimate.to_make:,} still to make, {how}"
    yield ""
    yield from _render_table(estimate)
    yield ""
    if there.calls or there.out.calls or there.other_form:
        yield from label_text("already", _describe_already(there))
    if not _list_values(estimate.calls)[3:]:
        yield from label_text(
            "at most", "no limit: a backend has no max_tokens, so its answers have no limit"
        )
    names: dict[str, list[str]] = {}
    for price in estimate.prices:
        names.setdefault(f"{price.model}, {_describe_price(price, batch=batch)}", []).append(price.backend)
    for text, backends in names.items():
        yield from label_text("price", f"{', '.join(backends)}: {text}")
    arms = estimate.arms or {}
    if len(arms) > 1:
        for arm, own in arms.items():
            yield from label_text("arm", f"{arm}: {_describe_uses(own)}")
    for number, sentence in enumerate(estimate.basis.said):
        yield from label_text("" if number else "rests on", sentence)
    for cap in estimate.budget:
        yield from label_text("budget", _describe_forecast(cap, batch=batch))


def label_text(label: str, text: str) -> list[str]:
    """Return a label followed by a text, wrapped so that its lines start in one column.

    A part in backquotes stays on one line, so that it can be copied.
    """
    whole = re.sub(r"`[^`]*`", lambda match: match[0].replace(" ", "\0"), text)
    wide = min(_WIDE, max(40, shutil.get_terminal_size().columns))
    lines = textwrap.wrap(whole, wide - 10, break_long_words=False, break_on_hyphens=False)
    return [f"{'' if number else label:<10}{line}".replace("\0", " ") for number, line in enumerate(lines)]


def _render_table(estimate: JobEstimate) -> Iterator[str]:
    wide, cost = len(_list_values(estimate.calls)), estimate.cost_usd
    rows = {"": ["low", "expected", "high", "at most"][:wide]}
    tokens = {"prompt tokens": estimate.tokens.prompt, "completion tokens": estimate.tokens.completion}
    for label, interval in {"calls": estimate.calls, **tokens}.items():
        rows[label] = [f"{value:,}" for value in _list_values(interval)]
    rows["US dollars"] = (
        ["unknown"] * wide
        if cost is None
        else [format_dollars(v).removeprefix("$") for v in _list_values(cost)]
    )
    if estimate.seconds is not None:
        rows["time"] = [format_compact_duration(value) for value in _list_values(estimate.seconds)]
    return align_columns([[label, *cells, *[""] * (wide - len(cells))] for label, cells in rows.items()])


def _list_values(interval: EstimateInterval) -> list[float]:
    most = [interval.at_most] if isinstance(interval.at_most, int | float) else []
    return [interval.low, interval.expected, interval.high, *most]


def _describe_already(there: ExistingWork) -> str:
    if there.other_form:
        return (
            "a run of that name exists, made by another version of this job; how many of its answers can be "
            "reused is unknown"
        )
    tokens = quantity(there.tokens.prompt + there.tokens.completion, "token")
    cost = "" if there.cost_usd is None else f", {format_dollars(there.cost_usd)}"
    count, out = there.conversations, there.out
    said = (
        f"{quantity(count, 'conversation')} of these {'exists' if count == 1 else 'exist'}; the run has "
        f"used {quantity(there.calls, 'call')}, {tokens}{cost} in total"
    )
    if out.calls:
        most = f"{format_dollars(out.cost_usd)}" if out.cost_usd else quantity(out.tokens, "token")
        said += (
            f"; {quantity(out.calls, 'request')} {'is' if out.calls == 1 else 'are'} at the provider, for "
            f"{most} at most, and counted only under `at most`"
        )
    return said


def _describe_price(price: BackendPrice, *, batch: bool) -> str:
    if price.prompt is None:
        return "price unknown (set `price:` of the backend)"
    share = f", times {price.batch:g} by batch" if batch else ""
    kinds = {"read from": price.cache_read, "written to": price.cache_write}
    cached = "".join(
        f", ${dollars:g} for those {what} the prompt cache"
        for what, dollars in kinds.items()
        if isinstance(dollars, int | float)
    )
    known = "; ".join(filter(None, (price.source, price.date)))
    return (
        f"${price.prompt:g} and ${price.completion:g} for a million prompt and completion "
        f"tokens{cached}{share} ({known or 'the job says so'})"
    )


def _describe_uses(needs: EstimatedNeeds) -> str:
    cost, money = needs.cost_usd, ""
    tokens = int(needs.tokens.prompt.expected + needs.tokens.completion.expected)
    if cost is not None:
        low, expected, high = (format_dollars(value).removeprefix("$") for value in _list_values(cost)[:3])
        money = f", ${expected} ({low} to {high})"
    return f"{quantity(int(needs.calls.expected), 'call')}, {quantity(tokens, 'token')}{money}"


def _describe_forecast(cap: CapForecast, *, batch: bool) -> str:
    """Describe what a cap pays for, in a sentence or two."""
    money = cap.key == "max_cost" or cap.key.startswith("budget per_")
    of, spent = (
        format_dollars(value).removeprefix("$") if money else f"{value:,.0f}"
        for value in (cap.cap, cap.charged)
    )
    used = f", of which {spent} is used{' or set aside' if cap.out else ''}," if cap.charged else ""
    if not cap.binds:
        return f"limits.{cap.key} {of} has no effect, since every price is 0"
    if cap.enough_at_most:
        return f"limits.{cap.key} {of}{used} covers the maximum of everything, if no call is lost"
    if cap.enough:
        part = "covers everything, even at the high end"
    elif cap.share >= 1:
        part = "covers the expected total, but not the high end"
    else:
        part = f"covers about {cap.share:.0%} of the conversations"
    rounds = (
        "; the maximum of each request is reserved while its batch is open, so several rounds may be needed"
    )
    return f"limits.{cap.key} {of}{used} {part}{rounds if batch else ''}"
