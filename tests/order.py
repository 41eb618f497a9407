"""The order of the tests: tests that wait stand between tests that compute, so that never all workers wait.

pytest-xdist gives each worker one stretch of the list. In the order of their folders, the tests of
`execution`, which wait for time limits, kills and outages, would all run at the same time.

The tests of pages and of documents come first: some take half a minute, and a test that starts last runs
alone.

Files that import the services' SDKs stand next to each other, so that one worker imports them, and not each
of them: litellm takes five CPU seconds, the others together as much.

The test that type-checks a user's program comes last: by then mypy, which runs in parallel with the tests,
has filled its cache.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import ROOT
from tests.tiers import folder_of

FIRST = frozenset({"web", "test_plugin_page.py", "test_readme.py", "test_windows.py"})
WAITING = "execution"
IMPORTING = frozenset(
    {
        "providers/test_keys.py",
        "providers/test_litellm.py",
        "providers/test_litellm_jobs.py",
        "providers/test_litellm_keys.py",
        "providers/test_logprobs.py",
        "providers/test_vertex.py",
        "simulator/service/test_server.py",
        "simulator/test_batches_anthropic.py",
        "simulator/test_batches_gemini.py",
        "simulator/test_batches_openai.py",
        "simulator/test_fields.py",
        "simulator/test_frameworks.py",
        "simulator/test_logprobs.py",
        "simulator/test_server_anthropic.py",
        "simulator/test_server_gemini.py",
        "simulator/test_server_responses.py",
        "simulator/test_server_structured.py",
        "test_conformance.py",
    }
)
IMPORTING_FOLDER = "providers/batches/"
LAST = "test_package.py"  # of the folder api


def is_importing(path: Path) -> bool:
    """Return whether a file's tests import the services' SDKs."""
    name = path.relative_to(ROOT / "tests").as_posix()
    return name in IMPORTING or name.startswith(IMPORTING_FOLDER)


def spread(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the same tests in another order of files.

    First those of `FIRST`; then the files of `WAITING` evenly between the others, with those that import SDKs
    at the place of the first of them; at the end those of `LAST`.
    """
    first: list[pytest.Item] = []
    last: list[pytest.Item] = []
    files: dict[bool, dict[Path, list[pytest.Item]]] = {True: defaultdict(list), False: defaultdict(list)}
    for item in items:
        folder = folder_of(item.path)
        if folder in FIRST:
            first.append(item)
        elif folder == "api" and item.path.name == LAST:
            last.append(item)
        else:
            files[folder == WAITING][item.path].append(item)
    placed = []
    for group in files.values():
        importing = [place for place, path in enumerate(group) if is_importing(path)]
        for place, (path, tests) in enumerate(group.items()):
            position = importing[0] if is_importing(path) else place
            placed.append((position / len(group), tests))
    return [*first, *(item for _, tests in sorted(placed, key=lambda each: each[0]) for item in tests), *last]
