"""`edgen preview --diff`: the same scenarios under two prompts, side by side."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.cli.output import note, print_json, print_line, print_raw, safe
from edgen.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from edgen.engine.plan import Plan
    from edgen.engine.reach import Reach
    from edgen.prompting.diff import Pieces

_TWO_COLUMNS = 80  # columns of a terminal from which on two texts stand side by side


class Side(msgspec.Struct, frozen=True):
    """One of the two that are compared: what it is called, and its plan."""

    label: str
    plan: Any
    reach: Any  # which files its job may name


def show(
    job: Path,
    reach: Reach,
    plans: Mapping[str | None, Plan],
    other: str,
    count: int,
    overrides: list[str] | None,
    warnings: list[str],
    *,
    json: bool,
) -> None:
    """Print what differs between the job (its first arm, where it has arms) and `other`."""
    first, plan = next(iter(plans.items()))
    left = Side(first if first is not None else str(job), plan, reach)
    right = _other(left, plans, other, overrides)
    from edgen.cli.preview import warnings_of
    from edgen.engine.differing import differing, settings

    warnings = list(dict.fromkeys([*warnings, *warnings_of({None: right.plan}), *_unlike(left, right)]))
    number = min(count, left.plan.job.conversations, right.plan.job.conversations)
    compared = [_compared(left, right, index) for index in range(number)]
    theirs, ours = (settings(side.plan.job, side.plan.space, side.reach) for side in (left, right))
    changed = differing(theirs, ours)
    if json:
        found = {"left": left.label, "right": right.label, "job": changed, "differences": compared}
        print_json({**found, "warnings": warnings})
        return
    for warning in warnings:
        note(f"edgen: {warning}.")
    for key, (mine, other_one) in changed.items():
        print_line(f"{key} is {mine} in the first, {other_one} in the second")
    if changed:
        print_line()
    for one in compared:
        _print(left, right, one)


def _other(left: Side, plans: Mapping[str | None, Plan], other: str, overrides: list[str] | None) -> Side:
    """What is compared with: an arm, another job, or the job with another template."""
    if other in plans:
        if other == left.label:
            raise UsageError(f"--diff {other}: this is the first arm, which the others are compared with.")
        return Side(other, plans[other], left.reach)
    if other.endswith((".yaml", ".yml")) or (Path(other).is_file() and not other.endswith(".j2")):
        from edgen.engine.load import load_plans
        from edgen.engine.reach import Reach

        reach = Reach.of(Path(other), overrides or (), outside=left.reach.root is None)
        _, others = load_plans(Path(other), overrides, reach)
        arm, plan = next(iter(others.items()))
        return Side(other if arm is None else f"{other}, arm {arm}", plan, reach)
    arms = [arm for arm in plans if arm]
    plan, named = _with_template(left.plan, left.reach, other, arms)
    return Side(other, plan, named)


def _with_template(plan: Plan, reach: Reach, other: str, arms: list[str]) -> tuple[Plan, Reach]:
    """The plan with another template in the place of one of its own, and what it may name: that one, too. A path
    starts where the person is."""
    from edgen import resources
    from edgen.engine.load import plan_of
    from edgen.loading import nearest

    use, equals, name = other.rpartition("=")
    if equals and use not in plan.prompts:
        raise UsageError(f"--diff {other}: this job has no prompt '{use}'{nearest(use, plan.prompts)}.")
    path = resources.find("prompts", name)
    if not path.exists() and "/" in name:
        raise UsageError(f"--diff {other}: there is no such file.")
    if not path.exists():
        known = [*arms, *resources.shipped("prompts")]
        raise UsageError(f"--diff {other}: there is no such arm, template or job file{nearest(name, known)}.")
    if not equals:
        use = _use_of(path, plan, other)
    job, named = plan.job, name if "/" not in name and path.stem == name else str(path.absolute())
    reach = replace(reach, typed=reach.typed | {named})
    if use == "default":
        return plan_of(msgspec.structs.replace(job, prompt=named), reach), reach
    return plan_of(msgspec.structs.replace(job, prompts={**job.prompts, use: named}), reach), reach


def _use_of(path: Path, plan: Plan, other: str) -> str:
    """In the place of which of the plan's templates one stands, by what it says and uses."""
    if plan.job.protocol == "oneshot":
        return "default"
    from edgen.engine.catalogue import load
    from edgen.protocols.stage import SECRETS

    prompt = load(path)
    if prompt.front.expects == "probability" and "closing" in plan.prompts:
        return "closing"
    sides = [role.lower() for role, names in SECRETS.items() if prompt.variables_used & set(names)]
    if prompt.front.expects in (None, "turn") and len(sides) == 1:
        return sides[0]
    raise UsageError(
        f"--diff {other}: in the place of which prompt? Say so, as in --diff {next(iter(plan.prompts))}={other} "
        f"(there: {', '.join(plan.prompts)})."
    )


