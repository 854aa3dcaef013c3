"""Make courses.csv again: `python build.py`. Who takes a course is made up; it leans on schooling, age and hours."""

from pathlib import Path

import duckdb

HERE = Path(__file__).parent
TABLE = HERE.parent / "census" / "census.parquet"


def main(target: Path) -> None:
    """Write person_id and course of everybody who takes one: a share that is hashed from the id."""
    duckdb.sql(f"""COPY (
        SELECT person_id, CASE WHEN hash(person_id * 7) % 3 = 0 THEN 'language' ELSE 'computing' END AS course
        FROM '{TABLE}'
        WHERE hash(person_id) % 1000 < 40 + 15 * greatest(education_num - 8, 0)
            + CASE WHEN age < 35 THEN 40 ELSE 0 END - CASE WHEN hours_per_week > 45 THEN 30 ELSE 0 END
        ORDER BY person_id) TO '{target}' (HEADER)""")


if __name__ == "__main__":
    main(HERE / "courses.csv")
