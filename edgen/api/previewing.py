"""Scenarios and rendered prompts of a job, or their differences to another's, without calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core import resources
from edgen.core.errors import UsageError
from edgen.core.values import Message
from edgen.core.yaml_values import suggest_name
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.catalogue import load
from edgen.planning.job_differences import find_differences, list_settings_by_key
from edgen.planning.load import load_plans, make_plan
from edgen.planning.plan import Plan, RequestContent
from edgen.planning.speakers import find_doubts
from edgen.planning.unused_variables import describe_unused, find_unused
from edgen.prompting.diff import join_messages, unified_diff
from edgen.prompting.prompt import render_schema


class ScenarioPrompts(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its rendered messages: of one template (`messages`), or of several by use (`prompts`);
    and the schemas of the answers, by use."""

    arm: str | UnsetType = UNSET
    scenario: dict[str, Any]
    messages: tuple[Message, ...] | UnsetType = UNSET
    prompts: dict[str, tuple[Message, ...]] | UnsetType = UNSET
    schemas: dict[str, dict[str, Any]] | UnsetType = UNSET


class Preview(msgspec.Struct, frozen=True):
    """The first scenarios of each arm."""

    job: str  # name of the job
    cells: int | None  # combinations of values in the space; None if there are too many to count
    previews: tuple[ScenarioPrompts, ...]  # scenarios with their prompts
    warnings: tuple[str, ...]  # warnings, in sentences
    planned: int  # number of planned conversations
    space: str  # name of the space
    rounds: int = 1  # number of rounds of the first arm


class PromptPair(msgspec.Struct, frozen=True):
    """A prompt of both sides as texts, and their unified diff."""

    left: str
    right: str
    same: bool
    diff: str


class ScenarioDifference(msgspec.Struct, frozen=True):
    """One scenario of both sides; `other_scenario` only if the second side draws a different one."""

    scenario: dict[str, Any]
    other_scenario: dict[str, Any] | None
    prompts: dict[str, PromptPair]


class PreviewDifference(msgspec.Struct, frozen=True):
    """The difference between two previews. `job`: settings that differ, as (first, second)."""

    left: str
    right: str
    job: dict[str, tuple[Any, Any]]
    differences: tuple[ScenarioDifference, ...]
    warnings: tuple[str, ...]


class _Compared(NamedTuple):
    """One side of a comparison: its name, its plan, and the files that its job may name."""

    label: str
    plan: Plan
    allowed: AllowedFiles


class JobPreview:
    """A job to preview. Raises the errors of a job that cannot be loaded."""

    def __init__(self, job: Path, overrides: tuple[str, ...] = (), *, allow_outside: bool = False) -> None:
        self._path, self._overrides = job, overrides
        self._allowed = AllowedFiles.of(job, overrides, outside=allow_outside)
        _, self._plans = load_plans(job, list(overrides), self._allowed)

    def make_preview(self, count: int) -> Preview:
        """Return the first `count` scenarios of each arm, with their prompts."""
        plan = next(iter(self._plans.values()))
        shown = tuple(
            _render(arm, plan, index)
            for arm, plan in self._plans.items()
            for index in range(min(count, plan.job.conversations))
        )
        warnings = (
            *self._allowed.doubts,
            *_find_unused(self._plans.values()),
            *find_doubts(self._plans.values()),
        )
        job = plan.job
        return Preview(job.name, plan.cells, shown, warnings, job.conversations, job.space, plan.rounds.total)

    def compare(self, other: str, count: int) -> PreviewDifference:
        """Return the difference between the job (its first arm, if it has arms) and `other`: an arm, another
        job file, or a template in place of the job's.

        Raises UsageError for anything else.
        """
        first, plan = next(iter(self._plans.items()))
        left = _Compared(first or str(self._path), plan, self._allowed)
        right = self._find_other(left, other)
        warnings = [*_find_unused([*self._plans.values(), right.plan]), *_find_other_draws(left, right)]
        number = min(count, left.plan.job.conversations, right.plan.job.conversations)
        mine, theirs = (
            list_settings_by_key(side.plan.job, side.plan.space, side.allowed) for side in (left, right)
        )
        compared = tuple(_compare_scenario(left, right, index) for index in range(number))
        changed = find_differences(mine, theirs)
        return PreviewDifference(left.label, right.label, changed, compared, tuple(dict.fromkeys(warnings)))

    def _find_other(self, left: _Compared, other: str) -> _Compared:
        if other and other in self._plans:
            if other == left.label:
                raise UsageError(
                    f"--diff {other}: this is the first arm, with which others are compared; name another "
                    "arm."
                )
            return _Compared(other, self._plans[other], left.allowed)
        if other.endswith((".yaml", ".yml")) or (Path(other).is_file() and not other.endswith(".j2")):
            allowed = AllowedFiles.of(Path(other), self._overrides, outside=left.allowed.root is None)
            _, others = load_plans(Path(other), list(self._overrides), allowed)
            arm, plan = next(iter(others.items()))
            return _Compared(f"{other}, arm {arm}" if arm else other, plan, allowed)
        return self._replace_template(left, other)

    def _replace_template(self, left: _Compared, other: str) -> _Compared:
        """Return `left` with one of its templates replaced by another. A path starts in the current
        folder."""
        plan, allowed = left.plan, left.allowed
        use, equals, name = other.rpartition("=")
        if equals and use not in plan.prompts:
            raise UsageError(
                f"--diff {other}: this job has no prompt '{use}'{suggest_name(use, plan.prompts)}."
            )
        path = resources.find("prompts", name)
        if not path.exists() and "/" in name:
            raise UsageError(f"--diff {other}: there is no such file.")
        if not path.exists():
            known = [*filter(None, self._plans), *resources.list_shipped("prompts")]
            raise UsageError(
                f"--diff {other}: there is no such arm, template or job file{suggest_name(name, known)}."
            )
        if not equals:
            use = _find_use(path, plan, other)
        job, named = plan.job, name if "/" not in name and path.stem == name else str(path.absolute())
        allowed = replace(allowed, typed=allowed.typed | {named})
        change: dict[str, Any] = {"prompts": {**job.prompts, use: named}}
        if plan.templates[use].key == "prompt":
            change = {"prompt": named}
        return _Compared(other, make_plan(msgspec.structs.replace(job, **change), allowed), allowed)


