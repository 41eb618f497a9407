"""Templates of this domain that show a fence, for tests/protocols/test_fences.py."""

from __future__ import annotations

from edgen.core.values import Turn
from edgen.domains.retrieval.ranking_protocol import _list_variables
from tests.protocols.fenced import HERE, render


def ranking(turns: list[Turn]) -> str:
    return render("rank_candidates", _list_variables(turns, [turns[1].text, "Another."], HERE, 7))


PROMPTS = {
    "rank_candidates": ranking,
}
