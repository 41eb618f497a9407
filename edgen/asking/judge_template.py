"""The template that a judge of pairs is asked with, and what it compares where nobody says so."""

from __future__ import annotations

import contextlib

from msgspec import UNSET

from edgen.config import Job
from edgen.core.errors import Problem, RunError, TemplateError
from edgen.core.pair import Compare
from edgen.planning.allowed_files import Reach, make_unlimited_reach
from edgen.planning.load import load_template
from edgen.preferences.comparisons import GUARDED_TEMPLATE, find_published_template
from edgen.prompting import Prompt
from edgen.protocols.oracle import ORACLE, choose_template
from edgen.runtime.control import Control
from edgen.space import Space
from edgen.store.pairs_file import read_pairs
from edgen.store.run_folder import RunFolder


class JudgeTemplate:
    """The choice of the template: `named` by an option, else the job's, else the one that the run was judged
    with, else the guarded one."""

    def __init__(self, run: RunFolder, job: Job, space: Space, named: str | None, reach: Reach) -> None:
        self._run, self._space, self._reach = run, space, reach
        self._named, self._of_job = named, job.prompts.get("oracle")

    def choose_compare(self, *, policies: bool) -> Compare:
        """Return what the judge compares if neither the job nor an option says so: responses; whole
        conversations if pairs are of `policies`, or the named template compares nothing else. Labels of the
        run's pairs by a judge stay what they are: nothing is asked anew without a request."""
        if policies:
            return "conversation"
        if (before := self._find_earlier_compare()) is not None:
            return before
        if self._named is not None or self._of_job is not None:
            with contextlib.suppress(TemplateError):
                self._load("response")
                return "response"
            return "conversation"
        return "response"

    def _find_earlier_compare(self) -> Compare | None:
        """Return what the run's labels by a judge rest on, if it has any."""
        with contextlib.suppress(RunError):
            for pair in read_pairs(self._run) if self._run.pairs.exists() else ():
                if pair.label is not None and pair.label.by == "oracle" and pair.label.k is UNSET:
                    return pair.label.compare
        return None

    def find(self, compare: Compare, control: Control) -> Prompt:
        """Load the template for this kind of comparison. Raises TemplateError."""
        if self._named is not None or self._of_job is not None:
            try:
                return self._load(compare)
            except TemplateError as error:
                if self._named is not None:
                    raise
                hint = Problem(
                    "try",
                    f"--prompt {GUARDED_TEMPLATE}, which is for both kinds, or --prompt oracle_{compare}, "
                    f"the published one for pairs.compare: {compare}",
                )
                raise TemplateError(error.source, error.summary, (*error.problems, hint)) from None
        before = find_published_template(self._run, compare)
        if before is not None:
            control.note(
                f"this run was judged with the published template {before}, which is used again; --prompt "
                f"{GUARDED_TEMPLATE} guards the judge against instructions in conversations."
            )
        template = ORACLE.template(before or choose_template(self._space), compare, self._space)
        return load_template(template, self._reach, self._space)

    def _load(self, compare: Compare) -> Prompt:
        """Load the named template, or the job's."""
        named, reach = (
            (self._named, make_unlimited_reach())
            if self._named is not None
            else (self._of_job or "", self._reach)
        )
        return load_template(ORACLE.template(named, compare, self._space), reach, self._space)
