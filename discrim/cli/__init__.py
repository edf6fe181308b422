"""The command line: parse, call one function, print.

compare     which reduction helps on a labelled table, and with how many components
report      the results of a store as one HTML page
project     fit one reduction and write its features and its model
apply       features of new rows by a saved model
reproduce   the papers' tables, printed figures beside ours
methods     what can be compared
datasets    what can be called by name, and where it is
"""

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"The command line needs {missing.name}. Install it with: pip install 'discrim[cli]'")

from discrim.cli.commands import main

__all__ = ["main"]
