"""The commands that are compared: chains of steps. Each chain begins in an empty folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FORMATS = (
    "cima", "convokit", "crwiz", "csv", "dialogue-acts", "dstc7", "ed", "hf", "intent-prediction", "llamafactory",
    "msdialog-complete", "msdialog-intent", "msdialog-responserank", "mtpo", "open-instruct", "openrlhf", "refuel",
    "sft", "sharegpt", "skyrl", "sweet", "trl-conversation", "trl-dpo", "trl-kto", "trl-prompts", "trl-sft", "verl", "verl-rl",
)  # fmt: skip
SPACES = (
    "broad", "course_advising", "education_dialogue", "education_dialogue_faithful", "fractions", "homework_help",
    "incident_response", "italian_prepositions", "italian_shapes", "language_learning", "lesson_plan",
    "math_misconceptions", "tech_support",
)  # fmt: skip
JOBS = (
    "course_advising", "experiment", "homework_help", "incident_response", "language_learning", "lesson_plan",
    "math_misconceptions", "quickstart", "selfplay", "tech_support", "tutoring",
)  # fmt: skip
KINDS = (
    "prompts",
    "jobs",
    "spaces",
    "label-sets",
    "machines",
    "formats",
    "measures",
    "providers",
    "protocols",
    "families",
)
HELP = "help"  # the chain whose differences are shown and do not count

_SIMULATOR = {"type": "simulator"}
_SMALL = "--candidates 5"  # runs are small, so examples have few candidates


class Chain(NamedTuple):
    """Commands in one folder.

    `files`: paths to texts. `again`: commands that a later commit repeats in the folder.
    """

    name: str
    steps: tuple[str, ...]
    files: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    again: tuple[str, ...] = ()


def _run(
    name: str, job: str, count: int, *steps: str, files: dict[str, str] | None = None, again: tuple[str, ...] = (), **settings: Any
) -> Chain:  # fmt: skip
    """Return a chain: a run of a shipped job, its exports in every format, and commands on it."""
    words = "".join(f" --set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in settings.items())
    generate = f"generate jobs/{job}.yaml -n {count} -o run --json{words}"
    reading = (
        "stats run", "stats run --json", "compare run --json", "status run", "status run --json", "validate run",
        f"estimate jobs/{job}.yaml -n {2 * count} -o run --runs . --json{words}", "report run -o report.html",
        f"show run {job}-000001-r0", f"show run {job}-000001-r0 --raw --json", "show run 0",
    )  # fmt: skip
    exports = tuple(
        f"export run --to {words} -o exports/{number:02}-{words.split()[0]}"
        for number, words in enumerate((*_PLAIN, *_VARIANTS.get(name, ())))
    )
    if name in _EXPORTED:
        exports += tuple(f"export run --to {one} -o exports/{one}" for one in FORMATS if one != "dstc7")
        exports += (f"export run --to dstc7 {_SMALL} -o exports/dstc7",)
    opened = (
        "validate run --json", "stats run --json", "status run --json", generate, "show run 1",
        "export run --to csv -o opened/csv", "export run --to sft -o opened/sft", *again,
    )  # fmt: skip
    return Chain(name, (generate, *steps, *reading, *exports), files or {}, opened)


_PLAIN = (
    "hf --files jsonl --license mit --language en", "csv --no-csv-safe", "trl-sft --no-masks --opening both",
)  # fmt: skip
_TRAINING = (
    "trl-sft --opening system --end-marker keep", "trl-dpo --opening system --min-turns-left 2",
    "trl-conversation --min-turns-left 2 --json", "sharegpt --no-masks --opening user", "sft --alternatives",
    "sft --actions labels", "trl-prompts --alternatives --actions wanted", "verl --no-masks",
)  # fmt: skip
_RETRIEVAL = (
    f"dstc7 {_SMALL} --cuts all --speakers roles --prefix ubuntu --dev 0.3", f"dstc7 {_SMALL} --negatives bm25",
    f"dstc7 {_SMALL} --negatives same-topic", "dstc7 --candidates 3 --negatives written", "dstc7 --subtask 2 --pool 50",
    f"dstc7 --subtask 3 {_SMALL}", f"dstc7 --subtask 4 --none 0.4 {_SMALL}",
    f"dstc7 --subtask 5 {_SMALL} --speakers roles", f"dstc7 {_SMALL} --agent student",
)  # fmt: skip
# Options of formats that are tried on a run, beyond every format with its defaults.
_VARIANTS = {
    "quickstart": _TRAINING + _RETRIEVAL, "selfplay": _TRAINING, "tutoring": _TRAINING, "forum": _RETRIEVAL, "advising": _RETRIEVAL,
}  # fmt: skip
_EXPORTED = ("quickstart", "selfplay", "experiment", "tutoring", "guided", "forum", "advising", "gated")

_PEOPLE = "id,turn,labels,annotator\n" + "".join(
    f"quickstart-{number:06}-r0,,{1 + (number * 7 + rater) % 5},person_{rater}\n"
    for number in range(6)
    for rater in range(2)
)
_VOTES = "".join(
    json.dumps({"a": f"selfplay-{i:06d}-r0", "b": f"selfplay-{i:06d}-r{1 + i % 3}", "choice": "ab"[i % 2], "rater": f"person_{rater}"})
    + "\n"
    for i in range(6)
    for rater in range(2)
)  # fmt: skip


def _quickstart() -> Chain:
    labels = "annotate run --labels quality --annotators 2 --unit conversation --sample 10 --json"
    moves = "annotate run --labels teacher_moves --together --json"
    writes = "annotate run --write paraphrases --texts 2 --json"
    return _run(
        "quickstart", "quickstart", 40,
        "preview jobs/quickstart.yaml -n 2",
        f"{labels} --dry-run", labels, moves,
        "annotate run --labels msdialog_intents --together",
        "annotate run --labels student_states --annotators 3 --sample 5",
        "annotate run --labels quality --unit conversation --people people.csv --layer people --json",
        "annotate run --layer quality",
        "annotate run --layer people --json",
        "annotate run --layer quality --gold people --json",
        "annotate run --labels quality --unit conversation --layer quality --sheet sheet.csv",
        f"{writes} --dry-run", writes, "annotate run --write wrong --texts 4 --after 2",
        "stats run --only adherence --adherence 10 --json",
        "stats run --only lengths diversity --json", "stats run/shards --json",
        "export run --to msdialog-intent --layer msdialog_intents -o exports/intents",
        "export run --to intent-prediction --layer msdialog_intents -o exports/prediction",
        "export run --to dialogue-acts --layer teacher_moves -o exports/acts",
        "export run --to sft --actions labels --layer teacher_moves -o exports/moves",
        "select run --where 'turns < 20 and words.Student > 20' --where 'not near_duplicate' --cap ended_by=15 -o chosen --json",
        "select run --where 'labels.quality >= 3' -o good", "select run --draw 10 --seed 3 -o drawn",
        "select run --balance ended_by --split-by topic --test 0.3 -o balanced",
        "stats chosen --json", "validate balanced", "export chosen --to ed -o exports/chosen",
        f"export run --to dstc7 {_SMALL} --cuts all --prefix set -o set",
        *(f"baseline set/set_test_subtask_1.json -o {how}.json --method {how} --json" for how in ("chance", "tfidf", "bm25", "model")),
        *(f"score set/set_responses_subtask_1.tsv {how}.json --candidates 5 --examples set/set_test_subtask_1.json" for how in ("chance", "tfidf", "bm25")),
        "score set/set_responses_subtask_1.tsv model.json --candidates 5 --json",
        "validate run --fix fixed",
        *(f"generate jobs/quickstart.yaml -n 12 --range {piece} -o {piece[0]} --json" for piece in ("0:5", "5:12")),
        "merge 0 5 -o whole --json", "merge 0 run -o overlapping",
        files={"people.csv": _PEOPLE},
        again=(labels, moves, writes),
    )  # fmt: skip


def _selfplay() -> Chain:
    oracle, credit = (
        "pairs run --signal oracle --json",
        "pairs run --signal oracle --credit rollouts --rollouts 2 --json",
    )
    return _run(
        "selfplay", "selfplay", 8,
        f"{oracle} --dry-run", oracle, "pairs run --report", "pairs run --report --json",
        "export run --to trl-conversation -o exports/by-oracle", "export run --to trl-kto -o exports/kto-by-oracle",
        "pairs run --signal probability --min-margin 0.05 --max-per-scenario 2 --json",
        "export run --to trl-dpo -o exports/by-probability",
        "pairs run --signal human --people votes.jsonl --json", "pairs run --report --json",
        "export run --to trl-conversation -o exports/by-people",
        "pairs run --signal oracle --credit response --json", "export run --to trl-dpo -o exports/by-response",
        f"{credit} --dry-run", credit,
        "pairs run",
        files={"votes.jsonl": _VOTES},
        again=("pairs run --json", credit),
        selfplay={"first": "teacher", "max_turns": 8, "closing": "student"},
    )  # fmt: skip


def _tutoring() -> Chain:
    length: dict[str, Any] = {"tutoring.student_turns": 8}
    labels = "annotate run --labels cima_tutor --together --json"
    return _run(
        "tutoring", "tutoring", 5, labels, "annotate run --labels cima_student --together",
        "export run --to cima --layer cima_tutor --layer cima_student -o exports/layers",
        "pairs run --signal flag --json",
        again=(labels,), **length,
    )  # fmt: skip


def _judged() -> Chain:
    choice: dict[str, Any] = {"tutoring.student_turns": 5, "tutoring.choose": "judge"}
    return _run(
        "judged",
        "tutoring",
        4,
        "pairs run --signal judged --json",
        **choice,
    )


def _rounds() -> Chain:
    pool = {"choose": "pool", "rounds": 2, "student_turns": 5, "responses": 2}
    return _run("rounds", "tutoring", 8, tutoring=pool)


def _guided() -> Chain:
    length: dict[str, Any] = {"guided.turns": 20}
    return _run(
        "guided", "incident_response", 4, "machine learn run --json", "machine learn run -o learnt",
        "machine draw incident_response -o drawn.svg --run run", **length,
    )  # fmt: skip


def _gated() -> Chain:
    gates = {"long": "turns >= 8", "good": "labels.quality >= 2", "new": "not near_duplicate"}
    return _run("gated", "quickstart", 20, gates=gates, labels={"quality": {}}, asks=2, top_up=True)


def _others() -> Chain:
    steps = []
    for job in ("homework_help", "lesson_plan", "math_misconceptions"):
        steps += [f"generate jobs/{job}.yaml -n 4 -o {job} --json", f"stats {job} --json", f"validate {job}"]
    arms = {"plain": {}, "pairwise": {"design": "pairwise"}, "random": {"design": "random"}}
    steps += [
        f"generate jobs/language_learning.yaml -n 20 -o designs --set 'arms={json.dumps(arms)}'",
        "stats designs --json", "compare designs --json",
        "generate jobs/quickstart.yaml -n 30 -o faulty --set 'backends.default.faults=refusal=0.1,defects=0.3,truncated=0.1,garbage=0.1'",
        "stats faulty --json", "status faulty --json", "validate faulty", "validate faulty/shards/*.json",
        "compare faulty designs", "compare quick faulty",
        "generate jobs/quickstart.yaml -n 30 -o quick", "compare quick faulty --json", "compare quick faulty --prompts",
    ]  # fmt: skip
    return Chain("others", tuple(steps))


_TABLE = "topic,mood\nfractions,happy\nverbs,sad\nrivers,calm\n"
_REPLIES = "\n".join(
    json.dumps({"id": name, "reply": reply})
    for name, reply in {
        "lines": "Teacher: What is a half?\nStudent: One of two equal parts.\nTeacher: Good.\nStudent: Thanks. [end]\n0.8",
        "bold": "**Teacher:** What is a half?\n\n**Student:** One of two equal parts.\n\nProbability: 0.7",
        "json": '```json\n[{"role": "Teacher", "text": "What is a half?"}, {"role": "Student", "text": "A part."}]\n```',
        "numbers": "1. Teacher: What is a half?\n2. Student: A part of two.\n3. Teacher: Yes.\n",
        "refusal": "I cannot help with that.",
        "empty": "",
    }.items()
)


def _tools() -> Chain:
    served = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_tokens": 3000}
    requests = []
    for kind in ("openai", "gemini", "anthropic"):
        extra = {"temperature": 0} if kind == "anthropic" else {"seed": 5}
        backend = json.dumps({"type": kind, **served, **extra})
        words = f"--via batch --write-only requests-{kind} --set 'backends.default={backend}'"
        requests.append(f"generate jobs/quickstart.yaml -n 4 -o written-{kind} {words}")
    return Chain(
        "tools",
        (
            *(f"space show {space} -n 60 --per-cell 2 --json" for space in SPACES),
            *(f"space show {space}" for space in SPACES),
            "space show italian_shapes --pictures pictures --exercises 4",
            "space expand education_dialogue --dimension topics --count 6 --dry-run",
            "space expand education_dialogue --dimension topics --count 6 -o more.yaml --json",
            "space from-csv table.csv -o table.yaml", "space show table.yaml --json", "space show none",
            "generate jobs/quickstart.yaml -n 12 -o ed", "space from-ed ed/shards/*train*.json -o ed.yaml --name mine",
            *(f"machine check {name} --json" for name in ("incident_response", "lesson_plan", "none")),
            *(f"machine draw {name} -o {name}.svg" for name in ("incident_response", "lesson_plan")),
            *(f"list {kind}" for kind in KINDS), *(f"list {kind} --json" for kind in KINDS), "list",
            *(f"preview jobs/{job}.yaml -n 2 --json" for job in JOBS),
            *(f"estimate jobs/{job}.yaml -n 100 --runs none --json" for job in JOBS),
            "preview jobs/quickstart.yaml -n 1 --diff education_dialogue_json",
            "estimate jobs/quickstart.yaml --via batch", "doctor jobs/quickstart.yaml",
            *(f"init made/{name} --protocol {name}" for name in ("oneshot", "selfplay", "tutoring", "guided", "forum")),
            "validate --replies --jsonl replies.jsonl", "simulator --list-faults",
            *requests,
            "generate none.yaml", "generate jobs/quickstart.yaml --set nothing=1 -o x", "export ed", "export ed --to none -o x",
            "stats ed --only none", "select ed --where 'turnz < 1' -o x", "annotate ed --labels none", "pairs ed --signal oracle",
            "generate jobs/quickstart.yaml --set prompt=none -o x", "generate jobs/quickstart.yaml --set 'protocol=none' -o x",
        ),
        {"table.csv": _TABLE, "replies.jsonl": _REPLIES},
    )  # fmt: skip


CHAINS: dict[str, Callable[[], Chain]] = {
    "quickstart": _quickstart,
    "selfplay": _selfplay,
    "experiment": lambda: _run("experiment", "experiment", 15, "compare run", "compare run --prompts", "compare run --arms json refusing"),
    "tutoring": _tutoring,
    "guided": _guided,
    "forum": lambda: _run("forum", "tech_support", 10),
    "advising": lambda: _run("advising", "course_advising", 20),
    "gated": _gated,
    "rounds": _rounds,
    "judged": _judged,
    "others": _others,
    "tools": _tools,
    HELP: lambda: Chain(HELP, ("--help *",)),
}  # fmt: skip


def make_chains(names: list[str]) -> list[Chain]:
    """Return the chains of these names, or all of them."""
    return [CHAINS[name]() for name in names or CHAINS]


def read_jobs(tree: Path) -> dict[str, str]:
    """Return the shipped jobs of a tree as files, from any folder below jobs/."""
    found = {}
    for name in JOBS:
        (path,) = (tree / "jobs").rglob(f"{name}.yaml")
        found[f"jobs/{name}.yaml"] = path.read_text(encoding="utf-8")
    return found
