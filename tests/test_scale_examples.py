"""The examples of docs/scale.md and examples/ray are valid.

The KubeRay manifest fits the fields of its kinds, the Slurm script is a script, and every edgen command in
them exists.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests import ROOT

pytestmark = pytest.mark.integration
TEXT = (ROOT / "docs/scale.md").read_text()
MANIFEST = (ROOT / "examples/ray/kuberay.yaml").read_text()
SCRIPT = (ROOT / "examples/ray/slurm.sh").read_text()


def closed(**properties: Any) -> dict[str, Any]:
    """Return a schema of an object with no other fields."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


QUANTITIES = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"^\d+(m|Mi|Gi|Ti)?$"}}
CONTAINER = closed(
    name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
    image={"type": "string"},
    resources=closed(requests=QUANTITIES, limits=QUANTITIES),
    volumeMounts={"type": "array", "items": closed(name={"type": "string"}, mountPath={"type": "string", "pattern": "^/"})},
    envFrom={"type": "array", "items": closed(secretRef=closed(name={"type": "string"}))},
)  # fmt: skip
POD = closed(
    spec=closed(
        containers={"type": "array", "minItems": 1, "items": CONTAINER},
        volumes={
            "type": "array",
            "items": closed(
                name={"type": "string"}, persistentVolumeClaim=closed(claimName={"type": "string"})
            ),
        },
    )
)
# Ray's start parameters are texts, numbers too.
START = {"type": "object", "additionalProperties": {"type": "string"}}
COUNT = {"type": "integer", "minimum": 0}
RAY_JOB = {
    **closed(
        apiVersion={"const": "ray.io/v1"},
        kind={"const": "RayJob"},
        metadata=closed(name={"type": "string"}),
        spec={
            **closed(
                entrypoint={"type": "string"},
                shutdownAfterJobFinishes={"type": "boolean"},
                backoffLimit=COUNT,
                rayClusterSpec=closed(
                    headGroupSpec={**closed(rayStartParams=START, template=POD), "required": ["rayStartParams", "template"]},
                    workerGroupSpecs={
                        "type": "array",
                        "items": {
                            **closed(
                                groupName={"type": "string"}, replicas=COUNT, minReplicas=COUNT, maxReplicas=COUNT,
                                rayStartParams=START, template=POD,
                            ),
                            "required": ["groupName", "rayStartParams", "template"],
                        },
                    },
                ),
            ),
            "required": ["entrypoint", "rayClusterSpec"],
        },
    ),
    "required": ["apiVersion", "kind", "metadata", "spec"],
}  # fmt: skip
SBATCH = {"job-name", "nodes", "ntasks-per-node", "cpus-per-task", "requeue"}


def test_the_manifest_for_kuberay() -> None:
    manifest = yaml.safe_load(MANIFEST)
    jsonschema_rs.Draft202012Validator(RAY_JOB).validate(manifest)
    groups = manifest["spec"]["rayClusterSpec"]
    mounted = {
        mount["name"]
        for container in groups["headGroupSpec"]["template"]["spec"]["containers"]
        for mount in container["volumeMounts"]
    }
    assert mounted == {one["name"] for one in groups["headGroupSpec"]["template"]["spec"]["volumes"]}


def test_the_schema_refuses_what_kuberay_would() -> None:
    manifest = yaml.safe_load(MANIFEST)
    manifest["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
    assert not jsonschema_rs.Draft202012Validator(RAY_JOB).is_valid(manifest)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_the_script_for_slurm() -> None:
    assert subprocess.run(["bash", "-n"], input=SCRIPT, text=True, check=False).returncode == 0
    options = re.findall(r"^#SBATCH --([a-z-]+)", SCRIPT, re.MULTILINE)
    assert {*options} == SBATCH
    assert (
        SCRIPT.index("ray start --head")
        < SCRIPT.index("ray start --address")
        < SCRIPT.index("edgen generate")
    )


def test_every_option_exists() -> None:
    """Options are compared with docs/commands.md, which is made from the command line."""
    known = (ROOT / "docs/commands.md").read_text()
    blocks = re.findall(r"```(?:sh|yaml)\n(.*?)```", TEXT, re.DOTALL)
    said = "\n".join([*blocks, MANIFEST, SCRIPT]).replace("\\\n", " ")
    commands = re.findall(r"edgen (?:generate|pairs|annotate|doctor|simulator) [^\n#&]*", said)
    assert len(commands) > 10
    for command in commands:
        for word in shlex.split(command.split("|")[0].replace("'", "").replace('"', "")):
            if word.startswith("--"):
                assert word in known, command
