"""A filter is one expression over the row; everything else is refused, and what was checked is what runs."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.engine.expressions import ExpressionError, check_compared, check_condition, parse

GOOD = {
    "age >= 18": ("age",),
    "age BETWEEN 18 AND 65 and sex IN ('Male', 'Female')": ("age", "sex"),
    "native_country ILIKE 'united%' OR NOT (age < 18)": ("native_country", "age"),
    "lower(trim(sex)) = 'male' -- a comment": ("sex",),
    "age IS NOT NULL /* ) OR (1=1 */": ("age",),
    "CASE WHEN age > 30 THEN income = '>50K' ELSE true END": ("age", "income"),
    '"capital gain" > 1e3': ("capital gain",),
    "CAST(age AS DOUBLE) / 2 > 10": ("age",),
    "true": (),
}
BAD = [
    "1) OR (1=1",
    "age > 18; DROP TABLE people",
    "1); DROP TABLE people; SELECT (1",
    "1) , (2",
    "1) AS x, (2",
    "1) ORDER BY (1",
    "1) UNION SELECT (1",
    "1) FROM read_csv('/etc/passwd'",
    "1) WHERE (2",
    "1) LIMIT (1",
    "(SELECT 1)",
    "age > (SELECT max(age) FROM source)",
    "EXISTS (SELECT 1)",
    "age IN (SELECT 1)",
    "random() < 0.5",
    "now() > DATE '2020-01-01'",
    "current_localtimestamp() > born",
    "current_localtime() > opens",
    "age(born) > INTERVAL 18 YEARS",
    "born.age() > INTERVAL 18 YEARS",
    "count(*) > 1",
    "sum(age) > 3",
    "row_number() OVER () = 1",
    "COLUMNS(*) > 1",
    "*",
    "people.age > 3",
    "$1 > 2",
    "? > 2",
    "list_filter([1], x -> x > 1)[1]",
    "current_setting('threads') = '2'",
    "nextval('s') > 1",
    "setseed(0.5) IS NULL",
    "",
    "   ",
    "--",
    "age >",
    "age = 'unclosed",
    "no_such_function(age)",
    "getvariable('low') > 1",
    "SELECT 1",
    "age > 18 GROUP BY age",
]


@pytest.mark.parametrize("text", GOOD)
def test_plain_expressions_are_kept_and_their_columns_named(text):
    expression = parse(text)
    assert expression.columns == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_anything_else_is_refused_with_a_reason(text):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value)


@pytest.mark.parametrize("text", [text for text, columns in GOOD.items() if set(columns) <= {"age"}])
def test_the_rebuilt_expression_means_the_same(text):
    rows = "(VALUES (10), (18), (40), (NULL)) t(age)"
    written = duckdb.sql(f"SELECT age FROM {rows} WHERE (\n{text}\n)").fetchall()
    rebuilt = duckdb.sql(f"SELECT age FROM {rows} WHERE {parse(text).sql}").fetchall()
    assert rebuilt == written


COLUMNS = {"x": "VARCHAR", "y": "VARCHAR", "n": "INTEGER", "d": "DATE", "e": "ENUM('a', 'b')"}
ROUNDED = {
    "x = 37": "CAST(x AS DOUBLE)",
    "37 <= x": "CAST(x AS DOUBLE)",
    "x IN ('a', 37.5)": "CAST(x AS DOUBLE)",
    "n > 3 OR NOT x BETWEEN 1 AND 2": "CAST(x AS DOUBLE)",
    "x = n": "CAST(x AS DOUBLE)",
    "CASE trim(x) WHEN 3 THEN true ELSE false END": 'CAST("trim"(x) AS DOUBLE)',
    "x <> DATE '2026-01-31'": "CAST(x AS DATE)",
}


@pytest.mark.parametrize("text", ROUNDED)
def test_a_text_is_not_compared_with_a_number(text):
    """To DuckDB '36.6' is 37, and 36.6 is not."""
    with pytest.raises(ExpressionError, match="which would be rounded") as caught:
        check_compared(text, COLUMNS)
    assert f"write {ROUNDED[text]} where all its texts can be read so" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["x = '37'", "CAST(x AS DOUBLE) = 37", "x IN (y, '37')", "x = NULL", "d > '2026-01-31'", "x <> e"]
)
def test_all_else_is_compared(text):
    check_compared(text, COLUMNS)
    check_condition(parse(text), COLUMNS)


@pytest.mark.parametrize("text", ["n = '36.6'", "n IN ('36', '36.6')", "n BETWEEN '1' AND '36.6'", "'36.6' = n + 1"])
def test_a_whole_number_is_not_compared_with_a_fraction_in_quotes(text):
    """DuckDB rounds that, too."""
    with pytest.raises(ExpressionError, match=r"'36\.6' is not written as a whole number"):
        check_compared(text, COLUMNS)
    check_compared(text.replace("'36.6'", "'36'"), COLUMNS)


@pytest.mark.parametrize("text", ["n = 'x'", "d >= 'yesterday'", "CAST('x' AS INTEGER) = n"])
def test_constants_that_no_column_could_be_are_refused_before_a_row_is_read(text):
    with pytest.raises(ExpressionError, match="Conversion Error"):
        check_condition(parse(text), COLUMNS)


@pytest.mark.long
@given(st.text(alphabet="ab()'\";-/*,=<>. 1SELECTFROM\n$?[]{}:", max_size=40))
def test_no_text_escapes_its_brackets(text):
    """Whatever is accepted stands as one condition in a WHERE clause and names only its own columns."""
    try:
        expression = parse(text)
    except ExpressionError:
        return
    columns = (
        ", ".join('"' + name.replace('"', '""') + '" VARCHAR' for name in expression.columns)
        or "unused INTEGER"
    )
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        statements = connection.extract_statements(f"SELECT 1 FROM t WHERE {expression.sql}")
    assert len(statements) == 1
