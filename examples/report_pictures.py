"""Screenshots of a report for the docs: its first screens on a desktop, its map, and the whole on a phone in dark mode.

discrim compare digits --html digits.html
python examples/report_pictures.py digits.html docs/images

Needs playwright and an installed chromium.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def opened(browser: Any, page: Path, width: int, scheme: str, scale: float = 1.0) -> Any:
    """Open the page, draw every chart and scroll to the top."""
    view = {"width": width, "height": 900}
    tab = browser.new_page(viewport=view, color_scheme=scheme, device_scale_factor=scale)
    tab.goto(page.resolve().as_uri())
    while not tab.evaluate("!!window.Plotly"):
        tab.wait_for_timeout(100)
    for place in range(0, tab.evaluate("document.documentElement.scrollHeight"), 400):
        tab.evaluate(f"scrollTo(0, {place})")
        tab.wait_for_timeout(100)
    tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_timeout(300)
    return tab


def small(picture: Path) -> None:
    """Reduce the colours of a picture to make its file small."""
    Image.open(picture).convert("RGB").quantize(200, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path, help="a report, by discrim compare --html")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    options = parser.parse_args()
    pictures = {name: options.folder / f"report_{name}.png" for name in ("desktop", "map", "phone")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        desk = opened(browser, options.page, 1160, "light")
        whole = {"x": 0, "y": 0, "width": 1160, "height": 1480}
        desk.screenshot(path=pictures["desktop"], full_page=True, clip=whole)
        section = desk.locator("section", has=desk.locator('[data-chart="map"]')).first
        section.screenshot(path=pictures["map"])
        phone = opened(browser, options.page, 390, "dark", scale=1.5)
        top = {"x": 0, "y": 0, "width": 390, "height": 1200}
        phone.screenshot(path=pictures["phone"], full_page=True, clip=top, timeout=120_000)
        browser.close()
    for picture in pictures.values():
        small(picture)


if __name__ == "__main__":
    main()
