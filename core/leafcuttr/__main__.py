"""`python -m leafcuttr`: the same as the console script."""

from leafcuttr.cli import main

if __name__ == "__main__":
    main()
