"""What a merged run has of its inputs beside their conversations: judges' ledgers, votes, earlier files.

What is derived of a run, its pairs, comparisons and report, goes into `previous/`, as it does where a job changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgen.core.digest import fingerprint
from edgen.core.pair import HumanVote
from edgen.store.ledger import Drop, MergedLedger, RunPlan, RunStatus, SourceLedger
from edgen.store.run_folder import RunFolder
from edgen.store.votes import store_votes, stored_votes


def copy_rest(runs: Sequence[RunFolder], to: RunFolder, scratch: Path, drop: Drop) -> None:
    """Put into the run `to` what is beside the conversations in `runs`."""
    _merge_judges([run.judged for run in runs], to.judged, scratch, drop)
    _merge_judges([run.adherence for run in runs], to.adherence, scratch, drop)
    _merge_votes(runs, to, drop)
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


def judge_ledgers(runs: Sequence[RunFolder]) -> list[tuple[RunFolder, Path]]:
    """Every judge's ledger of these runs."""
    return [
        (run, path)
        for run in runs
        for folder in (run.judged, run.adherence)
        for path in sorted(folder.glob("*.db"))
        if path.stat().st_size
    ]


def _merge_judges(folders: Sequence[Path], to: Path, scratch: Path, drop: Drop) -> None:
    """One ledger for each judge, of all of its ledgers."""
    for name in sorted(
        {path.name for folder in folders for path in folder.glob("*.db") if path.stat().st_size}
    ):
        those = [path for folder in folders if (path := folder / name).is_file() and path.stat().st_size]
        sources = [SourceLedger(path, str(path), scratch) for path in those]
        to.mkdir(parents=True, exist_ok=True)
        under = _under(sources)
        with MergedLedger(to / name, under, drop) as ledger:
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
            ledger.close(plan, {"simulated": under} if simulated else {}, _nothing)
        for path in those:
            facts = path.with_suffix(".json")
            if facts.is_file() and not (kept := to / facts.name).exists():
                shutil.copyfile(facts, kept)


def _under(sources: Sequence[SourceLedger]) -> str:
    """What the outcomes of a judge's ledgers stand under together: the judge's work on other conversations has
    another fingerprint, and what was judged is known by its texts."""
    prints = sorted({source.fingerprint for source in sources})
    if len(prints) == 1:
        return prints[0]
    return fingerprint(prints)


def _nothing(_status: RunStatus) -> str | None:
    return None


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
