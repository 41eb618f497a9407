"""Labels of one turn compared with planted truth: how often the preferred turn truly is the better one.

python -m bench credit prints the table. python -m bench.credit --write also writes
edgen/export/credit_figures.json, which cards quote.

Every conversation is simulated with planted worths (`edgen.simulator.planted_worth`). A pair's label is right
if, where the pair parts, the chosen side's turn is worth more than the other's. Calls are those beyond the
conversations.
"""

from __future__ import annotations

import datetime
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from bench.measure import ROOT, edgen
from edgen.core.pair import turns_left
from edgen.core.version import __version__
from edgen.export.evidence import ALL, CUT, FILE, CreditFigures, EvidenceCase, Figure, format_share
from edgen.simulator.planted_worth import compute_worth
from edgen.stats.intervals import share
from edgen.store.run_reader import RunReader

PLANTED, SCENARIOS = 5, 300
_BACKENDS = f"backends={{default: {{type: simulator, planted: {PLANTED}}}}}"
CLEAREST = "clearest half"  # those of the larger margins
# The number of turns after the place where two conversations part, in the shorter of the two.
CASES: dict[str, Callable[[int], bool]] = {
    ALL: lambda left: True,  # noqa: ARG005
    CUT: lambda left: left >= 1,
    "0": lambda left: left == 0,
    "1 to 3": lambda left: 1 <= left <= 3,
    "4 to 7": lambda left: 4 <= left <= 7,
    "8 and more": lambda left: left >= 8,
}


class Way(NamedTuple):
    credit: Literal["whole", "response", "rollouts"]
    by: Literal["oracle", "probability"]
    k: int | None = None

    def arguments(self) -> list[str]:
        many = [] if self.k is None else ["--rollouts", str(self.k)]
        return ["--by", self.by, "--credit", self.credit, *many]


# Labels with more rollouts come later; their calls include the same rollouts.
WAYS = (
    Way("whole", "oracle"),
    Way("response", "oracle"),
    Way("rollouts", "oracle", 1),
    Way("rollouts", "oracle", 4),
    Way("rollouts", "oracle", 16),
    Way("whole", "probability"),
    Way("rollouts", "probability", 1),
    Way("rollouts", "probability", 4),
    Way("rollouts", "probability", 16),
)


def _printed(*arguments: str) -> str:
    return edgen(*arguments).output


class _Label(NamedTuple):
    """A label of a turn.

    Its margin, the turns that follow, its scenario, whether it is right, and whether the turns are equal.
    """

    margin: float
    left: int
    scenario: int
    right: bool
    alike: bool


def measure(
    folder: Path,
    scenarios: int = SCENARIOS,
    ways: Sequence[Way] = WAYS,
    command: Callable[..., str] = _printed,
) -> CreditFigures:
    """Make the conversations, label their pairs in every way, and count.

    `command` runs edgen and returns its output.
    """
    run, job = folder / "run", str(ROOT / "jobs" / "selfplay.yaml")
    command("generate", job, "-n", str(scenarios), "-o", str(run), "--set", _BACKENDS)
    figures, played = [], {0: 0}  # calls of this many rollouts
    for way in ways:
        made = json.loads(command("pairs", str(run), *way.arguments(), "--json"))
        if way.k is not None and way.k not in played:
            played[way.k] = sum(one["calls"]["made"] for one in made["rollouts"])
        judged = 2 * made.get("judged", 0)
        labels = [*_labels(run)]
        calls = (played[way.k or 0] + judged) / len(labels)
        clearest = sorted(labels, key=lambda label: -label.margin)[: len(labels) // 2]
        cases = (
            *(_count(where, [one for one in labels if fits(one.left)]) for where, fits in CASES.items()),
            _count(CLEAREST, clearest),
        )
        figures.append(Figure(credit=way.credit, by=way.by, k=way.k, calls=round(calls, 1), cases=cases))
    with RunReader(run) as reader:
        conversations = reader.accepted
    return CreditFigures(
        date=f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}",
        edgen=__version__,
        planted=PLANTED,
        scenarios=scenarios,
        conversations=conversations,
        figures=tuple(figures),
    )


def _labels(run: Path) -> Iterator[_Label]:
    """Yield every label of a pair that parts in two turns of the teacher."""
    with RunReader(run) as reader:
        for compared in reader.compared():
            pair, prefix = compared.pair, compared.pair.prefix_turns
            if pair.label is None or pair.differs_at != "Teacher":
                continue
            a, b = (compute_worth(PLANTED, side.turns[prefix].text) for side in (compared.a, compared.b))
            right = a > b if pair.label.chosen == "a" else b > a
            left = turns_left(compared.a, compared.b, prefix)
            yield _Label(pair.label.margin, left, pair.scenario, right, a == b)


def _count(where: str, there: list[_Label]) -> EvidenceCase:
    found = share([float(label.right) for label in there], [label.scenario for label in there])
    assert found is not None, f"no label is of the case {where}"
    right, low, high = (round(one or 0.0, 4) for one in (found.value, found.low, found.high))
    return EvidenceCase(
        where=where, n=len(there), right=right, low=low, high=high, alike=sum(label.alike for label in there)
    )


def tabulate(figures: CreditFigures) -> Iterator[str]:
    """Yield all figures as a table in Markdown: one row per method, one column per case."""
    cases = [case.where for case in figures.figures[0].cases]
    yield f"| credit | calls a label | {' | '.join(cases)} |"
    yield "|---" * (len(cases) + 2) + "|"
    for figure in figures.figures:
        shares = " | ".join(_describe(figure.find_case(where)) for where in cases)
        yield f"| {figure.name} | {figure.calls:.1f} | {shares} |"


def _describe(case: EvidenceCase) -> str:
    alike = f", {case.alike} alike" if case.alike else ""
    return f"{format_share(case)} (n {case.n}{alike})"


def credit(folder: Path) -> None:
    """Print how often a label of one turn prefers the better one, by its evidence, on planted worths."""
    print("  " + "\n  ".join(tabulate(measure(folder))))


def write(figures: Any) -> None:
    """Write the file that cards quote."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="edgen-bench-") as scratch:
        measured = measure(Path(scratch))
    if "--write" in sys.argv:
        write(measured)
    print("\n".join(tabulate(measured)))
