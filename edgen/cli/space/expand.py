"""`edgen space expand`: a model is asked for more values, and a new file holds the old and the new ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from edgen.cli.options import JsonOption, SetOption, TrustOption
from edgen.cli.output import note, print_json, print_line
from edgen.cli.trusting import Trust
from edgen.cli.work import made_backends, supervised, worded
from edgen.errors import EdgenError, ShortError, UsageError
from edgen.files import refuse_links, write_new
from edgen.space import MAX_ENTRIES, Space, dump_space, load_space

if TYPE_CHECKING:
    from edgen.cli.progress import Display
    from edgen.config import Job
    from edgen.engine.expanding import Expanding
    from edgen.ledger import RunStatus

_EXAMPLES = 5  # new values that are shown


def command(
    space: Annotated[
        str, typer.Argument(metavar="SPACE", help="A shipped space's name, or a file.", show_default=False)
    ],
    dimension: Annotated[
        Literal[
            "topics", "student_preferences", "student_reactions", "teacher_preferences", "teacher_reactions"
        ],
        typer.Option(help="Which list is to grow."),
    ],
    count: Annotated[int, typer.Option(metavar="N", min=1, max=MAX_ENTRIES, help="How many new values.")],
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB[:ROLE]",
            help="Whose backend is asked.  [default: `default` of ./job.yaml if there is one, else the simulator]",
        ),
    ] = None,
    prompt: Annotated[
        str, typer.Option(metavar="FILE", help="The template that asks: a shipped name, or a .j2 file.")
    ] = "space_expand",
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="OUT", help="The new file.  [default: <name>-expanded.yaml]"),
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model for more values of one list, and write a new space file with the old and the new ones.

    Values that are nearly the same as one that is there, or as one another, are dropped. The old file is
    never changed, and none is overwritten. Stopped and started again, it asks nothing twice: every answer is in
    OUT.db, which stays beside OUT, as does a hidden lock file that may be deleted when nothing runs.

    Example: edgen space expand education_dialogue --dimension topics --count 200 --job job.yaml
    """
    from edgen.engine.load import find_space
    from edgen.engine.reach import typed

    trust = Trust(trust_host)
    path = find_space(space, typed())
    known = load_space(path)
    if len(getattr(known, dimension)) + count > MAX_ENTRIES:
        raise UsageError(f"--count {count}: a list holds at most {MAX_ENTRIES:,} values.")
    out = output if output is not None else Path(f"{path.stem}-expanded.yaml")
    _free(out)
    expanding = _expanding(known, dimension, count, prompt, _job(job, set_ or []))
    ledger = out.with_name(f"{out.name}.db")
    try:
        status = asyncio.run(_ask(expanding, out, ledger, trust))
    except EdgenError:
        if ledger.exists():
            note(f"edgen: nothing was written yet; the answers so far are kept in {ledger}.")
        raise
    _conclude(expanding, _facts(expanding, status, path, out, ledger), path, out, json=json)


def _conclude(expanding: Expanding, facts: dict[str, Any], path: Path, out: Path, *, json: bool) -> None:
    """Write the new file and say what came of it. Raises ShortError where there is less than was asked for."""
    from edgen.engine.expanding import grown

    if facts["kept"]:
        publish(out, dump_space(grown(expanding, path.name)))
    if json:
        print_json(facts)
    else:
        _print(facts, expanding)
    if facts["kept"] < expanding.wanted:
        raise ShortError(_shortage(facts))


def _free(out: Path) -> None:
    """Raise UsageError where the new file cannot be made."""
    if out.exists() or out.is_symlink():
        raise UsageError(
            f"-o {out}: there is something of that name already, and nothing is overwritten; choose another name."
        )
    if not out.parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder {out.parent}; make it first.")


def _job(named: str | None, overrides: list[str]) -> Job:
    """The job whose backend is asked, that one being its only one. Without a job: the embedded simulator."""
    from edgen.config import load_job, parse_job

    path, role = _named(named)
    if path is not None:
        job = load_job(path, overrides)
    else:
        plain = {"name": "space-expand", "conversations": 1, "space": "-", "prompt": "-"}
        backends = {"backends": {"default": {"type": "simulator"}}}
        job = parse_job({**plain, **backends}, "(no job)", overrides)
    if role not in job.backends:
        raise UsageError(
            f"{path}: this job has no backend '{role}' (there: {', '.join(job.backends)}). Say which is to be "
            f"asked, as in --job {path}:{next(iter(job.backends))}."
        )
    config = job.backends[role]
    if config.__struct_config__.tag == "simulator":
        why = f"the backend '{role}' of {path} is" if path is not None else "no --job is named, so this is"
        note(f"edgen: {why} the simulator: its values are made up, and no model is asked.")
    return msgspec.structs.replace(job, backends={"default": config})


