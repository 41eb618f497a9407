"""Templates of this domain that show a fence, for tests/protocols/test_fences.py."""

from __future__ import annotations

from tests.protocols.fenced import fenced

PROMPTS = {
    "forum_moderator_guarded": fenced("forum_moderator_guarded", names=["#1", "nobody"]),
}
