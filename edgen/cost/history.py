"""Evidence from earlier runs for a new job: the use of their scenarios, and the accepted shares.

A run counts if it used the same templates and protocol, and is nearly complete: early in a run, short
conversations are overrepresented. Simulated runs do not predict a model's use. A run with a damaged ledger is
skipped and named. Nothing is written, and no lock is held.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import (
    ANNOTATOR,
    Job,
    find_backend,
    find_backend_name,
    list_asked_roles,
    load_job,
    select_shaping_values,
    settings_of,
)
from edgen.config.job import make_role_finder
from edgen.core.errors import DamagedError, EdgenError
from edgen.core.files import read_regular
from edgen.core.version import __version__
from edgen.core.yaml_values import MAX_BYTES
from edgen.cost.usage import CallUse, RolePrices, add_up
from edgen.expressions.conversation import Facts
from edgen.families.base import read_record
from edgen.planning.plan import Plan
from edgen.protocols.labelled_units import ABOUT
from edgen.providers import find_calls
from edgen.store.ledger import LedgerReader
from edgen.store.ledger.reader import CountedReply
from edgen.store.run_folder import RunFolder

_RUNS = 8  # maximum runs that an estimate uses, latest first
_LOOKED_AT = 24  # maximum examined runs
_LOOKED_THROUGH = 2_000  # maximum conversations of a run tested against gates
_SCENARIOS = 2_000  # maximum scenarios of a run
_UNFINISHED = 0.1  # with a larger share unfinished, a run represents only short conversations


class EarlierRun(NamedTuple):
    """One earlier run, at this job's prices and for this job's number of replicates."""

    path: Path  # folder of the run
    scenarios: list[CallUse]  # use of each scenario
    accepted: int  # accepted conversations
    ended: int  # conversations that ended with an answer
    other_model: str | None  # names of its models; None: this job's models
    other_settings: bool  # the backends' settings differ
    other_space: bool  # the space's content differs
    passing: tuple[int, int] | None = None
    """(conversations that pass the job's gates, examined conversations); None if the run had these gates."""
    labelled: bool = True  # the run has the job's labels


def find_earlier_runs(plan: Plan, folder: Path, rates: RolePrices) -> tuple[list[EarlierRun], list[Path]]:
    """Return the runs in `folder` most similar to a plan by gates, labels, models, settings and space, and
    the runs skipped for damaged ledgers."""
    found: dict[tuple[bool, ...], list[EarlierRun]] = defaultdict(list)
    damaged = []
    for path in itertools.islice(_list_latest_runs(folder, plan.template_sha256), _LOOKED_AT):
        try:
            one = _read(plan, path, rates)
        except DamagedError:
            damaged.append(path)
            continue
        if one is not None:
            others = one.other_model is not None, one.other_settings, one.other_space
            found[(one.passing is not None, not one.labelled, *others)].append(one)
            if len(found[False, False, False, False, False]) == _RUNS:
                break
    closest = min((key for key, runs in found.items() if runs), default=None)
    return [] if closest is None else found[closest][:_RUNS], damaged


def _list_latest_runs(folder: Path, template_sha256: str) -> Iterator[Path]:
    """Yield the folders of runs with these templates, latest first."""
    mark = template_sha256.encode()
    jobs = []
    for pattern in ("*/job.yaml", "*/arms/*/job.yaml"):
        for job in folder.glob(pattern):
            try:
                ledger = job.with_name("run.db")
                if mark in read_regular(job, MAX_BYTES):
                    RunFolder(job.parent).refuse_links()
                    jobs.append((ledger.stat().st_mtime, job.parent))
            except (OSError, EdgenError):  # removed meanwhile, or unreadable
                continue
    yield from (path for _, path in sorted(jobs, key=lambda one: (-one[0], str(one[1]))))


def _read(plan: Plan, path: Path, rates: RolePrices) -> EarlierRun | None:
    """Return a run's evidence; None if it has none. Raises DamagedError."""
    run = RunFolder(path)
    if run.previous.exists():  # its answers are of several forms of a job and cannot be separated
        return None
    try:
        theirs = msgspec.structs.replace(load_job(run.job), speakers=plan.job.speakers)
        if theirs.resolved is None or not _are_comparable(plan.job, theirs):
            return None
        passing = None
        with LedgerReader(run.ledger) as view:
            if view.plan.fingerprint != theirs.resolved.fingerprint or view.selection is not None:
                return None  # a selection lacks its source's rejected conversations
            scenarios, ends = _read_scenario_uses(plan.job, theirs, view, rates)
            if plan.job.gates != theirs.gates and scenarios:
                passing = _count_passing(plan, view)
    except DamagedError:
        raise
    except EdgenError:  # made by another version: `edgen status` reports it
        return None
    if not scenarios:
        return None
    roles = _list_common_roles(plan.job, theirs)
    models = _list_models(theirs, roles)
    return EarlierRun(
        path=path,
        scenarios=scenarios,
        accepted=ends["accepted"],
        ended=ends["accepted"] + ends["rejected"],
        other_model=None
        if models == _list_models(plan.job, roles)
        else ", ".join(sorted({name for _, name in models})),
        other_settings=_list_settings(theirs, roles) != _list_settings(plan.job, roles),
        other_space=theirs.resolved.space_sha256 != plan.space_sha256,
        passing=passing,
        labelled=theirs.labels == plan.job.labels,
    )


def _count_passing(plan: Plan, view: LedgerReader) -> tuple[int, int]:
    """Return (conversations that pass a plan's gates, examined ones) of a run without gates. Near-duplicate
    gates count as passed; gates on labels are skipped."""
    passed = looked = 0
    ordered = [gate for gate in plan.gates.ordered if not gate.asks_of(plan.gates.layers)]
    gates = (*plan.gates.plain, *ordered)
    for *_, data in itertools.islice(view.iterate_records(), _LOOKED_THROUGH):
        recorded = read_record(plan.family, data)
        facts = Facts(recorded.scenario, recorded.conversation, recorded.id)
        facts.near_duplicate = False
        looked += 1
        passed += all(gate.is_open_to(facts) for gate in gates)
    return passed, looked


def _are_comparable(ours: Job, theirs: Job) -> bool:
    """Return whether the use of one job's conversations predicts the other's."""
    if theirs.gates not in (ours.gates, {}) or theirs.labels not in (ours.labels, {}):
        return False
    branched = ours.branch is not None and ours.replicates > 1
    if branched and (ours.branch != theirs.branch or theirs.replicates == 1):
        return False
    roles = _list_common_roles(ours, theirs)
    return _describe_kind(ours, roles) == _describe_kind(theirs, roles)


def _list_common_roles(ours: Job, theirs: Job) -> tuple[str, ...]:
    """Return the roles that both jobs call; the annotator only if both have the same labels."""
    return tuple(role for role in list_asked_roles(ours) if role != ANNOTATOR or ours.labels == theirs.labels)


def _describe_kind(job: Job, roles: Sequence[str]) -> tuple[Any, ...]:
    """Return values that determine how a job makes conversations, and which roles are simulated."""
    simulated = [find_calls(find_backend(job, role)).simulated for role in roles]
    return job.protocol, job.asks, settings_of(job), simulated


def _list_models(job: Job, roles: Sequence[str]) -> list[tuple[str, str]]:
    backends = (find_backend(job, role) for role in roles)
    return [(backend.provider, backend.model) for backend in backends]


def _list_settings(job: Job, roles: Sequence[str]) -> list[dict[str, Any]]:
    """Return the answer-shaping settings of each role."""
    backends: dict[str, dict[str, Any]] = select_shaping_values(job)["backends"]
    return [backends[find_backend_name(job, role)] for role in roles]


def _read_scenario_uses(
    ours: Job, theirs: Job, view: LedgerReader, rates: RolePrices
) -> tuple[list[CallUse], Counter[str]]:
    """Return the use of each scenario for our number of replicates, and counts of conversations by
    outcome."""
    ended: dict[int, dict[int, str]] = defaultdict(dict)
    ends: Counter[str] = Counter()
    for index, replicate, status, _ in view.list_settled():
        if index >= _SCENARIOS:
            break
        ends[status] += 1
        if status != "failed":
            ended[index][replicate] = status
    used: dict[int, dict[int, CallUse]] = defaultdict(dict)
    for index, replicate, calls in view.list_counted_replies():
        if index >= _SCENARIOS:
            break
        used[index][replicate] = _price_calls(ours, calls, rates)
    settled = sum(len(replicates) for replicates in ended.values())
    begun = sum(len(replicates) for replicates in used.values())
    if begun - settled > _UNFINISHED * settled:
        return [], ends
    # Replicates that branch from the first need fewer calls than full ones.
    alone = theirs.branch is not None and ours.branch is None
    found = []
    for index in sorted(ended):
        here = [replicate for replicate in sorted(ended[index]) if not (alone and replicate)]
        # A replicate that was rejected with its first conversation made no calls.
        idle = [r for r in here if r and theirs.branch is not None and ended[index][r] == "rejected"]
        if any(r not in used[index] and r not in idle for r in here) or (
            ours.branch is not None and 0 not in here
        ):
            continue
        bundle = _bundle(ours, [used[index].get(replicate, CallUse()) for replicate in here])
        if bundle is not None:
            found.append(bundle)
    return found, ends


def _bundle(ours: Job, each: list[CallUse]) -> CallUse | None:
    """Return the use of one scenario of our job, from the conversations of one scenario in an earlier run. If
    our job branches, the first conversation is counted apart. None if there are too few."""
    wanted = ours.replicates
    if len(each) >= wanted:
        return add_up(each[:wanted])
    if ours.branch is None:
        return add_up(each).times(wanted / len(each)) if each else None
    return each[0].plus(add_up(each[1:]).times((wanted - 1) / (len(each) - 1))) if len(each) > 1 else None


def _price_calls(job: Job, calls: Sequence[CountedReply], rates: RolePrices) -> CallUse:
    """Return the use of these calls, at the prices of their backends."""
    find_role = make_role_finder(job)
    roles = (ANNOTATOR if call.step >= ABOUT else find_role(call.step) for call in calls)
    return add_up(rates.price_usage(role, call.usage) for role, call in zip(roles, calls, strict=True))


def has_same_form(plan: Plan, theirs: Job) -> bool:
    """Return whether a run's stored answers are valid for this plan, as far as known without its backends."""
    noted = theirs.resolved
    if noted is None or noted.edgen != __version__ or theirs.name != plan.job.name:
        return False
    files = ("space", "prompt", "prompts")
    shapes = [
        msgspec.json.encode(
            {key: value for key, value in select_shaping_values(job).items() if key not in files}
        )
        for job in (plan.job, theirs)
    ]
    texts = (noted.template_sha256, noted.space_sha256) == (plan.template_sha256, plan.space_sha256)
    return texts and shapes[0] == shapes[1] and theirs.split.by == plan.job.split.by