def _unlike(left: Side, right: Side) -> Iterator[str]:
    """Why the two do not draw the same scenarios, if they do not."""
    a, b = left.plan, right.plan
    told = {
        "seed": (a.job.seed, b.job.seed),
        "design": (a.job.design, b.job.design),
        "space": (f"{a.job.space} ({a.space_sha256[:8]})", f"{b.job.space} ({b.space_sha256[:8]})"),
    }
    if a.space_sha256 == b.space_sha256:
        del told["space"]
    other = [
        f"{key} is {one} in one and {two} in the other" for key, (one, two) in told.items() if one != two
    ]
    if other:
        yield f"the two draw other scenarios, so the prompts differ by that too: {'; '.join(other)}"


def _compared(left: Side, right: Side, index: int) -> dict[str, Any]:
    """One scenario's prompts of both sides, by use, with their diff."""
    from edgen.engine.rendering import rendered
    from edgen.prompting.diff import unified, whole

    mine, theirs = rendered(left.plan, index), rendered(right.plan, index)
    prompts = {}
    for use in dict.fromkeys((*mine, *theirs)):
        a, b = (whole(messages.get(use, ())) for messages in (mine, theirs))
        diff = unified(a, b, left.label, right.label)
        prompts[use] = {"left": a, "right": b, "same": a == b, "diff": diff}
    scenarios = [msgspec.to_builtins(side.plan.scenario(index)) for side in (left, right)]
    same = scenarios[0] == scenarios[1]
    return {"scenario": scenarios[0], "other_scenario": None if same else scenarios[1], "prompts": prompts}


def _print(left: Side, right: Side, compared: dict[str, Any]) -> None:
    from edgen.cli.preview import print_scenario

    print_scenario(compared["scenario"], f" ({left.label})" if compared["other_scenario"] else "")
    if compared["other_scenario"]:
        print_scenario(compared["other_scenario"], f" ({right.label})")
    width = shutil.get_terminal_size().columns
    for use, texts in compared["prompts"].items():
        named = "prompt" if use == "default" else use
        if texts["same"]:
            print_line(f"--- {named}: the same in both")
        elif width < _TWO_COLUMNS:
            print_line(texts["diff"])
        else:
            print_line(f"--- {named}")
            print_raw(_columns(texts["left"], texts["right"], left.label, right.label, width))
    print_line()


def _columns(left: str, right: str, left_name: str, right_name: str, width: int) -> str:
    """Both texts side by side, changed words in colour where there is colour, else in brackets."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from edgen.prompting.diff import rows

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, no_color=not colour, highlight=False)
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    for name in (left_name, right_name):
        table.add_column(Text(safe(name)), ratio=1, overflow="fold")
    for row in rows(left, right):
        table.add_row(
            _side(row.left, "red", "[-", "-]", colour), _side(row.right, "green", "{+", "+}", colour)
        )
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _side(pieces: Pieces | None, style: str, opens: str, closes: str, colour: bool) -> Text:
    from rich.text import Text

    text = Text()
    for piece, changed in pieces or ():
        shown = safe(piece)
        if changed and not colour:
            text.append(f"{opens}{shown}{closes}")
        else:
            text.append(shown, f"bold {style}" if changed else "")
    return text
