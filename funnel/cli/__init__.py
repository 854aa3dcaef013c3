"""The command line: groups of commands and the options that all share; `funnel.cli.app` puts them together."""
