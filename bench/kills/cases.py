"""The commands that are disturbed, each with the files and commands that it needs first."""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

from bench.measure import ROOT

Words = tuple[str, ...]
TABLE = "topic,mood\nfractions,happy\nverbs,sad\nrivers,calm\n"
VOTES = "".join(
    json.dumps({"a": f"selfplay-{i:06d}-r0", "b": f"selfplay-{i:06d}-r1", "choice": "a", "rater": "rater_1"})
    + "\n"
    for i in range(2)
)

PEOPLE = "id,labels,annotator\n" + "".join(f"quickstart-{i:06d}-r0,4,ann\n" for i in range(2))


class Case(NamedTuple):
    """A command that is disturbed.

    `before`: commands that run first, undisturbed. `files`: other files that it needs. `served`: it needs the
    simulator's servers. `asks_people`: a person answers its requests.
    """

    name: str
    command: Words
    before: tuple[Words, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    served: bool = False
    asks_people: bool = False


def _job(name: str, *more: str, to: str = "run", count: int = 2) -> Words:
    return ("generate", str(ROOT / "jobs" / f"{name}.yaml"), "-n", str(count), "-o", to, *more)


def _settings(values: dict[str, Any]) -> Words:
    return tuple(word for key, value in values.items() for word in ("--set", f"{key}={json.dumps(value)}"))


_SIMULATOR = {"type": "simulator"}
_ARMS = {"plain": {}, "json": {"prompt": "education_dialogue_json"}}
_GATES = {"long": "turns >= 6", "new": "not near_duplicate"}
_LABELLED = {"gates": {"good": "labels.quality >= 2"}, "labels": {"quality": {}}, "asks": 2}
_POOL = {"choose": "pool", "rounds": 2, "student_turns": 2, "responses": 2}
_SELFPLAY = _job("selfplay", *_settings({"replicates": 2, "selfplay.max_turns": 4}))
_TUTORING = _job("tutoring", *_settings({"tutoring.student_turns": 2, "tutoring.responses": 2}))
_RESPONSES = _job("tutoring", *_settings({"tutoring.student_turns": 2, "tutoring.choose": "judge"}))
_QUICK = _job("quickstart", count=4)
_GUIDED = _job("incident_response", *_settings({"guided.turns": 8}), count=1)
_BOTH = _job("quickstart", *_settings({"arms": _ARMS}), count=2)
_EXAMPLES = "set/quickstart_test_subtask_1.json"
_SERVER = {
    kind: {
        "backends.default": {
            "type": kind, "model": f"{kind}-m", "base_url": place, "max_tokens": 3000,
            **({"temperature": 0} if kind == "anthropic" else {"seed": "auto"}),
        }
    }
    for kind, place in (("openai", "FAST/v1"), ("gemini", "FAST"), ("anthropic", "FAST"))
}  # fmt: skip
_FLEET = {"backends.default": {**_SERVER["openai"]["backends.default"], "base_url": ["FAST/v1", "SLOW/v1"]}}
_REFUSED = {
    "backends.default": {**_SERVER["openai"]["backends.default"], "base_url": "REFUSING/v1"},
    "limits.in_flight": 3,
    "limits.attempts": 20,
}
_REFUSED_ROLES = {
    f"backends.{role}": _REFUSED["backends.default"] for role in ("teacher", "student", "judge")
}
_PERSON = {
    "backends.student": {"type": "human"},
    "replicates": 1,
    "branch": None,
    "selfplay.max_turns": 4,
    "selfplay.closing": None,
}
_BATCH = {"batch.poll": "0.1s", "limits.in_flight": 4}
_BY_BATCH = ("--via", "batch", *_settings({**_SERVER["openai"], **_BATCH}))
_BUDGET = "tokens_per_day: 20_000_000\ntimezone: utc\n"
_BUDGETED = """
name: shared
seed: 7
space: education_dialogue
prompt: education_dialogue
backends: {default: {type: simulator, max_tokens: 3000}}
limits: {budget: budget.yaml}
"""


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return all cases; the quick ones of each kind come early."""
    return (
        *_generating(), *_labelling(), *_reading(), *_writing_files(), *_batches(), *_asking_people(), *_across(), *_refused()
    )  # fmt: skip


def _generating() -> tuple[Case, ...]:
    again = _job("quickstart", *_settings({"backends.default.seed": 9}), count=4)
    return (
        Case("oneshot", _QUICK),
        Case("arms", _BOTH),
        Case("an arm more", _BOTH, (_job("quickstart", *_settings({"arms": {"plain": {}}})),)),
        Case("a changed job", again, (_QUICK,)),
        Case("more of a job", _job("quickstart", count=6), (_QUICK,)),
        Case("gates, top-up", _job("quickstart", *_settings({"gates": _GATES, "top_up": True}), count=4)),
        Case("gates on labels", _job("quickstart", *_settings(_LABELLED))),
        Case("arms with labels", _job("quickstart", *_settings({**_LABELLED, "arms": _ARMS}))),
        Case("selfplay", _SELFPLAY),
        Case("tutoring", _TUTORING),
        Case("rounds", _job("tutoring", *(_settings({"tutoring": _POOL})), count=4)),
        Case("guided", _GUIDED),
        Case("forum", _job("homework_help", count=1)),
        Case("arms at once", _job("quickstart", *_settings({"arms": _ARMS, "limits.arms_at_once": 2}))),
        Case("notified", (*_QUICK, "--notify", "cat > /dev/null; echo $EDGEN_STATE > notified")),
        Case("metrics", (*_QUICK, "--metrics", "m.prom", "--log-format", "json")),
        Case("a piece", _job("quickstart", "--range", "1:3", count=4)),
        Case(
            "budget",
            _job(
                "quickstart",
                *_settings({"limits.max_tokens": 10_000_000, "backends.default.max_tokens": 3000}),
            ),
        ),
        Case(
            "shared budget",
            ("generate", "job.yaml", "-n", "3", "-o", "run"),
            files=(("job.yaml", _BUDGETED), ("budget.yaml", _BUDGET)),
        ),
        Case("served", _job("quickstart", *_settings({**_SERVER["openai"]}), count=3), served=True),
        Case("fleet", _job("quickstart", *_settings(_FLEET), count=3), served=True),
        Case("fleet, a server less", _job("quickstart", *_settings(_SERVER["openai"]), count=4), (_job("quickstart", *_settings(_FLEET)),), served=True),
        Case("hopeless", _job("quickstart", *_settings({"gates": {"never": "turns > 99"}, "asks": 1}), count=3)),
        Case("balanced", _job("course_advising", "--set", "design=balanced", count=1)),
    )  # fmt: skip


def _labelling() -> tuple[Case, ...]:
    labels = ("annotate", "run", "--labels", "quality")
    judged = ("pairs", "run", "--by", "oracle")
    return (
        Case("pairs", judged, (_SELFPLAY,)),
        Case("pairs, rollouts", (*judged, "--credit", "rollouts", "--rollouts", "1"), (_SELFPLAY,)),
        Case("pairs by people", ("pairs", "run", "--by", "human", "--human", "votes.jsonl"), (_SELFPLAY,), (("votes.jsonl", VOTES),)),
        Case("pairs by probability", ("pairs", "run", "--by", "probability"), (_SELFPLAY,)),
        Case("pairs by flag", ("pairs", "run", "--by", "flag"), (_RESPONSES,)),
        Case("pairs judged", ("pairs", "run", "--by", "judged"), (_RESPONSES,)),
        Case("annotate", (*labels, "--annotators", "2"), (_QUICK,)),
        Case("annotate turns", ("annotate", "run", "--labels", "teacher_moves", "--together"), (_BOTH,)),
        Case("sheet", ("annotate", "run", "--layer", "quality", "--sheet", "sheet.csv"), (_QUICK, labels)),
        Case("labels by people", ("annotate", "run", "--labels", "quality", "--people", "people.csv", "--unit", "conversation"), (_QUICK,), (("people.csv", PEOPLE),)),
        Case("candidates", ("candidates", "run", "--write", "paraphrases", "-n", "2"), (_QUICK,)),
        Case("wrong replies", ("candidates", "run", "--write", "wrong", "-n", "2"), (_QUICK,)),
        Case("adherence", ("stats", "run", "--only", "adherence", "--judge", "3", *_settings({"backends.judge": _SIMULATOR})), (_QUICK,)),
        Case("space expand", ("space", "expand", "education_dialogue", "--dimension", "topics", "--count", "5", "-o", "more.yaml")),
        Case("baseline by model", ("baseline", _EXAMPLES, "-o", "ranks.json", "--by", "model"), _retrieval()),
    )  # fmt: skip


def _retrieval() -> tuple[Words, ...]:
    return (
        _job("quickstart", "--set", "split.test=0.5", count=8),
        ("export", "run", "--to", "dstc7", "-o", "set", "--candidates", "5"),
    )


def _reading() -> tuple[Case, ...]:
    layered = (_QUICK, ("annotate", "run", "--labels", "quality"))
    pieces = tuple(_job("quickstart", "--range", part, to=part[0], count=4) for part in ("0:2", "2:4"))
    return (
        Case("select", ("select", "run", "--draw", "2", "--where", "turns > 2", "-o", "chosen"), layered),
        Case("merge", ("merge", "0", "2", "-o", "whole"), pieces),
        Case("merge of overlapping runs", ("merge", "run", "other", "-o", "whole"), (_QUICK, _job("quickstart", to="other"))),
        Case("compare", ("compare", "run"), (_BOTH,)),
        Case("report", ("report", "run"), (_QUICK,)),
        Case("report elsewhere", ("report", "run", "-o", "page.html"), (_QUICK,)),
        Case("validate --fix", ("validate", "run", "--fix", "fixed"), (_QUICK,)),
        Case("baseline", ("baseline", _EXAMPLES, "-o", "ranks.json", "--by", "tfidf"), _retrieval()),
        Case("compare elsewhere", ("compare", "run", "-o", "compared.json"), (_BOTH,)),
        Case("validate --restore", ("validate", "run", "--restore"), (_QUICK,)),
        Case("machine learn", ("machine", "learn", "run", "-o", "learned"), (_GUIDED,)),
        Case("score", ("score", "set/quickstart_responses_subtask_1.tsv", "ranks.json", "--candidates", "5"), (*_retrieval(), ("baseline", _EXAMPLES, "-o", "ranks.json", "--by", "tfidf"))),
        Case("show", ("show", "run", "1", "--raw"), (_QUICK,)),
        Case("status", ("status", "run", "--json"), (_QUICK,)),
        Case("pairs report", ("pairs", "run", "--report"), (_SELFPLAY, ("pairs", "run", "--by", "probability"))),
        Case("estimate", ("estimate", "run/job.yaml"), (_QUICK,)),
        Case("preview", ("preview", "run/job.yaml", "-n", "1"), (_QUICK,)),
        Case("stats", ("stats", "run", "--only", "lengths"), (_QUICK,)),
    )  # fmt: skip


def _writing_files() -> tuple[Case, ...]:
    made = (_QUICK,)
    formats = (
        "ed",
        "csv",
        "convokit",
        "sharegpt",
        "trl-sft",
        "hf",
        "dstc7",
        "verl-rl",
        "msdialog-responserank",
    )
    exports = tuple(Case(f"export {to}", ("export", "run", "--to", to, "-o", "out"), made) for to in formats)
    paired = (_SELFPLAY, ("pairs", "run", "--by", "probability"))
    return (
        *exports,
        Case("export llamafactory", ("export", "run", "--to", "llamafactory", "-o", "out"), paired),
        Case("export mtpo", ("export", "run", "--to", "mtpo", "-o", "out"), paired),
        Case("export cima", ("export", "run", "--to", "cima", "-o", "out"), (_TUTORING,)),
        Case("export crwiz", ("export", "run", "--to", "crwiz", "-o", "out"), (_GUIDED,)),
        Case("init", ("init", "project", "--protocol", "selfplay")),
        Case("space from-csv", ("space", "from-csv", "t.csv", "-o", "new.yaml"), (), (("t.csv", TABLE),)),
        Case("machine draw", ("machine", "draw", "lesson_plan", "-o", "drawn.svg")),
    )


def _batches() -> tuple[Case, ...]:
    by_provider = tuple(
        Case(
            f"batch, {kind}",
            _job("quickstart", "--via", "batch", *_settings({**_SERVER[kind], **_BATCH})),
            served=True,
        )
        for kind in _SERVER
    )
    out = tuple(word.replace("FAST", "SLOW") for word in _job("quickstart", *_BY_BATCH, "--for", "5s"))
    written = _job("quickstart", *_BY_BATCH, "--write-only", "out")
    answered = _job("quickstart", *_BY_BATCH, to="other")
    return (
        *by_provider,
        Case("batch cancel", ("batch", "cancel", "run"), (out,), served=True),
        Case("batch cancel, not sent", ("batch", "cancel", "run"), (written,), served=True),
        Case("batch read", ("batch", "read", "run", "other/run.batches/*.results-*.jsonl"), (answered, written), served=True),
        Case("batch, written", written, served=True),
        Case("candidates by batch", ("candidates", "run", "--write", "paraphrases", "-n", "2", *_BY_BATCH), (_QUICK,), served=True),
    )  # fmt: skip


def _asking_people() -> tuple[Case, ...]:
    """Return the cases in which people play, judge and label: their requests wait in the run's mailbox."""
    judge = ("--backend", "judge", *_settings({"backends.judge": {"type": "human"}}))
    named = ("pairs", "run", "--by", "probability", "--name", "first")
    return (
        Case("a person plays", _job("selfplay", *_settings(_PERSON), count=1), asks_people=True),
        Case("pairs by a person asked", ("pairs", "run", "--signal", "oracle", *judge), (_SELFPLAY,), asks_people=True),
        Case("pair set", named, (_SELFPLAY, ("pairs", "run", "--by", "probability"))),
        Case("pair sets compared", ("pairs", "run", "--compare", "first", "default"), (_SELFPLAY, ("pairs", "run", "--by", "probability"), named)),
        Case("export of a pair set", ("export", "run", "--to", "trl-dpo", "--pairs", "first", "-o", "out"), (_SELFPLAY, named)),
        Case("web export", ("web", "run", "--export", "site"), (_SELFPLAY, named)),
    )  # fmt: skip


def _across() -> tuple[Case, ...]:
    """Return commands over several runs, and over published layouts."""
    other = _job(
        "selfplay",
        *_settings({"replicates": 2, "selfplay.max_turns": 4, "backends.teacher.seed": 9}),
        to="other",
    )
    against = ("pairs", "run", "other", "--signal", "oracle")
    dialogs = ("export", "run", "--to", "msdialog-complete", "-o", "data")
    return (
        Case("pairs of two runs", against, (_SELFPLAY, other)),
        Case("export against", ("export", "run", "--against", "other", "--to", "trl-dpo", "-o", "out"), (_SELFPLAY, other, against)),
        Case("compare with data", ("compare", "data", "run", "-o", "compared.json"), (_QUICK, dialogs)),
        Case("space from-ed", ("space", "from-ed", "data/*.json", "-o", "new.yaml"), (_QUICK, ("export", "run", "--to", "ed", "-o", "data"))),
    )  # fmt: skip


def _refused() -> tuple[Case, ...]:
    """Return commands whose service refuses and breaks off a third of the attempts, so calls wait for retries
    all the time and other units begin meanwhile."""
    quick = _job("quickstart", *_settings(_REFUSED), count=8)
    topped_up = _job("quickstart", *_settings({**_REFUSED, "gates": _GATES, "top_up": True}), count=6)
    talks = _job(
        "selfplay",
        *_settings({**_REFUSED, **_REFUSED_ROLES, "replicates": 2, "selfplay.max_turns": 3}),
        count=3,
    )
    arms = _job("quickstart", *_settings({**_REFUSED, "arms": _ARMS, "limits.arms_at_once": 2}), count=4)
    labels = (
        "annotate",
        "run",
        "--labels",
        "quality",
        *_settings({"backends.annotator": _REFUSED["backends.default"], "limits.attempts": 20}),
    )
    cases = {
        "refused": (quick,),
        "refused, top-up": (topped_up,),
        "refused, selfplay": (talks,),
        "refused, rounds": (
            _job("tutoring", *_settings({**_REFUSED, "tutoring": {**_POOL, "student_turns": 1}}), count=2),
        ),
        "refused, arms at once": (arms,),
        "refused, budget": (
            _job("quickstart", *_settings({**_REFUSED, "limits.max_tokens": 10_000_000}), count=6),
        ),
        "refused, after a deadline": ((*topped_up, "--for", "0.3s"), topped_up),
        "refused, annotate": (_QUICK, labels),
        "refused, partitions": (_job("quickstart", *_settings({**_REFUSED, "partitions": 2}), count=6),),
    }
    return tuple(Case(name, words[-1], words[:-1], served=True) for name, words in cases.items())
