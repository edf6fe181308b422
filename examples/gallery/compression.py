"""
An image in a few components
============================

Each row of pixels is a sample, each column a feature. One fit serves every p: the first p components are used. The
example shows the error of the restored image, and how many numbers are stored.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_sample_image

from discrim import PCA

COUNTS = (1, 2, 4, 8, 16, 32, 64, 100)


def restored(image: np.ndarray, model: PCA, p: int) -> np.ndarray:
    """Return the image restored from its first p components: mean + Z_p W_p."""
    return model.mean_ + model.transform(image)[:, :p] @ model.components_[:p]


def numbers_kept(image: np.ndarray, p: int) -> int:
    """Count the stored numbers: p coordinates per row, p directions, and the mean."""
    return p * sum(image.shape) + image.shape[1]


def draw(image: np.ndarray, model: PCA, errors: dict[int, float], path: str) -> None:
    figure = Figure(figsize=(9, 6.6), layout="constrained")
    panels = figure.subplots(3, 3).ravel()
    for axes, p in zip(panels, (*COUNTS, None), strict=True):
        axes.imshow(image if p is None else restored(image, model, p), cmap="gray", vmin=0, vmax=255)
        axes.set_axis_off()
        title = (
            "original" if p is None else f"p = {p}: {numbers_kept(image, p) / image.size:.0%}, error {errors[p]:.1f}"
        )
        axes.set_title(title, fontsize=10)
    figure.savefig(path, dpi=100)
    Image.open(path).quantize(32).save(path, optimize=True)  # 32 grey levels are enough for a page


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--image", default="china.jpg", choices=("china.jpg", "flower.jpg"))
    parser.add_argument("--picture", default="compression.png")
    options = parser.parse_args(arguments)
    image = load_sample_image(options.image).mean(axis=2)  # grey, 427×640
    model = PCA(max(COUNTS)).fit(image)
    errors = {p: float(np.sqrt(np.mean((restored(image, model, p) - image) ** 2))) for p in COUNTS}
    print(f"{options.image}, {image.shape[0]}×{image.shape[1]} grey pixels of 0…255")
    print("| p | numbers kept | variance kept | root mean square error |\n| --- | --- | --- | --- |")
    for p, error in errors.items():
        share, variance = numbers_kept(image, p) / image.size, model.explained_variance_ratio_[:p].sum()
        print(f"| {p} | {share:.1%} | {variance:.1%} | {error:.1f} |")
    draw(image, model, errors, options.picture)
    predicted = np.sqrt(
        (model.eigenvalues_.sum() / model.explained_variance_ratio_.sum()) * (1 - variance) / image.shape[1]
    )
    return {f"error {p}": error for p, error in errors.items()} | {"predicted error 100": float(predicted)}


if __name__ == "__main__":
    main()
