"""`python -m lamella`."""

from lamella.cli.main import main

if __name__ == "__main__":
    main()
