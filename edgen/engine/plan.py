"""What a job makes, as pure values: which scenarios, by which protocol, into which records.

Nothing here does I/O. The fingerprint names everything that shapes an outcome, so that a restart
knows which stored outcomes still stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from edgen import __version__
from edgen.config import Job, own_words, roles_asked, shaping
from edgen.engine.task import Answered, Settled, Spent, Task
from edgen.model import Conversation, Rejection, RejectionReason, Scenario, Usage
from edgen.prompting import Prompt
from edgen.protocols import Result, Rules, protocol
from edgen.records import Provenance, encode, make_record
from edgen.sampling import Sampler
from edgen.space import Space, content_sha256
from edgen.splits import group_hash
from edgen.validation import is_valid

if TYPE_CHECKING:
    from edgen.protocols.stage import Stage


class Plan:
    """A job with its templates and space read. Its tasks are conversations; all of it is pure.

    `prompts` holds the templates by what they are for; `extra_prompts` those that shape no conversation,
    to be kept with the run.
    """

    def __init__(
        self,
        job: Job,
        space: Space,
        prompts: Mapping[str, Prompt],
        extra_prompts: Mapping[str, Prompt] | None = None,
    ) -> None:
        self.job = job
        self.prompts = prompts
        self.extra_prompts = extra_prompts or {}
        self.space = space
        self.space_sha256 = content_sha256(space)
        self.template_sha256 = _sha256_of(prompts)
        self.scenario = Sampler(space, job.seed, job.design).scenario
        # Whether conversations ask one another's requests.
        self.shares = job.branch is not None
        self.roles = roles_asked(job)
        self._start = protocol(job.protocol)
        self._rules = Rules(
            asks=job.asks, seed=job.seed, selfplay=job.selfplay, branch=job.branch, words=own_words(job)
        )

    def task(self, index: int, replicate: int) -> Task:
        """The work on one conversation: its protocol's generator, and what becomes of its result."""
        scenario = self.scenario(index)

        def settled(result: Result, spent: Spent) -> Settled:
            if isinstance(result, Conversation):
                record = encode(
                    make_record(
                        self.job.name, scenario, result, self._provenance(index, replicate, result, spent)
                    )
                )
                if is_valid(record):
                    return Settled.accepted(record)
                result = Rejection(RejectionReason.INVALID, "the record breaks the schema")
            return Settled.rejected(result)

        group = group_hash(self.job.split.by, self.job.seed, scenario)
        return Task(self._start(scenario, replicate, self.prompts, self._rules), group, settled)

    def stage(self, scenario: Scenario) -> Stage:
        """Both agents of a scenario, as selfplay has them."""
        from edgen.protocols.stage import Stage

        return Stage(scenario, self.prompts, self._rules)

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for everything that shapes an outcome: the job's shaping keys, the
        texts of templates and space, the backends' identities, the split's grouping, edgen itself."""
        shape = shaping(self.job)
        for key in ("space", "prompt", "prompts", "backends"):
            del shape[key]
        facts = {
            "shape": shape,
            "name": self.job.name,
            "template": self.template_sha256,
            "space": self.space_sha256,
            "backends": {role: dict(identity) for role, identity in identities.items()},
            "split_by": self.job.split.by,
            "edgen": __version__,
        }
        if any(topic.subject or topic.level for topic in self.space.topics):
            facts["records"] = "subject and level"  # which those of earlier versions do not hold
        return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]

    def _provenance(self, index: int, replicate: int, conversation: Conversation, spent: Spent) -> Provenance:
        # The side that a record names first: the one prompt's, or the teacher's.
        answered = spent.by_role.get(self.roles[0]) or next(iter(spent.by_role.values()), Answered("", ""))
        several = len(self.roles) > 1
        return Provenance(
            scenario=index,
            seed=self.job.seed,
            replicate=replicate,
            protocol=self.job.protocol,
            backend=answered.backend,
            model=answered.model,
            simulated=spent.simulated,
            template_sha256=self.template_sha256,
            space_sha256=self.space_sha256,
            attempts=spent.asks,
            finish_reason=spent.finish_reason,
            usage=Usage(spent.prompt_tokens, spent.completion_tokens),
            repairs=conversation.repairs,
            flags=conversation.flags,
            branch=conversation.branch,
            models={role: who.model for role, who in sorted(spent.by_role.items())} if several else None,
            templates={use: prompt.sha256 for use, prompt in self.prompts.items()} if several else None,
        )


def _sha256_of(prompts: Mapping[str, Prompt]) -> str:
    """The digest of one template, or one over the digests of several."""
    if list(prompts) == ["default"]:
        return prompts["default"].sha256
    parts = {use: prompt.sha256 for use, prompt in prompts.items()}
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
