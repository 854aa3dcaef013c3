"""Policies with one thing wrong each."""

from __future__ import annotations

from tests.unit.policy.pages import GOOD, good, private, wide

SPOILT = {
    # keys
    "unknown key": (good(missing="  ‸mising: drop"), "unknown-key"),
    "unknown section": (good(mechanism="‸mechanisms: optimal"), "unknown-key"),
    "unknown key of an attribute": (good(top="    ‸tops: 10"), "unknown-key"),
    "key in the wrong section": (good(description="‸filter: a > 1"), "unknown-key"),
    "option of another notion": (good(split="  ‸confidence: 0.95"), "unknown-key"),
    "order of another notion": (good(split="  ‸order: 2"), "unknown-key"),
    "option of another mechanism": (
        good(mechanism="mechanism: {kind: randomised-response, ‸time_limit: 3}"),
        "unknown-key",
    ),
    "equal keys": (good(kind="  ‸minimum: 20"), "duplicate-key"),
    "equal keys, one quoted": (good(kind='  ‸"minimum": 20'), "duplicate-key"),
    "version missing": (GOOD.replace("version: 1\n", "‸", 1), "missing-key"),
    "section missing": ("‸" + GOOD[: GOOD.index("release:")], "missing-key"),
    "key of a section missing": (good(private="").replace("release:", "‸release:"), "missing-key"),
    "name of an attribute missing": (
        good(name="name: x").replace("  - name: age\n    bins", "  - ‸bins"),
        "missing-key",
    ),
    "notion missing": (good(notion="").replace("privacy:", "‸privacy:"), "missing-key"),
    "epsilon missing": (good(epsilon="").replace("privacy:", "‸privacy:"), "missing-key"),
    "kind of a mechanism missing": (good(mechanism="‸mechanism: {time_limit: 3}"), "missing-key"),
    # types and values
    "text where a section belongs": (good(mechanism="mechanism: ‸3"), "wrong-type"),
    "list where a section belongs": (good(estimate="estimate: ‸[1]", minimum="", kind=""), "wrong-type"),
    "number where the source belongs": (
        f"{GOOD[: GOOD.index('source:')]}source: ‸1\n{GOOD[GOOD.index('estimate:') :]}",
        "wrong-type",
    ),
    "number where a text belongs": (good(name="name: ‸2026"), "wrong-type"),
    "number where a column belongs": (good(sensitive="sensitive: [‸2026]"), "wrong-type"),
    "block spelt as a mapping": (
        GOOD.replace("[occupation, hours]", "{name: x, ‸attributes: [a, b]}"),
        "unknown-key",
    ),
    "number among the public columns": (GOOD.replace("- education", "- ‸2026"), "wrong-type"),
    "number inside a block": (GOOD.replace("[occupation,", "[‸3,"), "wrong-type"),
    "text where a number belongs": (good(minimum='  minimum: ‸"10"'), "wrong-type"),
    "fraction of a record": (good(minimum="  minimum: ‸10.5"), "wrong-type"),
    "boolean where a number belongs": (good(top="    top: ‸true"), "wrong-type"),
    "nothing where a text belongs": (good(filter="  filter:‸"), "wrong-type"),
    "nothing spelt out": (good(entity="  entity: ‸null"), "wrong-type"),
    "text where a list belongs": (
        GOOD[: GOOD.index("public:")] + "public: ‸education\n" + GOOD[GOOD.index("privacy:") :],
        "wrong-type",
    ),
    "version 0": (good(version="version: ‸0"), "wrong-value"),
    "version true": (good(version="version: ‸true"), "wrong-value"),
    "version 1.0": (good(version="version: ‸1.0"), "wrong-value"),
    "version as text": (good(version='version: ‸"1"'), "wrong-value"),
    "name with a slash": (good(name="name: ‸a/b"), "wrong-value"),
    "name of dots": (good(name="name: ‸.."), "wrong-value"),
    "name without end": (good(name=f"name: ‸{'n' * 65}"), "wrong-value"),
    "blank column": (good(sensitive='sensitive: ["‸ "]').replace('"‸', '‸"'), "wrong-value"),
    "no sensitive column": (good(sensitive="sensitive: ‸[]"), "wrong-value"),
    "empty block": (GOOD.replace("[occupation, hours]", "‸[]"), "wrong-value"),
    "minimum of nothing": (good(minimum="  minimum: ‸0"), "wrong-value"),
    "top of nothing": (good(top="    top: ‸0"), "wrong-value"),
    "bins and top": (good(top="    bins: [1, 2]\n    top: ‸10"), "wrong-value"),
    "bins and groups": (good(top="    bins: [1, 2]\n    groups: ‸{a: [b]}"), "wrong-value"),
    "bins of dates and numbers": (good(bins="    bins: [0, ‸2026-01-31]"), "bins"),
    "bins of a day that is not": (good(bins="    bins: [2026-01-31, ‸2026-02-31]"), "bins"),
    "bins of falling dates": (good(bins="    bins: [2026-01-31, ‸2026-01-01]"), "bins"),
    "rounding to a decade": (good(top="    round: ‸decade"), "wrong-type"),
    "clip of dates": (good(top="    round: month\n    clip: ‸[0, 1]"), "wrong-value"),
    "groups of nothing": (good(top="    groups: ‸{}"), "wrong-value"),
    "groups by a number": (good(top="    groups: ‸3"), "wrong-value"),
    "group of nothing": (good(top="    groups: {North: ‸[]}"), "wrong-value"),
    "group of a number with a point": (good(top="    groups: {North: [Oslo, ‸1.5]}"), "wrong-value"),
    "groups that overlap": (good(top="    groups: {North: [Oslo], South: [Rome, ‸Oslo]}"), "wrong-value"),
    "groups in a chain": (good(top="    groups: {B: ‸[A], C: [B]}"), "wrong-value"),
    "levels that miss each other": (
        good(top="    groups: [{North: [Oslo]}, {Europe: ‸[Oslo]}]"), "wrong-value"),
    "groups in no file": (good(top="    groups: ‸none.csv"), "policy-unreadable"),
    "groups in no file of several": (good(top="    groups: [{North: [Oslo]}, ‸none.csv]"), "policy-unreadable"),
    "rare by a word": (good(top="    rare: ‸drop"), "wrong-value"),
    "rare beside top": (good(top="    top: 3\n    rare: ‸other"), "wrong-value"),
    "bins of bins": (good(bins="    bins: [0, 1]\n    rare: ‸bin"), "wrong-value"),
    "rare months": (good(top="    round: month\n    rare: ‸bin"), "wrong-value"),
    "trim of a number": (good(bins="    bins: [0, 1]\n    trim: ‸true"), "wrong-value"),
    "trim by a word": (good(top="    trim: ‸blanks"), "wrong-type"),
    "clip with one end": (good(top="    round: 1\n    clip: ‸[0]"), "wrong-value"),
    "clip with three ends": (good(top="    round: 1\n    clip: ‸[0, 1, 2]"), "wrong-value"),
    "clip without rounding": (good(top="    clip: ‸[0, 1]"), "wrong-value"),
    "clip by a word": (good(top="    round: 1\n    clip: [0, ‸high]"), "wrong-type"),
    "rounding finer than any number": (good(top="    round: ‸1.0e-20"), "wrong-value"),
    "rounding with digits of a sum": (good(top="    round: ‸0.30000000000000004"), "wrong-value"),
    "rounding coarser than any number": (good(top="    round: ‸1.0e+300"), "wrong-value"),
    "radius beside a confidence": (
        good(notion="  notion: rldp", split="  confidence: 0.9\n  radius: ‸0.1"),
        "wrong-value",
    ),
    "radius of next to nothing": (
        good(notion="  notion: rldp", split="  radius: ‸1.0e-14"),
        "wrong-value",
    ),
    "order of next to nothing": (good(notion="  notion: rldp", split="  order: ‸0.001"), "wrong-value"),
    "unknown way with missing values": (good(missing="  missing: ‸ignore"), "wrong-value"),
    "unknown notion": (good(notion="  notion: ‸lpi"), "wrong-value"),
    "unknown mechanism": (good(mechanism="mechanism: ‸randomized-response"), "wrong-value"),
    "unknown mechanism with options": (
        good(mechanism="mechanism: {kind: ‸best, time_limit: 1}"),
        "wrong-value",
    ),
    "time without end": (good(mechanism="mechanism: {kind: optimal, time_limit: ‸.inf}"), "wrong-value"),
    "unknown format": (good(format="  format: ‸xlsx"), "wrong-value"),
    "leading zeros": (good(minimum="  minimum: ‸010"), "wrong-value"),
    # epsilon
    "epsilon 0": (good(epsilon="  epsilon: ‸0"), "epsilon"),
    "epsilon negative": (good(epsilon="  epsilon: ‸-1e-3"), "epsilon"),
    "epsilon infinite": (good(epsilon="  epsilon: ‸.inf"), "epsilon"),
    "epsilon overflowing": (good(epsilon="  epsilon: ‸1e400"), "epsilon"),
    "epsilon vanishing": (good(epsilon="  epsilon: ‸1e-400"), "epsilon"),
    "epsilon of 400 digits": (good(epsilon=f"  epsilon: ‸1{'0' * 400}"), "epsilon"),
    "epsilon not a number": (good(epsilon="  epsilon: ‸.nan"), "epsilon"),
    "epsilon a word": (good(epsilon="  epsilon: ‸one"), "epsilon"),
    "epsilon in quotes": (good(epsilon="  epsilon: ‸'1'"), "epsilon"),
    "epsilon a list": (good(epsilon="  epsilon: ‸[1]"), "epsilon"),
    "epsilon true": (good(epsilon="  epsilon: ‸true"), "epsilon"),
    "perfect with an epsilon": (good(notion="  notion: perfect", epsilon="  epsilon: ‸0.1"), "epsilon"),
    "perfect with not a number": (good(notion="  notion: perfect", epsilon="  epsilon: ‸.nan"), "epsilon"),
    # bins
    "bins falling": (good(bins="    bins: [0, 25, ‸20]"), "bins"),
    "bins equal": (good(bins="    bins: [0, ‸0.0, 1]"), "bins"),
    "bins absent": (good(bins="    bins: ‸[]"), "bins"),
    "bins of text": (good(bins="    bins: [0, ‸x]"), "bins"),
    "bins without end": (good(bins="    bins: [0, ‸.inf]"), "bins"),
    "bins that are no list": (good(bins="    bins: ‸25"), "bins"),
    # split
    "split short": (
        good(split="  ‸split: {education: 0.4, age: 0.2, country: 0.2, occupation+hours: 0.1}"),
        "split",
    ),
    "split without a block": (good(split="  ‸split: {education: 0.4, age: 0.3, country: 0.3}"), "split"),
    "split of a stranger": (
        good(split="  split: {education: 0.4, age: 0.2, country: 0.2, ‸occupation: 0.2}"),
        "split",
    ),
    "split naming a block twice": (
        good(
            split="  split: {education: .2, age: .2, country: .2, occupation+hours: .2, "
            "‸'occupation,hours': .2}"
        ),
        "split",
    ),
    "split with nothing for a block": (
        good(split="  split: {education: 0.5, age: 0.5, country: ‸0, occupation+hours: 0.5}"),
        "split",
    ),
    "split with a word": (
        good(split="  split: {education: ‸half, age: 0.5, country: 0.5, occupation+hours: 0.5}"),
        "split",
    ),
    "split misspelt": (good(split="  split: ‸equally"), "split"),
    "split a number": (good(split="  split: ‸4"), "split"),
    "split empty": (good(split="  ‸split: {}"), "split"),
    # columns
    "sensitive twice": (good(sensitive="sensitive: [a, b, ‸a]"), "duplicate-column"),
    "public twice": (GOOD.replace("[occupation, hours]", "[occupation, ‸education]"), "duplicate-column"),
    "public twice but for case": (
        GOOD.replace("[occupation, hours]", "[‸Education, hours]"),
        "duplicate-column",
    ),
    "public twice as a mapping": (GOOD.replace("name: country", "name: ‸age"), "duplicate-column"),
    "sensitive and public twice": (
        good(notion="  notion: ldp").replace(
            "[occupation, hours]", "marital_status\n  - [hours, ‸marital_status]"
        ),
        "duplicate-column",
    ),
    "sensitive and public": (GOOD.replace("- education", "- ‸marital_status"), "sensitive-public"),
    "sensitive and public but for case": (GOOD.replace("hours]", "‸Marital_Status]"), "sensitive-public"),
    "sensitive and public, perfect": (
        good(notion="  notion: perfect", epsilon="").replace("hours]", "‸marital_status]"),
        "sensitive-public",
    ),
    "entity public": (GOOD.replace("- education", "- ‸person_id"), "entity"),
    "entity sensitive": (good(sensitive="sensitive: ‸PERSON_ID"), "entity"),
    # draws
    "permanent without a key": (good(key="").replace("draws:", "‸draws:"), "missing-key"),
    "permanent by default without a key": (
        GOOD[: GOOD.index("draws:")].replace("entity:", "‸entity:") + GOOD[GOOD.index("release:") :],
        "missing-key",
    ),
    "permanent without an entity": (good(entity="").replace("kind: perm", "kind: ‸perm"), "missing-key"),
    "key that fresh draws would not use": (
        good(entity="").replace("  kind: permanent\n", "").replace("env:F", "‸env:F"),
        "wrong-value",
    ),
    "key in the policy": (good(key="  key: ‸c2VjcmV0"), "wrong-value"),
    "key without a name": (good(key="  key: ‸'env:'"), "wrong-value"),
    # folders
    "private inside to": (good(private="  private: ‸out/public/x"), "release-path"),
    "private is to": (good(private="  private: ‸./out/x/../public"), "release-path"),
    "private around a detour": (
        good(to="  to: ../here", private="  private: ‸../there/../here/private"),
        "release-path",
    ),
    "key file published": (good(key="  key: ‸file:out/public/k.key"), "release-path"),
    "source published": (good(table="  table: ‸out/public/*.parquet"), "release-path"),
    # private estimates
    "an epsilon for the table's own counts": (GOOD.replace("  kind: counts", "  ‸epsilon: 1"), "wrong-value"),
    "a private estimate without an epsilon": (
        private().replace("  epsilon: 0.5\n", "").replace("estimate:", "‸estimate:"),
        "missing-key",
    ),
    "an estimate that costs nothing": (private().replace("epsilon: 0.5", "epsilon: ‸0"), "wrong-value"),
    "an estimate in words": (private().replace("epsilon: 0.5", "epsilon: ‸half"), "wrong-type"),
    "a budget for less than one estimate": (private("  budget: ‸0.4\n"), "wrong-value"),
    "values of an unknown column": (private("", "    ‸sez: [a]\n"), "unknown-column"),
    "values of bins": (private("", "    ‸age: [a]\n"), "wrong-value"),
    "a value twice": (private("", "    ‸hours: [1, '1']\n", leave="hours"), "wrong-value"),
    "a value that is a fraction": (private("", "    hours: [1, ‸1.5]\n", leave="hours"), "wrong-type"),
    "no values": (private("", "    hours: ‸[]\n", leave="hours"), "wrong-value"),
    "values not declared": (private(leave="hours").replace(", hours]", ", ‸hours]"), "missing-key"),
    "rare values of a private estimate": (
        private().replace("  - country", "  - name: ‸country\n    rare: other"),
        "wrong-value",
    ),
    "top values of a private estimate": (
        private().replace("  - country", "  - name: ‸country\n    top: 10"),
        "wrong-value",
    ),
    "values and a radius": (
        private().replace("  notion: lip\n", "  notion: rldp\n  ‸radius: 0.1\n"),
        "wrong-value",
    ),
    # not offered in this version
    "values and another order": (
        private().replace("  notion: lip\n", "  notion: rldp\n  order: ‸1\n"),
        "unsupported",
    ),
    "budget of nothing": (GOOD + "budget: ‸0\n", "wrong-value"),
    "budget below nothing": (GOOD + "budget: ‸-2.5\n", "wrong-value"),
    "budget without end": (GOOD + "budget: ‸.inf\n", "wrong-value"),
    "budget in words": (GOOD + "budget: ‸two\n", "wrong-type"),
    "a distance that is none": (good(mechanism="mechanism: {kind: invariant, distance: ‸far}"), "wrong-value"),
    "a distance of no column": (
        good(mechanism="mechanism: {kind: invariant, distance: {‸nobody: order}}"),
        "unknown-key",
    ),
    "a mechanism that does not serve": (good(mechanism="mechanism: ‸polyopt"), "mechanism-notion"),
    "a confidence that is none": (
        good(notion="  notion: rldp", split="  confidence: ‸1.5"),
        "wrong-value",
    ),
    "an order that is none": (good(notion="  notion: rldp", split="  order: ‸0"), "wrong-value"),
    "another notion's parameter": (good(split="  ‸confidence: 0.95"), "unknown-key"),
    "a way that is none": (good(notion="  notion: srlip", split="  solve: ‸apart"), "wrong-value"),
    "PostgreSQL": (good(table="  table: ‸postgresql://db/x#public.people"), "unsupported"),
    "object store": (good(table="  table: ‸s3://bucket/x.parquet"), "unsupported"),
    "DuckDB file": (good(table="  table: ‸people.duckdb"), "wrong-value"),
    "two delimiters": (good(table="  table: a.csv\n  csv: {delimiter: ‸';;'}"), "wrong-value"),
    "a decimal point": (good(table="  table: a.csv\n  csv: {decimal: ‸point}"), "wrong-value"),
    "a csv in words": (good(table="  table: a.csv\n  csv: ‸sniff"), "wrong-type"),
    "unknown key of csv": (good(table="  table: a.csv\n  csv: {‸delimeter: ';'}"), "unknown-key"),
    "no names": (good(table="  table: a.csv\n  csv: {names: ‸[]}"), "wrong-value"),
    "newer language": (good(version="version: ‸2"), "unsupported"),
    # wide blocks
    "one cell": (wide("cells: ‸1"), "wrong-value"),
    "a million cells": (wide("cells: ‸1000000"), "wrong-value"),
    "cells in words": (wide("cells: ‸many"), "wrong-type"),
    "unknown key of cells": (wide("cells: {‸moat: 20}"), "unknown-key"),
    "unknown key of a wide block": (wide("‸cels: 20"), "unknown-key"),
    "cells of no wide block": (GOOD.replace("[occupation, hours]", "{name: x, ‸cells: 20}"), "unknown-key"),
    "text for the columns of a wide block": (wide("cells: 20", "‸hours"), "wrong-type"),
    "number inside a wide block": (wide("cells: 20", "[hours, ‸3]"), "wrong-type"),
    "bins falling inside a wide block": (wide("cells: 20", "[a, {name: b, bins: [2, ‸1]}]"), "bins"),
    "a wide block of one column": (wide("cells: 20", "‸[hours]"), "wrong-value"),
    "a wide block without a name": (
        wide("cells: 20").replace("name: person, ", "").replace("{col", "‸{col"),
        "missing-key",
    ),
    "wide beside: the name of a column": (
        wide("cells: 20").replace("{name: person", "{name: ‸Country"),
        "duplicate-column",
    ),
    "wide beside: a column twice": (wide("cells: 20", "[hours, ‸age]"), "duplicate-column"),
    "wide beside: the secret": (wide("cells: 20", "[hours, ‸marital_status]"), "sensitive-public"),
    "wide beside: the secret where it may be released": (
        wide("cells: 20", "[hours, ‸marital_status]").replace("notion: lip", "notion: rldp"),
        "sensitive-public",
    ),
    "wide beside: cells smaller than values": (wide("cells: ‸{most: 20, minimum: 5}"), "wrong-value"),
    "wide beside: a private estimate": (
        private(leave="occupation")
        .replace("[occupation, hours]", "{name: person, columns: ‸[hours, education]}")
        .replace("  - education\n", ""),
        "unsupported",
    ),
    "wide beside: sets": (
        wide("cells: 20").replace("mechanism: optimal", "mechanism: ‸unary-encoding"),
        "mechanism-notion",
    ),
    "wide beside: numbers": (
        wide("cells: 20")
        .replace("mechanism: optimal", "mechanism: ‸gaussian-funnel")
        .replace("notion: lip", "notion: mutual-information"),
        "mechanism-notion",
    ),
}
