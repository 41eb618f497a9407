"""`edgen pairs`: preference pairs of a run, judged, labelled and split; and the bias report."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.labelled import bias_of, complain, print_made, print_report
from edgen.cli.options import JsonOption, OutsideOption, SetOption, TrustOption, Via, ViaOption
from edgen.cli.output import note
from edgen.cli.trusting import Trust
from edgen.cli.watch import ForOption, LogFormatOption, MetricsOption, UntilOption, Watch
from edgen.cli.work import batch_way, made_backends, supervised, used_elsewhere, worded
from edgen.errors import EdgenError, Problem, RunError, TemplateError, UsageError
from edgen.ledger import Ledger, run_status
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.cli.progress import Display
    from edgen.config import BackendConfig, Job
    from edgen.engine.pairs import Made
    from edgen.engine.reach import Reach
    from edgen.prompting import Prompt
    from edgen.runreader import RunReader


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    by: Annotated[
        Literal["oracle", "probability", "human"] | None,
        typer.Option(help="Who labels: a judge model, the conversations' own probabilities, or votes."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="[JOB:]ROLE",
            help="The backend that judges: a role of the run's job, or of another job file.  [default: judge, else default]",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The judge's template.  [default: the job's, else oracle_guarded]"),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="People's votes, one a line; they are kept with the run."),
    ] = None,
    min_margin: Annotated[
        float | None, typer.Option(metavar="M", min=0, max=1, help="Leave out pairs less clear than this.")
    ] = None,
    max_per_scenario: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the N clearest pairs of each scenario.")
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
    allow_outside: OutsideOption = False,
    report: Annotated[
        bool, typer.Option("--report", help="Position and length bias, agreement, calibration.")
    ] = False,
    via: ViaOption = "online",
    until: UntilOption = None,
    for_: ForOption = None,
    log_format: LogFormatOption = "text",
    metrics: MetricsOption = None,
    json: JsonOption = False,
) -> None:
    """Make preference pairs of a run's conversations of one scenario, each label with its evidence.

    A judge sees every pair in both orders. Where the orders disagree it is a tie, where an answer names
    neither side the judge abstains, and neither is ever a label. Started again, it asks nothing twice.

    Example: edgen pairs outputs/selfplay --by oracle --min-margin 0.5 --max-per-scenario 2
    """
    watch = Watch(until, for_, log_format, metrics)
    from edgen.engine.reach import Reach
    from edgen.runreader import RunReader

    _check_options(by, judge, prompt, min_margin, set_ or [], report=report)
    rundir = RunDir(run)
    rundir.require()
    if by is None:
        with rundir.read(), RunReader(run) as reader:
            print_report(bias_of(reader), json=json)
        return
    with worded(run), rundir.held() as dead, RunReader(run) as reader:
        if dead is not None:
            note(f"edgen: {dead} ended without saying so; its run is gone on with.")
        watch.begin(reader.name, "pairs")
        watch.check_deadline()
        # The run's own job, with the settings of this command on top.
        job = _with_choices(_job(rundir, set_ or []), min_margin, max_per_scenario)
        reach = Reach.of(rundir.job, set_ or [], outside=allow_outside)
        facts, ended = _make(
            reader, job, by, human, judge, prompt, Manner(via, watch, Trust(trust_host), reach)
        )
        shown = bias_of(reader) if report and ended is None else None
    print_made(facts, shown, json=json)
    if ended is not None:
        raise ended
    complain(facts)


@dataclass(frozen=True, slots=True)
class Manner:
    """How the judge is to be asked."""

    via: Via
    watch: Watch
    trust: Trust
    reach: Reach


def _check_options(
    by: str | None,
    judge: str | None,
    prompt: str | None,
    min_margin: float | None,
    assignments: list[str],
    *,
    report: bool,
) -> None:
    """Raises UsageError for options that do not go together."""
    if by is None and not report:
        raise UsageError(
            "say what makes the labels (--by oracle, --by probability or --by human), or ask for --report."
        )
    if by != "oracle" and (judge or prompt):
        raise UsageError(
            f"{'--judge' if judge else '--prompt'} goes with --by oracle: nobody else asks a model."
        )
    if min_margin is not None and math.isnan(min_margin):
        raise UsageError("--min-margin: expected a number from 0 to 1.")
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        if key.split(".")[0] not in _SETTABLE:
            raise UsageError(
                f"--set {assignment}: it does not count for pairs, which are made of what the run holds; "
                f"these do: {', '.join(_SETTABLE)}."
            )


_SETTABLE = ("pairs", "backends", "limits", "batch", "asks", "prompts")


def _job(rundir: RunDir, assignments: list[str]) -> Job:
    from edgen.config import load_job

    return load_job(rundir.job, assignments)


def _with_choices(job: Job, min_margin: float | None, max_per_scenario: int | None) -> Job:
    pairs = job.pairs
    if min_margin is not None:
        pairs = msgspec.structs.replace(pairs, min_margin=min_margin)
    if max_per_scenario is not None:
        pairs = msgspec.structs.replace(pairs, max_per_scenario=max_per_scenario)
    return msgspec.structs.replace(job, pairs=pairs)


def _make(
    reader: RunReader,
    job: Job,
    by: Literal["oracle", "probability", "human"],
    human: Path | None,
    judge: str | None,
    template: str | None,
    manner: Manner,
) -> tuple[dict[str, Any], EdgenError | None]:
    """Judge if that is asked for, and write the pairs; returns what there is to tell, and what stopped
    the judge, if something did: then no pairs are written."""
    from edgen.engine.pairs import Choice, write_pairs
    from edgen.engine.votes import stored_votes, take_votes

    scenarios = _comparable(reader)
    facts: dict[str, Any] = {"run": str(reader.rundir.path), "by": by, "scenarios": scenarios}
    if human is not None:
        take_votes(reader, human)
    votes = stored_votes(reader)
    if by == "human" and not votes:
        raise UsageError(
            f"{human or reader.rundir.path}: there are no votes. A votes file has one a line, like "
            '{"a": "ID", "b": "ID", "choice": "a", "rater": "r1"}; name it with --human FILE.'
        )
    if by == "oracle":
        config = _judge_config(job, judge)
        asked = _template(job, manner.reach, reader.rundir, template)
        judged, ended = asyncio.run(_judge(reader, job, config, asked, manner))
        facts |= judged
        if ended is not None:
            return facts, ended
    choice = Choice(
        by=by,
        judge=facts.get("judge"),
        min_margin=job.pairs.min_margin,
        max_per_scenario=job.pairs.max_per_scenario,
        judge_directed=job.pairs.judge_directed,
    )
    made: Made = write_pairs(reader, choice, votes)
    facts["pairs"] = {"train": made.train, "test": made.test}
    facts["left_out"] = dict(sorted(made.left_out.items()))
    facts["simulated"] = made.simulated or reader.simulated
    facts["file"] = str(reader.rundir.pairs)
    return facts, None


def _comparable(reader: RunReader) -> int:
    """How many scenarios have conversations to compare. Raises RunError if none has."""
    count = sum(len(numbers) > 1 for _, numbers in reader.scenarios())
    path = reader.rundir.path
    if count:
        if reader.pending:
            note(
                f"edgen: {reader.pending} conversations of this run are still to be made; the pairs are of those "
                "that are there. `edgen generate` with its job goes on with it."
            )
        return count
    if not reader.accepted:
        raise RunError(
            f"{path}: no conversation was accepted in this run, so there is nothing to compare; see `edgen status {path}`."
        )
    if reader.origin == "replicates" and reader.job.replicates == 1:
        raise RunError(
            f"{path}: this run has one conversation of each scenario, and a pair needs two. Generate with "
            "`replicates: 4` (add `branch: {at: sampled}` under selfplay), or with `arms`."
        )
    raise RunError(
        f"{path}: no scenario of this run has two accepted conversations, and a pair needs two; "
        f"see `edgen status {path}` for what became of the others."
    )


def _judge_config(job: Job, judge: str | None) -> BackendConfig:
    """The backend that judges: `ROLE`, or `JOB:ROLE`, or the job's `judge`, or its `default`."""
    from edgen.config import load_job

    path, _, role = (judge or "").rpartition(":")
    if not path and role.endswith((".yaml", ".yml")):
        path, role = role, ""
    if path:
        job = load_job(Path(path))
    if not role:
        role = "judge" if "judge" in job.backends else "default"
    if role not in job.backends:
        raise UsageError(
            f"no backend '{role}' is in {path or 'the job of this run'} (there: {', '.join(job.backends)}). "
            "Name one with --judge ROLE, or one of another job with --judge JOB.yaml:ROLE, or give one here: "
            "--set 'backends.judge={type: openai, model: …}'."
        )
    return job.backends[role]


