"""All findings about two sides, one a line, and the verdict on all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from funnel.analyst.diff.sides import Side
from funnel.analyst.diff.verdicts import (
    CELLS,
    JUDGES,
    UNSEEN,
    at_most,
    attribute,
    bound,
    budgets,
    by_confidence,
    estimated,
    known,
    merged,
    nested,
    no_matter,
    privacy,
    sensitive,
)
from funnel.data.alphabet import folded
from funnel.notions import NOTIONS
from funnel.notions.change import Judged, Verdict, ordered

_LONGEST = 60
_STATED = "as it is stated, rounded up"


@dataclass(frozen=True)
class ChangedTerm:
    """One term that differs. `measured` figures are told and do not count, unless they become infinite."""

    term: str
    old: Any
    new: Any
    verdict: Verdict
    why: str
    measured: bool = False

    @property
    def counts(self) -> bool:
        """Whether the verdict is part of the verdict on the whole."""
        return self.verdict != "unchanged" and (not self.measured or None in (self.old, self.new))

    def text(self) -> str:
        """One line."""
        mark = self.verdict if self.counts or self.verdict == "unchanged" else f"({self.verdict})"
        return f"{mark:<13}{self.term}: {_shown(self.old)} -> {_shown(self.new)}; {self.why}"


@dataclass(frozen=True)
class Difference:
    """What changed from `old` to `new`, files by name."""

    old: str
    new: str
    findings: tuple[ChangedTerm, ...]
    partial: tuple[str, ...] = ()
    """Releases of which no more was compared than release.json tells."""

    @property
    def verdict(self) -> Verdict:
        """On the whole: weaker or stronger where all that counts is, incomparable where there is both, or neither."""
        found = {one.verdict for one in self.findings if one.counts}
        if not found:
            return "unchanged"
        return found.pop() if len(found) == 1 else "incomparable"

    def fails(self, *, allow: bool = False) -> bool:
        """Whether a check should stop: something is weaker, or (unless allowed) cannot be compared."""
        stopping = {"weaker"} if allow else {"weaker", "incomparable"}
        return any(one.counts and one.verdict in stopping for one in self.findings)

    def text(self) -> str:
        """A line for each finding, and the verdict."""
        lines = [one.text() for one in self.findings]
        lines += [f"of {one} only what is published was compared, so no filter, bins or budget; "
                  "`--private DIR` compares its whole policy" for one in self.partial]  # fmt: skip
        return "\n".join([*lines, f"privacy: {self.verdict}"])

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        told = [asdict(one) | {"counts": one.counts} for one in self.findings]
        found = {"old": self.old, "new": self.new, "verdict": self.verdict, "findings": told}
        return found | {"partial": list(self.partial)}


def compare(old: Side, new: Side) -> Difference:
    """Everything that differs, in the order of a policy; terms that only one kind of file knows are left out."""
    findings = [
        *_sensitive(old, new),
        *_public(old, new),
        *_privacy(old.terms, new.terms, reduced=any(map(_reduced, (old, new)))),
        *_others(old, new),
        *_chances(old, new),
        *_measured(old, new),
    ]
    if all(by_confidence(one.terms) for one in (old, new)):
        findings = [*map(_for_fewer, findings)]
    partial = tuple(one.file for one in (old, new) if not one.whole)
    return Difference(old.file, new.file, tuple(findings), partial)


def _for_fewer(one: ChangedTerm) -> ChangedTerm:
    """A finding where the uncertainty set follows from a confidence, and from how many values there are."""
    fewer = one.term.partition(".")[0] in ("public", "values") or one.term == "estimate.minimum"
    if not fewer or one.verdict != "stronger":
        return one
    why = f"{one.why}; but with fewer values fewer distributions are protected"
    return replace(one, verdict="incomparable", why=why)


def _sensitive(old: Side, new: Side) -> Iterator[ChangedTerm]:
    before, after = old.terms["sensitive"], new.terms["sensitive"]
    if before != after:
        judged = sensitive(*([folded(one) for one in s] for s in (before, after)))
        yield _finding("sensitive", before, after, _present(judged, _dropping(old, new)))


def _present(judged: Judged, dropping: bool) -> Judged:
    """A change of what no record may lack: where those that do are left out, others are, too."""
    verdict, why = judged
    if verdict != "stronger" or not dropping:
        return judged
    return "incomparable", f"{why}; but other records are left out, which shows as it is"


def _dropping(*sides: Side) -> bool:
    """Whether records without a value are left out."""
    return any(one.terms.get("source.missing") == "drop" for one in sides)


def _dropped(side: Side, column: Mapping[str, Any]) -> bool:
    """Whether records with values that a lock does not know are left out, which releases tell of no column by name."""
    return "drop" in (column.get("unseen"), side.terms.get("public.unseen"))


_KNOWN_NOW: Judged = ("incomparable", "one more column is released, and who knows it is promised the bound, too")
_KNOWN_NO_MORE: Judged = ("incomparable", "it is not released any more, and who knows it is promised nothing")
_KNOWN_OTHERWISE: Judged = ("incomparable", "it is told otherwise, and who knows it as it was told is promised nothing")
_OWN_VALUES: Judged = (
    "incomparable", "where `knows` stands, the own values of columns may be known; else what is released of them"
)  # fmt: skip


def _reduced(side: Side) -> bool:
    """Whether a column is released otherwise than by its own values, as far as the side tells."""
    columns = _columns(side).values()
    return not side.whole or any(one.keys() - {"name", "unseen"} or one.get("unseen") == "other" for one in columns)


def _columns(side: Side) -> dict[str, Mapping[str, Any]]:
    return {folded(one["name"]): one for block in side.terms["public"] for one in _inside(block)}


def _inside(block: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns that a block releases: its own, or those of a wide block."""
    return [column for one in block for column in one.get("columns", [one])]


