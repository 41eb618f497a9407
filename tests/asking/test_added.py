"""Askers of another package: one file each and an entry point, from the command line and from Python."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.pairs import list_signals
from edgen.asking import call_estimates
from edgen.core import registry
from edgen.core.errors import UsageError
from edgen.core.values import Request
from edgen.runtime.control import Control
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder
from tests import ROOT
from tests.cli.command import Command
from tests.installing import install
from tests.json_server import serving_json

pytestmark = pytest.mark.integration

JOB = {
    "name": "t", "seed": 3, "conversations": 4, "replicates": 2, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
}  # fmt: skip

JUDGE = '''
"""A judge that scores each side alone, from 1 to 9."""
from pathlib import Path

from edgen.plugin import Rejection
from edgen.plugin.askers import ORDERS, JudgeAsker, Verdict, select_turns
from edgen.plugin.protocols import FENCED, fence_turns, unread


class Scores(JudgeAsker):
    name = "scores"
    template = str(Path(__file__).with_name("scores.j2"))
    variables = FENCED

    def count_calls(self, index, task):
        return 2, 2

    def ask(self, unit):
        shown = select_turns(unit, self.job.pairs.compared)
        if isinstance(shown, Rejection):
            return shown
        common, *sides = shown
        scores = []
        for step, turns in enumerate(sides):
            fenced = fence_turns(self.rules.seed, unit.scenario.index, unit.task, (*common, *turns))
            score = yield from self.question(unit, fenced, read, step)
            if isinstance(score, Rejection):
                return score
            scores.append(score)
        choice = "a" if scores[0] > scores[1] else "b"
        return [Verdict(order=order, vote=0, choice=choice) for order in ORDERS]


def read(reply):
    said = reply.text.strip()
    return int(said) if said.isdigit() else unread(reply, said)
'''

ANNOTATOR = '''
"""An annotator that is asked whether a turn asks something, and answers yes or no."""
from pathlib import Path

from edgen.plugin import Rejection
from edgen.plugin.askers import AnnotatorAsker
from edgen.plugin.protocols import FENCED, fence_turns, unread


class Asking(AnnotatorAsker):
    name = "asking"
    labels = str(Path(__file__).with_name("asking.yaml"))
    template = str(Path(__file__).with_name("asking.j2"))
    variables, shows = FENCED, ()

    def ask(self, unit):
        fenced = fence_turns(self.rules.seed, unit.address.scenario, unit.address.task, unit.turns)
        label = yield from self.question(unit, fenced, read)
        return label if isinstance(label, Rejection) else ((label,),)


def read(reply):
    said = reply.text.strip().lower()
    return {"yes": "asks", "no": "tells"}.get(said) or unread(reply, said)
'''

WRITER = '''
"""A writer of shorter replies."""
from pathlib import Path

from edgen.plugin.askers import Written, WriterAsker, choose_texts


class Shorter(WriterAsker):
    name = "shorter"
    template = str(Path(__file__).with_name("shorter.j2"))

    def choose(self, texts, said):
        short = [text for text in texts if len(text) < len(said.text)]
        found = choose_texts(short, said)
        return Written(found.texts, {**found.dropped, "longer": len(texts) - len(short)})
'''

ASKER = '''
"""Whether each conversation is long."""
from pathlib import Path

import msgspec

from edgen.plugin.askers import DeclaredAsker
from edgen.plugin.protocols import FENCED, fence_turns, unread


class Long(msgspec.Struct):
    long: bool


class Length(DeclaredAsker):
    name = "length"
    template = str(Path(__file__).with_name("asking.j2"))
    variables = FENCED

    def ask(self, unit):
        fenced = fence_turns(self.rules.seed, unit.address.scenario, unit.address.task, unit.turns)
        return self.question(unit, fenced, read)


def read(reply):
    said = reply.text.strip().lower()
    return Long(said == "yes") if said in ("yes", "no") else unread(reply, said)
'''

# The example of CONTRIBUTING.md, as written: the class, and its template.
POLITENESS, POLITE = re.findall(
    r"```(?:python|jinja)\n(.*?)```",
    (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an asker")[2],
    re.DOTALL,
)[:2]

FILES = {
    "politeness.j2": POLITE,
    "scores.j2": "Score the last turn from 1 to 9.\n{{ guarded }}\n",
    "asking.j2": "Does the last turn ask something? Answer yes or no.\n{{ guarded }}\n",
    "asking.yaml": "name: asks\nlabels:\n- {name: asks, definition: it asks}\n- {name: tells, definition: it does not}\n",
    "shorter.j2": "Write {{ count }} shorter replies for turn (1) of the {{ role }}.\n{{ guarded }}\n",
}
ASKERS = {
    "scores": ("Scores", JUDGE),
    "asking": ("Asking", ANNOTATOR),
    "shorter": ("Shorter", WRITER),
    "length": ("Length", ASKER),
    "politeness": ("Politeness", POLITENESS),
}


def answer(text: str) -> str:
    """Answer each kind of question."""
    if text.startswith("Score"):
        return str(1 + len(text) % 9)
    if text.startswith("Is the last"):
        return "Yes"
    if text.startswith("Does"):
        return "yes" if len(text) % 2 else "no"
    return json.dumps(["Yes.", "No.", 500 * "long "])


class Model:
    """A model in this process."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, request: Request) -> str:
        self.calls += 1
        return answer(request.messages[-1].content)


