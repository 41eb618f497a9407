"""A file with more findings than are kept: the first of each kind, and counts of the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edgen.validation import checker
from edgen.validation.checker import Checker, SeenIds
from edgen.validation.stream import Piece

TURNS = [{"role": "Teacher", "text": ""}, {"role": "Student", "text": "..."}]
INFO = dict.fromkeys(
    ("topic", "student_prefrences", "student_reactions", "teacher_prefrences", "teacher_reactions"), "x"
)
RECORD = msgspec.json.encode({"background_info": INFO, "conversation": TURNS})


def test_the_first_of_each_kind_are_kept_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "MOST", most := 1_000)
    piece = Piece(raw=msgspec.Raw(RECORD), key=None)
    report = Checker().check_file("f.json", (piece for _ in range(most + 500)))
    assert report.records == most + 500
    assert report.valid == 0
    assert report.counts["ellipsis_turn"] == most + 500
    assert sum(one.kind == "ellipsis_turn" for one in report.problems) == most
    assert isinstance(report.more, dict)
    assert report.more["ellipsis_turn"] == 500


def test_a_report_with_few_findings_names_no_more() -> None:
    report = Checker().check_file("f.json", [Piece(raw=msgspec.Raw(RECORD), key=None)])
    assert b"more" not in msgspec.json.encode(report)


def test_repeated_ids_are_told_by_their_first_place() -> None:
    ids = SeenIds()
    assert ids.find_repeated_id("a", "one.json", 3) is None
    assert ids.find_repeated_id("a", "one.json", 3) is None
    assert ids.find_repeated_id("a", "one.json", 7) == '"a" is also the id of record 3'
    assert ids.find_repeated_id("a", "two.json", 0) == '"a" is also the id of record 3 of one.json'
    assert ids.find_repeated_id("a", "two.json", 0, within="two.json") is None


@pytest.mark.only_long
@pytest.mark.skipif(sys.platform == "win32", reason="peaks are read from the kernel")
@pytest.mark.integration
def test_a_file_four_times_as_large_takes_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for records in (12_000, 48_000):
        path = tmp_path / f"{records}.json"
        path.write_bytes(b"[" + b",".join([RECORD] * records) + b"]")
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom edgen.api.validating import validate\n"
            f"validate([Path({str(path)!r})])\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        peaks.append(int(json.loads(done.stdout)))
    assert peaks[1] < peaks[0] + 24_000, (
        peaks
    )  # KiB: a window of the file, not a hundred bytes for each finding
