"""``python -m caesura`` is the command ``caesura``."""

from caesura.cli.main import main

if __name__ == "__main__":
    main()
