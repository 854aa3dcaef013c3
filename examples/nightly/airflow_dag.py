"""An Airflow DAG: one task a night draws from the pinned protocol, the next one audits what was published.

Put it into Airflow's `dags` folder; funnel itself never imports it. A task that ends with exit code 1 has published
nothing: the table has drifted, or policy and lock are at odds, and trying again will not help, so there are no retries.
"""

from __future__ import annotations

from datetime import datetime

from airflow import DAG
from airflow.operators.bash import BashOperator

FOLDER, NAME = "/srv/funnel", "census"

with DAG(
    dag_id=f"funnel_{NAME}",
    schedule="15 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 0},
) as dag:
    release = BashOperator(
        task_id="release",
        bash_command=f"funnel run --locked --json {NAME}.yaml",
        cwd=FOLDER,
        append_env=True,
        env={"FUNNEL_KEY": "{{ conn.funnel_key.password }}"},
    )
    audit = BashOperator(
        task_id="audit",
        bash_command=f"funnel audit releases/{NAME}/latest --private private/{NAME}",
        cwd=FOLDER,
    )
    release >> audit
