"""The single rollouts of a pair's signal, read from the ledgers of the run."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET

from edgen.config import PairSettings
from edgen.core.kept_files import require_kept
from edgen.core.pair import Pair, Side, make_candidate_name
from edgen.core.values import RejectionReason
from edgen.preferences.choice import Divergence, PairChoice
from edgen.preferences.comparisons import decode_judged, name_comparison
from edgen.preferences.rollout_signals import Outcomes, list_rollout_signals
from edgen.preferences.rollouts import DivergingTurn, PlayedRollouts
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader


class RolloutOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The rollouts of one number from both responses: their probabilities of understanding, None if unknown
    or missing. `p`: the judge's preference for the first; None if it was not asked or abstained. `tie`: its
    orders disagree, or both rollouts are identical."""

    number: int
    a: float | None
    b: float | None
    p: float | None
    tie: bool = False


def find_rollouts(reader: RunReader, pair: Pair) -> list[RolloutOutcome]:
    """Return the rollouts of a pair's signals; empty if it has no such signal, or the run no longer has its
    rollouts. Raises RunError if a conversation is missing, and for a changed file."""
    signals = () if pair.signals.rollouts is UNSET else pair.signals.rollouts
    if not signals:
        return []
    names = [make_candidate_name(side.arm or "", side.replicate) for side in (pair.a, pair.b)]
    divergence = Divergence.of(*(reader.candidate(pair.scenario, name) for name in names))
    choice = PairChoice(reader, PairSettings(rollouts=signals[0].k))
    judged = _find_outcomes(reader, next(filter(None, (one.judge for one in signals)), None), pair.scenario)
    responses = [DivergingTurn(name, divergence.prefix + 1) for name in names]
    for ledgers in _list_ledgers(reader, pair):
        with PlayedRollouts(choice, {path.stem: path for path in ledgers}) as played:
            made = list_rollout_signals(played, pair.scenario, (names[0], names[1]), divergence, judged)
            if tuple(made) == signals:
                return [*_list_outcomes(played, pair.scenario, responses, judged or {})]
    return []


def _list_ledgers(reader: RunReader, pair: Pair) -> Iterator[tuple[Path, ...]]:
    """Yield the ledgers that may hold the rollouts: one for each arm of the pair."""
    folder = reader.rundir

    def of(side: Side) -> list[Path]:
        return [path for path in folder.rollout_ledgers() if _find_arm(path) == (side.arm or "")]

    arms = {side.arm: of(side) for side in (pair.a, pair.b)}
    yield from itertools.product(*arms.values())


class _Noted(msgspec.Struct):
    arm: str = ""


def _find_arm(ledger: Path) -> str | None:
    """Return the arm whose rollouts a ledger holds. Raises DamagedError if the note of it was changed."""
    require_kept(ledger.with_suffix(".json"), "Restore it from a copy of the run.")
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(ledger.with_suffix(".json").read_bytes(), type=_Noted).arm
    return None


def _find_outcomes(reader: RunReader, judge: str | None, index: int) -> Outcomes | None:
    """Return a judge's outcomes of a scenario."""
    path = None if judge is None else reader.rundir.judged / f"{judge}.db"
    if path is None or not path.exists():
        return None
    with LedgerReader(path) as view:
        return view.read_outcomes(index)


def _list_outcomes(
    played: PlayedRollouts, index: int, responses: list[DivergingTurn], judged: Outcomes
) -> Iterator[RolloutOutcome]:
    both = zip(*(played.of(index, one) for one in responses), strict=True)
    for number, (a, b) in enumerate(both):
        task = name_comparison(*(one.name_rollout(number) for one in responses))
        _, reason, record = judged.get(task, (None, None, None))
        said = None if record is None else decode_judged(record).signal
        equal = reason == RejectionReason.IDENTICAL
        yield RolloutOutcome(
            number=number,
            a=None if a is None else a.probability,
            b=None if b is None else b.probability,
            p=0.5 if equal else None if said is None else said.p,
            tie=equal or (said is not None and said.tie),
        )
