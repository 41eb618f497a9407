"""Plans as pure values: scenarios, protocol and records of a job.

This module does no I/O. A plan's fingerprint covers everything that shapes an outcome, so a restart knows
which stored outcomes are valid.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from copy import deepcopy
from functools import cached_property, partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from edgen.config import (
    ANNOTATOR,
    CallSettings,
    Job,
    find_job_protocol,
    list_asked_roles,
    list_own_words,
    list_templates,
    select_shaping_values,
    settings_of,
)
from edgen.config.job import RolesAndSettings
from edgen.core.digest import compute_fingerprint
from edgen.core.forms import Form, list_answer_kinds
from edgen.core.plugins.faults import blame, refuse_value, require_type
from edgen.core.registry import find_plugin, part_of
from edgen.core.text import describe_type, shorten
from edgen.core.values import (
    Address,
    Conversation,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Scenario,
    Usage,
)
from edgen.core.version import __version__
from edgen.expressions.conversation import Facts
from edgen.families.base import Provenance, Recorded, family_of, find_change, make_record_id
from edgen.planning.gates import Gates, read_gates, resolve_layers
from edgen.planning.request_check import RequestCheck, limit_requests, require_opening, require_result
from edgen.prompting import Prompt
from edgen.protocols.base import (
    AnswerForms,
    ConversationProtocol,
    Conversing,
    Result,
    Rules,
    SharedPreparation,
    Template,
    TurnByTurn,
)
from edgen.protocols.gated import Decided, Gated, PassedConversation, try_until_passed
from edgen.protocols.labelled_units import JobLayer, Said, encode_said
from edgen.protocols.labelling import Unit, make_labelling_variables, make_labels_form
from edgen.protocols.parts import AnsweringModel, Settled, Spent, Task
from edgen.reading.answers.unit_labels import LabelChoices
from edgen.space import Space, digest_content
from edgen.space.model import SpaceBook, list_layout_roles
from edgen.space.phrases import PHRASES
from edgen.space.sampling import Sampler
from edgen.space.splits import hash_group
from edgen.validation.schema import explain_invalid, is_json, is_valid

if TYPE_CHECKING:
    from edgen.protocols.stage import Stage


_MOST_DETAIL = 300  # maximum characters about a record that breaks its schema


class RequestContent(NamedTuple):
    """The messages of a request, and the JSON Schema of its answer (None without one)."""

    messages: tuple[Message, ...]
    schema: bytes | None

    @classmethod
    def of(cls, messages: tuple[Message, ...], prompt: Prompt, form: Form | None) -> RequestContent:
        """Return the content of a request with a prompt, whose answer has a form or None."""
        asked = None if form is None else prompt.form(form)
        return cls(messages, prompt.schema) if asked is None else cls(asked.add_to(messages), asked.schema)


class Plan:
    """A job with its templates and space; pure. Its tasks are conversations.

    `prompts`: the templates by use. `extra_prompts`: templates that shape no conversation. `files`: texts of
    the files that backends name, by path. The run stores all three.
    """

    def __init__(
        self,
        job: Job,
        space: Space,
        prompts: Mapping[str, Prompt],
        extra_prompts: Mapping[str, Prompt] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.job = job
        self.files = files or {}
        self.prompts = prompts
        self.extra_prompts = extra_prompts or {}
        self.space = space
        self.family = family_of(space, job.family)
        self.space_sha256 = digest_content(space)
        self.template_sha256 = _digest_prompts(prompts)
        self.sampler = Sampler(space, job.seed, job.design, job.strength)
        self.scenario = self.sampler.scenario
        self.call_settings = CallSettings.of(job)
        self.useless_help = ""
        self.sharers = 1 if job.branch is None else job.replicates
        self.protocol: ConversationProtocol = find_job_protocol(job)
        self._foreign_protocol = find_plugin("protocol", job.protocol) is not None
        self._foreign_family = find_plugin("family", self.family.name) is not None
        self.settings = settings_of(job)
        self.roles = list_asked_roles(job)
        self.templates: dict[str, Template] = list_templates(job, space)
        self._preparation = part_of(self.protocol, SharedPreparation)
        self.rounds = self._preparation.rounds(job)
        self.gates = Gates()
        if job.gates or job.labels:
            self.gates = read_gates(
                job.gates,
                space,
                job.name,
                resolve_layers(job),
                [name.rpartition(":")[2] for name in job.measure_references],
                in_rounds=self.rounds.total > 1,
            )
        self.rules = Rules(
            asks=job.asks,
            seed=job.seed,
            settings=self.settings,
            branch=job.branch,
            words=list_own_words(job),
            roles=space.roles,
            prepared=self._preparation.prepare(job, space),
            too_long=job.too_long,
            backends=job.backends,
            several=job.replicates > 1,
            book=SpaceBook(space),
        )
        self._rules_by_round = [self.rules]
        self._reads_back = False  # whether the family was checked on a first record
        self._asks_several = len(part_of(self.protocol, RolesAndSettings).roles(job)) > 1

    @property
    def speaking(self) -> tuple[str, ...]:
        """The roles, named as in `backends`, that write turns of a conversation."""
        kinds = {kind.name: kind for kind in self.protocol.answers}
        if any(one.expects not in kinds for one in self.templates.values()):
            kinds |= list_answer_kinds()  # only if needed: this loads every protocol
        spoken = {
            one.asked for one in self.templates.values() if one.expects in kinds and kinds[one.expects].spoken
        }
        spoken |= {role.name.lower() for role in self.space.roles}
        return tuple(role for role in self.roles if role in spoken)

    @property
    def prepared_rounds(self) -> int:
        """The number of rounds that can begin, in order."""
        return len(self._rules_by_round)

    def prepare_round(self, made: Iterable[Recorded]) -> None:
        """Prepare the next round, given the accepted conversations of the last prepared round."""
        before = self._rules_by_round[-1].prepared
        prepared = self._preparation.prepare_round(before, made)
        self._rules_by_round.append(msgspec.structs.replace(self.rules, prepared=prepared))

    def forget_rounds(self) -> None:
        """Forget all prepared rounds but the first."""
        del self._rules_by_round[1:]

    def list_sibling_tasks(self, index: int, replicate: int) -> Iterable[int]:  # noqa: ARG002 - the same in all scenarios
        """Return the other replicates; none with branching, where requests are shared in another way."""
        return () if self.job.branch else (one for one in range(self.job.replicates) if one != replicate)

    def make_task(self, index: int, replicate: int) -> Task:
        """Return the task of one conversation: its protocol's generator, and the function that settles the
        result. Its round must be prepared."""
        scenario = self.scenario(index)

        def settle(result: Result | PassedConversation, spent: Spent) -> Settled:
            result, said = result if isinstance(result, PassedConversation) else (result, {})
            if self._foreign_protocol:
                result = require_result(self.job.protocol, result, self.job.speakers)
            if not isinstance(result, Rejection):
                provenance = self._make_provenance(index, replicate, result, spent)
                name = make_record_id(self.job.name, index, replicate)
                recorded = Recorded(name, scenario, result, provenance)
                record = self._make_record(recorded)
                is_right = is_valid(record, self.family.schema)
                if self._foreign_family or not self._reads_back:
                    self._require_readable(recorded, record, is_right=is_right)
                if is_right:
                    return Settled.accepted(
                        record, {layer: encode_said(given) for layer, given in said.items()}
                    )
                flaw = shorten(explain_invalid(record, self.family.schema), _MOST_DETAIL)
                result = Rejection(RejectionReason.INVALID, f"the record {flaw}")
            return Settled.rejected(result)

        group = hash_group(self.job.split.by, self.job.seed, scenario)
        check = None
        if self._foreign_protocol:
            check = RequestCheck(self.job.protocol, index, self._most_requests)
        return Task(self._start(scenario, replicate), group, settle, self.job.protocol, check)

    @cached_property
    def _most_requests(self) -> int:
        return limit_requests(self.protocol, self.job)

    def _make_record(self, recorded: Recorded) -> bytes:
        if self._foreign_family:  # it may change what it gets
            recorded = msgspec.structs.replace(recorded, scenario=deepcopy(recorded.scenario))
        try:
            record = self.family.record(recorded)
        except BaseException as error:  # noqa: BLE001 - raised again
            blame("family", self.family.name, error, f"for conversation {recorded.id}")
        if not isinstance(record, bytes):
            refuse_value(
                "family", self.family.name, f"returned {describe_type(record)} as a record, not bytes"
            )
        return record

    def _require_readable(self, recorded: Recorded, record: bytes, *, is_right: bool) -> None:
        """Check, before more is paid for, that a family's first record satisfies its schema (`is_right`), and
        that the family reads it back unchanged. For a plugin's family, check every record. Raises
        FaultyPluginError."""
        if not is_right:
            if self._foreign_family and not (self._reads_back and is_json(record)):
                self._refuse_record(recorded, record)
            return  # a schema may also reject a model's text
        try:
            change = find_change(self.family, recorded, record)
        except BaseException as error:  # noqa: BLE001 - raised again
            blame("family", self.family.name, error, f"for its own record of conversation {recorded.id}")
        if change is not None:
            said = f"does not read back what it records: of conversation {recorded.id}, {change}"
            refuse_value("family", self.family.name, said)
        self._reads_back = True

    def _refuse_record(self, recorded: Recorded, record: bytes) -> NoReturn:
        flaw = explain_invalid(record, self.family.schema)
        refuse_value("family", self.family.name, f"made a record of conversation {recorded.id} that {flaw}")

    def _start(self, scenario: Scenario, replicate: int) -> Conversing | Gated:
        """Start the protocol's work on one conversation, with the gates that depend only on this
        conversation."""
        own = self._rules_by_round[self.rounds.of(scenario.index)]

        if not (self.gates.plain or self.gates.layers):
            return self.converse(scenario, replicate, own)
        name, place = (
            make_record_id(self.job.name, scenario.index, replicate),
            Address(scenario.index, replicate),
        )

        def decide(made: Conversation, rules: Rules) -> Decided:
            def label(layer: JobLayer) -> Generator[Request, Reply, Said | Rejection]:
                return layer.label(made.turns, place, self.extra_prompts[ANNOTATOR], rules)

            return self.gates.decide(Facts(scenario, made, name), label)

        return try_until_passed(partial(self.converse, scenario, replicate), own, decide)

    def converse(self, scenario: Scenario, replicate: int, rules: Rules) -> Conversing:
        """Start the protocol's work on one conversation, without gates. Raises FaultyPluginError if `start`
        returns no generator."""
        if self._foreign_protocol:  # it may change what it gets
            scenario = deepcopy(scenario)
        work = self.protocol.start(scenario, replicate, self.prompts, rules)
        if type(work) is GeneratorType:
            return work
        return require_type("protocol", self.job.protocol, work, Generator, "a generator from `start`")  # type: ignore[no-any-return]

    @property
    def cells(self) -> int | None:
        """The number of allowed cells of the space; None if it has too many conditions to count them."""
        return self.sampler.cells.count

    def opening(self, scenario: Scenario) -> dict[str, tuple[Message, ...]]:
        """Return the messages of each prompt at the start of a conversation, by use. The scenario need not be
        one of the plan's."""
        found = self.protocol.opening(scenario, self.prompts, self.rules)
        if not self._foreign_protocol:
            return found
        return require_opening(self.protocol, self.job, found, self.templates)

    def list_first_requests(self, scenario: Scenario) -> dict[str, RequestContent]:
        """Return the first request of each prompt, by use. Prompts of roles without a backend, such as a role
        played by chance, are left out."""
        forms = part_of(self.protocol, AnswerForms).forms(scenario, self.prompts, self.rules)
        return {
            use: RequestContent.of(messages, self.prompts[use], forms.get(use))
            for use, messages in self.opening(scenario).items()
            if self.templates[use].asked in self.roles
        }

    def make_labelling_opening(self) -> RequestContent | None:
        """Return a request to the annotator about a conversation without turns, with all label sets; None
        without an annotator."""
        if not self.gates.layers:
            return None
        units = [Unit(layer.asking.labels) for layer in self.gates.layers]
        variables = make_labelling_variables(units, Address(0, 0), self.job.seed)
        prompt = self.extra_prompts[ANNOTATOR]
        form = make_labels_form([LabelChoices(one.labels.names, one.labels.several) for one in units])
        return RequestContent.of(prompt.messages(variables), prompt, form)

    def stage(self, scenario: Scenario) -> Stage | None:
        """Return the agents of a scenario; None if the protocol has no agents that take turns."""
        found: Stage | None = part_of(self.protocol, TurnByTurn).stage(scenario, self.prompts, self.rules)
        return found

    def make_fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a digest, 16 hex digits, of everything that shapes an outcome: the job's shaping keys with
        its label sets, the texts of templates and space, the backends' identities, the split's grouping,
        edgen's version."""
        shape = select_shaping_values(self.job)
        for key in ("space", "prompt", "prompts", "backends"):
            del shape[key]
        facts: dict[str, Any] = {
            "shape": shape,
            "name": self.job.name,
            "template": self.template_sha256,
            "space": self.space_sha256,
            "backends": {role: dict(identity) for role, identity in identities.items()},
            "split_by": self.job.split.by,
            "edgen": __version__,
        }
        plugins = (find_plugin("protocol", self.job.protocol), find_plugin("family", self.family.name))
        if any(plugins):
            facts["plugins"] = [found and found.origin for found in plugins]
        if self.gates.layers:
            facts["annotator"] = self.extra_prompts[ANNOTATOR].sha256
        prompts = {**self.prompts, **self.extra_prompts}
        forms: dict[str, Any] = {use: one.forms for use, one in prompts.items() if one.forms != "prose"}
        forms |= {f"{use} of others": one.forms_of for use, one in prompts.items() if one.forms_of}
        if forms:
            facts["forms"] = forms
        if self.space.roles != list_layout_roles(self.space.names):
            facts["roles"] = self.space.roles
        if phrases := self.space.sections.get(PHRASES):
            facts["phrases"] = phrases
        if self.rounds.total > 1:  # the assignment to rounds shapes the results
            facts["rounds"] = (*self.rounds, self.job.replicates)
        return compute_fingerprint(facts)

    def _make_provenance(
        self, index: int, replicate: int, conversation: Conversation, spent: Spent
    ) -> Provenance:
        # The model that a record names: the first role's, or the first that answered.
        answered = spent.by_role.get(self.roles[0]) or next(
            iter(spent.by_role.values()), AnsweringModel("", "")
        )
        models: dict[str, str] | None = None
        templates: dict[str, str] | None = None
        if self._asks_several:
            models = {role: who.model for role, who in sorted(spent.by_role.items())}
            templates = {use: prompt.sha256 for use, prompt in self.prompts.items()}
        # Seven fields by position: with more than 15 by name, Python builds a dict, which takes 20 times as
        # long as the struct.
        return Provenance(
            index,
            self.job.seed,
            replicate,
            self.job.protocol,
            answered.backend,
            answered.model,
            spent.simulated,
            template_sha256=self.template_sha256,
            space_sha256=self.space_sha256,
            attempts=spent.asks,
            finish_reason=spent.finish_reason,
            usage=Usage(spent.prompt_tokens, spent.completion_tokens),
            repairs=conversation.repairs,
            flags=conversation.flags,
            branch=conversation.branch,
            models=models,
            templates=templates,
            times=tuple(spent.times),
        )


def _digest_prompts(prompts: Mapping[str, Prompt]) -> str:
    """Return the digest of the only template, or a digest over several templates' digests."""
    parts = {use: prompt.sha256 for use, prompt in prompts.items()}
    return parts["default"] if list(parts) == ["default"] else compute_fingerprint(parts, 64)
