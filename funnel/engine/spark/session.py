"""A Spark session: the one of this process, or one from the environment and the policy's settings."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.engine.scratch import Scratch
from funnel.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
}
"""Of a session that is begun here, where nobody says otherwise: what it lays aside on disks are people's rows."""
_SQL = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Of this program's own queries."""


def session(settings: Mapping[str, str], threads: int | None = None) -> SparkSession:
    """A session with its own settings of queries. Raises SourceError where Spark is not there or does not start."""
    _check_installed()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    begun = SparkContext._active_spark_context is None
    found = _begun(settings, threads) if begun else SparkSession.builder.getOrCreate()
    if not begun:
        _check_same(found, settings)
    own = found.newSession()
    for name, value in _SQL.items():
        own.conf.set(name, value)
    return own


def _check_installed() -> None:
    """pyspark, and pandas, without which it gives no Arrow batches; and Java."""
    try:
        import pandas  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        said = f"`engine: spark` needs a library that is not installed ({error.name})"
        raise _missing(said, "Install it: `pip install 'funnel-sanitiser[spark]'`.") from None
    home = os.environ.get("JAVA_HOME")
    if not (Path(home, "bin", "java").is_file() if home else shutil.which("java")):
        raise _missing(
            "Spark runs on Java, and no Java is found",
            "Install Java 17, for example with `apt-get install openjdk-17-jre-headless`, or set JAVA_HOME.",
        )


def _begun(settings: Mapping[str, str], threads: int | None) -> SparkSession:
    """A session of this process, which ends with it; Spark's own log is kept aside, for it may name values."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False)
    for name, value in (_OURS | _local(settings, threads) | dict(settings)).items():
        conf.set(name, value)
    log = _folder() / "spark.log"
    try:
        with log.open("wb") as handle:
            gateway = launch_gateway(conf, {"stderr": handle})  # type: ignore[no-untyped-call]
        return SparkSession(SparkContext(gateway=gateway, conf=conf))
    except Exception as error:  # noqa: BLE001
        told = _last_line(log) or str(error).splitlines()[0]
        raise _missing(
            f"Spark does not start ({type(error).__name__})",
            "Check its settings (`spark` in the policy, SPARK_CONF_DIR) and its Java, which must be 17 or later.",
            told,
        ) from None


def _local(settings: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """What a session on this machine alone needs, where neither policy nor environment names a master."""
    submitted = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    elsewhere = "spark.master" in settings or "--master" in submitted or "SPARK_CONF_DIR" in os.environ
    master = {} if elsewhere else {"spark.master": f"local[{threads or '*'}]"}
    if not (settings.get("spark.master") or master.get("spark.master", "")).startswith("local"):
        return master
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return master | here | {"spark.local.dir": str(_folder())}


def _check_same(found: SparkSession, settings: Mapping[str, str]) -> None:
    """A process has one Spark: what the policy asks of it must be so already."""
    told = {name: found.conf.get(name, None) for name in settings}
    other = next((name for name, value in settings.items() if told[name] != value), None)
    if other is not None:
        said = f"the Spark of this process has other settings than the policy asks for ({other})"
        raise _missing(said, "Run policies with other settings in processes of their own.")


def _missing(said: str, advice: str, told: str | None = None) -> SourceError:
    return SourceError("source-unreadable", said, values=told, advice=advice)


@cache
def _folder() -> Path:
    """Where Spark lays rows aside on this machine, and its log: private, and gone with the process."""
    scratch = Scratch()
    atexit.register(scratch.remove)
    return scratch.path


def _last_line(log: Path) -> str | None:
    """What Spark said last."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else None


def kind_of(error: Exception) -> str:
    """What Spark, or its Java, calls a failure, which names no value."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    return (error.getCondition() if isinstance(error, PySparkException) else None) or type(error).__name__


def told_by(error: Exception) -> str:
    """The line in which a failure says what it was, of the many around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or ("Error: " in line and "at " not in line)]
    return (causes or lines or [type(error).__name__])[-1]
