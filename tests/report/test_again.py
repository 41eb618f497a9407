"""A run repeated from its report's instructions alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edgen.report.gather import gather
from edgen.report.page import write_report
from tests.cli.command import Command
from tests.dose import dose
from tests.report.runs import made


def instructions(page: str) -> tuple[list[str], dict[str, str]]:
    """Return the commands of the section, and its files by the names under which to save them."""
    found = re.search(r'<section id="again">(.*?)</section>', page, re.DOTALL)
    assert found
    # as a browser does, without the line feed after <pre>
    files = re.findall(r'<summary>([^<]+)</summary><pre class="file">\n(.*?)</pre>', found[1], re.DOTALL)
    return re.findall(r"<pre>(.*?)</pre>", found[1], re.DOTALL), {n: html.unescape(t) for n, t in files}


def shards(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("shards/conversations_*")}


@pytest.mark.long
@pytest.mark.parametrize("kind", dose(["arms"], ["plain", "arms"]))
def test_the_page_alone_is_enough(
    kind: str,
    reported: Callable[[str], Path],
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = reported(kind)
    page = (run / "report.html").read_text()
    commands, files = instructions(page)
    assert f"save {', '.join([*files][:-1])} and {[*files][-1]} from below, under these names" in page
    empty = tmp_path / "empty"
    for name, text in files.items():
        (empty / name).parent.mkdir(parents=True, exist_ok=True)
        (empty / name).write_text(text)
    monkeypatch.chdir(empty)
    assert commands[1] == "edgen generate job.yaml -o again"
    assert command(*commands[1].split()[1:]).code in (0, 3)
    assert shards(run)
    assert shards(empty / "again") == shards(run)
    # and with the folder, at any place
    monkeypatch.chdir(tmp_path)
    assert command(*commands[0].replace("RUN", str(run)).split()[1:]).code in (0, 3)
    assert shards(tmp_path / "again") == shards(run)


def test_what_the_page_cannot_carry_is_not_promised(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    space = run / "inputs" / "space.yaml"
    text = space.read_text()
    (run / "digests.json").unlink()  # as after an older edgen: the copy is accepted unchanged
    for more in ("# a longer one\n" * 10_000, "# \u202e\n"):
        space.write_text(text + more)
        assert gather(run).inputs is None
    page = write_report(run).path.read_text()
    commands, files = instructions(page)
    assert commands == ["edgen generate RUN/job.yaml -o again"]
    assert [*files] == ["job.yaml"]
    assert "You need the run's folder" in page
    assert "space, sha256" in page
