"""Without a true difference, a 95% interval excludes zero in about one of twenty: over 200 pairs of seeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from edgen.core import resources
from edgen.core.values import Message, Turn
from edgen.evaluation.comparison.arms import Arm, ArmSums, Array, SettledConversation
from edgen.evaluation.comparison.metrics import list_metric_specs
from edgen.prompting import load_prompt, scenario_variables
from edgen.reading import read
from edgen.simulator.faults import Fault, parse, select_fault
from edgen.simulator.text import make_request_key, respond
from edgen.space import load_space
from edgen.space.sampling import Sampler
from edgen.stats.ratios import compare_paired
from tests.evaluation.comparison.values import sample
from tests.scenarios import DEFAULT_VARIABLES

pytestmark = pytest.mark.integration

SCENARIOS, SEEDS, RESAMPLES = 500, 200, 399
REFUSAL = parse("refusal=0.02").content


def turns_of_the_simulator() -> list[int]:
    """Return the numbers of turns of 200 simulated conversations."""
    prompt = load_prompt(resources.find("prompts", "education_dialogue"), DEFAULT_VARIABLES)
    scenario = Sampler(
        load_space(resources.find("preference_space", "education_dialogue")), 7, "balanced"
    ).scenario
    replies = (respond(prompt.messages(scenario_variables(scenario(i))), seed=i).text for i in range(200))
    return [len(read(reply).turns) for reply in replies]  # type: ignore[union-attr]


def turns_said(salt: int, faults: tuple[Fault, ...], turns: list[int]) -> Iterator[int | None]:
    """Yield the number of turns that the simulator draws for each scenario, None where it refuses.

    `salt` is the simulator's seed.
    """
    for i in range(SCENARIOS):
        key = make_request_key((Message("user", f"scenario {i}"),), i, salt)
        refused = select_fault(faults, int.from_bytes(key[8:], "big") / 2**64) is not None
        yield None if refused else turns[int.from_bytes(key[:8], "big") % len(turns)]


def outcomes(salt: int, faults: tuple[Fault, ...], turns: list[int]) -> Iterator[SettledConversation]:
    for i, said in enumerate(turns_said(salt, faults, turns)):
        if said is None:
            yield SettledConversation(scenario=i, replicate=0, status="rejected", reason="refused", calls=1)
        else:
            conversation = sample(i, (Turn("Teacher", ""),) * said)
            yield SettledConversation(scenario=i, replicate=0, status="accepted", calls=1, said=conversation)


def columns(salt: int, faults: tuple[Fault, ...], turns: list[int]) -> dict[str, Array]:
    """Return the sums by scenario of an arm with these outcomes."""
    found = {name: np.zeros(SCENARIOS) for name in ("settled", "accepted", "turns")}
    for i, said in enumerate(turns_said(salt, faults, turns)):
        found["settled"][i] = 1
        found["accepted"][i] = said is not None
        found["turns"][i] = said or 0
    return found


@pytest.mark.only_long
@pytest.mark.parametrize(("name", "low", "high"), [("accepted", 0.02, 0.09), ("turns", 0.02, 0.09)])
def test_a_zero_difference_is_excluded_as_often_as_it_should_be(
    shares: dict[str, float], name: str, low: float, high: float
) -> None:
    assert low <= shares[name] <= high, shares


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    turns, excluded = turns_of_the_simulator(), {"accepted": 0, "turns": 0}
    arm = Arm(
        label="0", scenarios=SCENARIOS, outcomes=lambda: outcomes(0, REFUSAL, turns), turns=lambda s, r: ()
    )
    real = ArmSums(arm)
    wanted = [spec for spec in list_metric_specs([real, real], {}) if spec.name in excluded]
    tables = [columns(salt, REFUSAL, turns) for salt in range(SEEDS)]
    assert all(np.array_equal(real.find_column(name), sums) for name, sums in tables[0].items())
    # Each arm is compared with the next: neighbours share an arm, which makes 200 pairs worth 145 independent
    # ones.
    for seed, (a, b) in enumerate(zip(tables, [*tables[1:], tables[0]], strict=True)):
        rng = np.random.default_rng(seed)
        made = compare_paired(a.__getitem__, b.__getitem__, wanted, rng, RESAMPLES, 99)
        for spec, found in zip(wanted, made, strict=True):
            assert found.low is not None
            assert found.high is not None
            excluded[spec.name] += found.low > 0 or found.high < 0
    return {name: count / SEEDS for name, count in excluded.items()}
