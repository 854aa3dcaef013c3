"""What the policies of nights say of which table they read, where one hash says that it was the same.

The hash is of where a table lies, as seen from the private folder. Where policies lay no file tells, so names of two
policies are compared as far as no folder bears on them: in their last part, and in how a CSV is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePath

from funnel.audit.extras.base import Release
from funnel.audit.extras.parts import kept_file
from funnel.audit.extras.policy import POLICY, policy_of
from funnel.audit.kernel.opened import content
from funnel.audit.kernel.verdict import Broken, agree
from funnel.errors import PolicyError
from funnel.format import groups
from funnel.format.journal import ReleaseEntry
from funnel.policy import Policy
from funnel.policy.load import kept_policy
from funnel.text import some


def one_table(opened: Release, before: Sequence[ReleaseEntry]) -> str:
    """Policies of earlier nights that are said to be of tonight's table name it so, as far as can be seen; in words.

    Raises Broken where two names cannot be of one table.
    """
    own = opened.entries[-1]
    others = {one.policy_sha256: one for one in before if one.identity.table == own.identity.table}
    others.pop(own.policy_sha256, None)
    if not others:
        return ""
    mine, taken, gone = policy_of(opened), list[str](), list[str]()
    for entry in others.values():
        then = _policy(opened, entry)
        if then is None:
            gone.append(entry.release)
        elif not _may_be(mine, then):
            what = f"people.json has it that its table is that of {entry.release}, whose policy names another"
            raise Broken(POLICY, what, then.source.table, mine.source.table)
        elif then.source.table != mine.source.table:
            taken.append(then.source.table)
    word = f"; that {some(taken, 3)} and {mine.source.table} are one table is the publisher’s word" if taken else ""
    return word + (f"; no policy is kept of {some(gone, 3)}, said to be of that table" if gone else "")


def _policy(opened: Release, entry: ReleaseEntry) -> Policy | None:
    """The policy of an earlier night; None where it is gone, or what it names. Raises Broken where it is another."""
    path = opened.root / entry.release / POLICY
    if not path.is_file():
        return None
    raw = content(path)
    agree(POLICY, [(f"the policy of {entry.release}", entry.policy_sha256, hashlib.sha256(raw).hexdigest())])
    try:
        return kept_policy(raw, path, kept_file(opened, entry, groups.NAME))
    except PolicyError:
        return None


def _may_be(mine: Policy, then: Policy) -> bool:
    """Whether two policies may name one table, read in one way: links may lead to a folder, and names are kept."""
    tables, ways = [one.source.table for one in (mine, then)], [one.source.csv for one in (mine, then)]
    if any("://" in table for table in tables):
        return tables[0] == tables[1] and ways[0] == ways[1]
    names = [PurePath(table).name for table in tables]
    return ways[0] == ways[1] and (names[0] == names[1] or any(name in ("", "..") for name in names))
