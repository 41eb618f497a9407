"""Tokens and cost that an asker would need, for --dry-run. Nothing is sent or written.

The estimate renders a seeded sample of the missing requests and counts their tokens. The asker guesses the
answers.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgen.asking.call_estimates import NeededCalls, count_needs
from edgen.asking.ledger_paths import AskerFolder
from edgen.asking.units import UnitAsker
from edgen.core.options import Via
from edgen.cost.assumptions import ASKS, RENDERED, estimate_answer_tokens
from edgen.cost.tokens import TokenCounter
from edgen.cost.usage import CallUse, RolePrices, UsageRange
from edgen.protocols.parts import close_generator
from edgen.providers import Backend
from edgen.store.ledger import run_status

_SURE = 1.96  # standard errors of a sampled mean


class UseNeeds(NamedTuple):
    """The use of an asker's remaining requests."""

    needs: NeededCalls
    uses: UsageRange
    rendered: int  # requests that were rendered and counted
    changed: bool  # the run or the prompts have changed since the ledger was made, so no stored answer counts


def estimate_use(
    asker: UnitAsker, place: AskerFolder, backend: Backend, count: TokenCounter, via: Via
) -> UseNeeds:
    """Return the use that an asker would make of a backend. `count` counts tokens."""
    ledger = place.find_ledger(asker)
    identities = {asker.role: backend.identity}
    changed = ledger.exists() and run_status(ledger).plan.fingerprint != asker.make_fingerprint(identities)
    stored = None if changed else ledger
    unanswered: list[tuple[int, str]] = []
    needs = count_needs(asker, stored, unanswered)
    rng = random.Random(f"{asker.job.seed}/{asker.drawn_by}")  # noqa: S311 - reproducible, not secret
    chosen = rng.sample(range(needs.missing), min(needs.missing, RENDERED))
    seen = [*_count_tokens((unanswered[number] for number in sorted(chosen)), asker, count)]
    return UseNeeds(needs, _price(asker, seen, needs.missing, count.error, via), len(seen), changed)


def _count_tokens(
    units: Iterator[tuple[int, str]], asker: UnitAsker, count: TokenCounter
) -> Iterator[tuple[int, float]]:
    """Yield (prompt tokens, mean tokens of the guessed answers) of each request."""
    for index, task in units:
        unit = asker.read_unit(index, task)
        protocol = asker.ask(unit)
        request = next(protocol)
        close_generator("asker", getattr(asker, "name", ""), protocol)
        guessed = statistics.fmean(count.count(answer) for answer in asker.guess_answers(unit))
        yield count.count_prompt(request.messages, request.schema), guessed


def _price(
    asker: UnitAsker, seen: Sequence[tuple[int, float]], requests: int, error: float, via: Via
) -> UsageRange:
    """Extrapolate the usage of all requests from a sample of them."""
    job, role = asker.job, asker.role
    rates = RolePrices(job, via, {role: job.backends[role]})
    if not seen:
        return UsageRange(CallUse(), CallUse(), CallUse())
    prompt, answer = (statistics.fmean(one) for one in zip(*seen, strict=True))
    spread = statistics.stdev(one for one, _ in seen) if len(seen) > 1 else 0.0
    drawn = _SURE * spread / math.sqrt(len(seen)) if len(seen) < requests else 0.0
    levels = []
    for level, asks in enumerate(ASKS):
        calls, size = requests * min(asks, float(asker.asks)), answer * asker.answer_sizes[level]
        shown = prompt * (1 + (level - 1) * error) + (level - 1) * drawn
        tokens = estimate_answer_tokens(job, role, size, level)
        levels.append(rates.price_calls(role, calls, calls * shown, calls * tokens))
    return UsageRange(*levels).with_cache()
