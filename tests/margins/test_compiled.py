"""Where compiled code is kept, what is said of it, and that a first fit in a fresh installation does not take long."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import discrim

FIT = """
import logging, time
logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
import discrim
from sklearn.datasets import load_wine
X, y = load_wine(return_X_y=True)
start = time.process_time()
print(discrim.{model}.fit(X, y).transform(X).shape[0], time.process_time() - start)
"""


def fitted(model, folder, **environment):
    ran = subprocess.run(
        [sys.executable, "-c", FIT.format(model=model)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | environment,
    )
    assert ran.returncode == 0, ran.stderr
    rows, seconds = ran.stdout.split()
    assert rows == "178"
    return float(seconds), ran.stderr


@pytest.mark.parametrize("model", ["MaxMarginShift()", "MarginSubspace()", "MarginPCA(pairs='nearest')"])
def test_the_first_fit_of_a_fresh_installation(model, tmp_path):
    seconds, told = fitted(model, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert seconds < 12  # 4 where nothing else runs: this machine may be busy, and was at 25
    assert ("discrim: compiling sweep, once for each installation" in told) == ("nearest" not in model)
    _, told = fitted(model, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert "compiling" not in told


def test_nothing_can_be_written(tmp_path):
    """A container: the package and the home folder are read-only."""
    package = tmp_path / "site" / "discrim"
    shutil.copytree(Path(discrim.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "home"
    home.mkdir()
    for folder in [home, tmp_path / "site", *[path for path in package.rglob("*") if path.is_dir()], package]:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(package, os.W_OK):  # root may write anywhere: say no in numba's stead
        (tmp_path / "sitecustomize.py").write_text(
            "import numba.core.caching as c\n"
            "for locator in c.CacheImpl._locator_classes: locator.from_function = classmethod(lambda *_: None)\n"
        )
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "site")])
    environment = {"PYTHONPATH": path, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    try:
        _, told = fitted("MaxMarginShift()", tmp_path, **environment, PYTHONDONTWRITEBYTECODE="1")
    finally:
        for folder in [tmp_path / "site", package, *package.rglob("*"), home]:
            folder.chmod(stat.S_IRWXU)
    assert "compiling sweep" in told