def _template(job: Job, reach: Reach, rundir: RunDir, named: str | None) -> Prompt:
    """The judge's template: the one named here, else the job's, else the one this run was judged with, else
    the guarded one."""
    from edgen.engine.judging import GUARDED_TEMPLATE, published_before
    from edgen.engine.load import load_template
    from edgen.engine.reach import typed

    if named is not None:
        return load_template(job, "oracle", named, typed())
    if "oracle" not in job.prompts:
        before = published_before(rundir, job.pairs.compare)
        if before is not None:
            note(
                f"edgen: this run was judged with the published template {before}, and is gone on with so; "
                f"--prompt {GUARDED_TEMPLATE} asks a judge that no conversation can speak to."
            )
        return load_template(job, "oracle", before or GUARDED_TEMPLATE, reach)
    try:
        return load_template(job, "oracle", job.prompts["oracle"], reach)
    except TemplateError as error:
        shipped = f"oracle_{job.pairs.compare}"
        hint = Problem(
            "try",
            f"--prompt {GUARDED_TEMPLATE}, which is for both kinds, or --prompt {shipped}, the published one for "
            f"pairs.compare: {job.pairs.compare}",
        )
        raise TemplateError(error.source, error.summary, (*error.problems, hint)) from None


async def _judge(
    reader: RunReader, job: Job, config: BackendConfig, prompt: Prompt, manner: Manner
) -> tuple[dict[str, Any], EdgenError | None]:
    """Ask the judge what was not asked before; returns how all of it stands, and what stopped it."""
    from edgen.config import check
    from edgen.engine.judging import Judge, Judging, judge_id, work_through
    from edgen.engine.session import Session

    rundir, ended = reader.rundir, None
    job = msgspec.structs.replace(job, backends={**job.backends, "judge": config})
    check(job, str(rundir.job))
    async with made_backends({"judge": config}, job.limits, manner.trust) as backends:
        backend = backends["judge"]
        judge = Judge(id=judge_id(job, backend.identity, prompt), model=backend.model, prompt=prompt)
        judging = Judging(reader, job, judge)
        ledger_path = rundir.judged / f"{judge.id}.db"
        template = {"name": prompt.name, "sha256": prompt.sha256, "text": prompt.text}
        asked = {"backend": dict(backend.identity), "compare": job.pairs.compare, "template": template}
        rundir.note_judge(judge.id, {"judge": judge.id, **asked})
        async with batch_way(job, backends, manner.via) as way, Ledger(ledger_path) as ledger:
            elsewhere = used_elsewhere(rundir, ledger_path)
            session = Session(judging, backends, ledger, roles=("judge",), elsewhere=elsewhere, way=way)
            session.tally.planned = judging.planned

            async def work(_display: Display) -> None:
                await work_through(judging, session)

            try:
                words = ("judged", "without verdict")
                await supervised(session, f"{reader.name} pairs", work, words, manner.watch)
            except EdgenError as error:
                ended = error
    facts = run_status(ledger_path).as_json(str(rundir.path), held=False)
    kept = ("planned", "rejected", "failed", "pending", "calls", "tokens", "cost_usd")
    named = {"judge": judge.id, "model": judge.model, "compare": job.pairs.compare, "votes": job.pairs.votes}
    return {**named, "judged": facts["accepted"], **{key: facts[key] for key in kept}}, ended
