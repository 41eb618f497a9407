"""Rankings of the candidates of a response-selection set: by chance, by shared words, or by a model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from edgen.api.status import Calls, Tokens, Usage
from edgen.api.supervision.backends import Via, open_backends, open_scheduler
from edgen.api.supervision.beside import ledger_beside, load_asked_job, open_beside
from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.supervise import supervise
from edgen.core.errors import DataError, EdgenError, ShortError, UsageError
from edgen.core.figures import describe_counts
from edgen.core.files import write_lines
from edgen.core.yaml_values import nearest
from edgen.execution.ranking_tasks import RankingTasks, load_ranking_prompt, ranked_examples
from edgen.execution.session import Session
from edgen.planning.answer_schemas import check_schema
from edgen.protocols.ranking import TEMPLATE
from edgen.retrieval.baseline import BASELINES, Frequencies, rank, read_examples
from edgen.retrieval.entries import Entries
from edgen.store.ledger import Ledger

MODEL = "model"
WAYS = (*BASELINES, MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Which model ranks, and how it is asked. `backend`: `JOB[:ROLE]`; `prompt`: the template, None for the shipped one; `none`:
    that no candidate is right is one of them; `overrides` of the job as `--set` takes them."""

    backend: str | None = None
    prompt: str | None = None
    none: bool = False
    overrides: tuple[str, ...] = ()
    via: Via = "online"


_COUNTED = ("windows", "unread", "unknown", "repeated", "missing")


class ModelRanking(msgspec.Struct, frozen=True, kw_only=True):
    """What a model made of the examples. `rejected` and `failed` ones, by reason, have no ranking. Each of the `windows` is a
    list that it put in order; those `unread` kept theirs. `unknown` and `repeated` numbers were dropped, `missing` ones put
    last."""

    ranked: int
    rejected: dict[str, int]
    failed: dict[str, int]
    windows: int
    unread: int
    unknown: int
    repeated: int
    missing: int
    model: str
    simulated: bool
    ledger: str
    calls: Calls
    tokens: Tokens
    cost_usd: float | None

    def require_all(self) -> None:
        """Raise ShortError where examples have no ranking."""
        if self.failed:
            raise ShortError(
                f"Examples without a ranking, for want of an answer: {describe_counts(self.failed)}. The same command asks for "
                "them again."
            )
        if self.rejected:
            raise ShortError(
                f"Examples without a ranking, since none of their answers is one: {describe_counts(self.rejected)}. Another "
                "backend, or --set asks=3, may help."
            )


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A ranking that was written, and of how many examples."""

    by: str
    seed: int
    examples: int
    written: str
    asked: ModelRanking | UnsetType = UNSET


def rank_examples(
    examples: Path, output: Path, by: str, seed: int, control: Control, options: ModelOptions | None = None
) -> Baseline:
    """Rank the candidates of every example of a file in DSTC7's layout, and write the ranking. A model is asked as `options` say,
    and its answers are kept in a ledger beside the file, so that nothing is asked twice.

    Raises UsageError, DataError for a file that holds no such examples, ShortError where a model ranked none of them, and what
    stops the asking.
    """
    if by not in WAYS:
        raise UsageError(f"by is {by!r}; expected one of {', '.join(WAYS)}{nearest(by, WAYS)}.")
    if by != MODEL and options not in (None, ModelOptions()):
        raise UsageError(
            f"--by {by} asks no model: --backend, --prompt, --none, --set and --via go with --by model."
        )
    entries = Entries(examples)
    source = entries.source
    if by == MODEL:
        kept = list(entries)
        _require_examples(len(kept), source)
        asked = _ask(kept, source, output, seed, options or ModelOptions(), control)
        return Baseline(by=by, seed=seed, examples=len(kept), written=str(output), asked=asked)
    frequencies, count = Frequencies(), 0
    for example in read_examples(entries, source):
        frequencies.see(example)
        count += 1
    _require_examples(count, source)
    write_lines(
        output, _as_list(rank(example, frequencies, by, seed) for example in read_examples(entries, source))
    )
    return Baseline(by=by, seed=seed, examples=count, written=str(output))


def _require_examples(count: int, source: str) -> None:
    if not count:
        raise DataError(source, "it holds no examples.")


def _ask(
    entries: list[msgspec.Raw],
    source: str,
    output: Path,
    seed: int,
    options: ModelOptions,
    control: Control,
) -> ModelRanking:
    made_up = "it orders by shared words"
    job = load_asked_job(
        options.backend, options.overrides, control, option="--backend", work="baseline", made_up=made_up
    )
    prompt = load_ranking_prompt(options.prompt or TEMPLATE)
    check_schema(prompt, job.backends["default"], "$.backends.default")
    tasks = RankingTasks(job, entries, source, prompt, seed=seed, none=options.none)
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {output.parent}; make it first.")
    ledger = ledger_beside(output)
    try:
        return asyncio.run(_work(tasks, output, options.via, control))
    except EdgenError:
        if ledger.exists():
            control.note(f"nothing was written; the answers so far are kept in {ledger}.")
        raise


async def _work(tasks: RankingTasks, out: Path, via: Via, control: Control) -> ModelRanking:
    """Have everything ranked, and write it. Raises what stopped it, and ShortError where nothing was ranked."""
    job = tasks.job
    functions = {name: one for name, one in control.functions.items() if name == "default"}
    async with (
        open_backends(dict(job.backends), job.limits, control.trust, functions=functions) as backends,
        open_scheduler(job, backends, via) as scheduler,
        open_beside(out) as ledger,
    ):
        session = Session(tasks, backends, ledger, roles=("default",), scheduler=scheduler)
        session.counts.planned = tasks.planned
        title = Title("baseline", outcomes=("ranked", "unread"))
        await supervise(session, title, control, lambda _monitor: tasks.work_through(session))
        await ledger.flush()
        return await asyncio.to_thread(write_ranking, tasks, out, ledger, session.fingerprint)


def write_ranking(tasks: RankingTasks, out: Path, ledger: Ledger, under: str) -> ModelRanking:
    """The file of what was ranked, and what came of all examples."""
    status = ledger.status()
    if not status.accepted:
        reasons = describe_counts({**status.rejected, **status.failed})
        raise ShortError(f"None of the {tasks.planned:,} examples was ranked ({reasons}).")
    counts, models = Counter[str](), set[str]()

    def entries() -> Iterator[bytes]:
        for one in ranked_examples(ledger.outcomes(status.plan.scope)):
            counts.update({name: getattr(one, name) for name in _COUNTED})
            models.add(one.model)
            yield bytes(one.entry)

    write_lines(out, _as_list(entries()))
    return ModelRanking(
        ranked=status.accepted,
        rejected=dict(status.rejected),
        failed=dict(status.failed),
        windows=counts["windows"],
        unread=counts["unread"],
        unknown=counts["unknown"],
        repeated=counts["repeated"],
        missing=counts["missing"],
        model=", ".join(sorted(models)),
        simulated=ledger.fact("simulated") == under,
        ledger=str(ledger_beside(out)),
        **msgspec.structs.asdict(Usage.of(status.counts)),
    )


def _as_list(entries: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a JSON list, one an entry, of which there is at least one."""
    before = b"["
    for entry in entries:
        yield before
        before = entry + b","
    yield before.removesuffix(b",")
    yield b"]"
