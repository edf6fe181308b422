"""python -m discrim: the command line."""

from discrim.cli import main

if __name__ == "__main__":
    main()
