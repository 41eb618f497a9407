"""Plugins that act on the whole process, never end, or return texts without measure: the command ends with a
sentence that names them, files stay where they belong, and texts are cut."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgen.api import doctor
from edgen.asking import asker
from edgen.core.errors import CallError, FailureKind
from edgen.core.plugins import unending_tasks
from edgen.core.text import limit_length
from edgen.core.values import Rejection
from edgen.execution.client import backend_calls
from edgen.runtime import backends
from tests import ROOT
from tests.cli.command import Command
from tests.cli.odd_plugins import PROTOCOL, PROVIDER, Site, job, made_run, measure, run, site
from tests.cli.test_plugin_mistakes import ASKER

__all__ = ["job", "made_run", "run", "site"]

ODD = ("--set", "backends={default: {type: odd}}")
WORKS = "return Reply('Teacher: Hi.\\nStudent: Yes.')"


def provide(*lines: str) -> str:
    """Return a provider that runs these lines and then answers."""
    return PROVIDER.replace("ANSWER", "\n        ".join((*lines, WORKS.replace("\n", "\\n"))))


ENDLESS = """import asyncio
        while True:
            try: await asyncio.sleep(10 ** 6)
            except asyncio.CancelledError: pass"""
SHORTLY = """
import sys
from edgen.core.plugins import unending_tasks, unending_threads
from edgen import __main__

