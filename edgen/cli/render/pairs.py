"""What `edgen pairs` made, as JSON and in lines, and why something of it is short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.api.pairs import PairedRun
from edgen.cli.render.figures import format_cost
from edgen.core.figures import describe_counts
from edgen.preferences.render import render

# Comparisons that end without a question to the judge.
_NEVER_SHOWN = ("identical", "no_responses")
_JUDGE_KEYS = ("planned", "rejected", "failed", "pending", "calls", "tokens", "cost_usd")


def paired_as_json(paired: PairedRun) -> dict[str, Any]:
    facts: dict[str, Any] = {"run": str(paired.run), "by": paired.by, "scenarios": paired.scenarios}
    if (judged := paired.judged) is not None:
        facts |= {"judge": judged.judge, "model": paired.model, "compare": paired.compare}
        facts |= {"votes": paired.votes, "judged": judged.judged}
        plain = msgspec.to_builtins(judged)
        facts |= {key: plain[key] for key in _JUDGE_KEYS}
    if (made := paired.made) is not None:
        facts["pairs"] = {"train": made.train, "test": made.test}
        facts["left_out"] = dict(sorted(made.left_out.items()))
        facts |= {"simulated": made.simulated, "file": str(paired.file)}
    if paired.bias is not None:
        facts["report"] = paired.bias
    return facts


def render_pairs(paired: PairedRun) -> Iterator[str]:
    """A line a fact."""
    made, judged = paired.made, paired.judged
    yield f"run        {paired.run}{' (simulated)' if made is not None and made.simulated else ''}"
    yield f"scenarios  {paired.scenarios} with conversations to compare"
    if judged is not None:
        unasked = {key: n for key, n in judged.rejected.items() if key in _NEVER_SHOWN}
        abstained = {key: n for key, n in judged.rejected.items() if key not in _NEVER_SHOWN}
        yield f"judge      {paired.model} ({judged.judge})"
        yield f"planned    {judged.planned}"
        yield f"judged     {judged.judged}"
        yield f"not shown  {describe_counts(unasked)}"
        yield f"abstained  {describe_counts(abstained)}"
        yield f"failed     {describe_counts(judged.failed)}"
        yield f"pending    {judged.pending}"
        yield f"calls      {judged.calls.made} made, {judged.calls.replayed} replayed"
        yield f"cost       {format_cost(judged.cost_usd)}"
    if made is not None:
        yield f"labelled   {made.train + made.test} by {paired.by}"
        yield f"left out   {describe_counts(dict(sorted(made.left_out.items())))}"
        yield f"split      {made.train} train, {made.test} test"
        yield f"pairs      {paired.file}"
    if paired.bias is not None:
        yield from render(paired.bias)
