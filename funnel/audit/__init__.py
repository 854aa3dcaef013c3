"""Every claim of a release, re-checked from its files: a kernel that people can read, and extras beside it.

`audit` asks both about one release, `history` about all of a ledger. Importing this room loads nothing, so that the
kernel runs where nothing else is installed.
"""
