"""What a merged run has of its inputs beside their conversations: judges' and annotators' ledgers, layers, votes, earlier
files.

What is derived of a run, its pairs, comparisons and report, goes into `previous/`, as it does where a job changes.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgen.core.digest import fingerprint
from edgen.core.pair import HumanVote
from edgen.execution.carried_layers import carry_layers, find_unlike_layers, layer_of
from edgen.store.ledger import Drop, MergedLedger, RunPlan, SourceLedger
from edgen.store.run_folder import RunFolder
from edgen.store.votes import store_votes, stored_votes


def copy_rest(runs: Sequence[RunFolder], to: RunFolder, scratch: Path, drop: Drop) -> list[str]:
    """Put into the run `to` what is beside the conversations in `runs`; returns sentences about what does not fit together."""
    notes = find_unlike_layers(runs)
    those: defaultdict[Path, list[Path]] = defaultdict(
        list
    )  # judges' ledgers, by the one that is made of them
    for run, path in judge_ledgers(runs):
        if layer_of(run, path) not in notes:
            those[to.path / path.relative_to(run.path)].append(path)
    for made in sorted(those, key=lambda path: (path.parent != to.judged, path.name)):
        _merge_judge(those[made], made, scratch, drop)
    carry_layers(runs, to, notes, drop)
    _merge_votes(runs, to, drop)
    notes |= _carry_candidates(runs, to)
    number = 0
    for run in runs:
        earlier = sorted((p for p in run.previous.glob("*") if p.name.isdigit()), key=lambda p: int(p.name))
        for folder in earlier:
            number += 1
            shutil.copytree(folder, to.previous / str(number))
        if derived := [path for path in (run.pairs, run.comparisons, run.report) if path.exists()]:
            number += 1
            (kept := to.previous / str(number)).mkdir(parents=True)
            for path in derived:
                (shutil.copytree if path.is_dir() else shutil.copyfile)(path, kept / path.name)
    return [*notes.values()]


def _carry_candidates(runs: Sequence[RunFolder], to: RunFolder) -> dict[str, str]:
    """Have one run's written texts in the run `to`; of several, sentences about how they are made of what was written."""
    notes = {}
    for run in runs:
        for file in sorted(run.candidates.glob("*.jsonl")):
            if len(runs) == 1:
                to.candidates.mkdir(exist_ok=True)
                shutil.copyfile(file, to.candidates / file.name)
            else:
                notes[file.name] = (
                    f"candidates/{file.name} is not there yet: `edgen candidates {to.path} --write {file.stem}` makes it of what "
                    "was written for the pieces."
                )
    return notes


def judge_ledgers(runs: Sequence[RunFolder]) -> list[tuple[RunFolder, Path]]:
    """Every ledger of a judge, of rollouts, of an annotator or of a writer of these runs."""
    return [
        (run, path)
        for run in runs
        for folder in (
            run.judged,
            run.rollouts,
            run.adherence,
            *sorted(run.layers.glob("*/annotators")),
            *run.writers(),
        )
        for path in sorted(folder.glob("*.db"))
        if path.stat().st_size
    ]


def _merge_judge(ledgers: Sequence[Path], to: Path, scratch: Path, drop: Drop) -> None:
    """Make one ledger of a judge of all that it has."""
    sources = [SourceLedger(path, str(path), scratch) for path in ledgers]
    to.parent.mkdir(parents=True, exist_ok=True)
    # The judge's work on other conversations has another fingerprint; what was judged is known by its texts.
    prints = sorted({source.fingerprint for source in sources})
    under = prints[0] if len(prints) == 1 else fingerprint(prints)
    with MergedLedger(to, under, drop) as ledger:
        for source in sources:
            ledger.add(source)
        settled = ledger.settled()
        plan = RunPlan(
            name=sources[0].status.plan.name,
            fingerprint=under,
            scenarios=max(source.status.plan.scenarios for source in sources),
            replicates=0,
            asked=settled,
            planned=settled,
        )
        simulated = any(source.facts.get("simulated") == source.fingerprint for source in sources)
        ledger.close(plan, {"simulated": under} if simulated else {}, lambda _status: None)
    noted = (path.with_suffix(".json") for path in ledgers)
    if (first := next(filter(Path.is_file, noted), None)) is not None:
        shutil.copyfile(first, to.with_suffix(".json"))


def _merge_votes(runs: Sequence[RunFolder], to: RunFolder, drop: Drop) -> None:
    """All votes; of a rater who votes otherwise on the same pair, the one in the first of the runs."""
    kept: dict[tuple[str, str], dict[str, HumanVote]] = {}
    for run in runs:
        for (a, b), votes in stored_votes(run).items():
            for vote in votes:
                here = kept.setdefault((a, b), {}).setdefault(vote.rater, vote)
                if here != vote:
                    drop({"kind": "vote", "run": str(run.path), "a": a, "b": b, **msgspec.to_builtins(vote)})
    if kept:
        store_votes(to, {pair: votes.values() for pair, votes in kept.items()})
