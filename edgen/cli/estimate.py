"""`edgen estimate`: what a job will cost, before it is started; calls nothing and writes nothing.

`--json` prints one object: `job`, `via`, `conversations` (wanted), `to_make` (of these, as expected); then, of what is
still to make and not at the provider already, `calls`, `tokens` {`prompt`, `completion`} and `cost_usd` (null where a price is missing), each with `low`,
`expected`, `high` and, where every backend has max_tokens, `at_most` (of all that is still to make, if no call is lost);
`seconds` (how long that takes online: `low`, `expected`, `high`; null by batch);
`prices` (a backend each: US dollars per million
tokens, `batch`, `date`, `source`); `basis` {`answers`: runs, assumed or some assumed; `runs`; `prompts`; `said`}; `already`
{`conversations` of the plan; `calls`, `tokens`, `cost_usd` of the whole run; `out` {`calls`, `tokens`, `cost_usd`}, requests
at the provider with the most that they can take; `other_form`}; `budget`, a cap each {`key`, `cap`, `charged`, `out` (set
aside, of `charged`), `share` of the conversations, `enough` at the high end, `enough_at_most`, `binds`}; with arms `arms`, by name, with the same keys.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from edgen.cli.options import JobArgument, JsonOption, OutsideOption, SetOption, ViaOption, scenario_range
from edgen.cli.output import print_json, print_line
from edgen.durations import span
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.config import Price
    from edgen.engine.estimating import Already, Budget, Estimate
    from edgen.engine.predicting import Range
    from edgen.engine.usage import Used

_WIDE = 100


def command(
    job: JobArgument,
    count: Annotated[
        int | None, typer.Option("-n", metavar="N", min=1, help="Conversations, instead of the job's number.")
    ] = None,
    set_: SetOption = None,
    allow_outside: OutsideOption = False,
    part: Annotated[
        str | None, typer.Option("--range", metavar="A:B", help="Only scenarios A to B - 1.")
    ] = None,
    via: ViaOption = "online",
    runs: Annotated[
        Path, typer.Option("--runs", metavar="DIR", help="Where earlier runs are, and the job's own.")
    ] = Path("outputs"),
    output: Annotated[
        Path | None, typer.Option("-o", metavar="RUN", help="The job's own run.  [default: DIR/<name>]")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what a job will cost: calls, tokens, money and time, each with an interval, and what that rests on.

    It calls nothing, needs no key and writes nothing. What the job's run has stored already is not counted
    again. Earlier runs of the same templates make the interval narrow; without any, answers are assumed.

    Example: edgen estimate jobs/quickstart.yaml -n 5000 --via batch
    """
    from edgen.engine.reach import Reach

    overrides = list(set_ or [])
    if count is not None:
        overrides.append(f"conversations={count}")
    from edgen.engine.estimating import budgets, estimate
    from edgen.engine.load import load_plans

    chosen = scenario_range(part)
    reach = Reach.of(job, overrides, outside=allow_outside)
    whole, plans = load_plans(job, overrides, reach)
    run = RunDir(output if output is not None else runs / whole.name)
    run.refuse_links()
    each = {
        arm: estimate(plan, reach, runs, run.of(arm), via=via, part=chosen) for arm, plan in plans.items()
    }
    caps = budgets(whole, each, run, via)
    if json:
        print_json({"job": whole.name, "via": via, **_facts(each, caps)})
        return
    for line in _lines(whole.name, each, caps, via):
        print_line(line)


def _facts(each: dict[str | None, Estimate], caps: list[Budget]) -> dict[str, Any]:
    """What `--json` prints: the sums, then the arms, each with the same keys."""
    from edgen.engine.estimating import prices

    facts = {
        "conversations": sum(one.conversations for one in each.values()),
        "to_make": round(sum(one.to_make for one in each.values())),
        **_uses(list(each.values())),
        "prices": [{"backend": name, "model": model, **_price(price)} for name, model, price in prices(each)],
        "basis": _basis(list(each.values())),
        "already": _already([one.already for one in each.values()]),
        "budget": [msgspec.to_builtins(cap) for cap in caps],
    }
    if None not in each:
        facts["arms"] = {
            arm: {
                "conversations": one.conversations,
                "to_make": round(one.to_make),
                **_uses([one]),
                "basis": _basis([one]),
                "already": _already([one.already]),
            }
            for arm, one in each.items()
        }
    return facts


