"""Rebuild census.parquet from the UCI file: `python build.py adult.data`.

Values lose the blank after each comma; `?` stays a value of its own; person_id numbers the rows from 1.
"""

import hashlib
import sys
from pathlib import Path

import duckdb

MD5 = "5d7c39d7b8804f071cdd1f2a7c460872"
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip


def main(source: Path, target: Path) -> None:
    """Check the file's md5, give it names and types, and write it as Parquet."""
    digest = hashlib.md5(source.read_bytes(), usedforsecurity=False).hexdigest()
    if digest != MD5:
        raise SystemExit(f"{source} has md5 {digest}, expected {MD5}")
    typed = ", ".join(
        f"CAST(trim({name}) AS SMALLINT) AS {name}" if name in NUMBERS and name not in ("fnlwgt", "capital_gain")
        else f"CAST(trim({name}) AS INTEGER) AS {name}" if name in NUMBERS
        else f"trim({name}) AS {name}"
        for name in COLUMNS
    )  # fmt: skip
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.read_csv(str(source), header=False, all_varchar=True, names=list(COLUMNS)).create_view("raw")
    table = connection.sql(f"SELECT CAST(row_number() OVER () AS INTEGER) AS person_id, {typed} FROM raw")
    table.write_parquet(str(target), compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent / "census.parquet")
