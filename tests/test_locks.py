"""The lock and the two files exported from it name the same packages at the same versions.

The trainers' lock includes edgen's packages.
"""

from __future__ import annotations

import re
import tomllib

from edgen.core.version import DISTRIBUTION
from tests import ROOT


def locked() -> dict[str, str]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {
        package["name"]: package["version"] for package in lock["package"] if package["name"] != DISTRIBUTION
    }


def exported(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\\n]+)", "\n".join(lines), re.MULTILINE))


def test_the_exports_agree_with_the_lock() -> None:
    lock = locked()
    for name in ("requirements.txt", "requirements-dev.txt"):
        pins = exported(name)
        assert pins, name
        assert {package: lock[package] for package in pins} == pins, f"{name} is stale: run `make lock`"
    assert set(lock) - set(exported("requirements-dev.txt")) <= brought_by("bert-score") | brought_by("ray")
    assert set(exported("requirements-dev.txt")) <= set(lock)


def test_the_trainers_environment_has_all_that_edgen_needs() -> None:
    pins = {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in exported("requirements-rl.txt").items()
    }
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    elsewhere = {line.split("==")[0] for line in lines if "; sys_platform == 'win32'" in line}
    missing = set(exported("requirements.txt")) - set(pins) - elsewhere
    assert not missing, f"run `sh .ci/setup-rl lock`: requirements-rl.txt lacks {sorted(missing)}"


def brought_by(name: str) -> set[str]:
    """Return a package and all packages that it needs.

    Packages for BERTScore alone, above all torch, are not part of the development set-up.
    """
    needs = {
        package["name"]: [one["name"] for one in package.get("dependencies", ())]
        + [one["name"] for more in package.get("optional-dependencies", {}).values() for one in more]
        for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    }
    found, open_ = set(), [name]
    while open_:
        package = open_.pop()
        if package not in found:
            found.add(package)
            open_ += needs.get(package, ())
    return found


def test_the_core_stays_small() -> None:
    core = set(exported("requirements.txt"))
    assert (
        core
        & {
            "torch",
            "pandas",
            "scipy",
            "pyarrow",
            "pydantic",
            "google-generativeai",
            "google-genai",
            "openai",
            "grpcio",
            "pytest",
        }
        == set()
    )
    assert {"aiohttp", "jinja2", "jsonschema", "msgspec", "tenacity", "typer"} <= core
    # a report needs no further package: matplotlib and its dependencies are ten of them
    assert len(core) <= 55


def test_every_pin_has_hashes() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        text = (ROOT / name).read_text()
        assert all("--hash=sha256:" in block for block in re.split(r"\n(?=[a-z0-9])", text) if "==" in block)
