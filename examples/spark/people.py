"""`python people.py ROWS`: a table of made-up people, in four files."""

import sys
from pathlib import Path

import duckdb

rows, folder = int(sys.argv[1]), Path(__file__).parent / "people"
folder.mkdir(exist_ok=True)
for part in range(4):
    duckdb.sql(f"""
        COPY (
            SELECT i AS id, 'occupation ' || hash(i, 1) % 6 AS occupation,
                'region ' || (hash(i, 1) % 6 + hash(i, 2) % 8) % 8 AS region, 18 + hash(i, 3) % 62 AS age
            FROM range({rows}) t(i) WHERE i % 4 = {part}
        ) TO '{folder}/part-{part}.parquet'
    """)
