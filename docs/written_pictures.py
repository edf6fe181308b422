"""Image scraper of the gallery for examples that write their picture to a file."""

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def scraped(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Move the pictures in the folder of the example into the gallery and return the text that shows them."""
    found = []
    for picture in sorted(Path(block_vars["src_file"]).parent.glob("*.png")):
        target = next(block_vars["image_path_iterator"])
        shutil.move(picture, target)
        found.append(target)
    return figure_rst(found, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return scraped
