"""`edgen pairs`: preference pairs of a run, judged, labelled and split; and the bias report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.options import JsonOption, SetOption
from edgen.cli.output import print_json, print_line
from edgen.cli.status import reasons
from edgen.cli.work import made_backends, supervised, used_elsewhere, worded
from edgen.errors import RunError, ShortError, UsageError
from edgen.ledger import Ledger, run_status
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.cli.progress import Display
    from edgen.config import BackendConfig, Job
    from edgen.engine.pairs import Made
    from edgen.model import Turn
    from edgen.pairing.model import Pair
    from edgen.pairing.votes import Votes
    from edgen.prompting import Prompt
    from edgen.runreader import RunReader


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    by: Annotated[
        Literal["oracle", "probability", "human"] | None,
        typer.Option(
            help="What makes the labels: a judge model, the conversations' own probabilities, votes."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="[JOB:]ROLE",
            help="The backend that judges: a role of the run's job, or of another job file.  [default: judge]",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The judge's template.  [default: as MTPO published it]"),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="People's votes, one a line.  [default: RUN/votes.jsonl, if there]"
        ),
    ] = None,
    min_margin: Annotated[
        float | None, typer.Option(metavar="M", min=0, max=1, help="Leave out pairs less clear than this.")
    ] = None,
    max_per_scenario: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the N clearest pairs of each scenario.")
    ] = None,
    set_: SetOption = None,
    report: Annotated[
        bool, typer.Option("--report", help="Position and length bias, agreement, calibration.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make preference pairs of a run's conversations of one scenario, each label with its evidence.

    A judge sees every pair in both orders. Where the orders disagree it is a tie, where an answer names
    neither side the judge abstains, and neither is ever a label. Started again, it asks nothing twice.

    Example: edgen pairs outputs/selfplay --by oracle --min-margin 0.5 --max-per-scenario 2
    """
    from edgen.config import load_job
    from edgen.runreader import RunReader

    if by is None and not report:
        raise UsageError(
            "say what makes the labels (--by oracle, --by probability or --by human), or ask for --report."
        )
    rundir = RunDir(run)
    with RunReader(run) as reader:
        if by is not None:
            # The run's own job, with the settings of this command on top.
            job = _with_choices(load_job(rundir.job, set_ or []), min_margin, max_per_scenario)
            with worded(run), rundir.held():
                votes = _votes(reader, human, needed=by == "human")
                facts = _make(reader, job, by, votes, judge, prompt)
            if not report:
                _print_made(facts, json=json)
                _complain(facts)
        if report:
            _print_report(reader, json=json)


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
    votes: Votes,
    judge: str | None,
    template: str | None,
) -> dict[str, Any]:
    """Judge if that is asked for, and write the pairs; returns what there is to tell."""
    from edgen.engine.pairs import Choice, write_pairs

    scenarios = _comparable(reader)
    judged: dict[str, Any] | None = None
    if by == "oracle":
        config = _judge_config(job, judge)
        judged = asyncio.run(_judge(reader, job, config, _template(job, reader.rundir, template)))
    choice = Choice(
        by=by,
        judge=None if judged is None else judged["judge"],
        min_margin=job.pairs.min_margin,
        max_per_scenario=job.pairs.max_per_scenario,
    )
    made: Made = write_pairs(reader, choice, votes)
    return {
        "run": str(reader.rundir.path),
        "by": by,
        "scenarios": scenarios,
        **({} if judged is None else judged),
        "pairs": {"train": made.train, "test": made.test},
        "left_out": dict(sorted(made.left_out.items())),
        "simulated": reader.simulated,
        "file": str(reader.rundir.pairs),
    }


def _comparable(reader: RunReader) -> int:
    """How many scenarios have conversations to compare. Raises RunError if none has."""
    count = sum(len(numbers) > 1 for _, numbers in reader.scenarios())
    if count:
        return count
    path = reader.rundir.path
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

    path, colon, role = (judge or "").rpartition(":")
    if colon:
        job = load_job(Path(path))
    elif not role:
        role = "judge" if "judge" in job.backends else "default"
    if role not in job.backends:
        raise UsageError(
            f"no backend '{role}' is in {path or 'the job of this run'} (there: {', '.join(job.backends)}). "
            "Name one with --judge ROLE, or one of another job with --judge JOB.yaml:ROLE, or give one here: "
            "--set 'backends.judge={type: openai, model: …}'."
        )
    return job.backends[role]


def _template(job: Job, rundir: RunDir, named: str | None) -> Prompt:
    from edgen.engine.load import load_template

    if named is not None:
        return load_template(job, "oracle", named, Path())
    name = job.prompts.get("oracle", f"oracle_{job.pairs.compare}")
    return load_template(job, "oracle", name, rundir.path)


