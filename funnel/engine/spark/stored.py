"""Parquet behind an address, in a file system that Spark has: hdfs://…, or a store whose file system its settings name.

Spark reads it by itself, with the credentials that its own configuration has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import duckdb

from funnel.engine.sources.base import Source, changed, missing
from funnel.engine.spark.session import kind_of, session, told_by
from funnel.errors import InternalError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMES = ("s3", "gs", "abfs", "hdfs")
"""Of addresses that Hadoop's file systems may serve."""
_ENDINGS = (".parquet", ".pq")
Listed = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Stored(Source):
    """The Parquet files under an address; `settings` are Spark's, as the policy has them."""

    name: str
    settings: Mapping[str, str]

    def frame(self, session: SparkSession) -> DataFrame:
        """The table in Spark, before a row of it is read. Raises SourceError."""
        _ = self._found
        with self._asking():
            return session.read.option("mergeSchema", "true").parquet(self.name)

    @cached_property
    def types(self) -> dict[str, str]:
        """Columns and types, as DuckDB calls what comes of Spark. Raises SourceError."""
        from pyspark.sql.pandas.types import to_arrow_schema

        rows = to_arrow_schema(self.frame(session(self.settings)).schema).empty_table()  # noqa: F841
        return {str(row[0]): str(row[1]) for row in duckdb.execute("DESCRIBE SELECT * FROM rows").fetchall()}

    def check_unchanged(self) -> None:
        """Raise SourceError when a file has gone, come or been rewritten since the source was first looked at."""
        if self._listed() != self._found:
            raise changed(self.name)

    @cached_property
    def _found(self) -> Listed:
        found = self._listed()
        if not found:
            raise missing(self.name)
        return found

    def _listed(self) -> Listed:
        """Paths, sizes in bytes, and times in milliseconds. Raises SourceError."""
        context = session(self.settings).sparkContext
        if context._jvm is None:
            raise InternalError("a session that has begun has no Java")
        with self._asking():
            path = context._jvm.org.apache.hadoop.fs.Path(self.name)
            system = path.getFileSystem(context._jsc.hadoopConfiguration())
            if not system.exists(path):
                return ()
            files = _each(system.listFiles(path, True))
            told = ((str(one.getPath()), int(one.getLen()), int(one.getModificationTime())) for one in files)
            return tuple(sorted(one for one in told if one[0].lower().endswith(_ENDINGS)))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn what a file system complains of into an error of the source."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            scheme = self.name.partition("://")[0]
            raise SourceError(
                "source-unreachable",
                f"Spark reaches no table there ({kind_of(error)})",
                where=self.name,
                values=told_by(error),
                advice=f"Nothing was published. See that it is there, and that Spark knows what serves {scheme}://: "
                "for s3:// that takes, in `spark`, `spark.hadoop.fs.s3.impl: org.apache.hadoop.fs.s3a.S3AFileSystem` "
                "and `spark.jars.packages: org.apache.hadoop:hadoop-aws:VERSION`, the version of its Hadoop.",
            ) from None


def _each(iterator: Any) -> Iterator[Any]:
    """What a Java iterator has."""
    while iterator.hasNext():
        yield iterator.next()
