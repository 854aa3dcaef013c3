"""Entries of earlier releases: what the ledger says of each is what is kept of it.

What several releases tell together is worked out from what their entries say: who was left out, what was drawn for
whom, by which protocol. An entry was looked at when its own release was audited. That may be in another folder by now,
or gone; so each is held here once more to what the private folder keeps of it, which its own hashes name: release.json,
the terms and the policy, who was released and everybody who was counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from pathlib import Path

from funnel.audit.extras import (
    agreed,
    averages,
    beside,
    bound,
    composition,
    declared,
    drift,
    everybody,
    identity,
    meanings,
    mechanism,
    noise,
    partitions,
    pinned,
    policy,
    promises,
    repeats,
    rounded,
    spent,
    totals,
    truth,
    uncertainty,
)
from funnel.audit.extras.absence import Everybody, PromiseTerms, entered, leaving_out
from funnel.audit.extras.base import Release
from funnel.audit.extras.digests import digest, fits
from funnel.audit.extras.earlier import Earlier, Missing
from funnel.audit.extras.parts import copy_of
from funnel.audit.extras.policy import PLAN, POLICY
from funnel.audit.kernel import claims, drawing
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked, agree, counted
from funnel.failed import AWAY, as_error
from funnel.format import cells, evidence, manifest, people, population, protocol, schema, terms
from funnel.format.estimated import file_name
from funnel.format.journal import NAME, EstimateEntry
from funnel.format.place import SEEN
from funnel.text import some

CLAIM = "ledger-kept"
TITLE = (
    "entries of earlier releases say what release.json, terms.json, policy.yaml, people.json and population.json of"
    " each do: its promise and figures, what was drawn and how, who was counted, and who was left out"
)
PRIVATE = True
_ALIKE = ("policy_sha256", "name", "notion", "epsilon", "draws")
_FOUND: dict[tuple[object, ...], Set[str]] = {}
"""What was found of an entry and the files that it was held to: a folder asks once for every later release."""
_CELLS: dict[str, str] = {}
"""SHA-256 of cells.json by that of the release.json which lists it."""
_BUT = (
    "which columns and people they took for which, and what all told together, is looked at where they are, in"
    " their own audits and that of the folder"
)


def check(opened: Release) -> str | Unchecked:
    """Each is held to what is left of these files. Raises Broken."""
    *before, _ = opened.entries
    if not before:
        return Unchecked(NOT_CLAIMED + "no release is before it in the ledger")
    places = opened.release.parent, opened.root, opened.journal
    every = {one.release: _of_files(Earlier(*places, before[:place])) for place, one in enumerate(before, start=1)}
    return f"{counted(len(before), 'earlier release')}, {_BUT}{but_for(every)}"


def but_for(every: Mapping[str, Set[str]]) -> str:
    """What was not looked at of some releases, in words; nothing where all was."""
    named: dict[str, list[str]] = {}
    for release, left_out in every.items():
        for what in left_out:
            named.setdefault(what, []).append(release)
    return "".join(f"; {what} of {some(which, 3)}" for what, which in sorted(named.items()))


def shown_again(one: Earlier) -> set[str]:
    """What an audit of the release says of its entry and figures is so by what is kept; what is not looked at.

    Raises Broken.
    """
    try:
        gone = [name for name in one.evidence.files if not (one.folder / name).is_file()]
        drawn = [file_name(one.counts.private.name)] if one.own.noisy and one.counts.private else []
        gone += [name for name in drawn if not (one.root / name).is_file()]
    except Missing as missing:
        gone = [str(missing)]
    if gone:
        return _left_out(one) | {f"no figure is worked out without {some(gone, 3)}"}
    return _left_out(one, *_MEASURED)


def _of_files(one: Earlier) -> Set[str]:
    """What is not looked at; once for all later releases, while entry and files are the same. Raises Broken."""
    own = one.own
    copies = [copy_of(one, sha256) for sha256 in (own.manifest_sha256, own.protocol_sha256, *_of_cells(one))]
    published = [one.release / name for name in (manifest.NAME, protocol.NAME, cells.NAME)]
    kept = sorted(one.folder.iterdir()) if one.folder.is_dir() else []
    charges = tuple(line.entry for line in one.journal if isinstance(line.entry, EstimateEntry)) if own.noisy else ()
    told = schema.write(own), len(one.entries), charges, *map(_facts, (*copies, *published, *kept))
    if told not in _FOUND:
        _FOUND[told] = _left_out(one)
    return _FOUND[told]


def _of_cells(one: Earlier) -> tuple[str, ...]:
    """SHA-256 of its cells.json, once for each release.json; nothing where it has none, or nobody knows."""
    told, asked = _CELLS.get(one.own.manifest_sha256), any(block.inside for block in one.own.drawn)
    if told is None and asked:
        with suppress(Missing, Broken, KeyError):
            told = _CELLS[one.own.manifest_sha256] = one.manifest.files[cells.NAME].sha256
    return () if told is None else (told,)


def _facts(path: Path) -> tuple[object, ...]:
    """Other ones where a file is another one."""
    try:
        told = path.stat()
    except OSError:
        return (str(path),)
    return str(path), told.st_ino, told.st_size, told.st_mtime_ns


def _left_out(one: Earlier, *more: Callable[[Release], object]) -> set[str]:
    """What is not looked at of an earlier release, since a file is gone, or too much would have to be. Raises Broken.

    Whatever a file makes a check stumble over breaks it; what cannot be reached does not.
    """
    left_out = set[str]()
    for work in (*_BASE, *more):
        try:
            told = work(one)
        except Missing as missing:
            what = f"not every figure is worked out without {missing}"
            left_out.add(what if work in more else f"no {missing} is kept")
        except Exception as error:
            if as_error(error).code in AWAY:
                raise
            what = f"the entry of {one.own.release} is not what is kept of it"
            raise Broken(NAME, what, "what its files say", str(error) or type(error).__name__) from None
        else:
            if isinstance(told, Unchecked) and not told.reason.startswith(NOT_CLAIMED):
                left_out.add(f"not all is checked ({told.reason})")
    return left_out


def _stated(one: Earlier) -> None:
    """Of keys, noise and people left out the manifest says what the entry does. Raises Missing, Broken."""
    own, said = one.own, one.manifest
    agree(NAME, [
        ("keys", tuple(key.name for key in said.identify), own.identify),
        ("whether counts are noisy", said.estimate.kind == "private", own.noisy),
        ("whether any may be absent", True, said.absent is not None or own.present is None),
    ])  # fmt: skip


def _listed(one: Earlier) -> None:
    """Its evidence is that of the manifest entered, and nothing else lies beside it. Raises Missing, Broken."""
    own, told = one.own, one.evidence
    agree(evidence.NAME, [
        ("release", own.release, told.release), ("hash of the manifest", own.manifest_sha256, told.manifest_sha256)
    ])  # fmt: skip
    if strange := sorted({path.name for path in one.folder.iterdir()} - {*told.files, evidence.NAME, SEEN}):
        raise Broken(evidence.NAME, "this is not listed, and lies there", sorted(told.files), strange)
    hashes = {name: told.files[name].sha256 if name in told.files else None for name in (POLICY, terms.NAME, PLAN)}
    said = one.manifest
    stated = [said.policy_sha256, said.terms_sha256, said.plan_sha256]
    agree(evidence.NAME, [("policy, terms and plan", stated, [*hashes.values()])])


def _counted(one: Earlier) -> None:
    """Its people are those of the entry, and as many as its counts. Raises Missing, Broken."""
    one.content(one.folder / people.NAME)
    told = one.own.identity
    if (file := digest(one.folder, one.own)) is not None:
        agree(NAME, [("table and rows", (file.table, file.content), (told.table, told.content))])
        fits(one, file)


def _meant(one: Earlier) -> None:
    """Its columns are what its terms make of them: without cells.json, but for what cells stand for.

    Raises Missing, Broken.
    """
    try:
        meanings.check(one)
    except Missing as missing:
        if str(missing) == cells.NAME:
            meanings.check_without_cells(one)
        raise


def _charged(one: Earlier) -> None:
    """The charges before it are those that it stated. Raises Missing, Broken."""
    if one.own.noisy and (private := one.counts.private) is not None:
        spent.charged(one, private)


def _asked(one: Earlier) -> None:
    """The entry has the policy and the promise of the terms. Raises Missing, Broken."""
    own, asked = one.own, one.terms
    agree(NAME, [
        *((key, getattr(asked, key), getattr(own, key)) for key in _ALIKE),
        ("budget", asked.budget, own.own.budget),
        ("secret", asked.sensitive, own.own.together.sensitive),
    ])  # fmt: skip


def _present(one: Earlier) -> None:
    """Who is said to have been there were those counted. Raises Missing, Broken."""
    own = one.own
    counted_all = population.NAME in one.evidence.files
    people = Everybody(one, one.population, PromiseTerms.by(own.own)) if counted_all else None
    entered(one, people, own.present)
    agree(manifest.NAME, [("absent", leaving_out(one.terms, locked=own.lock is not None), one.manifest.absent)])


_BASE: tuple[Callable[[Earlier], object], ...] = (
    *(_listed, claims.ledger_entry, _stated, _asked, policy.has_its_terms, partitions.as_asked, _meant, _present),
    *(_counted, _charged, uncertainty.check, promises.tells_its_own),
)
"""What is looked at of every earlier release, wherever it is."""
_MEASURED: tuple[Callable[[Release], object], ...] = (
    *(claims.manifest, claims.protocol, claims.stated_bound, claims.counts, claims.known),
    *(claims.minimum, claims.leakage_bound, claims.leakage_stated),
    *(drawing.draw_inputs, drawing.draw_support, drawing.draw_fit),
    *(beside.check, mechanism.check, agreed.check, policy.check, pinned.check, drift.check),
    *(declared.check, noise.check, spent.check),
    *(rounded.check, truth.check, averages.check, bound.check, totals.check, partitions.check),
    *(everybody.check, identity.check, repeats.check, composition.check, promises.check),
)
"""What an audit looks at beside where all evidence of a release is kept: all but its table, pages and signature."""
