"""Histograms of oriented gradients: 64 features of the directions of a digit's strokes."""

import numpy as np
from scipy import ndimage

ORIENTATIONS = 16


def hog(images: np.ndarray) -> np.ndarray:
    """Return an n×64 array for n×height×width images: a weighted histogram of 16 directions for each quarter.

    The features are square roots of shares, scaled to length 1, so distances are Hellinger's.
    """
    pixels = images.astype(np.float64)
    across, down = ndimage.sobel(pixels, axis=2), ndimage.sobel(pixels, axis=1)
    strength = np.hypot(across, down)
    direction = np.floor(ORIENTATIONS * (np.arctan2(down, across) % (2 * np.pi)) / (2 * np.pi)).astype(int)
    direction = np.minimum(direction, ORIENTATIONS - 1)
    n, height, width = images.shape
    rows, columns = np.indices((height, width))
    quarter = 2 * (2 * rows // height) + 2 * columns // width
    cell = (np.arange(n)[:, None, None] * 4 + quarter) * ORIENTATIONS + direction
    counts = np.bincount(cell.ravel(), strength.ravel(), minlength=n * 4 * ORIENTATIONS).reshape(n, -1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    roots = np.sqrt(shares)
    return roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