class Service:
    """The same model as a chat API.

    `calls` may be read once a command has ended.
    """

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _path: str, body: Any) -> tuple[int, Any]:
        self.calls += 1
        message = {"role": "assistant", "content": answer(body["messages"][-1]["content"])}
        return 200, {
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "model": "m",
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[edgen.Run]:
    """Yield a run, after the packages of the askers were installed."""
    site = tmp_path / "site"
    site.mkdir()
    for name, (kind, code) in ASKERS.items():
        install(site, f"my-{name}", f"[edgen.askers]\n{name} = my_{name}:{kind}\n", code)
    for name, text in FILES.items():
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    yield edgen.generate(JOB, output=tmp_path / "run", progress=False)
    for name in ASKERS:
        sys.modules.pop(f"my_{name}", None)


class Asked:
    """A command about the run that asks a service, with `calls` to it."""

    def __init__(
        self, capsys: pytest.CaptureFixture[str], run: edgen.Run, service: Service, url: str
    ) -> None:
        self._command, self._run, self._service = Command(capsys), run, service
        self.given = ("--set", f'backends.default={{"type": "openai", "model": "m", "base_url": "{url}"}}')

    @property
    def calls(self) -> int:
        """The calls of the last command."""
        return self._service.calls

    def __call__(self, name: str, *words: str) -> Any:
        """Return the output of the command with --json."""
        self._service.calls = 0
        ended = self._command(name, self._run.folder, *words, *self.given, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    def show(self, name: str, *words: str) -> str:
        """Return the output of the command for a person."""
        ended = self._command(name, self._run.folder, *words)
        assert ended.code == 0, ended.err
        return ended.out

    def fail(self, name: str, *words: str) -> str:
        """Return the error message of the failing command."""
        ended = self._command(name, self._run.folder, *words)
        assert ended.code == 2
        return ended.err


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], run: edgen.Run) -> Iterator[Asked]:
    with serving_json(service := Service()) as url:
        yield Asked(capsys, run, service, url)


def test_the_list_names_the_option_of_each(run: edgen.Run, capsys: pytest.CaptureFixture[str]) -> None:
    command = Command(capsys)
    options = {
        "labelling": "edgen annotate --labels",
        "length": "edgen annotate --write",
        "oracle": "edgen pairs --signal",
        "paraphrases": "edgen annotate --write",
    }
    listed = {one["name"]: one for one in json.loads(command("list", "askers", "--json").out)["askers"]}
    own = {"labelling", "oracle", "paraphrases", "wrong"}
    assert {*listed} == {*own, *ASKERS}
    assert {name: listed[name]["option"] for name in options} == options
    for name, one in listed.items():
        _, called, option = one["option"].split()
        assert option in command(called, "--help").out
        assert bool(one["summary"]) is (name in own)  # the classes of the packages have no docstrings
        assert one["origin"].startswith("edgen" if name in own else f"my-{name} ")
    lines = command("list", "askers").out.splitlines()
    (line,) = (one for one in lines if one.startswith("scores "))
    assert line.split() == ["scores", "edgen", "pairs", "--signal", "(my-scores", "1.0)"]


def test_a_judge(run: edgen.Run, asked: Asked) -> None:
    needs = asked("pairs", "--signal", "scores", "--dry-run")
    assert (asked.calls, needs["calls"]["expected"]) == (0, 2 * needs["judged"]["to_judge"])
    made = asked("pairs", "--signal", "scores")
    assert asked.calls == needs["calls"]["expected"] > 0
    assert made["by"] == "oracle"
    assert made["judged"] == made["planned"] == needs["judged"]["to_judge"]
    noted = json.loads((RunFolder(run.folder).judged / f"{made['judge']}.json").read_text())
    assert (noted["asker"], noted["compare"], noted["template"]["name"]) == ("scores", "response", "scores")

    lines = asked.show("pairs", "--report").splitlines()
    assert f"  {sum(made['pairs'].values())} by judge scores {made['judge']} (m)" in lines
    assert f"Judge scores {made['judge']} (m, comparing by response)" in lines

    model = Model()
    paired = run.pairs("scores", backends={"default": model}, progress=False)
    assert model.calls == needs["calls"]["expected"], "a function is another judge than the service"
    labels = [pair.label for pair in paired if pair.label is not None]
    assert labels
    assert {label.by for label in labels} == {"oracle"}
    assert not {made["judge"]} & {label.judge for label in labels}
    again = Model()
    run.pairs("scores", backends={"default": again}, progress=False)
    assert again.calls == 0
    known = ", ".join(list_signals())
    assert known.startswith("oracle, probability, human, flag, judged, ")
    assert "scores" in known
    assert f"--signal: there is no 'score' (did you mean 'scores'?); known: {known}." in asked.fail(
        "pairs", "--signal", "score"
    )
    assert f"--signal: there is no 'x' (known: {known})." in asked.fail("pairs", "--signal", "x")
    assert f"as in --signal oracle ({known}), or" in asked.fail("pairs")
    with pytest.raises(UsageError, match=f" one of {known}"):
        run.pairs(by="x")  # type: ignore[arg-type]


