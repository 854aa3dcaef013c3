"""releases.json and `latest`: whether this is the newest release, where it was asked for as that."""

from __future__ import annotations

from funnel.audit.extras.base import Release
from funnel.audit.kernel.verdict import NOT_CLAIMED, Broken, Unchecked
from funnel.audit.listed import feed_of, latest_of, newest_of, of_releases
from funnel.audit.verify.feed import as_newest, newest, published
from funnel.format.fields import LATEST
from funnel.text import some

CLAIM = "newest"
TITLE = (
    "no newer release of its ledger lies beside one that was asked for as `latest`, nor does releases.json list one"
    " where a public key is given; it lists the release, where its policy signs"
)
PRIVATE = False


def check(opened: Release) -> str | Unchecked:
    """By the publisher's own list where the key is at hand, by the ledger where that is. Raises Broken."""
    if opened.staged:
        return Unchecked("the release is not published yet")
    told = None
    if opened.public_key is not None:
        told = newest(opened, opened.public_key, opened.asked, None)
    if opened.private is None or not as_newest(opened.asked):
        return told or Unchecked(NOT_CLAIMED + "it was not asked for as the newest, or nothing is at hand that tells")
    folder = published(opened, opened.asked)
    # Of a copy in which `latest` is a folder, what that holds was opened.
    last = (latest_of if (folder / LATEST).is_symlink() else newest_of)(folder, opened.journal)
    if last != opened.manifest.release:
        raise Broken(LATEST, "an older release stands in the place of the newest", last, opened.manifest.release)
    listed = feed_of(folder, opened.root, opened.journal)
    others = "" if opened.manifest.signed else "its policy does not sign; of others "
    names = [one.release for one in of_releases(opened.journal)]
    later = names[names.index(last) + 1 :] if last in names else []
    gone = f" (not here: {some(later, 3)})" if later else ""
    lists = listed.reason if isinstance(listed, Unchecked) else others + listed
    return f"the last of its ledger that is here{gone}; {lists}"
