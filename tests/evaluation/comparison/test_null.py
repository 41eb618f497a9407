"""Where nothing differs, a 95% interval excludes zero in about one of twenty: over 200 pairs of seeds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from edgen.core import resources
from edgen.core.values import Message, Turn
from edgen.evaluation.comparison.arms import Arm, ArmSums, SettledConversation
from edgen.evaluation.comparison.metrics import metric_specs
from edgen.prompting import load_prompt, scenario_variables
from edgen.reading import read
from edgen.simulator.faults import Fault, parse, struck
from edgen.simulator.text import request_key, respond
from edgen.space import load_space
from edgen.space.education import EDUCATION_VARIABLES
from edgen.space.sampling import Sampler
from edgen.stats.ratios import paired_differences
from tests.evaluation.comparison.values import sample

pytestmark = pytest.mark.integration

SCENARIOS, SEEDS, RESAMPLES = 500, 200, 999
REFUSAL = parse("refusal=0.02").content


def turns_of_the_simulator() -> list[int]:
    """How many turns 500 of its conversations have."""
    prompt = load_prompt(resources.find("prompts", "education_dialogue"), EDUCATION_VARIABLES)
    scenario = Sampler(
        load_space(resources.find("preference_space", "education_dialogue")), 7, "balanced"
    ).scenario
    replies = (respond(prompt.messages(scenario_variables(scenario(i))), seed=i).text for i in range(500))
    return [len(read(reply).turns) for reply in replies]  # type: ignore[union-attr]


def outcomes(salt: int, faults: tuple[Fault, ...], turns: list[int]) -> Iterator[SettledConversation]:
    """What the simulator's own draw makes of each scenario; `salt` is the simulator's seed."""
    for i in range(SCENARIOS):
        key = request_key((Message("user", f"scenario {i}"),), i, salt)
        if struck(faults, int.from_bytes(key[8:], "big") / 2**64) is None:
            said = (Turn("Teacher", ""),) * turns[int.from_bytes(key[:8], "big") % len(turns)]
            yield SettledConversation(
                scenario=i, replicate=0, status="accepted", calls=1, said=sample(i, said)
            )
        else:
            yield SettledConversation(scenario=i, replicate=0, status="rejected", reason="refused", calls=1)


def table(salt: int, turns: list[int]) -> ArmSums:
    drawn = partial(outcomes, salt, REFUSAL, turns)
    return ArmSums(Arm(label=str(salt), scenarios=SCENARIOS, outcomes=drawn, turns=lambda s, r: ()))


@pytest.mark.parametrize(("name", "low", "high"), [("accepted", 0.02, 0.09), ("turns", 0.02, 0.09)])
def test_a_zero_difference_is_excluded_as_often_as_it_should_be(
    shares: dict[str, float], name: str, low: float, high: float
) -> None:
    assert low <= shares[name] <= high, shares


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    turns, excluded = turns_of_the_simulator(), {"accepted": 0, "turns": 0}
    tables = [table(salt, turns) for salt in range(SEEDS)]
    # Each is compared with the next: neighbours share an arm, which makes 200 pairs worth 145 of arms of their own.
    for seed, (a, b) in enumerate(zip(tables, [*tables[1:], tables[0]], strict=True)):
        wanted = [spec for spec in metric_specs([a, b]) if spec.name in excluded]
        rng = np.random.default_rng(seed)
        for spec, found in zip(
            wanted, paired_differences(a.column, b.column, wanted, rng, RESAMPLES, 99), strict=True
        ):
            assert found.low is not None
            assert found.high is not None
            excluded[spec.name] += found.low > 0 or found.high < 0
    return {name: count / SEEDS for name, count in excluded.items()}
