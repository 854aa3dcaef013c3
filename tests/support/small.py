"""A small policy."""

from __future__ import annotations

SMALL = """\
version: 1
name: small
source: {table: t.csv}
sensitive: s
public: [x]
privacy: {notion: lip, epsilon: 1}
release: {to: out, private: kept}
"""
