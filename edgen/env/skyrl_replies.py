"""An environment of skyrl-gym in which the job's judge scores one reply against the reference.

    skyrl_gym.register(
        id="edgen-replies",
        entry_point="edgen.env.skyrl_replies:ReplyEnv",
        kwargs={"job": "/path/job.yaml"},
    )

Rows are those of `edgen export --to skyrl`. Needs skyrl-gym.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgen.core.errors import UsageError
from edgen.core.extras import make_not_installed_error
from edgen.env.replies import judge_of

try:
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as missing:
    raise make_not_installed_error("skyrl-gym", missing) from missing


class ReplyEnv(BaseTextEnv):
    """One reply, then done. `extras` are the columns of the row; `job` and `overrides` are as for
    `ReplyJudge.from_job`.

    Environments of one job share its judge within a process. Raises UsageError for a row that is not from an
    export.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        job: str = "",
        overrides: Iterable[str] = (),
    ) -> None:
        super().__init__()
        extras = extras or {}
        spec, row = extras.get("reward_spec"), extras.get("extra_info")
        if not (isinstance(spec, Mapping) and isinstance(row, Mapping) and "ground_truth" in spec):
            raise UsageError(
                "the row has no reward_spec or no extra_info: take rows of `edgen export --to skyrl`."
            )
        self._reference, self._row = str(spec["ground_truth"]), row
        self._judge = judge_of(job, overrides)
        self._judged = 0.0

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Score the reply. Raises the errors of `ReplyJudge.score` and its future."""
        score = self._judge.score(action, self._reference, self._row).result()
        self._judged = float(score.judged)
        return BaseTextEnvStepOutput(
            observations=[], reward=score.value, done=True, metadata={"judged": score.judged}
        )

    def get_metrics(self) -> dict[str, Any]:
        """Return whether the judge gave a verdict in each order, as 1 or 0."""
        return {"judged": self._judged}
