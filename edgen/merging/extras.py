"""Merging of everything except conversations: judges' and annotators' ledgers, layers, votes, earlier files.

Derived files of a run (pairs, comparisons, report) move to `previous/`, as after a change of the job.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgen.annotation.carried_layers import carry_layers, copy_with_note, find_layer, find_unlike_layers
from edgen.core.digest import compute_fingerprint
from edgen.core.files import open_regular
from edgen.core.kept_files import require_kept
from edgen.core.pair import HumanVote
from edgen.store.ledger import RunPlan
from edgen.store.ledger.merge import Drop, MergedLedger, SourceLedger
from edgen.store.run_folder import RunFolder
from edgen.store.votes import make_rater_key, read_stored_votes, store_votes


def copy_rest(runs: Sequence[RunFolder], to: RunFolder, scratch: Path, drop: Drop) -> list[str]:
    """Merge everything except conversations from `runs` into the run `to`; return sentences about conflicts.
    `drop`: gets the facts of each dropped duplicate."""
    for run in runs:
        require_kept(
            run.pairs, f"Write it again with `edgen pairs {run.path} --signal …`; all verdicts are stored."
        )
    notes = find_unlike_layers(runs)
    those: defaultdict[Path, list[Path]] = defaultdict(list)  # judges' ledgers, by merged ledger
    for run, path in judge_ledgers(runs):
        if find_layer(run, path) not in notes:
            those[to.path / path.relative_to(run.path)].append(path)
    for made in sorted(those, key=lambda path: (path.parent != to.judged, path.name)):
        _merge_judge(to, those[made], made, scratch, drop)
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
    """Copy the candidate texts of a single run to the run `to`. For several runs, return notes on how to make
    the files from the writers' ledgers."""
    notes = {}
    for run in runs:
        for file in sorted(run.candidates.glob("*.jsonl")):
            if len(runs) == 1:
                require_kept(file, f"`edgen annotate {run.path} --write {file.stem}` writes it again.")
                to.candidates.mkdir(exist_ok=True)
                with open_regular(file) as lines:
                    to.write_lines(to.candidates / file.name, (line.removesuffix(b"\n") for line in lines))
            else:
                notes[file.name] = (
                    f"candidates/{file.name} is missing: `edgen annotate {to.path} --write {file.stem}` "
                    "makes it from the texts of the pieces."
                )
    return notes


def judge_ledgers(runs: Sequence[RunFolder]) -> list[tuple[RunFolder, Path]]:
    """Return every ledger of judges, rollouts, annotators, writers and other askers of these runs, without
    those of pairs with other runs."""
    return [
        (run, path)
        for run in runs
        for folder in run.list_asker_folders()
        if not folder.is_relative_to(run.against)
        for path in sorted(folder.glob("*.db"))
        if path.stat().st_size
    ]


def _merge_judge(run: RunFolder, ledgers: Sequence[Path], to: Path, scratch: Path, drop: Drop) -> None:
    """Merge the ledgers of one judge into the file `to`."""
    sources = [SourceLedger(path, str(path), scratch) for path in ledgers]
    to.parent.mkdir(parents=True, exist_ok=True)
    # A judge's ledgers about different conversations have different fingerprints; comparisons are identified
    # by texts.
    prints = sorted({source.fingerprint for source in sources})
    under = prints[0] if len(prints) == 1 else compute_fingerprint(prints)
    with MergedLedger(to, under, drop) as ledger:
        for source in sources:
            ledger.add(source)
        settled = ledger.count_settled()
        plan = RunPlan(
            name=sources[0].status.plan.name,
            fingerprint=under,
            scenarios=max(source.status.plan.scenarios for source in sources),
            replicates=0,
            asked=settled,
            planned=settled,
        )
        ledger.close(plan, {}, lambda _status: None)
    noted = (path.with_suffix(".json") for path in ledgers)
    if (first := next(filter(Path.is_file, noted), None)) is not None:
        copy_with_note(first, run, to.with_suffix(".json"))


def _merge_votes(runs: Sequence[RunFolder], to: RunFolder, drop: Drop) -> None:
    """Merge all votes. If a rater's votes on a pair differ, the vote of the first run counts."""
    kept: dict[tuple[str, str], dict[tuple[str, str], HumanVote]] = {}
    for run in runs:
        for pair, votes in read_stored_votes(run).items():
            for vote in votes:
                here = kept.setdefault(pair, {}).setdefault(make_rater_key(pair, vote), vote)
                if here != vote:
                    a, b = pair
                    drop({"kind": "vote", "run": str(run.path), "a": a, "b": b, **msgspec.to_builtins(vote)})
    if kept:
        store_votes(to, {pair: votes.values() for pair, votes in kept.items()})
