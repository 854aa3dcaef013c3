"""A first cross-tab: people of the release, joined by their number with those who take a course.

python examples/wide/crosstab.py RELEASE COURSES
"""

import sys

import duckdb

SCHOOLING = """CASE
    WHEN education IN ('Bachelors', 'Masters', 'Doctorate', 'Prof-school') THEN '3 degree'
    WHEN education IN ('Some-college', 'Assoc-voc', 'Assoc-acdm') THEN '2 college'
    WHEN education = 'HS-grad' THEN '1 high school'
    ELSE '0 less' END"""


def main(release: str, courses: str) -> None:
    """Print people and the share on a course, by schooling and sex."""
    duckdb.sql(f"""
        SELECT {SCHOOLING} AS schooling, sex, count(*) AS people, count(course) AS on_a_course,
               round(100 * count(course) / count(*), 1) AS percent
        FROM '{release}' LEFT JOIN '{courses}' USING (person_id)
        GROUP BY ALL ORDER BY ALL""").show()


if __name__ == "__main__":
    main(*sys.argv[1:3])
