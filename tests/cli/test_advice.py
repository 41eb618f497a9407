"""Messages advise only existing commands and options, and those of the command that prints the message."""

from __future__ import annotations

import ast
import functools
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from edgen.cli.app import app
from edgen.store.run_folder import RunFolder
from tests import ROOT
from tests.cli.command import Command
from tests.source_imports import imports_of, list_nodes

# Commands and options of other programs that edgen's texts mention.
OTHERS = re.compile(
    r"pip install|ray start|uv (sync|pip)|--no-deps|llama-gguf-split|python3? -m|--data\.|llamafactory-cli|torchrun|cp -r|\(\?i\)|X -e X|--project X |\\d"
)
OPTION = re.compile(r"(?<![\w{/.?-])(--[a-z][a-z-]*[a-z]|-[a-z])(?![\w-]|\.\w)")
MENTIONED = re.compile(r"\bedgen ((?:[a-z][a-z-]+ ?){1,2})([^`'\"\n;|)]*)")


class Known(NamedTuple):
    """A command: its words, its options, and its module."""

    words: tuple[str, ...]
    options: frozenset[str]
    module: str
    takes_run: bool


@functools.cache
def commands() -> dict[tuple[str, ...], Known]:
    """Return every command of the tree by its words, hidden ones included."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[Known]:
        options = {
            name for one in command.params for name in (*one.opts, *one.secondary_opts) if name[0] == "-"
        }
        # Formats have their own options, which the help lists.
        options |= set(OPTION.findall(command.get_help(typer.Context(command, info_name=" ".join(words)))))
        module = getattr(command.callback, "__module__", "")
        run = any(one.param_type_name == "argument" and one.name == "run" for one in command.params)
        yield Known(words, frozenset(options | {"-h", "--help"}), module, run)
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, (*words, name))

    return {one.words: one for one in walk(typer.main.get_command(app), ())}


class Text(NamedTuple):
    """A text in the source, with X in place of values."""

    module: str
    line: int
    text: str


@functools.cache
def texts() -> tuple[Text, ...]:
    """Return every text in edgen/ except docstrings."""
    found = []
    for path in sorted((ROOT / "edgen").rglob("*.py")):
        if path.name == "old_names.py":  # a table of names, not of messages
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        skipped, nodes = set(), list_nodes(tree)
        for node in nodes:
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                skipped.add(body[0].value)
            if isinstance(node, ast.JoinedStr):
                skipped.update(node.values)
        for node in nodes:
            if node in skipped:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(Text(module, node.lineno, node.value))
            elif isinstance(node, ast.JoinedStr):
                parts = (one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
                found.append(Text(module, node.lineno, "".join(map(str, parts))))
    return tuple(one for one in found if "-" in one.text or "edgen " in one.text)


@functools.cache
def reaching() -> dict[str, frozenset[tuple[str, ...]]]:
    """Return the commands whose module imports a module, directly or indirectly."""
    imports: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "edgen").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgen"):
                imports[module] |= {str(node.module), *(f"{node.module}.{one.name}" for one in node.names)}
            elif isinstance(node, ast.Import):
                imports[module] |= {one.name for one in node.names if one.name.startswith("edgen")}
    reached: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for words, known in commands().items():
        waiting, seen = [known.module], {known.module}
        while waiting:
            module = waiting.pop()
            reached[module].add(words)
            new = imports[module] - seen
            seen |= new
            waiting += new
    return {module: frozenset(found) for module, found in reached.items()}


def named_options(text: str) -> set[str]:
    """Return the options in a text, without those of commands that it names."""
    if OTHERS.search(text):
        return set()
    return set(OPTION.findall(MENTIONED.sub(" ", text)))


def test_commands_that_are_named_exist_with_the_options_that_are_named() -> None:
    wrong = []
    for one in texts():
        for words, rest in MENTIONED.findall(one.text):
            named = tuple(words.split())
            known = commands().get(named) or commands().get(named[:1])
            if known is None:
                # "edgen reads layout 5" is a sentence; in backquotes it would be a command
                if re.search(rf"[`'] ?edgen {named[0]}\b", one.text):
                    wrong.append(f"{one.module}:{one.line}: no command {' '.join(named)}")
                continue
            if f"edgen {words}".strip() in one.text and "`" in one.text:
                lacking = set(OPTION.findall(rest)) - known.options
                wrong += [
                    f"{one.module}:{one.line}: edgen {words.strip()} has no {option}" for option in lacking
                ]
    assert not wrong, "\n".join(wrong)


def test_options_that_are_advised_are_those_of_a_command_that_says_so() -> None:
    every = frozenset(option for known in commands().values() for option in known.options)
    wrong = []
    for one in texts():
        if one.module == "edgen.cli.app":  # one line of help for each command
            continue
        if OPTION.fullmatch(one.text):  # a name, not advice
            continue
        able = [commands()[words] for words in reaching().get(one.module, ())]
        options = frozenset(option for known in able for option in known.options) or every
        lacking = sorted(named_options(one.text) - options)
        wrong += [f"{one.module}:{one.line}: {option} in {one.text[:90]!r}" for option in lacking]
    assert not wrong, "\n".join(wrong)


def damage(run: Path) -> None:
    data = bytearray((run / "run.db").read_bytes())
    data[4096:8192] = b"\x55" * 4096
    (run / "run.db").write_bytes(data)


def make_foreign(run: Path) -> None:
    (run / "run.db").unlink()
    with sqlite3.connect(run / "run.db") as other:
        other.execute("CREATE TABLE t (x)")


def empty(run: Path) -> None:
    (run / "run.db").write_bytes(b"")


def link(run: Path) -> None:
    (run / "report.html").symlink_to(run / "job.yaml")


def remove(run: Path) -> None:
    (run / "run.db").unlink()


def leave_journal(run: Path) -> None:
    (run / "run.db-journal").write_bytes(b"x")


def give_two_names(run: Path) -> None:
    (run.parent / "second").hardlink_to(run / "run.db")


NEEDED = {  # further arguments that a command needs to open its run
    ("pairs",): ("--by", "oracle"), ("annotate",): ("--labels", "quality"), ("candidates",): ("--write", "wrong"),
    ("export",): ("--to", "csv", "-o", "out"), ("select",): ("--draw", "1", "-o", "out"),
}  # fmt: skip


@pytest.mark.integration
@pytest.mark.parametrize(
    "fault", [damage, make_foreign, empty, link, remove, leave_journal, give_two_names, None]
)
def test_a_run_that_cannot_be_used_is_told_with_options_of_the_command(
    fault: Callable[[Path], None] | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = Command(capsys)
    monkeypatch.chdir(tmp_path)
    job = ROOT / "jobs" / "quickstart.yaml"
    assert command("generate", job, "-n", "2", "-o", "run").code == 0
    if fault is not None:
        fault(tmp_path / "run")
    known = [one for one in commands().values() if one.takes_run]
    assert len(known) >= 8
    told = 0
    for one in known:
        if fault is None:
            with RunFolder(tmp_path / "run").lock_for_writing():
                ended = command(*one.words, "run", *NEEDED.get(one.words, ()))
        else:
            ended = command(*one.words, "run", *NEEDED.get(one.words, ()))
        told += ended.code != 0
        lacking = named_options(ended.err) - one.options
        assert not lacking, (one.words, lacking, ended.err)
        assert "Traceback" not in ended.err
    assert told
