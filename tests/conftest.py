"""Rules of every test: it has a tier, reaches nothing outside this machine, and uses none of its keys."""

from __future__ import annotations

import gc
import importlib.util
import ipaddress
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, fork_server, tiers
from tests.dose import LONG, dose
from tests.order import spread

gc.disable()  # until all tests are collected: imported modules stay

try:
    from hypothesis import settings
except ImportError:  # where real trainers are tested, which need no key
    pass
else:  # the time of an example depends on other work of this machine
    settings.register_profile("side by side", deadline=None, max_examples=dose(10, 100))
    settings.load_profile("side by side")
    if not LONG:
        # The setting also tries the numbers and texts in edgen's source, which each worker would parse: two
        # CPU seconds in a new checkout.
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants

SKIPPED = 7  # the exit code where CI skipped a test; pytest's 1 means that a second try may help (.ci/again)
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def pytest_configure(config: pytest.Config) -> None:
    """Give matplotlib this checkout's folder and list of fonts, independent of the user's settings.

    matplotlib makes the list at its first import, with the help of other programs. A unit test that draws may
    start no program.

    A shell that runs the tests in the background makes them and their processes ignore Ctrl-C; this
    setting is reset.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = ROOT / ".pytest_cache" / "matplotlib"
    os.environ["MPLCONFIGDIR"] = str(folder)
    is_worker = hasattr(config, "workerinput")
    if is_worker or importlib.util.find_spec("matplotlib") is None or any(folder.glob("fontlist-*.json")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True)


@pytest.fixture(scope="module")
def forked_processes() -> Iterator[None]:
    """Start edgen's processes in this module's tests as forks, which have imported all of edgen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", fork_server.in_place_of_python())
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.assign(items)
    if not LONG:
        left_out = [item for item in items if item.get_closest_marker("only_long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("only_long")]
    items[:] = spread(items)
    # A million objects stay to the end; this keeps the garbage collector from searching them.
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # by default, all imports of the tests are searched again and again
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _this_machine_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep all tests from other machines, from this machine's keys, and from the user's settings."""
    home = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "EDGEN_TRUSTED_HOSTS"):
            patch.delenv(name, raising=False)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        tiers.guard(patch)
        yield


def _guarded(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple):
            host = "127.0.0.1" if address[0] == "localhost" else address[0]
            if not ipaddress.ip_address(host).is_loopback:
                pytest.fail(f"a test tried to reach {address}")
        return connect(self, address)

    return guarded


@pytest.fixture(autouse=True)
def _tier_is_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    tiers.alone = request.node.get_closest_marker("unit") is not None
    yield
    tiers.alone = False


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real records to test against; they stay outside the repository."""
    path = SHARED / "data"
    if not path.is_dir() and not os.environ.get("CI"):
        pytest.skip("the shared data folder is not beside this checkout")
    assert path.is_dir(), f"{path} is missing"
    return path


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail in CI if a test was skipped: a test that did not run proves nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = SKIPPED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each skipped test that fails CI; `.ci/run` shows lines that begin with FAILED."""
    for report in terminalreporter.stats.get("skipped", []) if os.environ.get("CI") else ():
        terminalreporter.write_line(f"FAILED {report.nodeid} - it was skipped, which fails CI")
