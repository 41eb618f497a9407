"""Set-up before the pages are served: a task for people, its settings, and invitations."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.config.label_set import find_label_set
from edgen.core.errors import DataError, UsageError
from edgen.core.yaml_values import read_text
from edgen.store.people import People, has_people
from edgen.store.run_folder import RunFolder
from edgen.store.several_runs import open_together
from edgen.store.votes import make_vote_task
from edgen.web.options import PeopleOptions
from edgen.web.people import labelling, voting
from edgen.web.people.owner_page import invite
from edgen.web.people.tasks import Setup, read_setup
from edgen.web.sources import IndexedRun

_MOST_GUIDELINES = 200_000  # most bytes of a file of guidelines


def set_up(paths: Sequence[Path], options: PeopleOptions) -> dict[str, str]:
    """Set up a task in a run, or voting between runs, and return the key of each new link by name.

    Raises UsageError, RunError, DataError and LabelSetError.
    """
    if not options.sets_up:
        return {}
    if len(paths) != 1 and not options.vote:
        raise UsageError("--label and --invite are about one run: name its folder alone.")
    for path in paths:
        if not RunFolder(path).exists:
            raise UsageError(
                f"{path}: there is no run here. Name the folder of one, as `edgen status` lists them."
            )
    if options.vote == (options.label is not None):
        raise UsageError("Name one task: --vote, or --label SET. The options of tasks go with it.")
    run = IndexedRun(paths[0])
    people = run.open_people(create=True)
    assert people is not None
    try:
        with open_together(paths) as reader:
            if options.vote:
                if options.unit is not None:
                    raise UsageError("--unit goes with --label.")
                task = make_vote_task(reader.rundir)
                setup = voting.set_up(reader, read_setup(people, task), options.known)
                others = tuple(str(path.resolve()) for path in paths[1:])
                setup = msgspec.structs.replace(setup, against=others)
            else:
                labels = find_label_set(options.label or "")
                task = labelling.make_task_name(labels)
                before = read_setup(people, task)
                setup = labelling.set_up(reader, before, labels, options.unit, options.known)
        people.set_up(task, msgspec.to_builtins(_with(setup, options)))
        names = [name.strip() for name in (options.invite or "").split(",") if name.strip()]
        return invite(run, names, task, time.time()) if options.invite is not None else {}
    finally:
        people.close()


def _with(setup: Setup, options: PeopleOptions) -> Setup:
    changed: dict[str, Any] = {}
    if options.per_unit is not None:
        changed["per_unit"] = options.per_unit
    if options.check_every is not None:
        changed["check_every"] = options.check_every
    if options.guidelines is not None:
        changed["guidelines"] = read_text(options.guidelines, DataError, max_bytes=_MOST_GUIDELINES)
    return msgspec.structs.replace(setup, **changed)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_invitations(paths: Sequence[Path], host: str) -> None:
    """Raise UsageError if other machines can reach the pages, but nobody is invited."""
    if is_loopback(host) or any(_has_invitation(path) for path in paths):
        return
    raise UsageError(
        f"--host {host}: others can reach this address, and nobody is invited. Add --vote or --label SET "
        "with --invite NAME; leave --host out to see the pages on this machine."
    )


def _has_invitation(path: Path) -> bool:
    runs = [path, *(one.parent for one in path.glob("*/people"))]
    for run in runs:
        if has_people(run):
            with People(run) as people:
                if any(one.revoked is None for one in people.list_invitations()):
                    return True
    return False