def _render(arm: str, plan: Plan, index: int) -> ScenarioPrompts:
    scenario = plan.scenario(index)
    asked = plan.list_first_requests(scenario)
    prompts = {use: one.messages for use, one in asked.items()}
    alone = [*prompts] == ["default"]
    return ScenarioPrompts(
        arm=arm or UNSET,
        scenario=scenario.as_row(),
        messages=prompts["default"] if alone else UNSET,
        prompts=UNSET if alone else prompts,
        schemas={use: msgspec.json.decode(one.schema) for use, one in asked.items() if one.schema} or UNSET,
    )


def _join_asked(asked: RequestContent) -> str:
    """Return a request as one text, with the schema of the answer."""
    messages, schema = asked
    return join_messages(messages) + ("" if schema is None else f"\n[schema]\n{render_schema(schema)}")


def _find_unused(plans: Iterable[Plan]) -> list[str]:
    """Return the variables of a scenario that the templates of no plan use, each once."""
    return list(dict.fromkeys(describe_unused(missed) for plan in plans for missed in find_unused(plan)))


def _find_use(path: Path, plan: Plan, other: str) -> str:
    """Return the use of the plan's template that another template replaces, by its text and variables."""
    if len(plan.templates) == 1:
        (use,) = plan.templates
        return use
    prompt = load(path)
    expects = prompt.front.expects or "turn"
    uses = [use for use, template in plan.templates.items() if template.expects == expects]
    # Among several, take the only one that has all variables of the new template.
    able = [use for use in uses if prompt.variables_used <= set(plan.templates[use].variables)]
    if len(uses) == 1 or len(able) == 1:
        return uses[0] if len(uses) == 1 else able[0]
    raise UsageError(
        f"--diff {other}: this job has several prompts; name the one to replace, as in --diff "
        f"{next(iter(plan.prompts))}={other} (known: {', '.join(plan.prompts)})."
    )


def _find_other_draws(left: _Compared, right: _Compared) -> Iterator[str]:
    """Yield the reason if the two sides do not draw the same scenarios."""
    mine, theirs = (
        {
            "seed": side.plan.job.seed,
            "design": side.plan.job.design,
            "space": f"{side.plan.job.space} ({side.plan.space_sha256[:8]})",
        }
        for side in (left, right)
    )
    if left.plan.space_sha256 == right.plan.space_sha256:
        theirs["space"] = mine["space"]
    if other := [
        f"{key} is {one} in one and {theirs[key]} in the other"
        for key, one in mine.items()
        if one != theirs[key]
    ]:
        yield (
            "the two draw different scenarios, so the prompts differ for that reason, too: "
            f"{'; '.join(other)}"
        )


def _compare_scenario(left: _Compared, right: _Compared, index: int) -> ScenarioDifference:
    """Return one scenario's prompts of both sides, by use, with their diff."""
    mine, theirs = (side.plan.list_first_requests(side.plan.scenario(index)) for side in (left, right))
    prompts = {}
    for use in dict.fromkeys((*mine, *theirs)):
        a, b = (_join_asked(side.get(use, RequestContent((), None))) for side in (mine, theirs))
        prompts[use] = PromptPair(a, b, a == b, unified_diff(a, b, left.label, right.label))
    one, other = left.plan.scenario(index).as_row(), right.plan.scenario(index).as_row()
    return ScenarioDifference(one, None if one == other else other, prompts)
