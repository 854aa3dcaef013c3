"""The version that is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("funnel-sanitiser")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"
