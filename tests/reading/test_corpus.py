"""Every reply of the corpus reads as the file next to it states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgen.core.values import Conversation, Rejection
from edgen.reading import Repair, read
from tests.cases import each

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(str(path.relative_to(CORPUS).with_suffix("")) for path in CORPUS.glob("*/*.json"))


def raw(case: str) -> str:
    return (CORPUS / f"{case}.txt").read_bytes().decode()


def expected(case: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((CORPUS / f"{case}.json").read_text(encoding="utf-8"))
    return value


def shown(result: Conversation | Rejection) -> dict[str, Any]:
    if isinstance(result, Rejection):
        return {"reason": str(result.reason)}
    return {
        "turns": [[turn.role, turn.text] for turn in result.turns],
        "probability": result.probability,
        "ended_by": result.ended_by,
        "repairs": sorted(result.repairs),
    }


@each("case", CASES)
def test_the_reply_reads_as_expected(case: str) -> None:
    facts = expected(case)
    result = read(raw(case), finish_reason=facts.get("finish_reason", "stop"), refusal=facts.get("refusal"))
    wanted = {
        key: facts[key] for key in ("turns", "probability", "ended_by", "repairs", "reason") if key in facts
    }
    assert shown(result) == wanted


def test_every_case_has_both_files() -> None:
    assert len(CASES) >= 150
    assert sorted(str(path.relative_to(CORPUS).with_suffix("")) for path in CORPUS.glob("*/*.txt")) == CASES


def test_every_repair_has_a_case() -> None:
    used = {name for case in CASES for name in expected(case).get("repairs", [])}
    assert used == {str(name) for name in Repair}
