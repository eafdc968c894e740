"""`python -m outlast` is the command `outlast`."""

from outlast.cli.main import main

if __name__ == "__main__":
    main()
