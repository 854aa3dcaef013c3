"""Commands in groups of their own, and the options that all commands share; `funnel.cli` puts them together."""
