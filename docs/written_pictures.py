"""Examples that draw without pyplot write their picture to a file: this brings it to the gallery."""

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def scraped(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The pictures in the example's folder, moved to where the gallery wants them."""
    found = []
    for picture in sorted(Path(block_vars["src_file"]).parent.glob("*.png")):
        target = next(block_vars["image_path_iterator"])
        shutil.move(picture, target)
        found.append(target)
    return figure_rst(found, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return scraped
