"""The terms of a policy: all that decides what is promised to whom, one fact under one dotted name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from funnel.data.alphabet import folded
from funnel.engine.expressions import parse
from funnel.errors import InternalError
from funnel.format import schema
from funnel.format import terms as files
from funnel.format.manifest import Absent, Coarsened, Parameters, Partition, Way
from funnel.format.terms import EstimateTerms, TermsFile
from funnel.measure.exact import rational
from funnel.policy.blocks import Block
from funnel.policy.columns import Attribute
from funnel.policy.model import Policy


def terms(policy: Policy) -> dict[str, Any]:
    """The terms in reading order, values as in JSON.

    Where the table lies, where releases go, names and descriptions are not among them: they may change without
    another promise to anyone.
    """
    source, notion = policy.source, policy.privacy.model_dump(mode="json", exclude_none=True)
    mechanism = policy.mechanism.model_dump(mode="json", exclude_none=True)
    return {
        "sensitive": list(policy.sensitive),
        "public": [_block(block) for block in policy.blocks],
        **{f"privacy.{key}": value for key, value in notion.items() if key != "split"},
        "privacy.split": notion["split"] if isinstance(notion["split"], str) else list(policy.shares()),
        "budget": policy.budget,
        "draws.kind": policy.draws.kind,
        "source.entity": source.entity,
        "source.filter": source.filter,
        "source.missing": source.missing,
        **({} if source.csv is None else {"source.csv": source.csv.model_dump(mode="json", exclude_none=True)}),
        **{
            f"estimate.{key}": value
            for key, value in policy.estimate.model_dump(mode="json").items()
            if value
        },
        **{f"mechanism.{key}": value for key, value in mechanism.items()},
        **({"release.identify": list(policy.release.identify)} if policy.release.identify else {}),
    }


def beside(policy: Policy) -> dict[str, Any]:
    """What else of a policy bears on what readers and the people in the table may rely on, by dotted name.

    A lock does not pin it: under another key, beside another ledger, of a table that was moved, or where it may end
    other promises, its protocol promises the same; which key drew before, the ledger knows. Whether a table of another
    name is the same one, and its columns are, a policy does not show.
    """
    release, source = policy.release, policy.source
    return {
        "accept": sorted(policy.accept) or None,
        "draws.key": policy.draws.key if policy.draws.kind == "permanent" else None,
        "source.table": source.table,
        "release.private": release.private,
        "release.formulas": release.formulas if release.format == "csv" else "refuse",
        "release.sign": release.sign,
    }


def _block(block: Block) -> list[dict[str, Any]]:
    """The columns of one block; a wide block is one column, with its own inside."""
    told = [_attribute(one) for one in block.attributes]
    if block.cells is None:
        return told
    return [{"name": block.name, "columns": told, "cells": block.cells.model_dump(mode="json")}]


def _attribute(attribute: Attribute) -> dict[str, Any]:
    """One public column; what is not spelt out is as it is by default. Groups stand there whole, whatever file they
    are in.
    """
    return attribute.model_dump(mode="json", exclude_defaults=True)


def terms_file(policy: Policy) -> TermsFile:
    """terms.json: the policy with every default spelt out."""
    source, estimate, notion = policy.source, policy.estimate, policy.privacy
    own = {one.name for one in fields(Parameters)}
    asked = {key: value for key, value in notion.asked().items() if key in own}
    parameters: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in asked.items()}
    searched = notion.split == "optimal" and len(policy.blocks) > 1
    return TermsFile(
        "funnel-terms/1",
        policy_sha256=policy.sha256,
        name=policy.name,
        description=policy.description,
        entity=source.entity,
        filter=source.filter,
        missing=source.missing,
        sensitive=policy.sensitive,
        public=tuple(map(_file_block, policy.blocks)),
        wide=tuple(map(_file_wide, policy.wide)),
        notion=notion.notion,
        epsilon=notion.epsilon,
        parameters=Parameters(**parameters),
        split="optimal" if searched else policy.shares(),
        mechanism=policy.mechanism.model_dump(mode="json"),
        draws=policy.draws.kind,
        estimate=EstimateTerms(
            estimate.minimum,
            estimate.kind,
            _exact(estimate.epsilon),
            _exact(estimate.budget),
            estimate.values,
            estimate.beliefs,
        ),
        budget=_exact(policy.budget),
        accept=tuple(sorted(policy.accept)),
        format_of_data=policy.release.format,
        rows_of_data=policy.release.rows,
        formulas=policy.release.formulas,
        identify=policy.release.identify,
        partition=partition(policy),
    )


def leaves_out(asked: TermsFile, *, locked: bool) -> Absent | None:
    """Whom the terms leave out, whether or not there is anybody; None where it is nobody. Raises ExpressionError."""
    columns = [one for block in (*asked.public, *(wide.columns for wide in asked.wide)) for one in block]
    ways: list[tuple[Way, bool]] = [
        ("filter", asked.filter is not None),
        ("missing", asked.missing == "drop"),
        ("unseen", locked and any(one.unseen == "drop" for one in columns)),
    ]
    by = tuple(way for way, taken in ways if taken)
    return Absent(by, filtering_secret(asked)) if by else None


def coarsened(asked: TermsFile) -> tuple[Coarsened, ...]:
    """The released columns whose numbers or dates are made coarser unseen.

    Inside wide blocks rare ones are joined with their neighbours unless the policy says otherwise, which the report
    says of all of them: they are named where they are rounded as well. Months and quarters have no neighbours.
    """
    wide = {one.name: one.columns for one in asked.wide}
    alone = [one for block in asked.public for one in block if one.name not in wide]
    found = [_coarsened(one, one.rare) for one in alone]
    for one in (column for columns in wide.values() for column in columns):
        usual = None if one.round is None else "other" if one.round in ("month", "quarter") else "bin"
        found.append(_coarsened(one, one.rare or usual))
    return tuple(one for one in found if one.rare or one.step is not None)


def _coarsened(one: files.Attribute, rare: str | None) -> Coarsened:
    """A column, with what becomes of its rare values."""
    return Coarsened(one.name, one.round, one.clip, rare == "bin", one.round is not None and rare == "other")


def filtering_secret(asked: TermsFile) -> tuple[str, ...]:
    """The sensitive columns that the filter reads: who is in a release is then told by their own secret.

    Raises ExpressionError.
    """
    read = set() if asked.filter is None else set(map(folded, parse(asked.filter).columns))
    return tuple(one for one in asked.sensitive if folded(one) in read)


def unmeasured(policy: Policy) -> str:
    """Why no finite bound is known where a policy leaves people out; empty where one may be."""
    if policy.estimate.epsilon is not None:
        return "over a private estimate those who are absent are not counted, for that would be without noise"
    why = policy.privacy.no_absence
    if policy.privacy.between_values and policy.wide:
        why = "tells any two values apart, and how those inside a cell go with being absent is not counted"
    return f"`{policy.privacy.notion}` {why}" if why else ""


def partition(policy: Policy) -> Partition | None:
    """How the table lies in several files."""
    asked = policy.parted
    return None if asked is None else Partition(asked.column, asked.rows)


def _file_block(block: Block) -> tuple[files.Attribute, ...]:
    """The columns of the block's alphabet."""
    return tuple(map(_file_attribute, [_cell(block)] if block.cells else block.attributes))


def _cell(block: Block) -> Attribute:
    """The column of a wide block's alphabet, in which a lock leaves rows out that its columns leave out."""
    return Attribute(name=block.name)


def _file_wide(block: Block) -> files.WideTerms:
    if block.cells is None:
        raise InternalError("a block without cells is none that is wide")
    columns = tuple(map(_file_attribute, block.attributes))
    return files.WideTerms(block.name, columns, block.cells.most, block.cells.minimum)


def _file_attribute(one: Attribute) -> files.Attribute:
    return schema.typed(files.Attribute, files.NAME, one.model_dump(mode="json"))


def _exact(number: float | None) -> str | None:
    """The decimal in the policy as an exact number."""
    return None if number is None else str(rational(number))
