"""A real browser for report tests: any Chromium on this machine."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# A sandbox needs privileges that containers lack, and the pages are our own.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def find_browser() -> str | None:
    """Path of a Chromium: APEXRANK_CHROMIUM, or one on the PATH."""
    return os.environ.get("APEXRANK_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="module")
def browser():
    """Chromium, or a one-line skip if there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium found: install Debian's package chromium, or set APEXRANK_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
