from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    "edgen_nightly",
    schedule="15 1 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="generate",
        bash_command="cd /srv/edgen && set -a && . ./keys.env && set +a && "
        ".venv/bin/edgen generate jobs/nightly.yaml --set name=nightly-{{ ds }} --for 5h --log-format json",
        skip_on_exit_code=[4],
        retries=3,
        retry_delay=timedelta(minutes=10),
        execution_timeout=timedelta(hours=6),
    )
