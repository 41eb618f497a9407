"""A run made of chosen conversations of another run.

The whole ledger is copied. A conversation that was not chosen is rejected in the copy, with the clause that
removed it as the reason. So the new run's counts add up as in any run, and its measures show which scenarios
were lost. The original run never changes. The new ledger, the manifest and the card name it and the clauses.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from edgen.annotation.annotator import is_name
from edgen.annotation.layer import LayerFolder
from edgen.config import Job, load_job
from edgen.core.errors import RunError, ShortError, UsageError
from edgen.core.text import quantity, replace_surrogates
from edgen.execution.run import JOB, RunSummary, write_files
from edgen.expressions.conversation import ConversationNames, LabelledWith, list_named_layers
from edgen.merging.extras import copy_rest
from edgen.merging.new_run import copy_job, describe_original_job, make_run, refuse_open, refuse_target
from edgen.selection.choose import ConversationChoice
from edgen.selection.options import SelectOptions
from edgen.space.splits import HeldOutGroups
from edgen.store.layers import LayerJoin, list_layer_names
from edgen.store.ledger import SELECTION, Ledger, LedgerReader, Selection, SplitRule
from edgen.store.ledger.merge import MergedLedger, SourceLedger
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader


def select(
    path: Path,
    output: Path,
    options: SelectOptions,
    on_stage: Callable[[str], None] = lambda _stage: None,
    note: Callable[[str], None] = lambda _sentence: None,
) -> Selection:
    """Make a run, in the folder `output`, of chosen conversations of the run at `path`. `on_stage` gets
    progress messages, `note` gets remarks for the user.

    Raises UsageError for invalid options, for a run with arms, or if `output` is taken; ShortError if nothing
    is left (no run is made); RunError if the run cannot be read; LockedError if it is at work.
    """
    if options == SelectOptions(seed=options.seed):
        raise UsageError(
            "say what to keep: --where EXPRESSION, --cap NAME=N, --balance NAME or --draw N; or "
            "split the conversations again, with --split-by NAME."
        )
    refuse_target([path], output)
    run = RunFolder(path).require()
    if not run.ledger.exists() and (arms := [name for name, _ in run.list_begun_arms() if name]):
        raise UsageError(
            f"{path}: this run has arms ({', '.join(arms)}), each with its own conversations. Select from "
            f"one: edgen select {run.arm(arms[0]).path} …"
        )
    with run.lock_for_reading():
        choice, selection, side = _choose(run, options, on_stage, note)
        with make_run(output, "selecting") as work:
            return _Selector(run, work, choice, selection, side, on_stage).make()


def _choose(
    run: RunFolder, options: SelectOptions, on_stage: Callable[[str], None], note: Callable[[str], None]
) -> tuple[ConversationChoice, Selection, HeldOutGroups]:
    with RunReader(run.path) as reader:
        known = {name: _read_layer_note(run, name) for name in list_layer_names(run)}
        choice = ConversationChoice(options, ConversationNames(reader.space, known))
        for clause in choice.where:
            for sentence in clause.expression.notes:
                note(f"--where, {sentence}")
        with LayerJoin(run, list_named_layers(choice.asked_names)) as layers:
            choice.read_run(reader, layers, on_stage)
        for what, count in layers.left_out.items():
            note(f"{quantity(count, 'unit')} left out of the layer {what}.")
        before = reader.views[""].selection
        share = reader.job.split.test
    if not choice.kept:
        took = ", ".join(f"{one.name} took {one.took:,} of {one.of:,}" for one in choice.clauses)
        raise ShortError(f"{run.path}: nothing is left, so no run was made ({took or 'there was nothing'}).")
    rule = None if before is None else before.split
    if options.split_by is not None:
        test = rule.test if options.test is None and rule is not None else options.test
        rule = SplitRule(options.split_by.strip(), share if test is None else test, options.in_order)
    side = (
        choice.choose_side(share) if rule is None else choice.choose_side(rule.test, in_order=rule.in_order)
    )
    if options.split_by is not None and rule is not None and rule.test and not side.count:
        raise _make_no_split_error(choice, rule)
    selection = Selection(
        run=replace_surrogates(run.path.resolve().name),  # folder names may be any bytes
        sha256=choice.sha256,
        accepted=choice.accepted,
        kept=choice.kept,
        clauses=tuple(choice.clauses),
        options=tuple(map(replace_surrogates, options.words)),
        split=rule,
        tested=side.count,
        before=before,
    )
    return choice, selection, side


def _make_no_split_error(choice: ConversationChoice, rule: SplitRule) -> ShortError:
    """Return the error for a test side that would be empty, since groups are too large for its share."""
    counts = Counter(group for _, _, group in choice.iterate_groups())
    if len(counts) == 1:
        why = f"all {choice.kept:,} are linked by it, or by their scenarios, which stay together"
    else:
        why = (
            f"there are {len(counts):,} groups of conversations that stay together, the smallest of "
            f"{min(counts.values()):,} in {choice.kept:,}, too many for a share of {rule.test:.4g}"
        )
    return ShortError(f"--split-by {rule.by}: nothing would be on the test side, so no run was made: {why}.")


def _read_layer_note(run: RunFolder, layer: str) -> LabelledWith | None:
    """Return the note of a layer about itself; None without one, since a person may have made the layer."""
    if not is_name(layer) or (noted := LayerFolder(run, layer).read_note()) is None:
        return None
    return LabelledWith(noted.labels, noted.unit == "conversation")


class _Selector:
    """The creation of a selected run in the folder `work`."""

    def __init__(
        self,
        run: RunFolder,
        work: RunFolder,
        choice: ConversationChoice,
        selection: Selection,
        side: HeldOutGroups,
        tell: Callable[[str], None],
    ) -> None:
        self._run, self._work = run, work
        self._choice, self._selection, self._side = choice, selection, side
        self._tell = tell
        self._scratch = work.path / ".copies"

    def make(self) -> Selection:
        self._scratch.mkdir()
        job = load_job(self._run.job)
        self._tell("copying answers")
        source = SourceLedger(self._run.ledger, str(self._run.path), self._scratch)
        refuse_open(self._run, source)
        made = self._copy_ledger(source, job)
        copy_job(self._run, self._work, job)
        self._tell("writing files")
        asyncio.run(self._write_files(made))
        copy_rest([self._run], self._work, self._scratch, lambda _facts: None)
        shutil.rmtree(self._scratch)
        return self._selection

    def _copy_ledger(self, source: SourceLedger, job: Job) -> RunSummary:
        """Copy the ledger with all answers; only the chosen conversations count as accepted."""
        noted, selection = job.resolved, self._selection
        if noted is None or noted.fingerprint != source.fingerprint:
            raise RunError(
                f"{self._run.job}: it does not describe the run's settings. Was it edited by hand?"
            )
        status = source.status
        plan = msgspec.structs.replace(
            status.plan,
            asked=selection.kept,
            planned=status.planned - status.pending if status.pending else status.plan.planned,
        )
        description = describe_original_job(job, [source])
        facts = {
            JOB: msgspec.json.encode(description).decode(),
            SELECTION: msgspec.json.encode(selection).decode(),
        }
        # One ledger has no duplicates, so nothing is dropped. Outcomes of an earlier form of the job stay.
        with MergedLedger(self._work.ledger, source.fingerprint, lambda _facts: None) as ledger:
            ledger.add(source)
            ledger.reject(self._list_removed(selection.depth))
            if self._choice.split is not None:
                ledger.regroup(self._choice.iterate_groups())
            kept = ledger.close(plan, facts, lambda _status: None)
        return RunSummary(job, kept, description, noted.template_sha256, noted.space_sha256)

    def _list_removed(self, depth: int) -> Iterator[tuple[int, int, str, str]]:
        word = "select" if depth == 1 else f"select{depth}"
        for scenario, task, clause in self._choice.list_removed():
            yield scenario, task, f"{word}:{clause.name}", clause.says

    async def _write_files(self, made: RunSummary) -> None:
        async with Ledger(self._work.ledger, create=False) as ledger:
            await write_files(made, self._work, ledger, self._side)


def refuse_selected(run: RunFolder) -> None:
    """Raise UsageError if a run was selected: its removed conversations must not be made again."""
    with LedgerReader(run.ledger) as view:
        selection = view.selection
    if selection is not None:
        raise UsageError(
            f"{run.path}: this run was selected from {selection.run} (`edgen select`), and "
            "conversations that were left out are not made again. Generate more in "
            f"{selection.run}, and select again; or choose another folder with -o."
        )