def _named(named: str | None) -> tuple[Path | None, str]:
    """The job file and the role that `--job` means."""
    if named is None:
        return (Path("job.yaml") if Path("job.yaml").is_file() else None), "default"
    path, colon, role = named.rpartition(":")
    if not colon or Path(named).is_file():
        return Path(named), "default"
    return Path(path), role


def _expanding(space: Space, dimension: str, count: int, prompt: str, job: Job) -> Expanding:
    from edgen.engine.expanding import Expanding, load_asking

    return Expanding(job, space, dimension, count, load_asking(prompt))


async def _ask(expanding: Expanding, out: Path, path: Path, trust: Trust) -> RunStatus:
    """Ask until there is enough; returns how the ledger stands. Raises what stopped it."""
    from edgen.engine.expanding import work_through
    from edgen.engine.session import Session
    from edgen.ledger import Ledger
    from edgen.rundir import hold

    async with made_backends(dict(expanding.job.backends), expanding.job.limits, trust) as backends:
        taken = f"{path}: another process is at it"
        refuse_links(path.parent, [f"{path.name}{end}" for end in ("", "-wal", "-shm", "-journal")])
        with worded(path), hold(path.with_name(f".{path.name}.lock"), taken, "another name"):
            _free(out)  # who held it until now may have written it
            async with Ledger(path) as ledger:
                session = Session(expanding, backends, ledger, roles=("default",))
                session.tally.planned = expanding.wanted

                async def work(_display: Display) -> None:
                    await work_through(expanding, session)

                await supervised(session, "space expand", work, ("kept", "dropped"))
                await ledger.flush()
                return ledger.status()


def _facts(expanding: Expanding, status: RunStatus, path: Path, out: Path, ledger: Path) -> dict[str, Any]:
    """What `--json` prints."""
    expanded = expanding.expanded
    assert expanded is not None
    counts = status.as_json("", held=False)
    return {
        "space": str(path),
        "dimension": expanding.dimension,
        "present": len(getattr(expanding.space, expanding.dimension)),
        "asked": expanding.wanted,
        "kept": len(expanded.kept),
        "dropped": expanded.dropped,
        "answers": expanded.answers,
        "empty": expanded.empty,
        "model": expanding.model,
        "simulated": expanding.simulated,
        "template": {"name": expanding.prompt.name, "sha256": expanding.prompt.sha256},
        "file": str(out) if expanded.kept else None,
        "ledger": str(ledger),
        **{key: counts[key] for key in ("calls", "tokens", "cost_usd")},
        "values": expanded.kept,
    }


def publish(path: Path, text: str) -> None:
    """Write a new file, whole or not at all. Raises UsageError if one of that name has come meanwhile."""
    try:
        write_new(path, text)
    except FileExistsError:
        raise UsageError(
            f"-o {path}: something of that name has come meanwhile, and nothing is overwritten. "
            "Move it away and start the same command again: what was answered is stored."
        ) from None
    except OSError as problem:
        raise UsageError(f"-o {path}: it cannot be written ({problem.strerror}).") from None


def _print(facts: dict[str, Any], expanding: Expanding) -> None:
    made_up = " (simulated: no model wrote them)" if facts["simulated"] else ""
    dropped = ", ".join(f"{reason} {number}" for reason, number in facts["dropped"].items())
    calls, cost = facts["calls"], facts["cost_usd"]
    print_line(f"space      {facts['space']}: {facts['present']} {facts['dimension']}")
    print_line(f"asked      {facts['asked']} more, of {facts['model'] or 'the model'}{made_up}")
    print_line(f"kept       {facts['kept']}")
    for value in facts["values"][:_EXAMPLES]:
        print_line(f"           {value}")
    if facts["kept"] > _EXAMPLES:
        print_line("           …")
    print_line(f"dropped    {dropped or 'none'}")
    print_line(f"calls      {calls['made']} made, {calls['replayed']} replayed, {calls['retried']} retried")
    print_line(f"cost       {'unknown (no price in the job)' if cost is None else f'${cost:.4f}'}")
    if facts["file"]:
        print_line(f"file       {facts['file']}")
    print_line(f"ledger     {facts['ledger']} (every answer as it came)")
    topics = expanding.space.topics if expanding.dimension == "topics" else ()
    if facts["kept"] and any(topic.subject or topic.level for topic in topics):
        print_line("The new topics have no subject and no level, as the old ones do: add them by hand.")


def _shortage(facts: dict[str, Any]) -> str:
    """Why there are fewer than were asked for, and what can be done."""
    found = f"{facts['kept']} of {facts['asked']} new values were found; the last answers brought nothing new"
    if facts["empty"] == facts["answers"]:
        found = f"none of the {facts['answers']} answers lists values"
    written = f"What was found is in {facts['file']}." if facts["file"] else "Nothing was written."
    return (
        f"{found[0].upper()}{found[1:]}. {written} Another model, a higher temperature or another seed "
        "(--set seed=…) with another -o may find more."
    )
