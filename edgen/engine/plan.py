"""What a job makes, as pure values: which scenarios, by which protocol, into which records.

Nothing here does I/O. The fingerprint names everything that shapes an outcome, so that a restart
knows which stored outcomes still stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from edgen import __version__
from edgen.config import Job, shaping
from edgen.model import Conversation, Reply, Scenario, Usage
from edgen.prompting import Prompt
from edgen.protocols import PROTOCOLS, Conversing, Rules
from edgen.records import Provenance, encode, make_record
from edgen.sampling import Sampler
from edgen.space import Space, content_sha256
from edgen.splits import group_hash


class Spent(msgspec.Struct):
    """What one conversation's calls added up to, and how its last answer ended."""

    asks: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"
    model: str | None = None
    key: bytes | None = None
    simulated: bool = False

    def add(self, reply: Reply, key: bytes) -> None:
        self.asks += 1
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        self.finish_reason = reply.finish_reason
        self.model = reply.model
        self.key = key
        self.simulated |= reply.simulated


class Plan:
    """A job with its template and space read. `scenario`, `start`, `group` and `record` are pure."""

    def __init__(self, job: Job, space: Space, prompt: Prompt) -> None:
        self.job = job
        self.prompt = prompt
        self.space = space
        self.space_sha256 = content_sha256(space)
        self.scenario = Sampler(space, job.seed, job.design).scenario
        self._start = PROTOCOLS[job.protocol]
        self._rules = Rules(asks=job.asks, seed=job.seed)

    def start(self, scenario: Scenario, replicate: int) -> Conversing:
        """The protocol's generator for one conversation."""
        return self._start(scenario, replicate, self.prompt, self._rules)

    def group(self, scenario: Scenario) -> int:
        """The hash of the group that the split keeps on one side."""
        return group_hash(self.job.split.by, self.job.seed, scenario)

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for everything that shapes an outcome: the job's shaping keys, the
        texts of template and space, the backends' identities, the split's grouping, edgen itself."""
        shape = shaping(self.job)
        for key in ("space", "prompt", "backends"):
            del shape[key]
        facts = {
            "shape": shape,
            "name": self.job.name,
            "template": self.prompt.sha256,
            "space": self.space_sha256,
            "backends": {role: dict(identity) for role, identity in identities.items()},
            "split_by": self.job.split.by,
            "edgen": __version__,
        }
        return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]

    def record(
        self,
        scenario: Scenario,
        replicate: int,
        conversation: Conversation,
        spent: Spent,
        *,
        backend: str,
        model: str,
    ) -> bytes:
        """The record of an accepted conversation, as compact JSON."""
        provenance = Provenance(
            scenario=scenario.index,
            seed=self.job.seed,
            replicate=replicate,
            protocol=self.job.protocol,
            backend=backend,
            model=spent.model or model,
            simulated=spent.simulated,
            template_sha256=self.prompt.sha256,
            space_sha256=self.space_sha256,
            attempts=spent.asks,
            finish_reason=spent.finish_reason,
            usage=Usage(spent.prompt_tokens, spent.completion_tokens),
            repairs=conversation.repairs,
        )
        return encode(make_record(self.job.name, scenario, conversation, provenance))