unending_tasks.CANCELLING = unending_threads.ENDING = 0.1
__main__.main()
"""


class TestProcess:
    @pytest.mark.parametrize(
        "line",
        [
            "import os; os.chdir('/')",
            "import os; os.fchdir(os.open('/', os.O_RDONLY))",
            "import contextlib; contextlib.chdir('/').__enter__()",
        ],
    )
    def test_a_change_of_the_working_directory_is_refused(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        line: str,
    ) -> None:  # fmt: skip
        monkeypatch.chdir(tmp_path)
        site.add("providers", "odd", provide(line))
        ended = command("generate", job, *ODD, "-o", "run")
        assert ended.code == 2, ended.err
        assert (
            "The provider 'odd' of odd-pack 1.0 raised RuntimeError: a change of the working directory would"
            in ended.err
        )
        assert Path.cwd() == tmp_path
        site.replace(provide())
        assert command("generate", job, *ODD, "-o", "run").code == 0
        assert (tmp_path / "run" / "shards").is_dir()

    def test_a_change_in_an_import_is_refused(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        site.add("providers", "odd", "import os\nos.chdir('/')\n" + provide())
        ended = command("generate", job, *ODD, "-o", "run")
        assert ended.code == 2
        assert "of odd-pack 1.0 cannot be loaded (RuntimeError: a change of the working" in ended.err
        assert Path.cwd() == tmp_path

    @pytest.mark.parametrize(
        "line",
        [
            "import os; child = os.fork() or (os.chdir('/'), os._exit(0)); os.waitpid(child, 0)",
            "import shutil; shutil.make_archive(PLACE, 'zip', SITE)",
        ],
    )
    def test_others_work(self, command: Command, site: Site, job: Path, tmp_path: Path, line: str) -> None:
        line = line.replace("PLACE", repr(str(tmp_path / "archive"))).replace("SITE", repr(str(site.folder)))
        site.add("providers", "odd", provide(line))
        assert command("generate", job, *ODD, "-o", tmp_path / "run").code == 0

    def test_state_that_edgen_does_not_read(
        self, command: Command, site: Site, job: Path, run: Path, tmp_path: Path
    ) -> None:
        lines = (
            "import asyncio, decimal, locale, random, sys, warnings",
            "random.seed(1); sys.setrecursionlimit(200); decimal.getcontext().prec = 2",
            "locale.setlocale(locale.LC_ALL, 'C'); warnings.simplefilter('error')",
            "asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())",
            "return (yield from work)",
        )
        site.add("protocols", "odd", PROTOCOL.replace("WORK", "\n        ".join(lines)))
        words = ("generate", str(job), "--set", "protocol=odd", "-o", str(tmp_path / "odd"))
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        ended = subprocess.run(
            [sys.executable, "-m", "edgen", *words], env=environ, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        for file in (run / "shards").glob("conversations*.json"):
            made = (tmp_path / "odd" / "shards" / file.name).read_bytes()
            assert made.replace(b'"odd"', b'"oneshot"') == file.read_bytes()


class TestTime:
    @pytest.mark.parametrize(
        "line", ["import asyncio; await asyncio.sleep(10 ** 6)", "import time; time.sleep(10 ** 6)"]
    )
    def test_a_backend_that_never_closes(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
    ) -> None:  # fmt: skip
        monkeypatch.setattr(backends, "CLOSING", 0.1)
        head, closes, rest = provide().partition("async def aclose(self):\n        ")
        site.add("providers", "odd", head + closes + rest.replace("pass", line, 1))
        ended = command("generate", job, *ODD, "-o", tmp_path / "run")
        assert ended.code == 2, ended.err
        assert "The provider 'odd' of odd-pack 1.0 did not return from `aclose` within 0.1 s" in ended.err
        status = json.loads(command("status", tmp_path / "run", "--json").out)
        assert (status["state"], status["accepted"]) == ("complete", 12)

    @pytest.mark.parametrize("waits", ["import asyncio; await asyncio.sleep(10 ** 6)", ENDLESS])
    def test_a_call_that_ignores_the_timeout_is_tried_again(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: str
    ) -> None:  # fmt: skip
        monkeypatch.setattr(backend_calls, "LATE", 0.1)
        monkeypatch.setattr(unending_tasks, "CANCELLING", 0.1)
        never = "vars(self).setdefault('asked', []).append(1)\n        if len(self.asked) == 5:\n            "
        site.add("providers", "odd", provide(never + waits.replace("\n", "\n    ")))
        limits = ("--set", "limits.timeout=0.1", "--set", "limits.in_flight=1")
        ended = command("generate", job, *ODD, *limits, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        status = json.loads(ended.out)
        assert (status["accepted"], status["calls"]["retried"]) == (12, 1)

    def test_a_service_that_never_answers_is_named(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backend_calls, "LATE", 0.1)
        site.add("providers", "odd", provide("import asyncio; await asyncio.sleep(10 ** 6)"))
        limits = ("--set", "limits.timeout=0.1", "--set", "limits.give_up_after=1")
        ended = command("generate", job, *ODD, *limits, "-o", tmp_path / "run")
        assert ended.code == 5, ended.err
        assert "The provider 'odd' of odd-pack 1.0 did not return from `complete` within 0.2 s" in ended.err

    @pytest.mark.parametrize("method", ["complete", "aclose"])
    def test_a_backend_that_ignores_its_cancellation(
        self, command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture, method: str,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(backends, "CLOSING", 0.1)
        monkeypatch.setattr(unending_tasks, "CANCELLING", 0.1)
        if method == "aclose":
            head, closes, rest = provide().partition("async def aclose(self):\n        ")
            code = head + closes + rest.replace("pass", ENDLESS, 1)
        else:
            lines = (
                "import asyncio",
                "global task; task = asyncio.create_task(go())",
                "await asyncio.sleep(0)",
            )
            code = f"async def go():\n        {ENDLESS}\n\n{provide(*lines)}"
        site.add("providers", "odd", code)
        with caplog.at_level(logging.WARNING, "edgen"):
            ended = command("generate", job, *ODD, "-o", tmp_path / "run")
        assert ended.code == (2 if method == "aclose" else 0), ended.err
        said = "The provider 'odd' of odd-pack 1.0 did not end a task within 0.1 s after it was cancelled ("
        assert caplog.text.count(said) == 1
        assert ("did not return from `aclose` within 0.1 s" in ended.err) is (method == "aclose")
        status = json.loads(command("status", tmp_path / "run", "--json").out)
        assert (status["state"], status["accepted"]) == ("complete", 12)

    @pytest.mark.integration
    @pytest.mark.skipif(sys.platform == "win32", reason="it sends signals")
    @pytest.mark.parametrize("waits", ["await asyncio.to_thread(time.sleep, 10 ** 6)", ENDLESS])
    def test_calls_that_never_end_after_two_interrupts(
        self, site: Site, job: Path, tmp_path: Path, waits: str
    ) -> None:
        begun = tmp_path / "begun"
        lines = (
            "import asyncio, time",
            f"begin = lambda: open({str(begun)!r}, 'w').close()",
            "begin()",
            waits,
        )
        site.add("providers", "odd", provide(*lines))
        words = [sys.executable, "-c", SHORTLY, "generate", str(job), *ODD, "-o", str(tmp_path / "run")]
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while not begun.exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = ""
            while "another signal stops at once" not in said and process.poll() is None:
                said += process.stderr.readline()
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
        assert process.returncode == 130
        assert "run the same command again to resume" in said
        assert "The provider 'odd' of odd-pack 1.0 " in said

    @pytest.mark.integration
    def test_a_thread_that_never_ends(self, site: Site, job: Path, tmp_path: Path) -> None:
        lines = ("import threading, time", "threading.Thread(target=lambda: time.sleep(10 ** 6)).start()")
        site.add("providers", "odd", provide(*lines))
        words = [sys.executable, "-c", SHORTLY, "generate", str(job), *ODD, "-o", str(tmp_path / "run")]
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        ended = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "accepted   12" in ended.stdout
        said = (
            "The provider 'odd' of odd-pack 1.0 runs a thread that did not end within 0.1 s after the command"
        )
        assert ended.stderr.count(said) == 1

    @pytest.mark.integration
    def test_calls_in_threads_leave_edgen_some(self, site: Site, job: Path, tmp_path: Path) -> None:
        """Each of 20 calls waits in a thread until all of them do; edgen's own threads work meanwhile."""
        head = "import asyncio, threading\nall_here = threading.Barrier(20, timeout=60)\n"
        site.add("providers", "odd", head + provide("await asyncio.to_thread(all_here.wait)"))
        words = ("generate", str(job), *ODD, "--set", "conversations=20", "-o", str(tmp_path / "run"))
        environ = {**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{ROOT}"}
        ended = subprocess.run(
            [sys.executable, "-m", "edgen", *words], env=environ, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert "accepted   20" in ended.stdout

    def test_an_interrupted_measure(self, command: Command, site: Site, run: Path) -> None:
        waits = "import os, time; os.kill(os.getpid(), 2); time.sleep(10 ** 6)\n        return {}"
        site.add("measures", "odd", measure("Mean('n')", "{}").replace("return {}", waits))
        ended = command("stats", run, "--only", "odd")
        assert ended.code == 130
        assert ended.err.startswith("edgen: interrupted. The measure 'odd' of odd-pack 1.0 (")
        assert ended.err.endswith(", in of_one) was running.\n")


class TestSize:
    def test_a_record_of_an_asker(
        self, command: Command, site: Site, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(asker, "MOST_RECORD", 1_000)
        site.add("askers", "odd", ASKER.replace("Polite(True)", "Polite('x' * 1_000)"))
        (site.folder / "odd.j2").write_text("Is this polite? {{ fence }} {{ guarded }}")
        ended = command("annotate", run, "--write", "odd")
        assert ended.code == 2
        said = r"The asker 'odd' of odd-pack 1\.0 returned a record of 1,\d\d\d bytes from `keep`; a unit has 1,000 at"
        assert re.search(said, ended.err)

    @pytest.mark.parametrize("message", ["'x' * 10_000_000", "ValueError('x' * 10_000_000)"])
    def test_the_message_of_a_failure(
        self, command: Command, site: Site, job: Path, tmp_path: Path, message: str
    ) -> None:
        line = f"from edgen.plugin import CallError, FailureKind; raise CallError(FailureKind.BAD_REQUEST, {message})"
        site.add("providers", "odd", provide(line))
        assert command("generate", job, *ODD, "-o", tmp_path / "run").code == 3
        lines = (tmp_path / "run" / "rejected.jsonl").read_text().splitlines()
        details = [json.loads(line)["detail"] for line in lines]
        assert len(details) == 12
        assert all(
            len(one) == 2_000 and one.endswith("… (cut; it has 10,000,000 characters)") for one in details
        )

    def test_the_detail_of_a_rejection(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        work = "yield next(work)\n        return Rejection('odd', 'x' * 10_000_000)"
        site.add("protocols", "odd", PROTOCOL.replace("WORK", work))
        assert command("generate", job, "--set", "protocol=odd", "-o", tmp_path / "run").code == 3
        assert (tmp_path / "run" / "run.db").stat().st_size < 1_000_000
        shown = command("show", tmp_path / "run", "0").out
        assert "… (cut; it has 10,000,000 characters)" in shown

    def test_cut_texts_stay_as_they_are(self) -> None:
        once = limit_length("x" * 5_000, 2_000)
        assert len(once) == 2_000
        assert limit_length(once, 2_000) == once
        assert limit_length("x" * 2_000, 2_000) == "x" * 2_000
        failure = CallError(FailureKind.OVERLOADED, "x" * 5_000)
        assert CallError(*failure.args[:2]).message == failure.message == once
        assert Rejection("odd", "x" * 5_000).detail == once


class TestDoctor:
    @pytest.mark.parametrize("line", ["await asyncio.sleep(10 ** 6)", ENDLESS])
    @pytest.mark.parametrize("method", ["models", "complete"])
    def test_a_method_that_never_returns(
        self, command: Command, site: Site, job: Path, monkeypatch: pytest.MonkeyPatch, method: str, line: str
    ) -> None:
        monkeypatch.setattr(doctor, "CLOSING", 0.1)
        monkeypatch.setattr(doctor, "_PATIENCE", 0.1)
        monkeypatch.setattr(unending_tasks, "CANCELLING", 0.1)
        code = PROVIDER.replace("ANSWER", line if method == "complete" else WORKS.replace("\n", "\\n"))
        if method == "models":
            code = code.replace("return None", line, 1)
        site.add("providers", "odd", f"import asyncio\n{code}")
        ended = command("doctor", job, *ODD)
        assert ended.code == 2
        said = f"The provider 'odd' of odd-pack 1.0 did not return from `{method}` within 0.1 s"
        assert said in ended.out + ended.err

    def test_batches_of_another_type(self, command: Command, site: Site, job: Path, tmp_path: Path) -> None:
        code = provide().replace("class Odd(Provider)", "class Odd(BatchAnswers, Provider)")
        code = code.replace("    Config = OddConfig", "    Config = OddConfig\n    batches = 5")
        site.add("providers", "odd", f"from edgen.plugin import BatchAnswers\n{code}")
        ended = command("generate", job, *ODD, "--via", "batch", "-o", tmp_path / "run")
        assert ended.code == 2
        assert "of odd-pack 1.0 has `batches` of the type int; it is a BatchServices or None." in ended.err
