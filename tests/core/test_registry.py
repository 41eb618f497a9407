"""Plugins: found by their entry points, loaded by their names, and refused with a sentence."""

from __future__ import annotations

import site as site_module
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgen import __version__
from edgen.core import registry
from edgen.core.registry import (
    PluginError,
    explain_problem,
    find,
    find_skipped_plugins,
    list_names,
    list_plugins,
)
from edgen.core.version import DISTRIBUTION
from tests.installing import install

pytestmark = pytest.mark.unit


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder on PYTHONPATH, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


ECHO = """
from edgen.plugin import Measure

class Echo(Measure):
    name = "echo"
    definition = "Nothing."

    def of_one(self, sample, words, space):
        return {}

echo = Echo()
"""


def test_the_shipped_ones_are_found_and_are_what_they_say() -> None:
    assert {"oneshot", "selfplay", "oracle"} <= set(list_names("protocol"))
    for plugin in list_plugins():
        if plugin.package == DISTRIBUTION and plugin.kind == "protocol":
            assert find(plugin.kind, plugin.name).name == plugin.name
            assert plugin.version == __version__


def test_a_package_brings_one(site: Path) -> None:
    install(site, "my-echo", "[console_scripts]\nx = y:z\n[edgen.measures]\necho = my_echo:echo\n", ECHO)
    assert find("measure", "echo").name == "echo"
    (found,) = (one for one in list_plugins() if one.name == "echo")
    assert (found.kind, found.origin) == ("measure", "my-echo 1.0")
    assert explain_problem(found) is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no\\n luck')", "cannot be loaded (RuntimeError: no luck)"),
        ("raise SystemExit(3)", "cannot be loaded (SystemExit: 3)"),
        ("import no_such_module", "cannot be loaded (ModuleNotFoundError: No module named 'no_such_module')"),
        ("", "cannot be loaded (AttributeError"),
        (
            "echo = 3",
            "is of the class int, which is not derived from edgen.plugin.Measure. Correct this in my-broken",
        ),
        ("class Echo:\n    name = 'echo'\necho = Echo()", "is of the class Echo, which is not derived from"),
        (ECHO.replace("Echo()", "Echo"), "is a class, not an object; write `OBJECT = Echo()` in its module"),
        ("class Odd(BaseException): ...\nraise Odd('no')", "cannot be loaded (Odd: no)"),
        (ECHO.replace('"echo"', '"other"'), "calls itself 'other'"),
    ],
)
def test_a_broken_one_is_named_and_stops_no_other(site: Path, code: str, said: str) -> None:
    install(site, "my-broken", "[edgen.measures]\necho = my_broken:echo\n", code)
    with pytest.raises(PluginError, match=r"The measure .echo. of my-broken 1\.0") as caught:
        find("measure", "echo")
    assert said in str(caught.value)
    assert find("protocol", "oneshot").name == "oneshot"


def test_two_of_one_name_are_refused(site: Path) -> None:
    install(site, "one-echo", "[edgen.measures]\necho = one_echo:echo\n", ECHO)
    install(site, "two-echo", "[edgen.measures]\necho = two_echo:echo\n", ECHO, version="2.0")
    with pytest.raises(
        PluginError, match=r"provided by one-echo 1.0 and two-echo 2.0; uninstall all but one"
    ):
        find("measure", "echo")


def test_one_with_the_name_of_edgens_own_is_refused_alone(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "my-lengths", "[edgen.measures]\nlengths = my_lengths:echo\n", ECHO)
    assert type(find("measure", "lengths")).__module__.startswith("edgen.")
    assert registry.find_plugin("measure", "lengths") is None
    (plugin,) = registry.find_shadowed_plugins("measure")
    said = (
        "The measure 'lengths' of my-lengths 1.0 has the name of edgen's own measure, which is used; rename"
    )
    assert str(registry.explain_problem(plugin)).startswith(said)
    assert "lengths" in [one.name for one in registry.find_all("measure")]
    assert said in caplog.text


def test_blanks_in_an_entry_point(site: Path) -> None:
    install(site, "my-echo", "[edgen.measures]\necho = my_echo : echo\n", ECHO)
    assert find("measure", "echo").name == "echo"


@pytest.mark.parametrize(
    ("needs", "fits"),
    [
        ("edgen-dialogues>=99", False),
        ("Edgen_Dialogues (>=99)", False),
        ("edgen-dialogues[batch]~=99.1 ; python_version > '3'", False),
        ("edgen-dialogues<0.1,>=0", False),
        ("edgen-dialogues==99.*", False),
        (f"edgen-dialogues=={__version__}", True),
        ("edgen-dialogues>=0.1,<99,!=7", True),
        ("edgen-dialogues", True),
        ("edgen-dialogues>=99; extra == 'new'", True),
        ("edgen-dialogues-more>=99", True),
    ],
)
def test_one_that_needs_another_edgen_is_refused(site: Path, needs: str, fits: bool) -> None:
    install(site, "new-echo", "[edgen.measures]\necho = new_echo:echo\n", ECHO, needs=needs)
    (found,) = (one for one in list_plugins() if one.name == "echo")
    said = explain_problem(found)
    assert (said is None) is fits
    assert fits or (said is not None and "needs edgen" in said and f"this is {__version__}" in said)


def test_one_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(PluginError, match=r"There is no protocol 'selfpaly' \(did you mean 'selfplay'\?\)"):
        find("protocol", "selfpaly")


def test_the_current_folder_brings_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin is loaded from the current folder.

    `python -m edgen` and notebooks have the folder on the path, as '' or in full; so has a script its own
    folder.
    """
    install(tmp_path, "evil", "[edgen.providers]\nevil = evil:echo\n", ECHO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for entry in ("", ".", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [entry, *sys.path[1:]])
        assert "evil" not in list_names("provider")
        (skipped,) = find_skipped_plugins()
        assert (skipped[0].name, skipped[1]) == ("evil", tmp_path.resolve())
        with pytest.raises(PluginError, match="no provider 'evil'"):
            find("provider", "evil")
    monkeypatch.setenv("PYTHONPATH", ".")  # which is the current folder again
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/", *sys.path[1:]])
    assert "evil" not in list_names("provider")


@pytest.mark.parametrize("line", ["{0}", "import site; site.addsitedir('{0}')"])
def test_an_editable_install_brings_its_plugins(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds where its folder is the current one: a `.pth` file of a site folder names it."""
    project, packages = tmp_path / "project", tmp_path / "packages"
    packages.mkdir()
    install(project, "mine", "[edgen.providers]\nmine = mine:echo\n", ECHO)
    packages.joinpath("easy.pth").write_text(line.format(project) + "\n")
    monkeypatch.setattr(site_module, "getsitepackages", lambda: [str(packages)])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "path", [str(project), str(packages)])
    monkeypatch.chdir(project)
    assert "mine" in list_names("provider")
    assert find_skipped_plugins() == []
