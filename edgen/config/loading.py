"""Job files, read and checked, with overrides (`--set key.path=value`) applied, and the jobs of their arms.

Every unknown key and unusable value is reported with its path. Paths of files in the result do not depend on
the current folder. A run keeps copies of its files, including the job: its inputs, which must not change.
Arms are jobs that differ from the main job in a few keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from edgen.config.backends import BackendConfig, Price, find_prices
from edgen.config.checks import check
from edgen.config.job import KNOBS, Job, resolve_values
from edgen.core.errors import DamagedError, FileError, JobError, Problem, UsageError
from edgen.core.kept_files import find_damage, has_digest
from edgen.core.registry import PluginError, find, list_names
from edgen.core.resources import list_shipped
from edgen.core.yaml_values import convert, read_text, read_yaml, shorten_word, suggest_file, suggest_name

_INPUTS = ("job.yaml", "arms/numbers.json")  # a run's inputs, besides the files in inputs/
KEYS = tuple(key for key in Job.__struct_fields__ if key not in ("protocol_settings", "speakers"))
# Keys that an arm cannot change: its scenarios or files would differ from the others'. Its own space may use
# other weights for the same values; readers of the files check that the values are the same.
NOT_IN_ARMS = (*KNOBS, "seed", "design", "strength")


class _SetError(FileError):
    what = "option"


def load_job(path: Path, overrides: Iterable[str] = ()) -> Job:
    """Return the job in the file at `path`, with `key.path=value` overrides applied. Raises JobError with
    every problem found, UsageError for an invalid override. Raises DamagedError if the job is a run's own
    copy and the run's inputs are not as edgen wrote them."""
    return _locate_files(parse_job(_read_file(path), str(path), overrides), path)


def load_kept_job(path: Path) -> Job:
    """Return the job that a run keeps at `path`. All checks passed when the run began; they are skipped if
    the file's digest matches. Raises as `load_job` does."""
    value = _read_file(path)
    if not has_digest(path):
        return load_job(path)
    return _locate_files(convert_values(value, str(path)), path)


def _read_file(path: Path) -> Any:
    """Return the plain values of a job's file."""
    source = str(path)
    if not path.exists():
        raise JobError(source, f"there is no such file.{_suggest_instead(path)}")
    if (inside := path / "job.yaml").is_file():
        raise JobError(source, f"this is a folder, not a file. Did you mean {inside}?")
    if path.is_file():
        require_inputs(path.parent)
    return read_yaml(read_text(path, JobError), source, JobError)


def _locate(backend: BackendConfig, folder: Path) -> BackendConfig:
    """Return the settings with absolute paths of files. Most backends name no files, and have no
    `located`."""
    located: BackendConfig = backend.located(folder) if hasattr(backend, "located") else backend
    return located


def _locate_files(job: Job, path: Path) -> Job:
    """Return the job of the file at `path`, with absolute paths of the files of its backends, its arms'
    backends and its budget."""
    folder = path.parent
    job = msgspec.structs.replace(
        job, backends={name: _locate(backend, folder) for name, backend in job.backends.items()}
    )
    for arm, held in list_arm_jobs(job, str(path)).items() if job.arms else ():
        for name, changes in (job.arms[arm].get("backends") or {}).items():
            backend = held.backends[name]
            for key in changes.keys() & {*backend.__struct_fields__}:
                if (there := getattr(_locate(backend, folder), key)) != getattr(backend, key):
                    changes[key] = there
    if job.limits.budget is None:
        return job
    # Relative to the job's folder, like the other files that it names; a run's copy of the job is elsewhere.
    budget = str((folder / Path(job.limits.budget).expanduser()).absolute())
    return msgspec.structs.replace(job, limits=msgspec.structs.replace(job.limits, budget=budget))


def _suggest_instead(path: Path) -> str:
    """Suggest what to do about a missing job file."""
    if (shipped_job := path.name.removesuffix(".yaml")) in list_shipped("jobs"):
        return (
            f" `edgen init my-project --job {shipped_job}` makes a folder with a copy of the shipped job of "
            "this name; then: edgen generate my-project/job.yaml"
        )
    return suggest_file(path)


def parse_job(value: Any, source: str, overrides: Iterable[str] = ()) -> Job:
    """Build a job from plain values. Error messages call it `source`."""
    if not isinstance(value, dict):
        raise JobError(source, "this file is not a mapping; a job is a mapping of keys to values.")
    for override in overrides:
        apply_override(value, override)
    if "name" in value:
        value = {**value, "name": _fill_in_date(value["name"], source)}
    job = check_values(value, source)
    list_arm_jobs(job, source)
    return job


