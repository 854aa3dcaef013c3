"""The source's own spelling of every column that a policy names, and the keys that read them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from funnel.engine.checks import LONG
from funnel.engine.sql import every, identifier, listed, literal
from funnel.plan.columns import (
    NARROW,
    ColumnKey,
    beyond,
    cell_key,
    inner_columns,
    merged_key,
    own_key,
    present,
    public_key,
    refused_labels,
    secret_key,
    there,
    untouched,
)
from funnel.plan.fit import column_of
from funnel.policy import Attribute, Policy

THERE = "there"
"""The column that says whether a row lacks no value, where rows that do are left out."""


def _plain_key(name: str, attribute: Attribute, kind: str) -> ColumnKey:
    """The key of a column of a plain block."""
    key = public_key(name, attribute, kind)
    return merged_key(key, attribute) if attribute.merges_rare else key


class Names:
    """The source's own spelling of every column that the policy names, and the keys that read them."""

    def __init__(self, policy: Policy, schema: Mapping[str, str]) -> None:
        def find(name: str) -> str:
            return column_of(name, schema) or name

        self.sensitive = [find(name) for name in policy.sensitive]
        self.secret = [secret_key(i, name, schema[name]) for i, name in enumerate(self.sensitive)]
        self.public = [[find(attribute.name) for attribute in block.attributes] for block in policy.blocks]
        self.attributes = [block.attributes for block in policy.blocks]
        self.inner = tuple(
            inner_columns(f"w{j}", block, columns, schema) if block.cells else ()
            for j, (block, columns) in enumerate(zip(policy.blocks, self.public, strict=True))
        )
        self.blocks = [
            [cell_key(f"x{j}_0", f"cell_{j}", [one.key.name for one in inner])]
            if inner
            else [
                _plain_key(f"x{j}_{i}", attribute.model_copy(update={"name": name}), schema[name])
                for i, (attribute, name) in enumerate(zip(block.attributes, columns, strict=True))
            ]
            for j, (block, columns, inner) in enumerate(
                zip(policy.blocks, self.public, self.inner, strict=True)
            )
        ]
        self.key = [untouched(i, find(name), schema[find(name)]) for i, name in enumerate(policy.release.identify)]
        self.own = [
            own_key(f"o{j}_{i}", attribute.model_copy(update={"name": name}), schema[name])
            for j, (block, columns) in enumerate(zip(policy.blocks, self.public, strict=True))
            for i, (attribute, name) in enumerate(zip(block.attributes, columns, strict=True))
            if policy.privacy.asks_own and attribute.reduced
        ]
        self.entity = find(policy.source.entity or "")
        self.entity_type = schema.get(self.entity, "")
        self.schema, self._drops = schema, policy.source.missing == "drop"
        self.trimmed = {find(one.name) for block in policy.blocks for one in block.attributes if one.trim}

    def present(self, column: str) -> str:
        """The column as it is read, NULL where it is missing."""
        return present(column, self.schema[column], trim=column in self.trimmed)

    def there(self, column: str) -> str:
        """The condition that the column is not missing."""
        return there(column, self.schema[column], trim=column in self.trimmed)

    @property
    def keys(self) -> list[ColumnKey]:
        """Secret keys, then public keys block by block."""
        return self.secret + [key for block in self.blocks for key in block]

    @property
    def cells(self) -> list[ColumnKey]:
        """The keys of wide blocks."""
        return [keys[0] for keys, inner in zip(self.blocks, self.inner, strict=True) if inner]

    @property
    def plain(self) -> list[ColumnKey]:
        """All others, in the order of `keys`."""
        return [key for key in self.keys if key not in self.cells]

    @property
    def refused(self) -> list[tuple[str, str, str]]:
        """What no release can hold: the name of a column, which rows have such a value, and what that is called."""
        keys = [
            [one.key for one in inner] or keys for keys, inner in zip(self.blocks, self.inner, strict=True)
        ]
        pairs = list(zip(chain(*self.attributes), chain(*keys), chain(*self.public), strict=True))
        labels = [
            (one.name, f"{key.raw} = {literal(label)}", label) for one, key, _ in pairs for label in refused_labels(one)
        ]
        exact = dict.fromkeys([*self.sensitive, *(column for one, _, column in pairs if not one.is_number)])
        floats = [name for name in exact if self.schema[name] == "DOUBLE"]
        return labels + [(name, beyond(self.present(name)), LONG) for name in floats]

    @property
    def rare(self) -> list[tuple[Attribute, ColumnKey, str]]:
        """The columns of plain blocks whose rare values are merged, with their keys and types."""
        plain = [[] if inner else keys for keys, inner in zip(self.blocks, self.inner, strict=True)]
        return [
            (one, key, self.schema[column])
            for attributes, keys, columns in zip(self.attributes, plain, self.public, strict=True)
            for one, key, column in zip(attributes, keys, columns, strict=False)
            if one.merges_rare
        ]

    @property
    def used(self) -> list[str]:
        """Every source column that is read into the joint distribution."""
        return self.sensitive + [name for block in self.public for name in block]

    @property
    def entity_raw(self) -> str:
        """The entity as draws go by it."""
        return f"CAST({identifier(self.entity)} AS {'BIGINT' if self.entity_type in NARROW else 'VARCHAR'})"

    @property
    def whose(self) -> list[str]:
        """SQL of what tells whose record it is: `entity` where one is named, and the key columns k0, k1, …."""
        entity = [f"{self.entity_raw} AS entity"] if self.entity else []
        return entity + [expression for expression, _ in self.key]

    @property
    def whose_names(self) -> list[str]:
        """The names of these columns."""
        return (["entity"] if self.entity else []) + [f"k{index}" for index in range(len(self.key))]

    @property
    def rows(self) -> str:
        """SQL of every row of the source: what is read of it, by the names of keys, and whose it is."""
        read = [f"{key.raw} AS {identifier(key.name)}" for key in [*self.read, *self.own]]
        return f"SELECT {listed(read + self.whose)} FROM source"

    @property
    def read(self) -> list[ColumnKey]:
        """The keys of all used columns; those inside wide blocks behind the others."""
        return self.plain + [one.key for inner in self.inner for one in inner]

    @property
    def present_only(self) -> str:
        """The condition that no used column is missing; empty where rows are kept that lack one."""
        return every(f"{self.present(name)} IS NOT NULL" for name in self.used) if self._drops else ""

    @property
    def where(self) -> str:
        """The clause that leaves rows out that lack a used column."""
        return f" WHERE {self.present_only}" if self._drops else ""

    @property
    def is_there(self) -> str:
        """The same of a row as it was read."""
        return every(f"{identifier(key.name)} IS NOT NULL" for key in self.read) if self._drops else ""
