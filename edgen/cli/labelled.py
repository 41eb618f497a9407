"""What `edgen pairs` tells: the facts of what was made, what is short, and the bias report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgen.cli.output import print_json, print_line
from edgen.cli.status import reasons
from edgen.errors import ShortError

if TYPE_CHECKING:
    from edgen.model import Turn
    from edgen.pairing.model import Compare
    from edgen.runreader import Compared, RunReader


# Comparisons that end without a question to the judge.
_NEVER_SHOWN = ("identical", "no_responses")


def print_made(facts: dict[str, Any], bias: dict[str, Any] | None, *, json: bool) -> None:
    """Print what was made, and the bias report behind it where there is one."""
    if json:
        print_json(facts if bias is None else {**facts, "report": bias})
        return
    for line in _made_lines(facts):
        print_line(line)
    if bias is not None:
        print_report(bias, json=False)


def _made_lines(facts: dict[str, Any]) -> Iterator[str]:
    """What was made, for a person, a line a fact."""
    yield (f"run        {facts['run']}{' (simulated)' if facts.get('simulated') else ''}")
    yield (f"scenarios  {facts['scenarios']} with conversations to compare")
    if "judge" in facts:
        unasked = {key: n for key, n in facts["rejected"].items() if key in _NEVER_SHOWN}
        abstained = {key: n for key, n in facts["rejected"].items() if key not in _NEVER_SHOWN}
        cost = facts["cost_usd"]
        yield (f"judge      {facts['model']} ({facts['judge']})")
        yield (f"planned    {facts['planned']}")
        yield (f"judged     {facts['judged']}")
        yield (f"not shown  {reasons(unasked)}")
        yield (f"abstained  {reasons(abstained)}")
        yield (f"failed     {reasons(facts['failed'])}")
        yield (f"pending    {facts['pending']}")
        yield (f"calls      {facts['calls']['made']} made, {facts['calls']['replayed']} replayed")
        yield (f"cost       {'unknown (no price in the job)' if cost is None else f'${cost:.4f}'}")
    if "pairs" in facts:
        yield (f"labelled   {sum(facts['pairs'].values())} by {facts['by']}")
        yield (f"left out   {reasons(facts['left_out'])}")
        yield (f"split      {facts['pairs']['train']} train, {facts['pairs']['test']} test")
        yield (f"pairs      {facts['file']}")


def complain(facts: dict[str, Any]) -> None:
    """Raise ShortError if something is short."""
    if not sum(facts["pairs"].values()):
        hints = {
            "tie": "The orders disagree: see --report for the judge's biases; more votes (--set pairs.votes=3) or another judge may help.",
            "abstained": {
                "oracle": "The judge's answers cannot be read: another template or judge may help.",
                "probability": "Probabilities are missing (selfplay: `closing: student` asks for them).",
                "human": "",
            }[facts["by"]],
            "margin": "A lower --min-margin keeps more.",
            "judge_directed": "Their texts speak to a judge; --set pairs.judge_directed=label labels them all the same.",
            "identical": "The conversations of a scenario say the same: give the backend a temperature.",
            "contradicted": "The verdicts go in circles: more votes (--set pairs.votes=3) may help.",
            "not_judged": "Nothing was said about these very conversations by this source.",
        }
        most = max(facts["left_out"], key=lambda reason: facts["left_out"][reason], default="")
        raise ShortError(
            f"No pair could be labelled by {facts['by']}: {reasons(facts['left_out'])}. {hints.get(most, '')} "
            "Labels by another source come back, without a call, with `edgen pairs` --by that source.".replace(
                "  ", " "
            )
        )
    if failed := sum(facts.get("failed", {}).values()) + facts.get("pending", 0):
        raise ShortError(
            f"{failed} of {facts['planned']} pairs got no answer ({reasons(facts['failed'])}). "
            "They are asked again when the same command is run again."
        )


def bias_of(reader: RunReader) -> dict[str, Any]:
    """Position and length bias, agreement and calibration of a run's pairs, see `pairing.bias`."""
    from edgen.pairing.bias import bias_report

    return bias_report((compared.pair, _lengths(compared)) for compared in reader.compared())


def print_report(bias: dict[str, Any], *, json: bool) -> None:
    """Print a bias report."""
    from edgen.pairing.bias import render

    if json:
        print_json(bias)
        return
    for line in render(bias):
        print_line(line)


def _lengths(compared: Compared) -> dict[Compare, tuple[int, int]]:
    """The words that a judge was shown of each side, by what it compared."""
    a, b, prefix = compared.a.turns, compared.b.turns, compared.pair.prefix_turns
    part = slice(prefix, prefix + 1)
    return {
        "conversation": (_words(a), _words(b)),
        "response": (_words(a[part]), _words(b[part])),
    }


def _words(turns: tuple[Turn, ...]) -> int:
    return sum(len(turn.text.split()) for turn in turns)
