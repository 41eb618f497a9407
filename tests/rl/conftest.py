"""The slow group: edgen's exports used by third-party libraries.

`make test-rl` makes an environment with TRL and runs these tests there. Without TRL there is nothing to
collect, so the ordinary tests skip this folder. Nothing leaves the machine: the hub is off, its folders are
temporary, and every connection is refused and counted.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TRAINERS = importlib.util.find_spec("trl") is not None
collect_ignore_glob = [] if TRAINERS else ["test_*.py"]
# Libraries that do not fit into that environment have one of their own. Their tests are collected where the
# module that each needs is installed. Some are clones on the path: readers of CIMA's release, of MSDialog's
# sets and of DSTC7's, CRWIZ's server, DSTC7's scorer.
APART = {
    name: name
    for name in ("axolotl", "bert_score", "llamafactory", "open_instruct", "openrlhf", "unsloth", "verl")
}
APART |= {
    "refuel": "tokenize_mask",
    "sweet": "evaluate_code",
    "mastersthesis": "transform_cima",
    "neuralresponseranking": "matchzoo",
    "crwiz": "app",
    "noesis": "metrics",
    "noesis_dataset": "noesis",
    "parlai": "parlai",
    "userintentprediction": "compute_tf_idf_file",
    "ctinray_dstc7": "prepreprocess_advising",
}
collect_ignore_glob += [
    f"apart/test_{name}.py" for name, module in APART.items() if importlib.util.find_spec(module) is None
]

if TRAINERS:  # read when the libraries are imported, so before any test module is
    HF_HOME = tempfile.mkdtemp(prefix="edgen-rl-")
    os.environ.update(
        HF_HOME=HF_HOME, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1", CUDA_VISIBLE_DEVICES="",
        TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="2", WANDB_MODE="disabled",
        AXOLOTL_DO_NOT_TRACK="1", DO_NOT_TRACK="1", UNSLOTH_DISABLE_STATISTICS="1", RAY_USAGE_STATS_ENABLED="0",
    )  # fmt: skip

    from tests.rl.pipeline import Exports, Tokenizers, make_run


def pytest_unconfigure() -> None:
    if TRAINERS:
        shutil.rmtree(HF_HOME, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _nothing_leaves() -> Iterator[None]:
    """Refuse connections in session fixtures too: the guard over single tests does not cover them."""
    tried: list[Any] = []
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            tried.append(address)
            raise OSError(f"no test reaches {address}")
        connect(self, address)

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in {None, "", "127.0.0.1", "::1", "localhost"}:
            tried.append(host)
            raise OSError(f"no test reaches {host}")
        return getaddrinfo(host, *args, **kwargs)

    getaddrinfo = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket, "getaddrinfo", resolve)
        yield
    assert not tried, f"something tried to reach {tried}"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished self-play run with its pairs."""
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def exports(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Exports:
    return Exports(run_folder, tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="session")
def tokenizers(exports: Exports) -> Tokenizers:
    return Tokenizers(exports)
