"""Whatever a source does to its columns and numbers overnight, the ledger never says less than its draws tell."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.data import Alphabet, Joint
from funnel.data.convert import protocol_file
from funnel.format import schema
from funnel.format.people import PeopleFile
from funnel.ledger.archive import keep
from funnel.ledger.history import compose
from funnel.mechanisms.product import protect
from tests.support.ledger import NOTHING, an_entry, an_id, whose
from tests.support.nights import Steps, real_leakage, steps_of
from tests.support.people import SMALL
from tests.support.policies import write_policy

Person = tuple[str, str]
KEY = "aa" * 8
LIP = {"privacy": {"notion": "lip", "epsilon": 0.2}}


def digested(people: list[Person], ids: list[int], bits: int = 0) -> PeopleFile:
    """A digest as the engine would make one of all people, or of a sample; a word is the identifier's own."""
    words = [int(hashlib.sha256(str(one).encode()).hexdigest()[:15], 16) for one in ids]
    secrets, values = (tuple(sorted({one[place] for one in people})) for place in (0, 1))
    rows = sorted((word, secrets.index(s), values.index(x)) for word, (s, x) in zip(words, people, strict=True))
    content = hashlib.sha256(repr([rows, secrets, values]).encode()).hexdigest()
    some = tuple(row for row in rows if row[0] < 1 << (63 - bits))
    return PeopleFile(
        "funnel-people/1", NOTHING, KEY, "id", len(rows), content, bits, ("s",), ("x",), (secrets, values), some
    )


class Ledger:
    """Nights of one private folder, solved and composed; nothing is drawn."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.private = folder, folder / "private"
        self.entries, self.protocols = list[object](), list[dict[str, Steps]]()

    def night(self, people: list[Person], ids: list[int], *, permanent: bool, bits: int = 0) -> float | None:
        """The figure of one more release."""
        draws = {} if permanent else {"draws": {"kind": "fresh"}}
        policy = funnel.load(write_policy(self.folder, **(SMALL | LIP | draws)))
        joint = counted(people)
        solved = protect(joint, policy.privacy, policy.mechanism, policy.shares(), minimum=1)
        release = an_id(len(self.entries) + 1)
        digest = digested(people, ids, bits)
        source = KEY if permanent else release
        found = compose(policy, solved, release, source, self.entries, whose(self.private, release, digest))
        path = self.folder / "protocol.json"
        path.write_bytes(schema.write(protocol_file(solved.protocols)))
        keep(self.private, path)
        self.entries.append(
            an_entry(
                release,
                protocol_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                draws=policy.draws.kind,
                key_fingerprint=KEY if permanent else None,
                entity=found.drawn[0].entity,
                drawn=tuple(one.told() for one in found.drawn),
                promises=found.promises,
                identity=found.identity,
            )
        )
        self.protocols.append(steps_of(path))
        return found.together.figure


def counted(people: list[Person]) -> Joint:
    """N[s, x]."""
    secrets, values = (tuple((one,) for one in sorted({one[place] for one in people})) for place in (0, 1))
    cells = sorted(Counter((secrets.index((s,)), values.index((x,))) for s, x in people).items())
    codes, counts = (np.array(part) for part in zip(*cells, strict=True))
    return Joint(Alphabet(("s",), secrets), (Alphabet(("x",), values),), codes, counts)


TABLES = st.lists(st.integers(20, 60), min_size=6, max_size=6)
MAPS = st.permutations(range(3))
NAMES = st.sampled_from(["xyz", "xyz", "abc", "xbc"])


@pytest.mark.long
@settings(max_examples=25)
@given(TABLES, st.lists(st.tuples(MAPS, MAPS, NAMES, st.booleans()), min_size=1, max_size=2), st.booleans())
def test_the_ledger_is_never_below_who_knows_everybody(
    table: list[int], changes: list[tuple[list[int], list[int], str, bool]], permanent: bool
) -> None:
    """Values moved by the secret, relabelled, mixed with old names; identifiers given out anew: real <= said."""
    people = [divmod(i, 3) for i, many in enumerate(table) for _ in range(many)]
    paths = [[(i, "xyz"[x])] for i, (_, x) in enumerate(people)]
    ids = list(range(len(people)))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        ledger.private.mkdir()
        ledger.night([("ab"[s], "xyz"[x]) for s, x in people], ids, permanent=permanent)
        for one, other, names, again in changes:
            ids = [i + 1000 for i in ids] if again else ids
            tonight = [names[(one, other)[s][x]] for s, x in people]
            rows = [("ab"[s], x) for (s, _), x in zip(people, tonight, strict=True)]
            figure = ledger.night(rows, ids, permanent=permanent)
            for path, number, x in zip(paths, ids, tonight, strict=True):
                path.append((number, x))
            everybody = [("ab"[s], path) for (s, _), path in zip(people, paths, strict=True)]
            if figure is not None:
                assert real_leakage(everybody, ledger.protocols, permanent=permanent) <= figure + 1e-9


@pytest.mark.parametrize("first", ["many", "few"])
@pytest.mark.parametrize("permanent", [True, False])
def test_nobody_is_compared_with_a_sample_that_has_none_of_their_words(
    first: str, tmp_path: Path, *, permanent: bool
) -> None:
    """A small table beside a large one, of which the same private folder keeps one person of a thousand."""
    ledger = Ledger(tmp_path)
    ledger.private.mkdir()
    people = [divmod(i % 6, 3) for i in range(600)]
    rows = [("ab"[s], "xyz"[x]) for s, x in people]
    word = lambda one: int(hashlib.sha256(str(one).encode()).hexdigest()[:15], 16)  # noqa: E731
    few = [i for i in range(12) if word(i) >= 1 << 53]
    nights = [(rows, [*range(len(rows))], 10), ([rows[i] for i in few], few, 0)]
    if first == "few":
        nights.reverse()
    _, figure = (ledger.night(*one, permanent=permanent, bits=bits) for *one, bits in nights)
    numbered = {one.identity.numbered for one in ledger.entries}
    assert len(numbered) == 2, "nothing shows that they are the same people"
    both = [("ab"[s], [(i, "xyz"[x])] * 2) for i, (s, x) in enumerate(people) if i in few]
    assert figure is None or real_leakage(both, ledger.protocols, permanent=permanent) <= figure + 1e-9
