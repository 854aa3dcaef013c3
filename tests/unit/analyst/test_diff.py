"""What changed for privacy: a table of cases, and what must hold of every comparison."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import funnel
from funnel.analyst.diff import Difference, Side, compare
from funnel.analyst.diff.sides import of_policy
from funnel.data.channel import Channel
from funnel.errors import FunnelError
from funnel.mechanisms import MECHANISMS
from funnel.notions import NOTIONS
from funnel.policy import loads
from funnel.policy.columns import Attribute
from funnel.policy.model import Draws, EstimateSection, Policy, SourceSection
from funnel.policy.release import ReleaseSection
from tests.support.strategies import joints, protocols

BASE = {
    "version": 1,
    "name": "people",
    "source": {"table": "t.csv", "entity": "id", "filter": "age > 17"},
    "estimate": {"minimum": 20},
    "sensitive": ["s"],
    "public": ["x", {"name": "age", "bins": [0, 20, 40]}, {"name": "town", "top": 10}],
    "privacy": {"notion": "ldp", "epsilon": 1.0},
    "mechanism": "randomised-response",
    "draws": {"key": "env:KEY"},
    "budget": 2.0,
    "release": {"to": "r", "private": "p"},
}
OPPOSITE = {
    "weaker": "stronger",
    "stronger": "weaker",
    "incomparable": "incomparable",
    "unchanged": "unchanged",
}


def side(**changes) -> Side:
    """A policy with some sections merged (mappings) or replaced (anything else); None removes one."""
    policy = {key: dict(value) if isinstance(value, dict) else value for key, value in BASE.items()}
    for key, value in changes.items():
        if value is None:
            del policy[key]
        elif isinstance(value, dict) and isinstance(policy.get(key, {}), dict):
            merged = policy.get(key, {}) | value
            policy[key] = {name: one for name, one in merged.items() if one is not None}
        else:
            policy[key] = value
    return of_policy(loads(yaml.safe_dump(policy)), "policy.yaml")


def privacy(notion: str, epsilon: float | None = None, **more) -> dict:
    """A privacy section in full, and no budget."""
    return {"privacy": {"notion": notion, "epsilon": epsilon, **more}, "budget": None,
            "mechanism": MECHANISM.get(notion, "optimal"),
            "public": ["x"] if notion != "rldp" else ["s", "x"]}  # fmt: skip


MECHANISM = {"rldp": "polyopt", "mutual-information": "randomised-response"}


PRIVATE = {
    "public": ["x"],
    "estimate": {
        "kind": "private",
        "epsilon": 1.0,
        "budget": 9.0,
        "values": {"s": ["a", "b"], "x": ["c", "d"]},
    },
}


def public(*items) -> dict:
    return {"public": list(items)}


def known(*items, **knows) -> dict:
    """Columns under srlip."""
    return privacy("srlip", 1.0, **knows) | public(*items)


def wide(name: str, most: int) -> dict:
    return {"name": name, "columns": ["x", "y"], "cells": most}


def within(changes: dict) -> dict:
    """A wide block whose column x has these terms."""
    return {"name": "w", "columns": [{"name": "x"} | changes, "y"], "cells": 10}


DROP = {"source": {"missing": "drop"}}
NORTH = {"name": "x", "groups": {"North": ["Oslo", "Bergen"]}}
CASES = {
    "larger epsilon": ({}, {"privacy": {"epsilon": 2.0}}, "weaker", {"privacy.epsilon"}),
    "column removed": ({}, public("x", {"name": "town", "top": 10}), "stronger", {"public.age"}),
    "column added": ({}, public(*BASE["public"], "new"), "weaker", {"public.new"}),
    "finer bins": ({}, public("x", {"name": "age", "bins": [0, 20, 30, 40]}, BASE["public"][2]), "weaker",
                   {"public.age"}),
    "other bins": ({}, public("x", {"name": "age", "bins": [0, 30, 40]}, BASE["public"][2]), "incomparable",
                   {"public.age"}),
    "bins instead of values": ({}, public({"name": "x", "bins": [0, 5]}, *BASE["public"][1:]), "stronger",
                               {"public.x"}),
    "bins instead of rounding": (public({"name": "x", "round": 5}), public({"name": "x", "bins": [0, 5]}),
                                 "incomparable", {"public.x"}),
    "more values": ({}, public(*BASE["public"][:2], {"name": "town", "top": 12}), "weaker", {"public.town"}),
    "all values": ({}, public(*BASE["public"][:2], "town"), "weaker", {"public.town"}),
    "thirds, which floats do not keep": (public({"name": "x", "round": 0.1}), public({"name": "x", "round": 0.3}),
                                         "incomparable", {"public.x"}),
    "thirds of whole steps": (public({"name": "x", "round": 5}), public({"name": "x", "round": 15}),
                              "incomparable", {"public.x"}),  # the float below 7.5 is 5 in fives, 15 in fifteens
    "thirds, of which others are rare": (public({"name": "x", "round": 5, "rare": "bin"}),
                                         public({"name": "x", "round": 15, "rare": "bin"}), "incomparable",
                                         {"public.x"}),
    "finer bins in the same cells": (public(within({"bins": [0, 20]})), public(within({"bins": [0, 10, 20]})),
                                     "incomparable", {"public.x"}),
    "halves of steps": (public({"name": "x", "round": 5}), public({"name": "x", "round": 10}), "incomparable",
                        {"public.x"}),
    "wider ends": (public({"name": "x", "round": 5, "clip": [0, 10]}), public({"name": "x", "round": 5}),
                   "weaker", {"public.x"}),
    "wider ends, coarser numbers": (public({"name": "x", "round": 5, "clip": [0, 10]}),
                                    public({"name": "x", "round": 10}), "incomparable", {"public.x"}),
    "steps that do not nest": (public({"name": "x", "round": 4}), public({"name": "x", "round": 6}),
                               "incomparable", {"public.x"}),
    "groups instead of values": (public("x"), public(NORTH), "stronger", {"public.x"}),
    "larger groups": (public(NORTH), public({"name": "x", "groups": {"North": ["Oslo", "Bergen", "Rome"]}}),
                      "stronger", {"public.x"}),
    "larger groups of another name": (public({"name": "x", "groups": {"Rome": ["Oslo"]}}),
                                      public({"name": "x", "groups": {"Europe": ["Oslo", "Bergen"]}}),
                                      "incomparable", {"public.x"}),
    "other groups": (public(NORTH), public({"name": "x", "groups": {"West": ["Bergen", "Rome"]}}), "incomparable",
                     {"public.x"}),
    "other names of groups": (public(NORTH), public({"name": "x", "groups": {"Norway": ["Oslo", "Bergen"]}}),
                              "incomparable", {"public.x"}),
    "another level": (public(NORTH), public({"name": "x", "groups": [NORTH["groups"], {"Europe": ["North", "Rome"]}]}),
                      "incomparable", {"public.x"}),
    "coarser dates": (public({"name": "x", "round": "month"}), public({"name": "x", "round": "year"}), "stronger",
                      {"public.x"}),
    "weeks for months": (public({"name": "x", "round": "month"}), public({"name": "x", "round": "week"}),
                         "incomparable", {"public.x"}),
    "dates for numbers": (public({"name": "x", "round": 5}), public({"name": "x", "round": "week"}), "incomparable",
                          {"public.x"}),
    "bins of more dates": (public({"name": "x", "bins": ["2020-01-01"]}),
                           public({"name": "x", "bins": ["2020-01-01", "2021-01-01"]}), "weaker", {"public.x"}),
    "rare values released": (public("x"), public({"name": "x", "rare": "other"}), "weaker", {"public.x"}),
    "rare values binned": (public({"name": "x", "rare": "bin"}), public({"name": "x", "rare": "other"}),
                           "incomparable", {"public.x"}),
    "blanks left out": (public("x"), public({"name": "x", "trim": True}), "stronger", {"public.x"}),
    # " Oslo" is other, and then Oslo: it is told apart from those with which it was one.
    "blanks left out of frequent values": (public({"name": "x", "top": 5}),
                                           public({"name": "x", "top": 5, "trim": True}), "incomparable", {"public.x"}),
    "rare values of cells no error any more": (public(within({"rare": "error"})), public(within({})), "weaker",
                                               {"public.x"}),
    "rare numbers of cells merged as they are": (public(within({"rare": "bin"})), public(within({})), "unchanged",
                                                 {"public.x"}),
    "rare texts of cells merged as they are": (public(within({})), public(within({"rare": "other"})), "unchanged",
                                              {"public.x"}),
    "blanks left out of rare values": (public({"name": "x", "rare": "other"}),
                                       public({"name": "x", "rare": "other", "trim": True}), "incomparable",
                                       {"public.x"}),
    "unseen told or dropped": (public({"name": "x", "unseen": "other"}), public({"name": "x", "unseen": "drop"}),
                               "incomparable", {"public.x.unseen"}),
    "a wide block under another name": (public(wide("w", 50)), public(wide("v", 500)), "incomparable",
                                        {"public.v.cells", "public.w.cells"}),
    "columns in place of cells": (public(wide("w", 50)), public("x", "y"), "incomparable",
                                  {"public", "public.w.cells"}),
    "larger cells": (public({"name": "w", "columns": ["x", "y"], "cells": {"most": 9, "minimum": 50}}),
                     public({"name": "w", "columns": ["x", "y"], "cells": {"most": 9, "minimum": 100}}),
                     "incomparable", {"public.w.cells.minimum"}),
    "a column that leaves its cells": (public({"name": "w", "columns": ["x", "y", "z"], "cells": 50}),
                                       public(wide("w", 50)), "incomparable", {"public.z", "public.w.cells"}),
    "coarser values in the same cells": (public(within({})), public(within({"round": 10})), "incomparable",
                                         {"public.x"}),
    "trimmed beside a group that names blanks": (public({"name": "x", "groups": {"N": [" Oslo", "Bergen"]}}),
                                                 public({"name": "x", "groups": {"N": [" Oslo", "Bergen"]},
                                                         "trim": True}), "incomparable", {"public.x"}),
    "fewer cells": (public(wide("w", 500)), public(wide("w", 50)), "incomparable", {"public.w.cells.most"}),
    "unseen dropped": (public("x"), public({"name": "x", "unseen": "drop"}), "weaker", {"public.x.unseen"}),
    "columns as one block": (public("x", "y"), public(["x", "y"]), "unchanged", {"public"}),
    "secret added": ({}, {"sensitive": ["s", "t"]}, "stronger", {"sensitive"}),
    "another secret": ({}, {"sensitive": ["t"]}, "incomparable", {"sensitive"}),
    "smaller groups": ({}, {"estimate": {"minimum": 5}}, "weaker", {"estimate.minimum"}),
    "missing as a category": (DROP, {"source": {"missing": "category"}}, "incomparable", {"source.missing"}),
    "missing as a category, not an error": ({}, {"source": {"missing": "category"}}, "weaker", {"source.missing"}),
    "missing as an error": (DROP, {}, "stronger", {"source.missing"}),
    "rare groups released": (public(NORTH), public(NORTH | {"rare": "other"}), "weaker", {"public.x"}),
    "blanks of groups left out": (public(NORTH), public(NORTH | {"trim": True}), "stronger", {"public.x"}),
    "another filter": ({}, {"source": {"filter": "age > 20"}}, "incomparable", {"source.filter"}),
    "several rows each": ({"draws": {"kind": "fresh", "key": None}},
                          {"draws": {"kind": "fresh", "key": None}, "source": {"entity": None}}, "weaker",
                          {"source.entity"}),
    "fresh draws": ({}, {"draws": {"kind": "fresh"}}, "weaker", {"draws.kind"}),
    "another key": ({}, {"draws": {"key": "env:OTHER"}}, "incomparable", {"draws.key"}),
    "no budget": ({}, {"budget": None}, "weaker", {"budget"}),
    "finer beliefs": (
        {"estimate": {"beliefs": 0.15}}, {"estimate": {"beliefs": 0.1}}, "incomparable", {"estimate.beliefs"}
    ),
    "beliefs as counted": ({"estimate": {"beliefs": 0.02}}, {}, "weaker", {"estimate.beliefs"}),
    "noisy counts": ({"public": ["x"]}, PRIVATE, "incomparable", {"estimate.kind"}),
    "less noise": (PRIVATE, PRIVATE | {"estimate": PRIVATE["estimate"] | {"epsilon": 2.0}}, "incomparable",
                   {"estimate.epsilon"}),
    "noisy counts for all distributions": (privacy("ldp-x", 1.0), PRIVATE | privacy("ldp-x", 1.0), "stronger",
                                           {"estimate.kind"}),
    "less noise for all distributions": (
        PRIVATE | privacy("ldp-x", 1.0),
        PRIVATE | privacy("ldp-x", 1.0) | {"estimate": PRIVATE["estimate"] | {"epsilon": 2.0}},
        "weaker", {"estimate.epsilon"}),
    "larger budget": ({}, {"budget": 3.0}, "weaker", {"budget"}),
    "an end accepted": ({"budget": None}, {"budget": None, "accept": "unbounded"}, "weaker", {"accept"}),
    "fewer ends accepted": ({"accept": ["a", "b"]}, {"accept": ["b"]}, "stronger", {"accept"}),
    "another mechanism": ({}, {"mechanism": "optimal"}, "unchanged", {"mechanism.kind"}),
    "signed": ({}, {"release": {"sign": "env:SIGN"}}, "stronger", {"release.sign"}),
    "another signing key": ({"release": {"sign": "env:SIGN"}}, {"release": {"sign": "file:k"}}, "incomparable",
                            {"release.sign"}),
    "formulas kept": ({"release": {"format": "csv"}}, {"release": {"format": "csv", "formulas": "keep"}}, "weaker",
                      {"release.formulas"}),
    "rows with a name": ({}, {"release": {"identify": "id"}}, "weaker", {"release.identify"}),
    "a longer name": ({"release": {"identify": "n"}}, {"release": {"identify": ["n", "id"]}}, "weaker",
                      {"release.identify"}),
    "another name": ({"release": {"identify": "n"}}, {"release": {"identify": "id"}}, "incomparable",
                     {"release.identify"}),
    "formulas in no CSV file": ({}, {"release": {"formulas": "keep"}}, "unchanged", set()),
    "another ledger": ({}, {"release": {"private": "q"}}, "incomparable", {"release.private"}),
    "another table": ({}, {"source": {"table": "u.csv"}}, "incomparable", {"source.table"}),
    "weaker here, stronger there": ({}, {"privacy": {"epsilon": 2.0}, "budget": 1.0}, "incomparable",
                                    {"privacy.epsilon", "budget"}),
    "lip for ldp": (privacy("ldp", 1.0), privacy("lip", 1.0), "weaker", {"privacy"}),
    "lip at half": (privacy("ldp", 1.0), privacy("lip", 0.5), "stronger", {"privacy"}),
    "lip at half, half as much in all": (privacy("ldp", 1.0) | {"budget": 2.0}, privacy("lip", 0.5) | {"budget": 1.0},
                                         "stronger", {"privacy", "budget"}),
    "lip at half, as much in all": (privacy("ldp", 1.0) | {"budget": 2.0}, privacy("lip", 0.5) | {"budget": 2.0},
                                    "incomparable", {"privacy", "budget"}),
    "no leakage, and some in all": (privacy("ldp", 0.1) | {"budget": 2.0}, privacy("perfect") | {"budget": 2.0},
                                    "incomparable", {"privacy", "budget"}),
    "beliefs that may fall": (privacy("ldp", 9.0) | {"budget": 9.0},
                              privacy("alip", 1.0, lower=2.0) | {"budget": 4.0}, "incomparable",
                              {"privacy", "budget"}),
    "lip at some less": (privacy("ldp", 1.0), privacy("lip", 0.7), "incomparable", {"privacy"}),
    "one known column less": (known("x", "y"), known("x"), "incomparable", {"public.y"}),
    "one of the columns known less": (known("x", "y", knows=2), known("x", knows=2), "incomparable", {"public.y"}),
    "a known column told more coarsely": (known("x", "y"), known("x", {"name": "y", "bins": [0, 9]}), "incomparable",
                                          {"public.y"}),
    "a column told more coarsely, known as it is": (known("x", "y", knows=1),
                                                    known("x", {"name": "y", "bins": [0, 9]}, knows=1), "stronger",
                                                    {"public.y"}),
    "known as it is told, told more coarsely": (known("x", {"name": "y", "bins": [0, 9, 20]}, knows=1),
                                                known("x", {"name": "y", "bins": [0, 20]}, knows=1), "incomparable",
                                                {"public.y"}),
    "known with its blanks": (known("x", "y", knows=1), known("x", {"name": "y", "trim": True}, knows=1),
                              "incomparable", {"public.y"}),
    "another column known": (known("x", {"name": "y", "bins": [0, 9, 20]}, knows=["x"]),
                             known("x", {"name": "y", "bins": [0, 20]}, knows=["x"]), "stronger", {"public.y"}),
    "levels of a value that no group has": (
        public(NORTH | {"groups": [NORTH["groups"], {"Europe": ["North", "Rome"]}]}),
        public(NORTH | {"groups": [NORTH["groups"], {"Europe": ["North"]}]}), "incomparable", {"public.x"}),
    "rare ones that were known": (known(NORTH | {"rare": "other"}) | {"estimate": {"minimum": 50}},
                                  known(NORTH | {"rare": "other"}), "incomparable", {"estimate.minimum"}),
    "rare ones of cells": (public(within({"rare": "other"})) | {"estimate": {"minimum": 50}},
                           public(within({"rare": "other"})), "incomparable", {"estimate.minimum"}),
    "blanks of a group's name left out": (public({"name": "x", "groups": {" North": ["Oslo"]}}),
                                          public({"name": "x", "groups": {" North": ["Oslo"]}, "trim": True}),
                                          "incomparable", {"public.x"}),
    "unknown values that were known": (known({"name": "x", "unseen": "other"}, knows=1),
                                       known({"name": "x", "unseen": "other"}), "incomparable", {"privacy.knows"}),
    "no rare ones": (known(NORTH) | {"estimate": {"minimum": 50}}, known(NORTH), "weaker", {"estimate.minimum"}),
    "all known as they are released": (known("x", {"name": "y", "bins": [0, 9]}, knows=1),
                                       known("x", {"name": "y", "bins": [0, 9]}), "incomparable", {"privacy.knows"}),
    "all known": (known("x", "y", knows=1), known("x", "y"), "stronger", {"privacy.knows"}),
    "what fewer share is known": (known("x", knows=1) | {"estimate": {"minimum": 50}}, known("x", knows=1),
                                  "incomparable", {"estimate.minimum"}),
    "srlip for lip": (privacy("lip", 1.0), privacy("srlip", 1.0), "stronger", {"privacy"}),
    "srlip for ldp": (privacy("ldp", 1.0), privacy("srlip", 1.0), "incomparable", {"privacy"}),
    "ldp-x for srlip": (privacy("srlip", 1.0), privacy("ldp-x", 1.0), "stronger", {"privacy"}),
    "perfect for ldp": (privacy("ldp", 0.1), privacy("perfect"), "stronger", {"privacy"}),
    "perfect for srlip": (privacy("srlip", 0.1), privacy("perfect"), "incomparable", {"privacy"}),
    "an average for lip": (privacy("lip", 0.1), privacy("mutual-information", 0.1), "weaker",
                           {"privacy", "mechanism.kind"}),
    "more confidence": (privacy("rldp", 1.0), privacy("rldp", 1.0, confidence=0.99), "stronger",
                        {"privacy.confidence"}),
    "confidence spelt out": (privacy("rldp", 1.0), privacy("rldp", 1.0, confidence=0.95), "unchanged",
                             {"privacy.confidence"}),
    "a smaller ball": (privacy("rldp", 1.0, radius=0.1), privacy("rldp", 1.0, radius=0.05), "weaker",
                       {"privacy.radius"}),
    "another order": (privacy("rldp", 1.0), privacy("rldp", 1.0, order=3.0), "incomparable", {"privacy.order"}),
    "a radius for a confidence": (privacy("rldp", 1.0), privacy("rldp", 1.0, radius=0.1), "incomparable",
                                  {"privacy.radius"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_change_means(case):
    old, new, verdict, found = CASES[case]
    difference = compare(side(**old), side(**new))
    assert sorted(one.term for one in difference.findings) == sorted(found), difference.text()
    assert difference.verdict == verdict, difference.text()
    assert difference.fails() == (verdict in ("weaker", "incomparable"))


ENDS = [None, [0, 20], [3, 17]]


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), list(product(ENDS, ENDS)))
def test_numbers_are_coarser_where_what_is_told_of_them_follows_from_what_was(first, second):
    def told(step: int, ends: list[int] | None) -> list[int]:
        low, high = ends or (-99, 99)
        return [(2 * min(max(at, 2 * low), 2 * high) + 2 * step) // (4 * step) for at in range(-120, 120)]  # halves

    for one, other in product(range(1, 13), repeat=2):
        old, new = ({"name": "x", "round": step} | ({"clip": ends} if ends else {})
                    for step, ends in ((one, first), (other, second)))  # fmt: skip
        before, after = told(one, first), told(other, second)
        follows = len(set(zip(before, after, strict=True))) == len(set(before))
        verdict = compare(side(**public(old)), side(**public(new))).verdict
        assert follows or verdict not in ("stronger", "unchanged"), (old, new, verdict)


@pytest.mark.parametrize("case", CASES)
def test_the_way_back_is_the_opposite(case):
    old, new, _, _ = CASES[case]
    there, back = compare(side(**old), side(**new)), compare(side(**new), side(**old))
    assert back.verdict == OPPOSITE[there.verdict]
    assert {(one.term, one.verdict) for one in back.findings} == {
        (one.term, OPPOSITE[one.verdict]) for one in there.findings
    }


@pytest.mark.parametrize(
    ("fine", "coarse"), [({"bins": [0, 10, 20, 30], "rare": "other"}, {"bins": [0, 20, 30], "rare": "other"}),
                         ({"round": "month", "rare": "other"}, {"round": "year", "rare": "other"}),
                         ({"bins": [0, 10, 20, 30], "rare": "other"}, {"bins": [0, 20, 30]})]
)  # fmt: skip
def test_coarser_values_may_tell_rare_ones_apart_that_were_one(fine, coarse):
    """Of 3, 9 and 3 people by tens the first and the last are `other`; in twenties the first are enough."""
    old, new = (side(**public({"name": "x"} | one)) for one in (fine, coarse))
    assert compare(old, new).verdict == "incomparable"
    assert compare(new, old).verdict == "weaker"


@pytest.mark.parametrize(
    "changes", [{"sensitive": ["s", "t"]}, public(*BASE["public"][1:]),
                public({"name": "x", "trim": True}, *BASE["public"][1:])]
)  # fmt: skip
def test_where_who_lacks_a_value_is_left_out_less_is_told_of_others_and_not_of_them(changes):
    """That somebody is absent shows as it is: a text of blanks is missing, and so may be a value of the new secret."""
    for missing, verdict in (("error", "stronger"), ("category", "stronger"), ("drop", "incomparable")):
        kept = {"source": {"missing": missing}}
        assert compare(side(**kept), side(**kept, **changes)).verdict == verdict
        assert compare(side(**kept, **changes), side(**kept)).verdict == "weaker"


@pytest.mark.parametrize("column", [[], [{"name": "age", "bins": [0, 40]}]])
def test_where_who_has_an_unknown_value_is_left_out_others_are_told_of_by_coarser_values(column):
    """Of a new town under a lock the records were absent, and answer where the column is not released any more."""
    for unseen, verdict in (("error", "stronger"), ("drop", "incomparable")):
        old = public("x", {"name": "age", "bins": [0, 20, 40], "unseen": unseen})
        new = public("x", *(one | {"unseen": unseen} for one in column))
        assert compare(side(**old), side(**new)).verdict == verdict


@pytest.mark.parametrize("coarser", [{"trim": True}, {"groups": NORTH["groups"]}])
def test_values_that_a_lock_does_not_know_are_one_until_they_are_told_as_others_are(coarser):
    """Of a lock that knows Bergen alone, Oslo with a blank is `other`, as Rome is; then it is Oslo, or in the north."""
    for unseen, verdict in (("error", "stronger"), ("other", "incomparable")):
        old, new = (side(**public({"name": "x", "unseen": unseen} | one)) for one in ({}, coarser))
        assert compare(old, new).verdict == verdict
        assert compare(new, old).verdict == "weaker"


def test_a_release_that_left_unknown_values_out_says_so_of_a_column_that_goes(tmp_path, key, monkeypatch):
    monkeypatch.setenv("FUNNEL_KEY", key)
    rows = [f"{i},{i % 2},{i % 5 % 3},{i % 7 % 2}\n" for i in range(140)]
    (tmp_path / "t.csv").write_text("id,s,x,z\n" + "".join(rows))
    told = {"version": 1, "name": "n", "source": {"table": "t.csv", "entity": "id"}, "sensitive": ["s"],
            "public": ["x", {"name": "z", "unseen": "drop"}], "privacy": {"notion": "ldp", "epsilon": 1.0},
            "draws": {"key": "env:FUNNEL_KEY"}, "mechanism": "randomised-response",
            "release": {"to": "r", "private": "p"}}  # fmt: skip
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(told))
    funnel.make_lock(tmp_path / "p.yaml")
    funnel.run(tmp_path / "p.yaml", locked=True)
    for private in ("p", "elsewhere"):  # with its policy, and by what it tells alone
        less = told | {"public": ["x"], "release": {"to": "r", "private": private}}
        (tmp_path / "p.yaml").write_text(yaml.safe_dump(less))
        found = {one.term: one.verdict for one in funnel.diff(tmp_path / "r", tmp_path / "p.yaml").findings}
        assert found["public.z"] == "incomparable"


def test_fewer_values_have_fewer_distributions_around_them():
    """Of two columns the set around the counts is the larger one, which it is of a radius whatever the columns are."""
    for size, verdict in (({}, "incomparable"), ({"radius": 0.1}, "stronger")):
        asked = privacy("rldp", 1.0, **size)
        old, fewer, coarser = (side(**asked | public("s", *columns)) for columns in
                               (("x", "y"), ("x",), ({"name": "x", "bins": [0, 9]}, "y")))  # fmt: skip
        assert compare(old, fewer).verdict == compare(old, coarser).verdict == verdict
        assert compare(fewer, old).verdict == "weaker"


def test_where_rare_numbers_are_joined_fewer_of_them_may_part_what_was_one(tmp_path):
    """9 and 11 are both 10 while there are 40 tens; on the next night the one is nearest to 0, the other to 20."""
    policy, found = tmp_path / "p.yaml", []
    told = {"version": 1, "name": "n", "source": {"table": "t.csv"}, "estimate": {"minimum": 10}, "sensitive": ["s"],
            "public": [{"name": "x", "rare": "bin"}], "privacy": {"notion": "lip", "epsilon": 1.0},
            "mechanism": "randomised-response", "release": {"to": "r", "private": "p"}}  # fmt: skip
    policy.write_text(yaml.safe_dump(told))
    for tens in (40, 2):
        numbers = [0] * 40 + [9] * 3 + [10] * tens + [11] * 3 + [20] * 40
        (tmp_path / "t.csv").write_text("s,x\n" + "".join(f"{i % 2},{x}\n" for i, x in enumerate(numbers)))
        found.append(funnel.make_lock(policy, force=True).path.read_text())
    for name, text in zip(("old", "new"), found, strict=True):
        (tmp_path / f"{name}.lock.yaml").write_text(text)
    one, other = tmp_path / "old.lock.yaml", tmp_path / "new.lock.yaml"
    verdicts = [{one.term: one.verdict for one in funnel.diff(*pair).findings} for pair in ((one, other), (other, one))]
    assert [told["values.x"] for told in verdicts] == ["incomparable", "weaker"]


def test_who_has_a_value_that_a_lock_does_not_know_any_more_is_absent_and_that_shows(tmp_path):
    policy, found = tmp_path / "p.yaml", []
    told = {"version": 1, "name": "n", "source": {"table": "t.csv"}, "sensitive": ["s"],
            "public": [{"name": "x", "unseen": "drop"}], "privacy": {"notion": "lip", "epsilon": 1.0},
            "mechanism": "randomised-response", "release": {"to": "r", "private": "p"}}  # fmt: skip
    policy.write_text(yaml.safe_dump(told))
    for values in ("abc", "ab"):
        rows = [f"{i % 2},{values[i // 2 % len(values)]}\n" for i in range(120)]
        (tmp_path / "t.csv").write_text("s,x\n" + "".join(rows))
        found.append(tmp_path / f"{values}.lock.yaml")
        found[-1].write_text(funnel.make_lock(policy, force=True).path.read_text())
    assert {one.term: one.verdict for one in funnel.diff(*found).findings}["values.x"] == "incomparable"
    assert {one.term: one.verdict for one in funnel.diff(*found[::-1]).findings}["values.x"] == "weaker"


def test_another_name_of_a_wide_block_makes_other_cells():
    told = compare(side(**public(wide("w", 50))), side(**public(wide("v", 50)))).text()
    assert "columns are told by other cells: neither is the finer" in told


def test_rare_numbers_of_a_larger_minimum_may_be_told_apart_that_were_one():
    """Of 3 people each of six ages pairs are joined for a minimum of 5, and threes for one of 8."""
    for column, expected in (({"name": "x", "rare": "bin"}, "incomparable"), (within({}), "incomparable"),
                             ({"name": "x", "rare": "other"}, "stronger"), ("x", "stronger")):  # fmt: skip
        least, more = (side(**public(column), estimate={"minimum": number}) for number in (20, 30))
        assert compare(least, more).verdict == expected
        bare = [replace(one, policy_sha256="0") for one in (least, more)]  # of which the rest of a policy is not known
        assert "incomparable" in {one.verdict for one in compare(*bare).findings}


@pytest.mark.parametrize("case", CASES)
def test_nothing_differs_from_itself(case):
    for one in CASES[case][:2]:
        assert compare(side(**one), side(**one)) == Difference("policy.yaml", "policy.yaml", ())


PLAIN = "of no consequence for what is promised to anyone"
IRRELEVANT = {
    "version": "there is one",
    "name": "composition, budget and consent to another key go by people and columns, whatever the policy is called",
    "description": PLAIN,
    "release.to": PLAIN,
    "release.format": PLAIN,
    "release.language": PLAIN,
    "release.partition": PLAIN,
    "release.rows": PLAIN,
    "release.also": PLAIN,
    "engine": "the same protocol, and the same draws or draws of the same law",
    "spark": PLAIN,
    "metadata": PLAIN,
}
"""Fields of a policy that a change is not told of, and why."""
NUMBERS = {"name": "x", "round": 5, "clip": [0, 10]}
CHANGES: dict[str, tuple[dict, dict]] = {
    "source.table": CASES["another table"][:2],
    "source.csv": ({}, {"source": {"csv": {"decimal": ","}}}),
    "source.filter": CASES["another filter"][:2],
    "source.entity": CASES["several rows each"][:2],
    "source.missing": CASES["missing as an error"][:2],
    "estimate.minimum": CASES["smaller groups"][:2],
    "estimate.kind": CASES["noisy counts"][:2],
    "estimate.beliefs": CASES["finer beliefs"][:2],
    "estimate.epsilon": CASES["less noise"][:2],
    "estimate.budget": (PRIVATE, PRIVATE | {"estimate": PRIVATE["estimate"] | {"budget": 8.0}}),
    "estimate.values": (
        PRIVATE,
        PRIVATE | {"estimate": PRIVATE["estimate"] | {"values": {"s": ["a"], "x": ["c"]}}},
    ),
    "sensitive": CASES["secret added"][:2],
    "public.name": (public("x"), public("y")),
    "public.bins": CASES["finer bins"][:2],
    "public.round": CASES["halves of steps"][:2],
    "public.clip": (public(NUMBERS), public(NUMBERS | {"clip": [0, 20]})),
    "public.top": CASES["more values"][:2],
    "public.groups": CASES["larger groups"][:2],
    "public.rare": CASES["rare values released"][:2],
    "public.trim": CASES["blanks left out"][:2],
    "public.unseen": CASES["unseen dropped"][:2],
    "privacy.notion": CASES["lip for ldp"][:2],
    "privacy.epsilon": CASES["larger epsilon"][:2],
    "privacy.split": (public("x", "y"), public("x", "y") | {"privacy": {"split": {"x": 0.4, "y": 0.6}}}),
    "privacy.solve": (privacy("srlip", 1.0), privacy("srlip", 1.0, solve="joint")),
    "privacy.confidence": CASES["more confidence"][:2],
    "privacy.order": CASES["another order"][:2],
    "privacy.radius": CASES["a smaller ball"][:2],
    "privacy.knows": (privacy("srlip", 1.0, knows=1), privacy("srlip", 1.0, knows=2)),
    "privacy.lower": (privacy("alip", 1.0), privacy("alip", 1.0, lower=2.0)),
    "mechanism.kind": CASES["another mechanism"][:2],
    "mechanism.time_limit": ({"mechanism": "optimal"}, {"mechanism": {"kind": "optimal", "time_limit": 9.0}}),
    "mechanism.gap": ({"mechanism": "optimal"}, {"mechanism": {"kind": "optimal", "gap": 0.1}}),
    "mechanism.totals": tuple({"mechanism": {"kind": "invariant", "totals": one}} for one in ("kept", "free")),
    "mechanism.distance": tuple({"mechanism": {"kind": "invariant", "distance": one}} for one in ("match", "order")),
    "mechanism.sets": (
        privacy("rldp", 1.0),
        privacy("rldp", 1.0) | {"mechanism": {"kind": "polyopt", "sets": "simplex"}},
    ),
    "mechanism.calibration": tuple(
        privacy("rldp", 1.0) | {"mechanism": {"kind": "independent-reporting", "calibration": one}}
        for one in ("measured", "paper")
    ),
    "mechanism.search": tuple(
        privacy("mutual-information", 0.1) | {"mechanism": {"kind": "greedy-funnel", "search": one}}
        for one in ("best", "paper")
    ),
    "mechanism.release": tuple(
        public("x") | {"mechanism": {"kind": "unary-encoding", "release": one}} for one in ("set", "bits")
    ),
    "draws.kind": CASES["fresh draws"][:2],
    "draws.key": CASES["another key"][:2],
    "budget": CASES["larger budget"][:2],
    "accept": CASES["an end accepted"][:2],
    "release.private": CASES["another ledger"][:2],
    "release.formulas": CASES["formulas kept"][:2],
    "release.sign": CASES["signed"][:2],
    "release.identify": CASES["rows with a name"][:2],
}
"""For every other field, two policies that differ in it."""


def fields() -> set[str]:
    """Every field of the policy models, by dotted name; those of all notions, mechanisms and public columns."""
    inner: dict[str, list[type[BaseModel]]] = {
        "source": [SourceSection], "estimate": [EstimateSection], "draws": [Draws],
        "release": [ReleaseSection], "public": [Attribute],
        "privacy": list(NOTIONS.values()), "mechanism": list(MECHANISMS.values()),
    }  # fmt: skip
    found = set(Policy.model_fields) - set(inner)
    return found | {
        f"{name}.{key}" for name, models in inner.items() for one in models for key in one.model_fields
    }


def test_every_field_of_a_policy_is_judged_or_known_to_be_irrelevant():
    """A field that is new has to be put into one of the two; what is irrelevant makes no finding."""
    assert fields() == set(CHANGES) | set(IRRELEVANT)
    assert not set(CHANGES) & set(IRRELEVANT)


@pytest.mark.parametrize("field", CHANGES)
def test_a_change_of_a_judged_field_is_told(field):
    section = field.split(".")[0]
    old, new = CHANGES[field]
    told = {one.term for one in compare(side(**old), side(**new)).findings}
    if section == "public":
        assert any(one.startswith("public.") for one in told)
    else:
        assert told & {field, section if field == "privacy.notion" else field}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("name", {"name": "other"}),
        ("description", {"description": "other"}),
        ("metadata", {"metadata": {"title": "other"}}),
        ("release.to", {"release": {"to": "other"}}),
        ("release.format", {"release": {"format": "csv"}}),
        ("release.language", {"release": {"language": "de"}}),
    ],
)
def test_a_change_of_an_irrelevant_field_is_not(field, change):
    assert field in IRRELEVANT
    assert compare(side(), side(**change)).findings == ()


SOME = {"epsilon": st.sampled_from([0.25, 0.5, 1.0, 2.0])}
BOUNDS = st.one_of(
    st.builds(privacy, st.sampled_from(["ldp", "lip", "srlip", "ldp-x", "pml", "alip", "mutual-information"]), **SOME),
    st.just(privacy("perfect")),
    st.builds(lambda epsilon, confidence: privacy("rldp", epsilon, confidence=confidence), **SOME,
              confidence=st.sampled_from([0.9, 0.95, 0.99])),
)  # fmt: skip


@given(BOUNDS, BOUNDS, BOUNDS)
def test_bounds_are_ordered(first, second, third):
    """Weaker than weaker is weaker, and the way back is the opposite."""

    def verdict(one, other) -> str:
        return compare(*(Side("policy", "", terms_of(bound)) for bound in (one, other))).verdict

    assert verdict(second, first) == OPPOSITE[verdict(first, second)]
    steps = {verdict(first, second), verdict(second, third)}
    if steps <= {"weaker", "unchanged"} and "weaker" in steps:
        assert verdict(first, third) == "weaker"


def terms_of(bound: dict) -> dict:
    """The terms of a bound over fixed columns."""
    told = {f"privacy.{key}": value for key, value in bound["privacy"].items() if value is not None}
    return {"sensitive": ["s"], "public": [[{"name": "x"}]], **told}


@given(st.data())
def test_a_stronger_bound_implies_the_other_on_any_channel(data):
    """What the order of the notions says is so: a channel that keeps a bound keeps every weaker one."""
    joint = data.draw(joints())
    pinned = data.draw(protocols(joint))
    if pinned.reads_secret:
        return
    channel = Channel(joint, [pinned])
    names = ["ldp", "lip", "srlip", "ldp-x", "pml", "alip", "mutual-information"]
    kept = {}
    for name in names:
        measured = NOTIONS[name](notion=name, epsilon=1.0).leakage(channel).nats
        if measured < 90:
            kept[name] = max(measured, 1e-9)
    for (strong, epsilon), weak in product(kept.items(), names):
        other = kept.get(weak, np.inf)
        at_most = min(other * (1 - 1e-6), 100.0) - 1e-6
        if at_most > 0:
            one = terms_of({"privacy": {"notion": strong, "epsilon": epsilon}})
            two = terms_of({"privacy": {"notion": weak, "epsilon": at_most}})
            found = compare(Side("policy", "", two), Side("policy", "", one)).verdict
            assert found not in ("stronger", "unchanged"), (
                f"{strong} {epsilon} does not imply {weak} {at_most}"
            )


def test_measured_figures_are_told_and_do_not_count():
    old = Side("lock", "a", side().terms, {"lip": 0.5, "ldp": 0.9})
    new = Side("lock", "b", side().terms, {"lip": 0.6, "ldp": None})
    only_lip = Side("lock", "b", side().terms, {"lip": 0.6, "ldp": 0.9})
    assert compare(old, only_lip).verdict == "unchanged"
    assert "(weaker)" in compare(old, only_lip).text()
    assert compare(old, new).verdict == "weaker"  # without bound is another matter


def test_epsilon_is_said_to_bound_its_own_measure_alone():
    terms = side(**privacy("lip", 1.0)).terms
    old, new = (Side("lock", "", terms, {"lip": lip, "ldp": ldp}) for lip, ldp in ((0.5, 1.9), (0.6, 1.8)))
    said = {one.term: one.why for one in compare(old, new).findings}
    assert said["measured.lip"] == "as it is stated, rounded up and no more than epsilon: more than before"
    assert said["measured.ldp"] == "as it is stated, rounded up: less than before"


def test_values_of_locks_are_compared():
    def lock(*values: str) -> Side:
        return Side("lock", "", side().terms, {}, {("x",): frozenset((value,) for value in values)})

    assert compare(lock("a"), lock("a", "b")).verdict == "weaker"
    assert compare(lock("a", "c"), lock("a", "b")).verdict == "incomparable"


def test_another_protocol_is_told():
    one, other = (Side("lock", "", side().terms, protocol=name) for name in ("aa", "bb"))
    (found,) = compare(one, other).findings
    assert (found.term, found.verdict) == ("protocol", "unchanged")
    assert compare(one, one).findings == compare(one, side()).findings == ()


def test_allowing_what_cannot_be_compared():
    other = compare(side(), side(source={"filter": "age > 20"}))
    worse = compare(side(), side(source={"filter": "age > 20"}, privacy={"epsilon": 2.0}))
    assert (other.fails(), other.fails(allow=True)) == (True, False)
    assert worse.fails(allow=True)


def test_files_of_every_kind(tmp_path, monkeypatch):
    """Policies are known by their text, from standard input too; what is neither is said to be unreadable."""
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(yaml.safe_dump(BASE))
    other.write_text(yaml.safe_dump(BASE | {"budget": 9.0}))
    assert funnel.diff(one, other).verdict == "weaker"
    monkeypatch.setattr("sys.stdin", io.StringIO(one.read_text()))
    assert funnel.diff("-", other).findings == funnel.diff(one, other).findings
    for broken in ("no.yaml", "empty", "."):
        (tmp_path / "empty").write_text("")
        with pytest.raises(FunnelError):
            funnel.diff(one, tmp_path / broken)


@pytest.mark.long
def test_releases_locks_and_policies(tmp_path, key, monkeypatch):
    """One policy as itself, as its lock, and as its release says the same; a laxer one is weaker in each form."""
    monkeypatch.setenv("FUNNEL_KEY", key)
    table = tmp_path / "t.csv"
    table.write_text("id,s,x\n" + "".join(f"{i},s{i % 2},x{(i * 7 + i % 2) % 3}\n" for i in range(120)))
    forms: dict[str, list[Path]] = {}
    for name, epsilon in (("strict", 0.2), ("lax", 0.9)):
        policy = tmp_path / f"{name}.yaml"
        told = {"version": 1, "name": name, "source": {"table": str(table), "entity": "id"}, "sensitive": ["s"],
                "public": ["x"], "privacy": {"notion": "ldp", "epsilon": epsilon}, "draws": {"key": "env:FUNNEL_KEY"},
                "mechanism": "randomised-response", "release": {"to": f"r-{name}", "private": "p"}}  # fmt: skip
        policy.write_text(yaml.safe_dump(told))
        made = funnel.make_lock(policy)
        funnel.run(policy, locked=True)
        forms[name] = [policy, made.path, tmp_path / f"r-{name}"]
    for kind in range(3):
        assert funnel.diff(forms["strict"][kind], forms["lax"][kind]).verdict == "weaker"
        assert funnel.diff(forms["lax"][kind], forms["strict"][kind]).verdict == "stronger"
        for other in range(3):
            assert funnel.diff(forms["strict"][kind], forms["strict"][other]).verdict == "unchanged"
    # A release is known by all that its policy says, wherever the private folder is at hand; without, it is said.
    policy, lock, release = forms["strict"]
    text = yaml.safe_load(policy.read_text())
    coarser = {**text, "public": [{"name": "x", "groups": {"ab": ["x0", "x1"]}}], "budget": 1.0}
    coarser["source"] = text["source"] | {"filter": "id <> '0'", "missing": "drop"}
    policy.write_text(yaml.safe_dump(coarser))
    by_release, by_lock = funnel.diff(release, policy), funnel.diff(lock, policy)
    told = {(one.term, one.verdict, one.why) for one in by_lock.findings}
    assert {"public.x", "budget", "source.filter", "source.missing"} <= {one[0] for one in told}
    assert told == {(one.term, one.verdict, one.why) for one in by_release.findings}
    assert by_release.partial == ()
    policy.write_text(yaml.safe_dump(coarser | {"release": {"to": "elsewhere", "private": "elsewhere-too"}}))
    bare = funnel.diff(release, policy)
    assert bare.partial == (str((release / "latest").resolve()),)  # the one that was looked at, by its name
    assert "--private" in bare.text()
    assert told <= {(one.term, one.verdict, one.why) for one in funnel.diff(release, policy, tmp_path / "p").findings}
    kept = tmp_path / "p" / (release / "latest").resolve().name / "policy.yaml"
    kept.write_text(kept.read_text().replace("0.2", "0.3"))
    with pytest.raises(FunnelError, match="is not the policy"):
        funnel.diff(release, policy, tmp_path / "p")
