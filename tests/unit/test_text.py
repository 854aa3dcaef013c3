"""Words of commands that people are told to type."""

from __future__ import annotations

import os
import shlex

from hypothesis import given
from hypothesis import strategies as st

from funnel.text import argument

PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(st.one_of(PATHS, PATHS.map("-{}".format)))
def test_a_path_in_a_command_is_one_word_of_it_and_no_option(path: str) -> None:
    (word,) = shlex.split(argument(path))
    assert not word.startswith("-")
    assert os.path.normpath(word) == os.path.normpath(path)
