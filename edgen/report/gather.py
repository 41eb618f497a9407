"""From a run's folder to what its report says: one pass over the conversations, one over what was refused."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from edgen import __version__
from edgen.comparison.model import Comparison
from edgen.config import load_job
from edgen.engine.comparing import compare
from edgen.errors import InputError, JobError, RunError, ShortError
from edgen.files import read_regular
from edgen.ledger import View
from edgen.loading import read_text, read_yaml
from edgen.model import Scenario, Turn
from edgen.quality.numbers import summed
from edgen.quality.results import Bin, Distribution
from edgen.quality.words import cut
from edgen.records import More, Record, record_id, spoken
from edgen.report.choose import Chooser
from edgen.report.model import Part, Pick, Reason, Refused, Report, Shown, Visit
from edgen.report.text import shown
from edgen.rundir import RunDir, inputs_named
from edgen.runreader import RunReader, decoded
from edgen.samples import Material, materials, quality_of

CUT = 1_500  # characters of a raw reply that are shown
EXAMPLES = 3  # of each reason
LONGEST_TURN = 4_000  # characters of a turn that are shown
MOST_TURNS = 200  # turns of a conversation that are shown
_MOST_INPUTS = 100_000  # bytes of templates and spaces that the page carries
_STEPS = 6  # bars of a tenfold of time

Tell = Callable[[str], None]


def gather(run: Path, tell: Tell = lambda _: None) -> Report:
    """Everything that the report of the run in the folder `run` says. `tell` hears what is being done.

    Raises RunError if there is no run or it cannot be read, ShortError if nothing in it is settled, LockedError
    if somebody works on it.
    """
    rundir = RunDir(run)
    rundir.require()
    with rundir.read(), contextlib.ExitStack() as stack:
        job = load_job(rundir.job)
        found = {material.arm or "": material for material in materials([run])}
        readers = {
            label: stack.enter_context(RunReader(rundir.of(material.arm).path))
            for label, material in found.items()
        }
        chooser = Chooser()
        parts = [_part(label, reader, found[label], chooser, tell) for label, reader in readers.items()]
        picks = chooser.picks(part.quality for part in parts)
        comparison, uncompared = _compared(run, list(readers), tell) if job.arms else (None, None)
        return Report(
            name=job.name,
            edgen=__version__,
            job=(written := _as_written(rundir.job)),
            inputs=_inputs(rundir, written),
            parts=tuple(parts),
            missing=tuple(arm for arm in job.arms if arm not in readers),
            chosen=tuple(_shown(pick, readers) for pick in picks),
            comparison=comparison,
            uncompared=uncompared,
        )


def _compared(run: Path, arms: list[str], tell: Tell) -> tuple[Comparison | None, str | None]:
    """The comparison of these arms, or why there is none."""
    if len(arms) < 2:
        return None, f"only {arms[0]} has answers so far."
    try:
        return compare([run], arms, tell=tell), None
    except (InputError, ShortError) as problem:
        return None, str(problem).removeprefix(f"{run}: ")


def _part(label: str, reader: RunReader, material: Material, chooser: Chooser, tell: Tell) -> Part:
    view = reader.views[None]
    status = view.status
    counts = status.counts
    where = f" {label}" if label else ""
    of = "" if material.count is None else f" of {material.count:,}"
    quality = quality_of(
        material, tell=lambda done: tell(f"measuring{where}: {done:,}{of} conversations"), beside=[chooser]
    )
    tell(f"reading what was refused{where}")
    return Part(
        label=label,
        job={**reader.noted_job(), "piece": reader.piece},
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
        pending=status.pending,
        asked=status.plan.asked,
        state=status.state(held=False),
        message=status.message,
        simulated=view.simulated,
        made=counts.made,
        replayed=counts.replayed,
        retried=counts.retried,
        prompt_tokens=counts.prompt_tokens,
        completion_tokens=counts.completion_tokens,
        cost_usd=counts.cost_usd,
        visits=tuple(_visit(session) for session in view.sessions()),
        latency=latency(view.latencies()),
        quality=quality,
        reasons=_reasons(reader.job.name, view),
    )


def _visit(session: Mapping[str, Any]) -> Visit:
    return Visit(
        started=session["started_at"],
        ended=session["ended_at"],
        state=session["state"],
        made=session["made"],
        retried=session["retried"],
        tokens=session["prompt_tokens"] + session["completion_tokens"],
        cost_usd=session["cost_usd"],
    )


def latency(seconds: Iterator[float]) -> Distribution:
    """Decimal logarithms of seconds, summed up; a bar is a sixth of a tenfold. Below 10 µs counts as 10 µs."""
    data = np.log10(np.maximum(np.array(array("d", seconds)), 1e-5))
    if data.size == 0:
        return Distribution(n=0)
    low, high = math.floor(float(data.min()) * _STEPS), math.floor(float(data.max()) * _STEPS) + 1
    bars = np.bincount(np.floor(data * _STEPS).astype(np.int64) - low, minlength=high - low)
    bins = (Bin((low + i) / _STEPS, (low + i + 1) / _STEPS, int(n)) for i, n in enumerate(bars))
    return summed(data, tuple(bins))


def _reasons(name: str, view: View) -> tuple[Reason, ...]:
    """What was refused by status and reason, the most frequent first."""
    found: dict[tuple[str, str], list[Refused]] = {}
    counts: dict[tuple[str, str], int] = {}
    for index, replicate, status, reason, detail, reply in view.refused():
        key = (status, reason or "unknown")
        counts[key] = counts.get(key, 0) + 1
        examples = found.setdefault(key, [])
        if len(examples) < EXAMPLES:
            examples.append(
                Refused(
                    id=record_id(name, index, replicate),
                    detail=detail,
                    reply=None if reply is None else reply[:CUT],
                    length=len(reply or ""),
                )
            )
    ordered = sorted(counts, key=lambda key: (-counts[key], key))
    return tuple(
        Reason(status=key[0], reason=key[1], count=counts[key], examples=tuple(found[key])) for key in ordered
    )


def _shown(pick: Pick, readers: Mapping[str, RunReader]) -> Shown:
    """A chosen conversation, read again."""
    for label, reader in readers.items():
        if reader.scenario_of(pick.id) is None:
            continue
        candidate = reader.named(pick.id)
        data = reader.views[None].record(candidate.scenario, candidate.replicate)
        if data is not None:
            return _told(pick, label, decoded(data))
    raise RunError(f"{pick.id}: this conversation is not in the run any more; make the report again.")


def _told(pick: Pick, label: str, record: Record) -> Shown:
    about, more, turns = record.background_info, record.scenario or More(), spoken(record)
    return Shown(
        id=pick.id,
        arm=label,
        why=pick.why,
        scenario=Scenario(
            index=record.provenance.scenario,
            topic=about.topic,
            student_preference=about.student_prefrences,
            student_reaction=about.student_reactions,
            teacher_preference=about.teacher_prefrences,
            teacher_reaction=about.teacher_reactions,
            subject=more.subject,
            level=more.level,
        ),
        turns=tuple(_within(turn) for turn in turns[:MOST_TURNS]),
        said=len(turns),
        words=sum(map(len, cut(turns))),
        probability=record.probability,
        ended_by=record.ended_by,
        repairs=record.provenance.repairs,
    )


def _within(turn: Turn) -> Turn:
    """A turn no longer than is shown, and a word where it was cut."""
    if len(turn.text) <= LONGEST_TURN:
        return turn
    return Turn(
        turn.role,
        f"{turn.text[:LONGEST_TURN]} … [the first {LONGEST_TURN:,} of {len(turn.text):,} characters]",
    )


LEFT_OUT = "(left out here)"


def _as_written(path: Path) -> str:
    """The job without what the run noted in it: that means nothing to another run, and names folders of this machine."""
    job = read_yaml(read_text(path, JobError), str(path), JobError)
    for values in (job, *(job.get("arms") or {}).values()):
        for backend in (values.get("backends") or {}).values():
            if backend.get("extra_body"):
                # What a service is told beside the usual may be meant for nobody else's eyes.
                backend["extra_body"] = dict.fromkeys(backend["extra_body"], LEFT_OUT)
    return yaml.safe_dump(
        {key: value for key, value in job.items() if key != "resolved"},
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def _inputs(rundir: RunDir, job: str) -> dict[str, str] | None:
    """The templates and spaces that the run was made with, by the names that its job has for them. None where a page
    cannot carry them all and the job: too large, named outside the run, or with what a page leaves out or would
    show otherwise than it is."""
    texts: dict[str, str] = {}
    room = _MOST_INPUTS
    for name in sorted(inputs_named(yaml.safe_load(job))):
        if (path := rundir.path / name).parent != rundir.inputs:
            return None
        try:
            data = read_regular(path, room)
            texts[name] = data.decode()
        except (OSError, UnicodeDecodeError):
            return None
        room -= len(data)
    whole = LEFT_OUT not in job and all(shown(text) == text for text in (job, *texts.values()))
    return texts if whole else None