def test_an_annotator(run: edgen.Run, asked: Asked) -> None:
    needs = asked("annotate", "--labels", "asking", "--dry-run")
    assert (asked.calls, needs["layer"], needs["labels"]) == (0, "asking", "asks")
    made = asked("annotate", "--labels", "asking")
    assert asked.calls == needs["requests"] == made["units"] > 0
    noted = json.loads((run.folder / "layers" / "asking" / "annotators" / "default.json").read_text())
    assert noted["asker"] == "asking"
    more = asked("annotate", "--layer", "asking", "--backend", "more=default")
    assert (asked.calls, [one["annotator"] for one in more["annotators"]]) == (needs["requests"], ["more"])
    noted = json.loads((run.folder / "layers" / "asking" / "annotators" / "more.json").read_text())
    assert noted["asker"] == "asking", "the layer goes on as it began"

    model = Model()
    layer = edgen.annotate(run, "asking", by="mine=default", backends={"default": model}, progress=False)
    assert model.calls == needs["requests"]
    assert {unit.labels for unit in layer} == {("asks",), ("tells",)}
    assert layer.made is not None
    assert layer.made.agreement is not None


def test_the_example_for_contributors(run: edgen.Run, asked: Asked) -> None:
    asked("annotate", "--write", "politeness")
    stored = (run.folder / "asked" / "politeness.jsonl").read_text().splitlines()
    assert len(stored) == asked.calls > 0
    assert '"polite":true' in stored[0]


def test_a_writer(run: edgen.Run, asked: Asked) -> None:
    needs = asked("annotate", "--write", "shorter", "--dry-run")
    assert (asked.calls, needs["writes"]) == (0, "shorter")
    made = asked("annotate", "--write", "shorter")
    assert asked.calls == needs["to_write"] == made["totals"]["turns"] > 0
    assert made["totals"]["dropped"]["longer"] > 0
    assert made["file"] == str(run.folder / "candidates" / "shorter.jsonl")

    model = Model()
    texts = edgen.candidates(run, "shorter", backends={"default": model}, progress=False)
    assert model.calls == needs["to_write"]
    assert {text for turn in texts for text in turn.texts} == {"Yes.", "No."}
    assert [status.writes for status in run.status.writers or ()] == ["shorter", "shorter"]
    known = "known: length, politeness, paraphrases, shorter, wrong."
    assert f"--write: there is no 'short' (did you mean 'shorter'?); {known}" in asked.fail(
        "annotate", "--write", "short"
    )


def test_an_asker_with_answers_of_its_own(run: edgen.Run, asked: Asked) -> None:
    from edgen.plugin.askers import ask_run

    needs = asked("annotate", "--write", "length", "--dry-run")
    assert asked.calls == 0
    made = asked("annotate", "--write", "length")
    assert asked.calls == needs["missing"] == made["lines"] == 2 * 4
    lines = [json.loads(line) for line in Path(made["file"]).read_text().splitlines()]
    assert {line["long"] for line in lines} <= {True, False}
    assert "--texts is for texts" in asked.fail("annotate", "--write", "length", "--texts", "2")

    model = Model()
    from my_length import Length  # type: ignore[import-not-found]

    ask_run(run.folder, Length, Control(functions={"default": model})).require_answers()
    assert model.calls == needs["missing"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--labels", "asking"), id="annotator", marks=pytest.mark.only_long),
        pytest.param(("--write", "shorter"), id="writer"),
        pytest.param(("--write", "length"), id="about turns", marks=pytest.mark.only_long),
    ],
)
def test_an_estimate_reads_a_ledger_once(
    asked: Asked, words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked("annotate", *words)
    opened: list[Path] = []

    class Reader(LedgerReader):
        def __init__(self, path: Path) -> None:
            opened.append(path)
            super().__init__(path)

    monkeypatch.setattr(call_estimates, "LedgerReader", Reader)
    asked("annotate", *words, "--dry-run")
    assert len(opened) == 1


def test_what_is_wrong_with_a_package_is_said_with_its_name(
    run: edgen.Run, asked: Asked, tmp_path: Path
) -> None:
    broken = {
        "raise ValueError('no')": "asker 'shorter' of my-shorter 1.0 cannot be loaded (ValueError: no) in ",
        WRITER.replace("template =", "templates ="): "asker 'shorter' lacks `template`",
        WRITER.replace("short = [", "1 / 0, ["): "Report this to the authors of my-shorter",
    }
    for code, said in broken.items():
        (tmp_path / "site" / "my_shorter.py").write_text(code)
        sys.modules.pop("my_shorter", None)
        registry._find.cache_clear()
        assert said in asked.fail("annotate", "--write", "shorter", *asked.given)
