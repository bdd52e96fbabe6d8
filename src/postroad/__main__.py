"""`python -m postroad` is the command `postroad`."""

from postroad.cli import main

if __name__ == "__main__":
    main()
