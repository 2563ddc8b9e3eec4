"""The fixtures of the command line."""

from tests.support.cli_fixtures import command, root  # noqa: F401
