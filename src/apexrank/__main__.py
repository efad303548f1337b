"""Entry point of ``python -m apexrank``."""

from apexrank.cli import main

if __name__ == "__main__":
    main()
