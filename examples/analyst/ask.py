"""One question to a release, in DuckDB, pandas, a regression and funnel itself, beside the truth.

How many hours do women and men of 37 years and more work? Run after `funnel run examples/analyst/policy.yaml`:

    python examples/analyst/ask.py [releases/working-hours/latest]
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import statsmodels.formula.api as smf

import funnel

CENSUS = Path(__file__).parents[1] / "census" / "census.parquet"
MODEL = "hours_per_week ~ C(sex) + C(age)"


def main(release: str) -> None:
    """Print every answer."""
    opened = funnel.open_release(release)
    weight = opened.weights()
    # Rows of the release with what each counts for: any tool that knows weights can read them.
    rows = opened.table().append_column("weight", weight)
    people = pd.DataFrame(rows.to_pydict())
    truth = the_truth()

    print("1. funnel: mean hours of those of 37 and more, with errors of the draws\n")
    asked = opened.estimate(by="sex", where="age >= 37", mean="hours_per_week")
    print(asked.text())

    print("\n2. DuckDB: the same from weighted rows\n")
    print(in_duckdb(rows))

    print("\n3. pandas: the same again\n")
    older = people[people.age == "[37, ∞)"]
    print(older.groupby("sex").apply(lambda of: np.average(of.hours_per_week, weights=of.weight), include_groups=False))

    print("\n4. the truth\n")
    print(truth[truth.age == "[37, ∞)"].groupby("sex").hours_per_week.mean())

    print(f"\n5. a regression, {MODEL}: weighted rows, rows as they are, and the truth\n")
    # The weights are estimates, and their error is the draws'; a regression's own standard errors know nothing of it.
    print(pd.DataFrame({
        "weighted": smf.wls(MODEL, people, weights=people.weight).fit().params,
        "as released": smf.ols(MODEL, people).fit().params,
        "truth": smf.ols(MODEL, truth).fit().params,
    }).round(3))  # fmt: skip


def in_duckdb(rows: pa.Table) -> str:
    """A weighted mean for each sex."""
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        told = connection.sql(
            "SELECT sex, sum(weight) AS people, sum(weight * hours_per_week) / sum(weight) AS hours "
            "FROM rows WHERE age = '[37, ∞)' GROUP BY sex ORDER BY sex"
        )
        return str(told)


def the_truth() -> pd.DataFrame:
    """The source, rounded and binned as the policy says."""
    with duckdb.connect() as connection:
        told = connection.sql(
            "SELECT sex, IF(age < 37, '[0, 37)', '[37, ∞)') AS age, "
            "CAST(floor(greatest(10, least(60, hours_per_week)) / 10 + 0.5) * 10 AS BIGINT) AS hours_per_week "
            f"FROM '{CENSUS}'"
        )
        return pd.DataFrame(told.to_arrow_table().to_pydict())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "releases/working-hours/latest")
