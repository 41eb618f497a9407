"""Reader of a run: its conversations as candidates, its split, its pairs with their sides.

Nothing is written, and everything is streamed. A run with arms combines the runs of its arms: their
conversations of one scenario are candidates together.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from edgen.config import Job, load_kept_job, resolve_values
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import RunError
from edgen.core.pair import (
    Candidate,
    Pair,
    PairOrigin,
    Side,
    cut_at_response,
    digest_texts,
    make_candidate_name,
    read_candidate_name,
)
from edgen.core.registry import find, part_of
from edgen.core.values import Scenario, Status
from edgen.families.base import Recorded, blame_reader, family_of, read_record, read_record_id
from edgen.families.reader import RecordContents
from edgen.space import Space, digest_content, load_space
from edgen.space.sampling import Sampler
from edgen.space.splits import HeldOutGroups, choose_test_side
from edgen.store.layers import (
    LayerFacts,
    LayerJoin,
    describe_layers,
    label_record,
    require_turns_labelled,
)
from edgen.store.ledger import LedgerReader
from edgen.store.ordered_lines import MOST
from edgen.store.pairs_file import read_pairs, read_pairs_between
from edgen.store.run_facts import describe_selections, has_noted_space, read_noted_facts, read_space_facts
from edgen.store.run_folder import RunFolder
from edgen.store.run_parts import AcceptedConversation, ComparedPair, RunRange, cut_plan, require_order
from edgen.store.split_side import choose_side


class RunReader(contextlib.AbstractContextManager["RunReader"]):
    """A reader of the run in the folder `path`. Use as a context manager while holding the run's lock.
    `labels_of`: turns in `conversations` have the labels of these layers instead of their own; `stale_labels`
    counts the skipped ones once all is read. `of`: only conversations and pairs of these scenarios.

    Raises RunError without a run or for contents of different jobs, UsageError for a layer not of turns.
    """

    _within: range | None = None  # the scenarios of a part of the run

    def __init__(self, path: Path, labels_of: Sequence[str] = (), of: RunRange | None = None) -> None:
        self._within = None if of is None else of.scenarios
        if of is not None:
            self.test_side, self.layers = of.test_side, of.layers
        self.rundir = RunFolder(path).require()
        job = load_kept_job(self.rundir.job)
        self.name = job.name
        self._named_family = job.family
        self._arms = self.rundir.number_arms() or [""]
        self.labels_of = tuple(dict.fromkeys(labels_of))
        self.stale_labels: Counter[str] = Counter()
        for name in self.labels_of:
            require_turns_labelled(self.rundir, name, self.layers)
        with contextlib.ExitStack() as stack:
            self.views: Mapping[str, LedgerReader] = {  # views of started arms, by name
                arm: stack.enter_context(LedgerReader(run.ledger))
                for arm, run in self.rundir.list_begun_arms()
            }
            noted = read_space_facts(self.rundir, own, job) if (own := self.views.get("")) else None
            self.roles = self.space.roles if noted is None else noted.roles
            self.job: Job = msgspec.structs.replace(job, speakers=tuple(role.name for role in self.roles))
            self.family = family_of(self.space, job.family) if noted is None else find("family", noted.family)
            digest = digest_content(self.space) if noted is None else noted.sha256
            for arm, view in self.views.items():
                self._check(arm, view, digest)
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _check(self, arm: str, view: LedgerReader, space: str) -> None:
        """Raise RunError if a ledger's conversations do not match its job.yaml, as after an early stop or a
        manual change."""
        job = self.job_of(arm)
        noted = job.resolved
        if arm and "space" in self.job.arms[arm] and noted and noted.space_sha256 != space:
            raise RunError(
                f"{self.rundir.path}: arm {arm} has other weights in its space, so its scenarios differ "
                "from those of the other arms, and its conversations cannot be read with theirs. Use the arm "
                f"alone ({self.rundir.arm(arm).path}), or `edgen compare {self.rundir.path}`."
            )
        alike = (job.seed, job.design, job.strength) == (self.job.seed, self.job.design, self.job.strength)
        made = noted is not None and (noted.space_sha256, noted.fingerprint) == (space, view.plan.fingerprint)
        # Unchanged inputs prove that the job draws these scenarios; otherwise compare the first conversation.
        known = has_noted_space(self.rundir, job)
        if not (alike and made and (known or self._is_drawn(view))):
            which = f"arm {arm}" if arm else "this run"
            raise RunError(
                f"{self.rundir.path}: the conversations of {which} were not made by the job that is noted "
                "here: generation with a changed job was begun and not ended, or job.yaml was edited. "
                "Run `edgen generate` with the job again, to its end."
            )

    def _is_drawn(self, view: LedgerReader) -> bool:
        """Return whether the job draws the scenarios of the ledger's conversations, judged by the first."""
        first = next(view.list_accepted(), None)
        data = None if first is None else view.read_record(*first)
        if first is None or data is None:
            return True
        return self.scenario(first[0]).values == self.read(data).scenario.values

    def read(self, data: bytes) -> Recorded:
        """Decode a record of a ledger. Raises RunError if it is invalid, or as `blame_reader` does."""
        try:
            return read_record(self.family, data)
        except (ValueError, msgspec.MsgspecError) as problem:
            blame_reader(self.family, data, problem)
            raise RunError(
                f"the ledger holds an invalid record ({problem}); it is damaged. Restore it from a copy."
            ) from None

    @functools.cached_property
    def space(self) -> Space:
        """The run's space, with the job's family."""
        space = load_space(self.rundir.inputs / "space.yaml")
        return msgspec.structs.replace(space, family=self._named_family)

    @functools.cached_property
    def scenario(self) -> Callable[[int], Scenario]:
        """The scenarios of the run's plan, by number. Those of its conversations are in their records."""
        return Sampler(self.space, self.job.seed, self.job.design, self.job.strength).scenario

    @functools.cached_property
    def test_side(self) -> HeldOutGroups:
        """The held-out groups, of all arms together."""
        return choose_side(self.views.values(), self.job.split.test)

    @functools.cached_property
    def layers(self) -> tuple[LayerFacts, ...]:
        """The layers of the run."""
        return describe_layers(self.rundir)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of the run, in order; none in a run without arms."""
        return tuple(filter(None, self._arms))

    @property
    def simulated(self) -> bool:
        """True if a simulator took part in the run."""
        return any(view.simulated for view in self.views.values())

    @property
    def origin(self) -> PairOrigin:
        """The reason why this run's conversations of one scenario differ."""
        if self.job.arms:
            return "arms"
        return "branch" if self.job.branch is not None else "replicates"

    @property
    def fingerprints(self) -> list[str]:
        """The conversations' fingerprints and selections, which identify the set of conversations."""
        selections = [view.selection for view in self.views.values()]
        chosen = [compute_fingerprint(msgspec.to_builtins(one)) for one in selections if one is not None]
        return [view.plan.fingerprint for view in self.views.values()] + chosen

    @property
    def piece(self) -> tuple[int, int, int] | None:
        """First scenario, end and the job's total, if the run is a piece of its job; else None."""
        plans = [view.plan for view in self.views.values()]
        wholes = [plan.of for plan in plans if plan.of is not None]
        if len(wholes) < len(plans):
            return None
        return min(plan.first for plan in plans), max(plan.scenarios for plan in plans), max(wholes)

    @property
    def pending(self) -> int:
        """The number of planned conversations without an outcome."""
        return sum(view.status.pending for view in self.views.values())

    @property
    def accepted(self) -> int:
        """The number of accepted conversations, over all arms."""
        return sum(view.status.accepted for view in self.views.values())

    def scenarios(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every scenario with accepted conversations, in order, with their names, by arm and
        replicate."""
        streams = [self._iterate_places(arm, view) for arm, view in self.views.items()]
        for index, found in itertools.groupby(heapq.merge(*streams), key=lambda place: place[0]):
            yield index, [make_candidate_name(self._arms[order], replicate) for _, order, replicate in found]

    def _iterate_places(self, arm: str, view: LedgerReader) -> Iterator[tuple[int, int, int]]:
        order = self._arms.index(arm)
        within = self._within or range(MOST)
        for index, replicate in view.list_accepted(within.start):
            if index >= within.stop:
                return
            yield index, order, replicate

    def names(self, index: int) -> list[str]:
        """Return the names of the accepted conversations of a scenario, by arm and replicate."""
        return [
            make_candidate_name(arm, task)
            for arm in self._arms
            if arm in self.views
            for task, (status, *_) in sorted(self.views[arm].read_outcomes(index).items())
            if status == Status.ACCEPTED and isinstance(task, int)
        ]

    def candidate(self, index: int, name: str) -> Candidate:
        """Return one accepted conversation of a scenario. Raises RunError if there is none of that name."""
        return Candidate.of(self.read(self._read_record(index, name)), read_candidate_name(name)[0])

    def candidates(self) -> Iterator[Candidate]:
        """Yield every accepted conversation, by scenario, arm and replicate."""
        return (self.candidate(index, name) for index, names in self.scenarios() for name in names)

    def place(self, candidate: Candidate) -> tuple[int, int]:
        """Return a candidate's place in its scenario. Side a of a pair has the lower place."""
        return self._arms.index(candidate.arm), candidate.replicate

    def scenario_of(self, identifier: str) -> int | None:
        """Return the scenario of the conversation with this id; None if there is none."""
        place = self._locate(identifier)
        return None if place is None else place[0]

    def named(self, identifier: str) -> Candidate:
        """Return the conversation with this id. Raises RunError if there is none."""
        place = self._locate(identifier)
        if place is None:
            raise self._make_changed_error(f"conversation {identifier}")
        return self.candidate(*place)

    def _locate(self, identifier: str) -> tuple[int, str] | None:
        """Return scenario and name of an accepted conversation, by its id."""
        found = read_record_id(identifier)
        names = {f"{self.name}.{arm}" if arm else self.name: arm for arm in self.views}
        if found is None or found[0] not in names:
            return None
        name, index, replicate = found
        arm = names[name]
        return (
            (index, make_candidate_name(arm, replicate))
            if self.views[arm].read_record(index, replicate)
            else None
        )

    def split(self, scenario: Scenario) -> Literal["train", "test"]:
        """Return the side of a scenario. Raises RunError if it has no conversations."""
        return "test" if self.test_side.is_test(self.group(scenario)) else "train"

    def group(self, scenario: Scenario) -> int:
        """Return the number of a scenario's group; groups are never split. Raises as `split` does."""
        groups = (view.read_group(scenario.index) for view in self.views.values())
        group = next((one for one in groups if one is not None), None)
        if group is None:
            raise self._make_changed_error(f"scenario {scenario.index}")
        return group

    def hold_out(self, share: float) -> HeldOutGroups:
        """Return whole groups that form a share of the train side, for example for validation."""
        groups = heapq.merge(*(view.iterate_groups() for view in self.views.values()))
        return choose_test_side((one for one in groups if not self.test_side.is_test(one[0])), share)

    def conversations(self) -> Iterator[AcceptedConversation]:
        """Yield every accepted conversation, by scenario, arm and replicate."""
        self.stale_labels.clear()
        contents = part_of(self.family, RecordContents)
        with contextlib.ExitStack() as stack:
            layers = (
                stack.enter_context(LayerJoin(self.rundir, within=self._within))
                if self.rundir.has_layers
                else None
            )
            for index, names in self.scenarios():
                side = None
                for name in names:
                    data = self._read_record(index, name)
                    recorded = self.read(data)
                    scenario = recorded.scenario.in_order(self.space.names)
                    side = side or self.split(scenario)
                    labels = layers.of(index, recorded.id, recorded.turns) if layers else {}
                    if self.labels_of:
                        recorded = label_record(recorded, [labels.get(name, ()) for name in self.labels_of])
                    yield AcceptedConversation(
                        Candidate.of(recorded, read_candidate_name(name)[0]),
                        scenario,
                        side,
                        msgspec.json.decode(data),
                        contents.written(recorded.conversation),
                        msgspec.to_builtins(recorded.provenance),
                        labels,
                    )
            if layers:
                layers.finish()
                self.stale_labels.update(layers.left_out)

    def compared(self) -> Iterator[ComparedPair]:
        """Yield every line of pairs.jsonl with its conversations. Raises RunError if the file is missing, or
        if the run was made again or has grown since, which could change the judged texts and their sides."""
        for pair in self.pairs():
            a, b = (self._find_side(pair, side) for side in (pair.a, pair.b))
            scenario = self.scenario(pair.scenario)
            if digest_texts(a, b) != pair.texts or self.split(scenario) != pair.split:
                raise self._make_changed_error(f"pair {pair.id}")
            yield ComparedPair(pair, a, b, scenario)

    def _find_side(self, pair: Pair, side: Side) -> Candidate:
        if (arm := side.arm or "") not in self._arms:
            raise self._make_changed_error(f"conversation {side.id}")
        whole = self.candidate(pair.scenario, make_candidate_name(arm, side.replicate))
        if side.response is UNSET:
            return whole
        try:
            return cut_at_response(whole, side.response)
        except IndexError:
            raise self._make_changed_error(f"a response of {side.id}") from None

    def pairs(self) -> Iterator[Pair]:
        """Yield every line of pairs.jsonl. Raises RunError for a missing file or an invalid line."""
        if self._within is not None:
            return read_pairs_between(self.rundir, self._within)
        return read_pairs(self.rundir)

    def divide(self, size: int) -> Iterator[RunRange]:
        """Yield ranges of about `size` conversations for parallel readers of this run. Together they cover
        all conversations and every line of the pairs and layers. Raises RunError as `require_order`."""
        require_order(self.rundir)
        each = self.job.replicates * max(1, len(self.views))
        last = max((view.plan.scenarios for view in self.views.values()), default=0)
        for scenarios in cut_plan(last, max(1, size // each)):
            yield RunRange(scenarios, self.test_side, self.layers)

    def job_of(self, arm: str) -> Job:
        """Return the job under which an arm was made; the run's own for ""."""
        return load_kept_job(self.rundir.arm(arm).job) if arm else self.job

    def noted_job(self) -> dict[str, Any]:
        """Return the job as plain values, with the facts that `describe` reports."""
        return {**resolve_values(self.job), "resolved": read_noted_facts(self.rundir, self.job)}

    def describe(self) -> dict[str, Any]:
        """Return the facts about the run for a card: the resolved job, the facts of each arm, counts, whether
        it is simulated, missing arms, and for a piece of its job the `range`, as for `--range`. They include
        `templates`, the sha256 of each template's text by its use."""
        statuses = {arm or self.name: view.status for arm, view in self.views.items()}
        return {
            "job": self.noted_job(),
            "arms": {
                arm: read_noted_facts(own := self.rundir.arm(arm), load_kept_job(own.job))
                for arm in self.views
                if arm
            },
            **describe_selections({arm: view.selection for arm, view in self.views.items()}),
            **({} if self.piece is None else {"range": f"{self.piece[0]}:{self.piece[1]}"}),
            "not_begun": [arm for arm in self.job.arm_names if arm not in self.views],
            "simulated": self.simulated,
            **{
                count: {name: getattr(status, count) for name, status in statuses.items()}
                for count in ("planned", "accepted", "rejected", "failed", "pending")
            },
        }

    def _read_record(self, index: int, name: str) -> bytes:
        arm, replicate = read_candidate_name(name)
        view = self.views.get(arm)
        data = None if view is None else view.read_record(index, replicate)
        if data is None:
            raise self._make_changed_error(f"conversation {name} of scenario {index}")
        return data

    def read_additional_values(self, index: int, name: str) -> dict[str, bytes]:
        """Return the additional values of an accepted conversation's record, by name."""
        arm, replicate = read_candidate_name(name)
        return self.views[arm].read_additional_values(index, replicate) if arm in self.views else {}

    def _make_changed_error(self, what: str) -> RunError:
        return RunError(
            f"{self.rundir.path}: {what} is not what it was when the pairs were made: the run was generated "
            "anew "
            f"or has grown since. Make the pairs again with `edgen pairs {self.rundir.path} --signal …`; "
            "verdicts that still hold are reused."
        )
