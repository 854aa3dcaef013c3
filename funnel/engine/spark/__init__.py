"""Spark as the engine: it reads, divides, brings together and does again what is lost; DuckDB says what SQL means.

Every statement of a plan has one meaning, DuckDB's: the process of each part asks its own DuckDB the same as the one
engine of a small table asks once. What the parts found is put together here, in the DuckDB of the driver, where all
small tables are.
"""

from funnel.engine.spark.engine import Spark
from funnel.engine.spark.table import Parted, parted

__all__ = ["Parted", "Spark", "parted"]
