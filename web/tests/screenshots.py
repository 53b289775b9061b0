#!/usr/bin/env python3
"""Pictures of a page, light and dark, wide and narrow. Usage: web/tests/screenshots.py PROGRAM FOLDER, with the
Python of .venv-web.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

GRAPH = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "graphs" / "gpt2.json.gz"
ARGS = [GRAPH, "--budget", "25%", "--dce", "--replay-random", "--strategy", "auto,rotor", "--curve", "--points", "6"]


def main(program, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        path = pathlib.Path(place) / "report.html"
        subprocess.run([program, "report", *map(str, ARGS), "-o", path], check=True)
        browser = playwright.chromium.launch(
            executable_path=shutil.which(os.environ.get("REMAT_BROWSER", "chromium")),
            args=["--no-sandbox"] if os.getuid() == 0 else [],
        )
        for width, height in ((1280, 1150), (400, 1200)):
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(path.as_uri())
                page.wait_for_selector("html[data-ready=yes]")
                page.screenshot(path=folder / f"page-{width}-{scheme}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
