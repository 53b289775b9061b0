"""What the tests of pages share: a browser, and pages that `remat report` writes.

Every page is opened from file://, with the network off. A message of the browser's console, an error of a script or
a request for anything but the page itself makes its test fail."""

import os
import pathlib
import shutil
import subprocess

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("REMAT", str(ROOT / "build" / "plain" / "remat"))
GRAPHS = ROOT / "tests" / "data" / "graphs"


@pytest.fixture(scope="session")
def browser():
    path = shutil.which(os.environ.get("REMAT_BROWSER", "chromium"))
    assert path, "no browser: apt-get install chromium, or set REMAT_BROWSER"
    with sync_playwright() as playwright:
        # As root, as in a container, Chromium has no sandbox of its own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """report(arguments...): the path of a page; the same arguments give the same page."""
    known, folder = {}, tmp_path_factory.mktemp("pages")

    def write(*args):
        args = tuple(map(str, args))
        if args not in known:
            path = folder / f"{len(known)}.html"
            done = subprocess.run([PROGRAM, "report", *args, "-o", path], capture_output=True, timeout=300, text=True)
            assert done.returncode in (0, 10, 11), done.stderr
            known[args] = path
        return known[args]

    return write


@pytest.fixture
def open_page(browser):
    """open_page(path): the page, at 1280 pixels unless told otherwise."""
    contexts, faults = [], []

    def open_path(path, width=1280, height=900, scheme="light", touch=False):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: faults.append(f"request: {request.url}") if request.url != path.as_uri() else None,
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_path
    for context in contexts:
        context.close()
    assert not faults, faults
