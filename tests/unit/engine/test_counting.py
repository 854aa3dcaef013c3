"""What helps where too few records share a value."""

import numpy as np
import pytest

from funnel.data import Alphabet, Joint
from funnel.engine.counting import check_minimum
from funnel.errors import SourceError


def advised(joint: Joint, published: bool = False, noisy: bool = False) -> str:
    with pytest.raises(SourceError) as caught:
        check_minimum(joint, 10, secret_published=published, noisy=noisy)
    assert caught.value.code == "below-minimum" and caught.value.advice
    return caught.value.advice


def test_what_is_rare_in_several_columns_together_is_not_to_be_merged_in_one() -> None:
    joint = Joint.from_table(np.array([[30, 2], [30, 3]]))
    assert advised(joint).startswith("Merge them with `rare: other`")
    pairs = Alphabet(("town", "job"), (("t", "j"), ("u", "k")))
    together = advised(Joint(joint.secret, (pairs,), joint.cells, joint.counts))
    assert "`rare` merges only what is rare in a column by itself" in together
    assert "put the columns into blocks of their own" in together


def test_of_fewer_records_than_the_minimum_nothing_is_merged() -> None:
    few = Joint.from_table(np.array([[3, 2], [2, 2]]))
    assert advised(few).startswith("Lower `estimate.minimum`")
    assert advised(few, noisy=True).startswith("Merge values"), "for noisy counts say not how many there are"


def test_a_missing_value_is_advised_what_takes_it_in_alone() -> None:
    """Neither `rare: bin` nor `groups`, `bins`, `top` or a coarser `round` merges it."""
    joint = Joint.from_table(np.array([[30, 2], [30, 3]]))
    for columns in (("x",), ("x", "y")):
        block = Alphabet(columns, (("a",) * len(columns), (None,) * len(columns)))
        for noisy in (False, True):
            said = advised(Joint(joint.secret, (block,), joint.cells, joint.counts), noisy=noisy)
            assert "`missing: drop` under `source`; or lower `estimate.minimum`" in said
            assert ("`rare: other`" in said) == (len(columns) == 1 and not noisy)
            assert "`rare: bin`" not in said and "by meaning" not in said
    both = Joint.from_table(np.array([[30, 2, 2], [30, 3, 3]]))
    some = Alphabet(("x",), (("a",), ("b",), (None,)))
    assert advised(Joint(both.secret, (some,), both.cells, both.counts)).startswith("Merge them with `rare: other`")


def test_a_private_estimate_is_not_told_to_merge_by_what_is_rare_in_the_table() -> None:
    """Its policy refuses `rare` and `top`."""
    said = advised(Joint.from_table(np.array([[30, 2], [30, 3]])), noisy=True)
    assert "`groups` or `bins`" in said and "rare" not in said and "`top`" not in said


def test_a_secret_that_is_released_too_is_not_told_to_be_merged_in_the_policy() -> None:
    """Its policy refuses `rare`, `groups`, `top` and `bins`."""
    rare = Joint.from_table(np.array([[30, 0], [0, 3]]), "illness", "illness")
    for noisy in (False, True):
        assert advised(rare, noisy=noisy).startswith("Merge values of the secret in the source, for it is")
    pairs = Alphabet(("illness", "town"), (("i", "t"), ("j", "u")))
    together = advised(Joint(rare.secret, (pairs,), rare.cells, rare.counts))
    assert "beside the secret by meaning with `groups` or `bins`, and its own in the source" in together


def test_a_mechanism_that_does_not_read_the_secret_is_named_for_averages_too() -> None:
    """`optimal` does not keep `mutual-information`."""
    said = advised(Joint.from_table(np.array([[30, 20], [3, 3]])), published=True)
    assert "`mechanism: optimal` (under `mutual-information`: `greedy-funnel`)" in said