def _fill_in_date(name: Any, source: str) -> Any:
    """Return a job's name with `{date}` replaced by today's local date. Other values than text stay
    unchanged."""
    wrong = None
    if isinstance(name, dict) and list(name) == ["date"]:  # YAML reads the braces as a mapping
        wrong = "YAML takes braces at the beginning for a mapping; put quotes around: name: '{date}'"
    elif not isinstance(name, str):
        return name
    elif unknown := [field for field in re.findall(r"\{[^{}]*\}?", name) if field != "{date}"]:
        wrong = f"{unknown[0]} is unknown; a name may contain {{date}}, today's date as in 2027-01-31"
    if wrong is not None:
        raise JobError.of(source, [Problem("$.name", wrong)])
    return name.replace("{date}", datetime.now().astimezone().date().isoformat())


def apply_override(value: dict[str, Any], assignment: str) -> None:
    """Apply one override `a.b=c` to the plain values. Its right side is YAML."""
    key, equals, text = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in parts):
        raise UsageError(f"--set {assignment}: expected key=value, as in --set limits.in_flight=8.")
    node = value
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise UsageError(f"--set {assignment}: '{part}' is not a mapping in this job.")
        node = child
    node[parts[-1]] = read_yaml(text, f"--set {assignment}", _SetError)


def list_texts(overrides: Iterable[str]) -> frozenset[str]:
    """Return every text in the values of `key.path=value` overrides. A person typed them."""
    found, left = set(), [read_yaml(one.partition("=")[2], f"--set {one}", _SetError) for one in overrides]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return frozenset(found)


def is_input(name: str) -> bool:
    """Return whether the file of this path in a run's folder is one of the run's inputs."""
    folder, _, file = name.rpartition("/")
    return name in _INPUTS or (folder == "inputs" and file not in ("", ".", ".."))


def require_inputs(run: Path) -> None:
    """Raise DamagedError if one of a run's inputs is not as edgen wrote it. A run of an older edgen has no
    digests of them, and a folder that is not a run has none either."""
    found = [*find_damage(run, is_input)]
    if not found:
        return
    others = "".join(f" So is {run / one.name}: {one.what}." for one in found[1:4])
    raise DamagedError(
        f"{run / found[0].name}: this input of the run was damaged or edited: "
        f"{found[0].what}.{others} Nothing was requested or changed. `edgen validate {run} "
        "--restore` restores the run's files. To change a template, a space or the job, edit the "
        "project's own file and run `edgen generate` with its job: a run's inputs are copies."
    )


def check_values(value: dict[str, Any], source: str) -> Job:
    """Return the checked job made from plain values, with list prices. Raises JobError with every problem."""
    job = _with_list_prices(convert_values(value, source))
    check(job, source)
    return job


def convert_values(value: dict[str, Any], source: str) -> Job:
    """Return the job made from plain values. Raises JobError for unknown keys and invalid values."""
    found: list[Problem] = []
    settings = {}
    for key in [key for key in value if key not in KEYS]:
        protocol = find_protocol(str(key))
        if protocol is None:
            found.append(
                Problem(
                    f"$.{shorten_word(str(key))}", f"unknown key{suggest_name(str(key), list_known_keys())}"
                )
            )
        else:
            settings[key] = convert(value[key], protocol.Config, f"$.{key}", found)
    plain = {key: given for key, given in value.items() if key in KEYS}
    job = convert(plain, Job, "$", found)
    if isinstance(job, Job):
        if (protocol := find_protocol(job.protocol)) is None:
            found.append(Problem("$.protocol", _explain_unusable_protocol(job.protocol)))
        else:
            settings.setdefault(job.protocol, protocol.Config())
        if job.family is not None and job.family not in (known := list_names("family")):
            near = suggest_name(job.family, known)
            found.append(Problem("$.family", f"unknown family {shorten_word(repr(job.family))}{near}"))
    if found:
        raise JobError.of(source, found)
    converted: Job = msgspec.structs.replace(job, protocol_settings=settings)
    return converted


def find_protocol(name: str) -> Any:
    """Return the conversation protocol with this name; None if there is no usable one."""
    try:
        protocol = find("protocol", name)
    except PluginError:
        return None
    return protocol if hasattr(protocol, "Config") else None


