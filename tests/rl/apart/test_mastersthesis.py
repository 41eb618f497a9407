"""Another project's reader of CIMA's release takes an export in its layout.

It is no package: with the root of a checkout of github.com/AayushKucheria/MastersThesis (8815371) on
PYTHONPATH, `python -m pytest tests/rl/apart/test_mastersthesis.py`. It reads the half of prepositional
phrases, the only one in the release's newest file.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.domains.tutoring.test_cima import Context, contexts_of, entries_of, run_of

pytestmark = pytest.mark.integration


def test_it_reads_every_entry_with_the_runs_own_texts_and_actions(tmp_path: Path) -> None:
    process = importlib.import_module("data_processing").process_conversation
    transform = importlib.import_module("transform_cima").transform_cima_to_gemini_format
    run = run_of(tmp_path, "italian_prepositions")
    run.export("cima", tmp_path / "out")
    entries = entries_of(tmp_path / "out")
    read = [process(entry) for entry in entries]
    responses = transform({"prepDataset": {str(at): entry for at, entry in enumerate(entries)}})
    found = [
        Context(
            tuple(one.context["conversation_history"]),
            tuple(action.capitalize() for action in one.student_actions),
            tuple((said.response, tuple(map(str.capitalize, said.actions))) for said in one.tutor_responses),
        )
        for one in read
    ]
    assert sorted(found) == sorted(contexts_of(run))
    assert all(one.context["grammar_rules"] for one in read), "the rules are read, too"
    for at, one in enumerate(found):
        theirs = [
            (said["response"], tuple(map(str.capitalize, said["actions"]))) for said in responses[str(at)]
        ]
        assert tuple(theirs) == one.responses
    for one, entry in zip(read, entries, strict=True):
        assert one.context["target_phrase"]["it"] == f"{entry['prep']} {entry['obj']} {entry['color']}"
