"""The command ``caesura``, also as ``python -m caesura``: says what to install where it cannot begin."""

from __future__ import annotations

import sys
from importlib.metadata import version

NEEDED = ("typer", "rich", "click", "shellingham")
"""What the extra ``cli`` brings."""


def main() -> None:
    """The entry point of the command."""
    if sys.argv[1:] == ["--version"]:  # all that is asked: nothing else need be loaded
        sys.stdout.write(f"caesura {version('caesura')}\n")
        return
    try:
        import rich
        import typer

        assert rich and typer, "looked at before anything is printed with them"
        from caesura.cli.main import main as command
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(
            f"The command caesura needs the package '{error.name}', which is not installed.\n"
            "Install it: pip install 'caesura[cli]'. In Python, import caesura works without it."
        )
    command()


if __name__ == "__main__":
    main()
