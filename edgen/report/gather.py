"""Collection of a report's contents from a run's folder, in one pass over the conversations and one over the
rejections."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from edgen.config import Job, load_job
from edgen.core.errors import InputError, JobError, RunError, ShortError
from edgen.core.files import read_regular
from edgen.core.registry import part_of
from edgen.core.text import escape_invisible
from edgen.core.values import Turn
from edgen.core.version import __version__
from edgen.core.yaml_values import read_text, read_yaml
from edgen.evaluation.comparison.result import ComparisonResult
from edgen.evaluation.comparison.run_arms import open_comparison
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet, cut
from edgen.families.base import make_record_id
from edgen.families.reader import RecordContents, ReportWords
from edgen.protocols.reasons import explain_own_reasons
from edgen.report.gather_pairs import gather_pairs
from edgen.report.model import (
    ArmReport,
    PickedConversation,
    RejectedExample,
    RejectionGroup,
    Report,
    ShownConversation,
)
from edgen.report.selection import ReportSelection
from edgen.stats.distributions import Bin, Distribution, summarize
from edgen.store.inputs_copy import find_accompanying_files, find_named_inputs
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

CUT = 1_500  # characters of a raw reply that are shown
EXAMPLES = 3  # examples per reason
LONGEST_TURN = 4_000  # characters of a turn that are shown
MOST_TURNS = 200  # turns of a conversation that are shown
_MOST_INPUTS = 100_000  # bytes of templates and spaces on the page
_STEPS = 6  # bars per factor of ten in time

Progress = Callable[[str], None]


def gather(run: Path, progress: Progress = lambda _: None) -> Report:
    """Return the contents of the report of the run in the folder `run`. It calls `progress` with each step.

    Raises RunError if there is no run or it cannot be read, ShortError if no conversation is settled,
    LockedError if a process works on it.
    """
    rundir = RunFolder(run).require()
    with rundir.lock_for_reading(), contextlib.ExitStack() as stack:
        job = load_job(rundir.job)
        found = {data.arm: data for data in open_data_sets([run])}
        readers = {arm: stack.enter_context(RunReader(rundir.arm(arm).path)) for arm in found}
        words = part_of(next(iter(readers.values())).family, ReportWords)
        selection = ReportSelection(words.probability_words)
        arms = [_gather_arm(reader, found[arm], selection, progress) for arm, reader in readers.items()]

        def is_known(identifier: str) -> bool:
            return any(reader.scenario_of(identifier) is not None for reader in readers.values())

        picks = selection.choose_picks([arm.quality for arm in arms], is_known)
        comparison, uncompared = _compare(run, list(readers), progress) if job.arms else (None, None)
        written = _read_portable_job(rundir.job)
        return Report(
            name=job.name,
            edgen=__version__,
            job=written,
            inputs=_read_inputs(rundir, written),
            arms=tuple(arms),
            missing=tuple(arm for arm in job.arms if arm not in readers),
            chosen=tuple(_read_conversation(pick, readers) for pick in picks),
            comparison=comparison,
            uncompared=uncompared,
            pairs=gather_pairs(rundir, progress),
            section_words=words.section_words,
        )


def _compare(run: Path, arms: list[str], progress: Progress) -> tuple[ComparisonResult | None, str | None]:
    """Return the comparison of these arms, or the reason why there is none."""
    if len(arms) < 2:
        return None, f"only {arms[0]} has answers so far."
    try:
        with open_comparison([run], arms, on_stage=progress) as comparison:
            return comparison, None
    except (InputError, ShortError) as problem:
        return None, str(problem).removeprefix(f"{run}: ")


def _gather_arm(
    reader: RunReader, data: DataSet, selection: ReportSelection, progress: Progress
) -> ArmReport:
    view, arm = reader.views[""], data.arm
    where = f" {arm}" if arm else ""
    of = "" if data.count is None else f" of {data.count:,}"
    quality = measure(
        data,
        progress=lambda done: progress(f"measuring{where}: {done:,}{of} conversations"),
        observers=[selection],
    )
    progress(f"reading what was rejected{where}")
    return ArmReport(
        label=arm,
        name=arm or reader.job.name,
        job={**reader.noted_job(), "piece": reader.piece},
        status=view.status,
        simulated=view.simulated,
        sessions=tuple(view.read_sessions()),
        latency=summarize_latency(view.iterate_latencies()),
        quality=quality,
        reasons=_list_rejections(reader.job, view),
        guide=data.guide,
        family=data.family,
        roles=tuple(role.name for role in data.roles),
    )


def summarize_latency(seconds: Iterator[float]) -> Distribution:
    """Summarise decimal logarithms of seconds; a bar is a sixth of a factor of ten. Below 10 µs counts as 10
    µs."""
    data = np.log10(np.maximum(np.array(array("d", seconds)), 1e-5))
    if data.size == 0:
        return Distribution(n=0)
    low, high = math.floor(float(data.min()) * _STEPS), math.floor(float(data.max()) * _STEPS) + 1
    bars = np.bincount(np.floor(data * _STEPS).astype(np.int64) - low, minlength=high - low)
    bins = (Bin((low + i) / _STEPS, (low + i + 1) / _STEPS, int(n)) for i, n in enumerate(bars))
    return summarize(data, tuple(bins))


def _list_rejections(job: Job, view: LedgerReader) -> tuple[RejectionGroup, ...]:
    """Return the rejections and failures by status and reason, the most frequent first."""
    examples: defaultdict[tuple[str, str], list[RejectedExample]] = defaultdict(list)
    counts: Counter[tuple[str, str]] = Counter()
    for index, replicate, status, reason, detail, last in view.list_refused():
        key = (status, reason or "unknown")
        counts[key] += 1
        if len(examples[key]) < EXAMPLES:
            reply = None if last is None else last.text if last.refusal is None else last.refusal
            shown = None if reply is None else reply[:CUT]
            identifier = make_record_id(job.name, index, replicate)
            examples[key].append(
                RejectedExample(id=identifier, detail=detail, reply=shown, length=len(reply or ""))
            )
    explained = explain_own_reasons([reason for _, reason in counts], job.protocol)
    return tuple(
        RejectionGroup(
            status=key[0],
            reason=key[1],
            count=counts[key],
            examples=tuple(examples[key]),
            says=explained.get(key[1], ""),
        )
        for key in sorted(counts, key=lambda key: (-counts[key], key))
    )


def _read_conversation(pick: PickedConversation, readers: Mapping[str, RunReader]) -> ShownConversation:
    """Read a chosen conversation again and return it."""
    for label, reader in readers.items():
        if reader.scenario_of(pick.id) is None:
            continue
        candidate = reader.named(pick.id)
        data = reader.views[""].read_record(candidate.scenario, candidate.replicate)
        if data is not None:
            record = reader.read(data)
            turns, roles = record.turns, [role.name for role in reader.space.roles]
            return ShownConversation(
                id=pick.id,
                arm=label,
                why=pick.why,
                record=record,
                turns=tuple(_truncate(turn) for turn in turns[:MOST_TURNS]),
                words=sum(map(len, cut(turns))),
                roles=tuple(dict.fromkeys((*roles, *(turn.role for turn in turns)))),
                pictures=part_of(reader.family, RecordContents).pictures(record, reader.space),
            )
    raise RunError(f"{pick.id}: this conversation is not in the run any more; make the report again.")


def _truncate(turn: Turn) -> Turn:
    """Return a turn truncated to the shown length, with a note."""
    if len(turn.text) <= LONGEST_TURN:
        return turn
    note = f"[the first {LONGEST_TURN:,} of {len(turn.text):,} characters]"
    return Turn(turn.role, f"{turn.text[:LONGEST_TURN]} … {note}")


LEFT_OUT = "(left out here)"


def _read_portable_job(path: Path) -> str:
    """Return the job without the run's notes, which have no meaning for another run and name local
    folders."""
    job = read_yaml(read_text(path, JobError), str(path), JobError)
    for values in (job, *(job.get("arms") or {}).values()):
        for backend in (values.get("backends") or {}).values():
            for key in ("extra_body", "headers"):
                if backend.get(key):
                    # Other settings for a service may be private.
                    backend[key] = dict.fromkeys(backend[key], LEFT_OUT)
    job.pop("resolved", None)
    return yaml.safe_dump(job, sort_keys=False, allow_unicode=True, width=100)


def _read_inputs(rundir: RunFolder, job: str) -> dict[str, str] | None:
    """Return the templates and spaces of the run, by their names in the job. None if a page cannot hold all
    of them and the job: they are too large, are named outside the run, or have parts that a page omits or
    alters."""
    texts: dict[str, str] = {}
    room = _MOST_INPUTS
    named = find_named_inputs(yaml.safe_load(job))
    for name in sorted(named | find_accompanying_files(rundir, named)):
        if (path := rundir.path / name).parent != rundir.inputs:
            return None
        try:
            data = read_regular(path, room)
            texts[name] = data.decode()
        except (OSError, UnicodeDecodeError):
            return None
        room -= len(data)
    whole = LEFT_OUT not in job and all(escape_invisible(text) == text for text in (job, *texts.values()))
    return texts if whole else None
