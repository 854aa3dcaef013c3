"""An Airflow DAG: one task a night draws from the pinned protocol, the next one audits what was published.

Put it into Airflow's `dags` folder; funnel itself never imports it. A task that ends with exit code 5
(another run is busy, the disk is full, the table is out of reach or changing) is tried again. One that ends with 1 (the
policy, its lock, the table, a claim or a disk is at fault) or 4 (a person must decide: the table has drifted, a budget
is spent) is not: nothing will change by itself. Where the first task ends so nothing was published, unless the log says
that it is (and that a disk or a database failed then); where the second does, what is published fails its audit.
"""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta

from airflow import DAG
from airflow.exceptions import AirflowException, AirflowFailException
from airflow.hooks.base import BaseHook
from airflow.operators.python import PythonOperator

FOLDER, NAME = "/srv/funnel", "census"
AGAIN = 5


def funnel(command: str, *, key: bool = False) -> None:
    """Carry out a command of funnel, with the key where it draws. Raises what Airflow tries again, or does not."""
    given = {"FUNNEL_KEY": BaseHook.get_connection("funnel_key").password} if key else {}
    code = subprocess.run(["funnel", *command.split()], cwd=FOLDER, env=os.environ | given, check=False).returncode
    if code == AGAIN:
        raise AirflowException(f"funnel {command}: exit code {code}, to be tried again")
    if code:
        raise AirflowFailException(f"funnel {command}: exit code {code}, nothing to be gained by trying again")


with DAG(
    dag_id=f"funnel_{NAME}",
    schedule="15 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
) as dag:
    release = PythonOperator(
        task_id="release",
        python_callable=funnel,
        op_args=[f"run --locked --json {NAME}.yaml"],
        op_kwargs={"key": True},
    )
    audit = PythonOperator(
        task_id="audit",
        python_callable=funnel,
        op_args=[f"audit releases/{NAME}/latest --private private/{NAME}"],
    )
    release >> audit
