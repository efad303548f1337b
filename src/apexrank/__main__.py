"""``python -m apexrank``: the command line."""

from apexrank.cli import main

if __name__ == "__main__":
    main()