def _wide(side: Side) -> dict[str, Mapping[str, Any]]:
    """The wide blocks of a side, by name."""
    return {one["name"]: one for block in side.terms["public"] for one in block if "columns" in one}


def _held(wide: Mapping[str, Mapping[str, Any]], name: str) -> set[str]:
    """The columns inside the wide block of a name; none where there is no such block."""
    return {folded(column["name"]) for column in wide.get(name, {}).get("columns", ())}


def _in_cells(side: Side) -> set[str]:
    """The columns inside wide blocks."""
    wide = _wide(side)
    return set().union(*(_held(wide, name) for name in wide))


def _divided(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """Wide blocks that came, went, or hold other columns, where a column that stays is told by other cells for it."""
    wide, stay = (_wide(old), _wide(new)), _columns(old).keys() & _columns(new).keys()
    for name in sorted(wide[0].keys() | wide[1].keys()):
        before, after = (_held(one, name) for one in wide)
        if before != after and (before | after) & stay:
            both = (before and after) or before | after <= _in_cells(old) & _in_cells(new)
            shown = "other cells" if both else "cells and what fills those, or by their own values"
            told, tells = ({**(one[name].get("cells") or {}), "columns": sorted(held)} if held else None
                           for one, held in zip(wide, (before, after), strict=True))  # fmt: skip
            why = f"columns are told by {shown}: neither is the finer"
            yield ChangedTerm(f"public.{name}.cells", told, tells, "incomparable", why)


def _cells(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """How fine cells are, and whether they are the same ones."""
    yield from _divided(old, new)
    before, after = _wide(old), _wide(new)
    for name in before.keys() & after.keys():
        for key, judge in CELLS.items():
            told, tells = ((one[name].get("cells") or {}).get(key) for one in (before, after))
            if told != tells and None not in (told, tells):  # a manifest has none
                yield _finding(f"public.{name}.cells.{key}", told, tells, judge(told, tells))
    for name in old.cells.keys() & new.cells.keys():
        if old.cells[name] != new.cells[name]:
            why = "other cells, or filled otherwise: what both tell together no bound on either counts"
            yield ChangedTerm(f"cells.{name}", old.cells[name], new.cells[name], "weaker", why)


def _public(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """Columns that came or went, what is told of those that stayed, and their values where both sides know them."""
    before, after = _columns(old), _columns(new)
    for name in dict.fromkeys([*before, *after]):
        one, other, term = before.get(name), after.get(name), f"public.{name}"
        may_be_known = all(known(side.terms, name) for side in (old, new))
        if one is None:
            come: Judged = ("weaker", "one more column is released")
            yield _finding(term, None, other, _KNOWN_NOW if may_be_known else come)
        elif other is None:
            gone = _present(("stronger", "it is not released any more"), _dropping(old, new) or _dropped(old, one))
            yield _finding(term, one, None, _KNOWN_NO_MORE if may_be_known else gone)
        elif old.whole and new.whole:
            told, tells = ({k: v for k, v in x.items() if k not in ("name", "unseen")} for x in (one, other))
            if told != tells:
                unknown = {"error"} != {x.get("unseen", "error") for x in (one, other)}
                yield _finding(term, told, tells, _stayed(name, told, tells, (old, new), unknown=unknown))
            told, tells = (x.get("unseen", "error") for x in (one, other))
            if told != tells:
                yield _finding(f"{term}.unseen", told, tells, UNSEEN(told, tells))
    yield from _grouping(old, new)
    yield from _cells(old, new)
    moved = {name for name in old.cells.keys() & new.cells.keys() if old.cells[name] != new.cells[name]}
    for columns in old.values.keys() & new.values.keys():
        if not moved & set(columns):  # labels of other cells are other values by the same names
            asked = [one.get(folded(name), {}) for one in (before, after) for name in columns]
            nearest = not (old.whole and new.whole) or any(one.get("rare") == "bin" for one in asked)
            judged = _values(old.values[columns], new.values[columns], nearest=nearest)
            yield from _changed(columns, old, new, _present(judged, any(_dropped(new, one) for one in asked)))


def _stayed(
    name: str, told: Mapping[str, Any], tells: Mapping[str, Any], sides: tuple[Side, Side], *, unknown: bool
) -> Judged:
    """What is told of a column that stays; `unknown` where something becomes of values that a lock does not know."""
    cells, blanks = [_in_cells(side) for side in sides], told.get("trim") != tells.get("trim")
    judged = attribute(*(merged(x) if name in wide else x for x, wide in zip((told, tells), cells, strict=True)))
    judged = _present(judged, blanks and _dropping(*sides))
    if unknown and judged[0] == "stronger":
        judged = "incomparable", f"{judged[1]}; but other values are such as a lock does not know"
    graded = judged[0] in ("stronger", "weaker") and name in cells[0] & cells[1]
    if graded and {**told, "rare": None} != {**tells, "rare": None}:
        judged = "incomparable", f"{judged[1]}; but cells are divided otherwise"
    reach = [known(side.terms, name) for side in sides]
    # Own values may be known before and after, unless blanks or cells make other ones of them.
    own = "own" in reach and {} in (told, tells) and not blanks and name not in cells[0] | cells[1]
    return _KNOWN_OTHERWISE if all(reach) and judged[0] != "unchanged" and not own else judged


def _grouping(old: Side, new: Side) -> Iterator[ChangedTerm]:
    before, after = (
        [[folded(one["name"]) for one in _inside(block)] for block in s.terms["public"]] for s in (old, new)
    )
    same_columns = sorted(chain(*before)) == sorted(chain(*after))
    if same_columns and before != after and old.whole and new.whole:
        yield ChangedTerm(
            "public", before, after, "unchanged", "the bound is for all blocks together, however grouped"
        )


def _values(old: frozenset[Any], new: frozenset[Any], *, nearest: bool) -> Judged:
    """Two alphabets; `nearest` where values may stand for their neighbours, which are others where one is gone."""
    judged = nested(old, new, "more values are told apart", "fewer values are told apart", "other values")
    if nearest and judged[0] == "stronger":
        return "incomparable", "fewer values, but rare ones may be one with others than before"
    return judged


def _changed(columns: tuple[str, ...], old: Side, new: Side, judged: Judged) -> Iterator[ChangedTerm]:
    """Values that came or went, where any did."""
    before, after = old.values[columns], new.values[columns]
    if before != after:
        gone, come = (sorted(map(list, one), key=repr) for one in (before - after, after - before))
        yield _finding(f"values.{'+'.join(columns)}", gone, come, judged)


def _privacy(old: Mapping[str, Any], new: Mapping[str, Any], *, reduced: bool) -> Iterator[ChangedTerm]:
    """The bound: as a whole where the notion is another, else parameter by parameter.

    `reduced` says that some column is released more coarsely than by its own values, on either side.
    """
    before, after = ({f"privacy.{key}": one[f"privacy.{key}"] for key in ("notion", *bound(one).promises)
                      if one.get(f"privacy.{key}") is not None} for one in (old, new))  # fmt: skip
    if before == after:
        return
    if before["privacy.notion"] != after["privacy.notion"]:
        yield _finding("privacy", _bare(before), _bare(after), privacy(before, after))
        return
    for key in bound(old).promises:
        told, tells = before.get(f"privacy.{key}"), after.get(f"privacy.{key}")
        if told != tells:
            own = key == "knows" and None in (told, tells) and reduced
            judged = _OWN_VALUES if own else bound(before).changed(key, bound(after))
            yield _finding(f"privacy.{key}", told, tells, judged)


def _bare(terms: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("privacy."): value for key, value in terms.items()}


def _others(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """Every other term that both sides know."""
    known = [key for key in dict.fromkeys([*old.terms, *new.terms]) if _both(key, old, new)]
    for key in known:
        before, after = old.terms.get(key), new.terms.get(key)
        judged = budgets(old.terms, new.terms) if key == "budget" else JUDGES.get(key, no_matter)(before, after)
        if before != after or (key == "budget" and judged[0] != "unchanged"):
            other = estimated(key, old.terms, new.terms, whole=old.whole and new.whole)
            yield _finding(key, before, after, other or judged)


def _both(key: str, old: Side, new: Side) -> bool:
    """Whether a term is compared here: the bound has its own way, and manifests and locks do not know all terms."""
    if key in ("sensitive", "public") or key in _BOUND:
        return False
    if old.whole != new.whole and key in _RESOLVED:
        return False
    if key == "draws.key" and old.terms.get("draws.kind") != new.terms.get("draws.kind"):
        return False
    if key == "privacy.solve" or key.startswith(_KNOWN) or (key.startswith("mechanism.") and key != "mechanism.kind"):
        return key in old.terms and key in new.terms
    if key.startswith("estimate.") and key not in ("estimate.minimum", "estimate.kind", "estimate.beliefs"):
        return old.terms["estimate.kind"] == new.terms["estimate.kind"] and old.whole and new.whole
    return (old.whole and new.whole) or (key in old.terms and key in new.terms)


_RESOLVED = ("draws.key", "mechanism.kind", "privacy.split", "privacy.solve", "release.sign")
"""What release.json has as it came out, and a policy as it was asked for."""
_KNOWN = ("accept", "draws.key", "source.table", "release.")
"""What locks do not pin."""
_BOUND = {f"privacy.{key}" for key in ("notion", *chain.from_iterable(one.promises for one in NOTIONS.values()))}


def _chances(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """Another protocol: told, since every new one is one more release about the same people."""
    if old.protocol and new.protocol and old.protocol != new.protocol:
        why = "other chances, under the bound above; the ledger measures what both tell together"
        yield ChangedTerm("protocol", old.protocol[:16], new.protocol[:16], "unchanged", why)


def _measured(old: Side, new: Side) -> Iterator[ChangedTerm]:
    """Measured leakage, where both sides have the measure; None is infinite."""
    for measure in sorted(old.leakage.keys() & new.leakage.keys()):
        before, after = old.leakage[measure], new.leakage[measure]
        if before != after:
            # The same protocol of the same counts is stated otherwise under another epsilon, which is the most stated.
            bounded = all(measure == _bounded(side) for side in (old, new))
            stated = f"{_STATED}{' and no more than epsilon' if bounded else ''}"
            judged = ordered(
                at_most(before), at_most(after), f"{stated}: more than before", f"{stated}: less than before"
            )
            yield ChangedTerm(f"measured.{measure}", before, after, *judged, measured=True)


def _bounded(side: Side) -> str | None:
    """The measure that epsilon bounds there."""
    notion = NOTIONS.get(side.terms.get("privacy.notion", ""))
    return None if notion is None else notion.measure


def _finding(term: str, old: Any, new: Any, judged: Judged) -> ChangedTerm:
    return ChangedTerm(term, old, new, *judged)


def _shown(value: Any) -> str:
    """A value on one line of printable text, not too long."""
    spelt = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "none" if value is None else spelt
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
