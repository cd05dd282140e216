"""``python -m orrery``: the same as the command."""

from orrery.cli.main import main

if __name__ == "__main__":
    main()
