"""The section `metadata`: the publisher's own words for catalogues of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from funnel.policy.columns import Column, Section, Text

if TYPE_CHECKING:
    from funnel.format import manifest

ADDRESS = r"^https?://[^\s<>\"{}|\\^`]+$"
LICENSE = r"^([A-Za-z0-9][A-Za-z0-9.+-]*|https?://[^\s<>\"{}|\\^`]+)$"


class Publisher(Section):
    """Who publishes."""

    name: Text = Field(description="Name of the publisher")
    url: Annotated[str, Field(pattern=ADDRESS)] | None = Field(None, description="Where to find them: https://…")


class Metadata(Section):
    """What catalogues tell readers beside what funnel says itself."""

    title: Text | None = Field(None, description="Title of the data set; without, the policy's name")
    description: Text | None = Field(None, description="What the data are; without, the policy's description")
    url: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="Where readers find the folder of releases, `release.to`: https://…"
    )
    license: Annotated[str, Field(pattern=LICENSE)] | None = Field(
        None, description="An identifier of the SPDX list, such as CC-BY-4.0, or the address of a license"
    )
    publisher: Publisher | None = Field(None, description="Who publishes")
    columns: dict[Column, Text] | None = Field(None, description="What released columns mean, by name")

    def stated(self) -> manifest.Metadata:
        """What release.json says of it."""
        from funnel.format import manifest

        owner = None if self.publisher is None else manifest.Owner(self.publisher.name, self.publisher.url)
        return manifest.Metadata(self.title, self.description, self.url, self.license, owner, self.columns or {})
