"""A real browser for the tests of pages: whichever Chromium this machine has."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# A sandbox needs rights that containers lack, and the pages are our own.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def find_browser() -> str | None:
    """Path of a Chromium: APEXRANK_CHROMIUM, or one on the PATH."""
    return os.environ.get("APEXRANK_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