def _uses(each: list[Estimate]) -> dict[str, Any]:
    """Calls, tokens and money as intervals, and at most. Arms are added as if all erred alike."""
    uses, most = _added(each)

    def interval(key: str, digits: int | None = None) -> dict[str, float]:
        values = {name: getattr(level, key) for name, level in zip(uses._fields, uses, strict=True)}
        if most is not None:
            values["at_most"] = getattr(most, key)
        return {name: round(value, digits) for name, value in values.items()}

    priced = all(one.priced for one in each)
    return {
        "calls": interval("calls"),
        "tokens": {"prompt": interval("prompt"), "completion": interval("completion")},
        "cost_usd": interval("usd", 6) if priced else None,
        "seconds": _seconds(each),
    }


def _seconds(each: list[Estimate]) -> dict[str, float] | None:
    """How long it takes online: arms go one after the other."""
    durations = [one.duration for one in each if one.duration is not None]
    if len(durations) < len(each):
        return None
    from edgen.engine.duration import Duration

    whole = functools.reduce(Duration.plus, durations)
    return {"low": round(whole.low), "expected": round(whole.expected), "high": round(whole.high)}


def _added(each: list[Estimate]) -> tuple[Range, Used | None]:
    from edgen.engine.usage import total

    uses, most = each[0].uses, each[0].most
    for one in each[1:]:
        uses = uses.plus(one.uses)
        most = None if most is None or one.most is None else total((most, one.most))
    return uses, most


def _price(price: Price | None) -> dict[str, Any]:
    if price is None:
        return dict.fromkeys(("prompt", "completion", "batch", "date", "source"))
    plain: dict[str, Any] = msgspec.to_builtins(price)
    return plain


def _basis(each: list[Estimate]) -> dict[str, Any]:
    """What it rests on: `answers` are from `runs` or `assumed`."""
    runs = {str(run.path): len(run.scenarios) for one in each for run in one.runs}
    from_runs = [bool(one.runs) for one in each]
    return {
        "answers": "runs" if all(from_runs) else "some assumed" if any(from_runs) else "assumed",
        "runs": [{"run": path, "scenarios": count} for path, count in runs.items()],
        "prompts": "; ".join(dict.fromkeys(one.prompts.how for one in each)),
        "said": _said(each),
    }


def _said(each: list[Estimate]) -> list[str]:
    """The sentences, each once, with the arms it is about where that is not all."""
    arms: dict[str, list[str]] = {}
    for one in each:
        for sentence in one.basis:
            arms.setdefault(sentence, []).append(one.job.name.rpartition(".")[2])
    return [
        sentence if len(names) == len(each) else f"{', '.join(names)}: {sentence}"
        for sentence, names in arms.items()
    ]


def _already(each: list[Already]) -> dict[str, Any]:
    costs = [one.cost_usd for one in each if one.cost_usd is not None]
    return {
        "conversations": sum(one.conversations for one in each),
        "calls": round(sum(one.used.calls for one in each)),
        "tokens": {
            "prompt": round(sum(one.used.prompt for one in each)),
            "completion": round(sum(one.used.completion for one in each)),
        },
        "cost_usd": sum(costs) if costs else None,
        "out": {
            "calls": sum(one.out.calls for one in each),
            "tokens": sum(one.out.tokens for one in each),
            "cost_usd": round(sum(one.out.usd for one in each), 6),
        },
        "other_form": any(one.other_form for one in each),
    }


def _lines(name: str, each: dict[str | None, Estimate], caps: list[Budget], via: str) -> list[str]:
    """The same for a person: a table, then what it rests on."""
    from edgen.engine.estimating import prices

    facts = _facts(each, caps)
    how = "by the provider's batch service" if via == "batch" else "call by call"
    there = facts["already"]
    lines = [
        f"{name}: {_counted(facts['conversations'], 'conversation')}, {facts['to_make']:,} still to make, {how}",
        "",
        *_table(facts),
        "",
    ]
    if there["calls"] or there["out"]["calls"] or there["other_form"]:
        lines += _labelled("already", _there(there))
    if "at_most" not in facts["calls"]:
        lines += _labelled("at most", "no limit: a backend without max_tokens answers as long as it likes")
    names: dict[str, list[str]] = {}
    for backend, model, price in prices(each):
        names.setdefault(f"{model}, {_priced(price, via)}", []).append(backend)
    for text, backends in names.items():
        lines += _labelled("price", f"{', '.join(backends)}: {text}")
    if len(each) > 1:
        lines += [
            line
            for arm, one in each.items()
            for line in _labelled("arm", f"{arm}: {_in_short(_uses([one]))}")
        ]
    for number, sentence in enumerate(facts["basis"]["said"]):
        lines += _labelled("" if number else "rests on", sentence)
    for cap in caps:
        lines += _labelled("budget", _reach(cap, via))
    return lines


