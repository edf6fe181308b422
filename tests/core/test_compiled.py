"""Cache of compiled code, its warnings, and the time of the first fit of an installation."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import discrim

FITS = """
import logging, sys, time
logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
from discrim import MarginPCA, MarginSubspace, MaxMarginShift
from sklearn.datasets import load_wine
X, y = load_wine(return_X_y=True)
for model in {models}:
    start = time.process_time()
    assert len(model.fit(X, y).transform(X)) == 178
    print(type(model).__name__, "is fitted", file=sys.stderr)
    assert time.process_time() - start < 12  # 4 on an idle machine; a busy one takes longer
"""


def fitted(models, folder, **environment):
    """Return the output of consecutive fits in a new process."""
    ran = subprocess.run(
        [sys.executable, "-c", FITS.format(models=models)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | environment,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def test_the_first_fits_of_a_fresh_installation(tmp_path):
    models = "MarginPCA(pairs='nearest'), MaxMarginShift(), MarginSubspace()"
    output = fitted(models, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    without_svm, with_svm = output.split("MarginPCA is fitted")
    assert "compiling" not in without_svm
    assert "discrim: compiling sweep, once for each installation" in with_svm
    assert "compiling" not in fitted(models, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))


def test_nothing_can_be_written(tmp_path):
    """A container: the package and the home folder are read-only."""
    package = tmp_path / "site" / "discrim"
    shutil.copytree(Path(discrim.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "home"
    home.mkdir()
    for folder in [home, tmp_path / "site", *[path for path in package.rglob("*") if path.is_dir()], package]:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(package, os.W_OK):  # root may write anywhere, so disable numba's cache
        (tmp_path / "sitecustomize.py").write_text(
            "import numba.core.caching as c\n"
            "for locator in c.CacheImpl._locator_classes: locator.from_function = classmethod(lambda *_: None)\n"
        )
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "site")])
    environment = {"PYTHONPATH": path, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    try:
        output = fitted("[MaxMarginShift()]", tmp_path, **environment, PYTHONDONTWRITEBYTECODE="1")
    finally:
        for folder in [tmp_path / "site", package, *package.rglob("*"), home]:
            folder.chmod(stat.S_IRWXU)
    assert "compiling sweep" in output
