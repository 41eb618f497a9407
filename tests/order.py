"""The order of the tests: those that wait stand between those that compute, so that at no time all workers wait.

pytest-xdist gives each worker one stretch of the list. Left in the order of their folders, the tests of `execution`,
which sit out time limits, kills and outages, would all run at the same time.

The tests of pages and of documents come first: some take half a minute, and one that is begun last runs alone.

Files that import the services' SDKs stand next to each other, so that one worker imports them, and not each of them:
litellm takes five CPU seconds, the others together as much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tiers import folder_of

FIRST = frozenset({"web", "test_plugin_page.py", "test_readme.py", "test_windows.py"})
WAITING = "execution"
IMPORTING = frozenset(
    {
        "test_batches_anthropic.py",
        "test_batches_gemini.py",
        "test_batches_openai.py",
        "test_fields.py",
        "test_frameworks.py",
        "test_keys.py",
        "test_litellm.py",
        "test_litellm_jobs.py",
        "test_litellm_keys.py",
        "test_logprobs.py",
        "test_sdk.py",
        "test_server.py",
        "test_server_anthropic.py",
        "test_server_gemini.py",
        "test_server_responses.py",
        "test_server_structured.py",
        "test_vertex.py",
    }
)


def spread(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, file by file as before: those of `FIRST`, then the files of `WAITING` evenly between the others,
    those of `IMPORTING` where the first of them is."""
    first: list[pytest.Item] = []
    files: dict[bool, dict[Path, list[pytest.Item]]] = {True: defaultdict(list), False: defaultdict(list)}
    for item in items:
        folder = folder_of(item.path)
        (first if folder in FIRST else files[folder == WAITING][item.path]).append(item)
    placed = []
    for group in files.values():
        importing = [place for place, path in enumerate(group) if path.name in IMPORTING]
        for place, (path, tests) in enumerate(group.items()):
            position = importing[0] if path.name in IMPORTING else place
            placed.append((position / len(group), tests))
    return first + [item for _, tests in sorted(placed, key=lambda each: each[0]) for item in tests]