def list_conversation_protocols() -> list[str]:
    """Return the names of the protocols for jobs."""
    return [name for name in list_names("protocol") if find_protocol(name) is not None]


def list_known_keys() -> list[str]:
    """Return the keys that a job can have."""
    return [*KEYS, *list_conversation_protocols()]


def _explain_unusable_protocol(name: str) -> str:
    """Explain why a job cannot use this protocol."""
    if name in list_names("protocol"):
        try:
            find("protocol", name)
        except PluginError as error:
            return str(error)
    return f"unknown protocol {shorten_word(repr(name))}{suggest_name(name, list_conversation_protocols())}"


def _with_list_prices(job: Job) -> Job:
    """Return the job with list prices for backends that have no price of their own."""
    priced = {
        name: backend
        if backend.price is not None
        else msgspec.structs.replace(backend, price=find_list_price(backend))
        for name, backend in job.backends.items()
    }
    return msgspec.structs.replace(job, backends=priced)


def find_list_price(backend: BackendConfig) -> Price | None:
    """Return the list price of a backend's model at the provider's own host; None elsewhere, and if its
    servers have different prices."""
    listed = find_prices(backend)
    prices = {listed.list_price(server) for server in backend.each_server}
    return prices.pop() if len(prices) == 1 else None


def list_arm_jobs(job: Job, source: str) -> dict[str, Job]:
    """Return the job of each arm, by name: the job with the arm's keys applied. Without `arms:`, the job
    itself is the only one, "". Raises JobError as `load_job` does."""
    if not job.arms:
        return {"": job}
    plain = msgspec.json.decode(msgspec.json.encode(resolve_values(job)))
    for name, backend in job.backends.items():
        if backend.price == find_list_price(backend):  # an arm's model has its own price
            plain["backends"][name]["price"] = None
    arms = plain.pop("arms")
    jobs = {}
    for name, changes in arms.items():
        where = f"{source}, arm {name}"
        if unknown := [
            Problem(f"$.arms.{name}.{key}", _describe_unknown_key(key))
            for key in changes
            if key not in KEYS and find_protocol(key) is None
        ]:
            raise JobError.of(source, unknown)
        if refused := _find_refused(job, changes):
            raise JobError.of(where, [Problem(f"$.arms.{name}.{refused[0]}", refused[1])])
        try:
            jobs[name] = check_values(
                {**_merge(_inherit(plain, changes), changes), "name": f"{job.name}.{name}"}, where
            )
        except JobError as error:
            own = [Problem(f"$.arms.{name}{p.path.removeprefix('$')}", p.message) for p in error.problems]
            raise JobError(source, error.summary, own) from None
    return jobs


def _find_refused(job: Job, changes: dict[str, Any]) -> tuple[str, str] | None:
    """Return the first forbidden change of an arm, with the reason; None if all are allowed."""
    if shared := sorted(set(changes) & set(NOT_IN_ARMS)):
        return shared[0], "an arm cannot change this: all arms share it"
    if changes.get("space", job.space) != job.space and job.design not in ("random", "even"):
        return "space", (
            "an arm's space may differ in its weights alone, and this design ignores weights; the job needs "
            "`design: even` or `design: random`"
        )
    return None


def _describe_unknown_key(key: str) -> str:
    """Describe an unknown key of an arm."""
    if any(key in BackendConfig.variant(name).__struct_fields__ for name in list_names("provider")):
        return f"unknown key; it is a backend's: `backends: {{default: {{{key}: …}}}}`"
    return (
        "unknown "
        f"key{suggest_name(str(key), [known for known in list_known_keys() if known not in NOT_IN_ARMS])}"
    )


def _inherit(plain: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the job's values for an arm: without protocol-specific ones if the arm has another protocol."""
    if changes.get("protocol", plain["protocol"]) == plain["protocol"]:
        return plain
    return {key: value for key, value in plain.items() if key not in ("prompt", "branch")}


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge `above` over `below`, mapping by mapping. A backend of another type replaces the one below."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if (
            isinstance(value, dict)
            and isinstance(under, dict)
            and value.get("type", under.get("type")) == under.get("type")
        ):
            result[key] = _merge(under, value)
        else:
            result[key] = value
    if "base_url" in above:  # the new servers replace all servers below
        for key in {"more_base_urls", "known_as"} - above.keys():
            result.pop(key, None)
    return result