def _table(facts: dict[str, Any]) -> list[str]:
    columns = ("low", "expected", "high", "at_most")[: 4 if "at_most" in facts["calls"] else 3]
    rows = {"calls": facts["calls"]}
    rows |= {f"{kind} tokens": values for kind, values in facts["tokens"].items()}
    shown = [["", *(column.replace("_", " ") for column in columns)]]
    shown += [[label, *(f"{values[column]:,}" for column in columns)] for label, values in rows.items()]
    cost = facts["cost_usd"]
    shown.append(
        ["US dollars", *("unknown" if cost is None else _dollars(cost[column]) for column in columns)]
    )
    if (seconds := facts["seconds"]) is not None:
        shown.append(["time", *(span(seconds[column]) if column in seconds else "" for column in columns)])
    widths = [max(len(row[i]) for row in shown) for i in range(len(columns) + 1)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in shown
    ]


def _dollars(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.4f}"


def _there(facts: dict[str, Any]) -> str:
    if facts["other_form"]:
        return "a run of that name is there, made by another form of this job; what of its answers fits is not known"
    tokens = facts["tokens"]["prompt"] + facts["tokens"]["completion"]
    cost = "" if facts["cost_usd"] is None else f", ${_dollars(facts['cost_usd'])}"
    count, out = facts["conversations"], facts["out"]
    said = (
        f"{_counted(count, 'conversation')} of these {'is' if count == 1 else 'are'} there; the run has used "
        f"{_counted(facts['calls'], 'call')}, {_counted(tokens, 'token')}{cost} in all"
    )
    if out["calls"]:
        most = f"${_dollars(out['cost_usd'])}" if out["cost_usd"] else _counted(out["tokens"], "token")
        said += (
            f"; {_counted(out['calls'], 'request')} {'is' if out['calls'] == 1 else 'are'} at the provider, for "
            f"{most} at most, and not counted above but under `at most`"
        )
    return said


def _priced(price: Price | None, via: str) -> str:
    if price is None:
        return "no price known (`price:` of the backend gives it one)"
    share = f", times {price.batch:g} by batch" if via == "batch" else ""
    known = "; ".join(filter(None, (price.source, price.date)))
    return (
        f"${price.prompt:g} and ${price.completion:g} for a million prompt and completion tokens{share}"
        f" ({known or 'the job says so'})"
    )


def _in_short(facts: dict[str, Any]) -> str:
    calls, cost = facts["calls"], facts["cost_usd"]
    tokens = sum(values["expected"] for values in facts["tokens"].values())
    money = (
        ""
        if cost is None
        else f", ${_dollars(cost['expected'])} ({_dollars(cost['low'])} to {_dollars(cost['high'])})"
    )
    return f"{_counted(calls['expected'], 'call')}, {_counted(tokens, 'token')}{money}"


def _reach(cap: Budget, via: str) -> str:
    """How far a cap reaches, in a sentence or two."""
    of = f"{_dollars(cap.cap)}" if cap.key == "max_cost" else f"{cap.cap:,.0f}"
    spent = f"{_dollars(cap.charged)}" if cap.key == "max_cost" else f"{cap.charged:,.0f}"
    used = f", of which {spent} is used{' or set aside' if cap.out else ''}," if cap.charged else ""
    if not cap.binds:
        return f"limits.{cap.key} {of} binds nothing, since every price is 0"
    if cap.enough_at_most:
        return f"limits.{cap.key} {of}{used} covers the most that all of it can use, if no call is lost"
    if cap.enough:
        reach = "covers all of it, at the high end too"
    elif cap.share >= 1:
        reach = "covers all of it as expected, and not at the high end"
    else:
        reach = f"covers about {cap.share:.0%} of the conversations"
    rounds = "; the most of each request is set aside while its batch is out, so it may take several rounds"
    return f"limits.{cap.key} {of}{used} {reach}{rounds if via == 'batch' else ''}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _labelled(label: str, text: str) -> list[str]:
    """A label and a text behind it, wrapped, its further lines below the first. What stands in backquotes stays on
    one line, since it is there to be copied."""
    import textwrap

    whole = re.sub(r"`[^`]*`", lambda match: match[0].replace(" ", "\0"), text)
    wrapped = textwrap.wrap(whole, _WIDE - 10, break_long_words=False, break_on_hyphens=False)
    return [
        f"{label if not number else '':<10}{line}".replace("\0", " ") for number, line in enumerate(wrapped)
    ]
