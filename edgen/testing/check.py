"""Shared parts of the checks of all kinds."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from edgen.core import registry, resources
from edgen.core.plugin_checks import find_flaw
from edgen.core.plugins.faults import WrongValueError
from edgen.core.registry import Kind
from edgen.space import Space, load_space
from edgen.testing.elsewhere import run_elsewhere

SPACE = "education_dialogue_faithful"


class ConformanceError(AssertionError):
    """An object that does not behave as edgen expects of its kind."""


class Check:
    """A list of faults of one object."""

    def __init__(self, kind: Kind, name: str) -> None:
        self._what = f"{kind} {name!r}"

    def that(self, holds: object, else_said: str) -> None:
        if not holds:
            self.fail(else_said)

    def value(self, else_said: str, make: Callable[..., Any], *given: Any) -> Any:
        """Return the value of `make`; report its exception as a fault."""
        try:
            return make(*given)
        except ConformanceError:
            raise
        except WrongValueError as error:
            self.fail(error.said, error)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            self.fail(f"{else_said} ({type(error).__name__}: {error})", error)

    def require_same_elsewhere(self, what: str, here: bytes, work: Callable[..., bytes], *given: Any) -> None:
        """Check that `work`, a function of a module, returns these bytes in another process as well. `what`
        names them."""
        found = run_elsewhere(work, *given)
        self.that(
            found in (None, here),
            f"{what} are others in another process; they must not depend on the process, time or chance, nor "
            "on the order of a set",
        )

    def fail(self, said: str, cause: BaseException | None = None) -> NoReturn:
        raise ConformanceError(f"{self._what}: {said}") from cause


def begin_check(kind: Kind, checked: Any) -> Check:
    """Return the check of an object, which edgen must be able to load as one of this kind."""
    name = getattr(checked, "name", None)
    named = isinstance(name, str) and name != ""
    check = Check(kind, str(name) if named else repr(checked))
    if not isinstance(checked, type):
        check.that(named, "has no `name`, which its entry point has, too")
    flaw = check.value("cannot be loaded", find_flaw, kind, checked)
    check.that(flaw is None, str(flaw))
    return check


@contextlib.contextmanager
def register_for_check(kind: Kind, checked: Any) -> Iterator[None]:
    """Have edgen find an object by its name while the body runs, installed or not."""
    with registry.register_temporarily(kind, checked.name, checked):
        yield


def find_space(space: str | Path | Space) -> Space:
    return space if isinstance(space, Space) else load_space(resources.find("preference_space", str(space)))


@contextlib.contextmanager
def make_example_run(run: str | Path | None) -> Iterator[Path]:
    """Yield the folder of a run: the given one, or a small temporary one."""
    if run is not None:
        yield Path(run)
        return
    from edgen import generate

    job = {
        "name": "check", "seed": 7, "conversations": 12, "space": SPACE, "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        generate(job, output=Path(scratch, "run"))
        yield Path(scratch, "run")