async def _judge(reader: RunReader, job: Job, config: BackendConfig, prompt: Prompt) -> dict[str, Any]:
    """Ask the judge what was not asked before; returns how all of it stands."""
    from edgen.config import check
    from edgen.engine.judging import Judge, Judging, judge_id, work_through
    from edgen.engine.session import Session

    rundir = reader.rundir
    job = msgspec.structs.replace(job, backends={**job.backends, "judge": config})
    check(job, str(rundir.job))
    async with made_backends({"judge": config}, job.limits) as backends:
        backend = backends["judge"]
        judge = Judge(id=judge_id(job, backend.identity, prompt), model=backend.model, prompt=prompt)
        judging = Judging(reader, job, judge)
        ledger_path = rundir.judged / f"{judge.id}.db"
        ledger_path.parent.mkdir(parents=True, exist_ok=True)
        async with Ledger(ledger_path) as ledger:
            elsewhere = used_elsewhere(rundir, ledger_path)
            session = Session(judging, backends, ledger, roles=("judge",), elsewhere=elsewhere)
            session.tally.planned = judging.planned

            async def work(_display: Display) -> None:
                await work_through(judging, session)

            await supervised(session, f"{reader.name} pairs", work, ("judged", "abstained"))
    facts = run_status(ledger_path).as_json(str(rundir.path), held=False)
    kept = ("planned", "rejected", "failed", "pending", "calls", "tokens", "cost_usd")
    named = {"judge": judge.id, "model": judge.model, "compare": job.pairs.compare, "votes": job.pairs.votes}
    return {**named, "judged": facts["accepted"], **{key: facts[key] for key in kept}}


def _votes(reader: RunReader, path: Path | None, *, needed: bool) -> Votes:
    """People's votes, by the ids of the conversations they are about."""
    from edgen.engine.pairs import read_votes_file

    default = reader.rundir.path / "votes.jsonl"
    if path is None and not default.exists():
        if needed:
            raise UsageError(
                f"{default}: there is no such file. A votes file has one vote a line, like "
                '{"a": "ID", "b": "ID", "choice": "a", "rater": "r1"}; name one with --human FILE.'
            )
        return {}
    votes = read_votes_file(path or default, reader)
    if needed and not votes:
        raise UsageError(f"{path or default}: there is no vote in this file.")
    return votes


def _print_made(facts: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(facts)
        return
    print_line(f"run        {facts['run']}{' (simulated)' if facts['simulated'] else ''}")
    print_line(f"scenarios  {facts['scenarios']} with conversations to compare")
    if "judge" in facts:
        print_line(f"judge      {facts['model']} ({facts['judge']})")
        print_line(f"planned    {facts['planned']}")
        print_line(f"judged     {facts['judged']}")
        print_line(f"abstained  {reasons(facts['rejected'])}")
        print_line(f"failed     {reasons(facts['failed'])}")
        print_line(f"pending    {facts['pending']}")
        print_line(f"calls      {facts['calls']['made']} made, {facts['calls']['replayed']} replayed")
        cost = facts["cost_usd"]
        print_line(f"cost       {'unknown (no price in the job)' if cost is None else f'${cost:.4f}'}")
    print_line(f"labelled   {sum(facts['pairs'].values())} by {facts['by']}")
    print_line(f"left out   {reasons(facts['left_out'])}")
    print_line(f"split      {facts['pairs']['train']} train, {facts['pairs']['test']} test")
    print_line(f"pairs      {facts['file']}")


def _complain(facts: dict[str, Any]) -> None:
    """Say what is short, with exit code 3."""
    left_out = reasons(facts["left_out"])
    if not sum(facts["pairs"].values()):
        hint = {
            "oracle": "See `--report` for the judge's biases; more votes (--set pairs.votes=3) or another judge may help.",
            "probability": "The conversations give no two different probabilities (selfplay: `closing: student` asks for them).",
            "human": "The votes are on a par, or below --min-margin.",
        }[facts["by"]]
        raise ShortError(f"No pair could be labelled by {facts['by']}: {left_out}. {hint}")
    if failed := sum(facts.get("failed", {}).values()):
        raise ShortError(
            f"{failed} of {facts['planned']} pairs got no answer ({reasons(facts['failed'])}). "
            "They are asked again when the same command is run again."
        )


def _print_report(reader: RunReader, *, json: bool) -> None:
    from edgen.pairing.bias import bias_report, render

    def words(pair: Pair) -> tuple[int, int]:
        a, b = reader.sides(pair)
        turns: slice = slice(None)
        if all(signal.compare == "response" for signal in pair.signals.oracle):
            turns = slice(pair.prefix_turns, pair.prefix_turns + 1)
        return _words(a.turns[turns]), _words(b.turns[turns])

    report = bias_report((pair, *words(pair)) for pair in reader.pairs())
    if json:
        print_json(report)
        return
    for line in render(report):
        print_line(line)


def _words(turns: tuple[Turn, ...]) -> int:
    return sum(len(turn.text.split()) for turn in turns)
