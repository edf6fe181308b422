"""The code of the documentation runs, and docstrings follow numpydoc."""

import ast
import inspect
import json
import re
import shlex
from doctest import DocTestFinder, DocTestRunner
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import discrim
from discrim.docstrings import fill, fill_estimator
from discrim.estimators.classifiers import KernelNaiveBayes
from discrim.registry import PUBLIC

# numpydoc's own rules, but for links between pages, long summaries, and how a description begins (with γ, σ², n …)
LEFT_OUT = {"SA01", "SA04", "ES01", "EX01", "GL08", "PR08", "YD01"}
DOCS = Path(discrim.__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_follow_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    found = [f"{code} {text}" for code, text in validate(f"discrim.{name}")["errors"] if code not in LEFT_OUT]
    assert not found


@pytest.mark.parametrize("name", [name for name in PUBLIC if hasattr(getattr(discrim, name), "get_params")])
def test_defaults_are_those_that_the_docstring_names(name):
    shown = getattr(discrim, name)
    parameters = shown.__doc__.partition("Attributes\n")[0]
    documented = dict(re.findall(r"^    (\w+) : .*default=(.+)$", parameters, re.MULTILINE))
    given = {
        name: one.default for name, one in inspect.signature(shown).parameters.items() if one.default is not one.empty
    }
    assert {name: ast.literal_eval(value) for name, value in documented.items()} == given


@pytest.mark.parametrize("name", PUBLIC)
def test_every_placeholder_of_a_docstring_is_filled(name):
    shown = getattr(discrim, name)
    own = inspect.isclass(shown) and [getattr(shown, one, None) for one in dir(shown) if not one.startswith("_")]
    for one in [shown, *filter(callable, own or [])]:
        assert not re.search(r"^ *\{\w+\}$", inspect.getdoc(one) or "", re.MULTILINE)


def test_shared_docstring_parts_give_way_to_own_descriptions():
    own = "Rows.\n\n    Attributes\n    ----------\n    rank_ : int\n        Own words.\n    {fitted}\n"
    common = {"fitted": "{first}\nrank_ : int\n    Other words.\n", "first": "solver_ : str\n    How.\n"}
    assert fill(own, common) == own.replace("{fitted}", "solver_ : str\n        How.")
    assert fill(None, common) is None
    nested = {"all": "solver_: How.\n{first}\n", "first": "rank_: Number.\n"}
    assert fill("solver_ : str\n    Own.\n{all}", nested) == "solver_ : str\n    Own.\nrank_: Number."
    assert fill("Class of another package.\n\n    {other}\n", common).endswith("{other}\n")


def test_short_entries_get_the_type_of_their_name_and_the_default_of_the_constructor():
    class Own:
        """Rows.

        tol: When to stop,
            relative to the first.
        kernel: No common type.
        rank_: Number of directions.
        Note: Any text.
        """

        def __init__(self, tol=0.5, kernel="rbf", cv="none"):
            """
            Set.

            tol: Text.
            """

        def predict(self, X):
            """
            Predict.

            {predicted}
            """

    fill_estimator(Own)
    lines = [line.strip() for line in Own.__doc__.splitlines()]
    assert lines[2:5] == ["tol : float, default=0.5", "When to stop,", "relative to the first."]
    assert lines[5:9] == ["kernel: No common type.", "rank_ : int", "Number of directions.", "Note: Any text."]
    assert "\n            labels : array of shape (n_samples,)\n" in Own.predict.__doc__
    assert "tol: Text." in Own.__init__.__doc__


@pytest.mark.parametrize("shown", [*map(discrim.__getattr__, PUBLIC), KernelNaiveBayes], ids=lambda one: one.__name__)
@pytest.mark.filterwarnings("ignore")
def test_the_example_of_the_docstring_runs(shown):
    example = DocTestFinder(recurse=False).find(
        shown, shown.__name__, globs={shown.__name__: shown, "discrim": discrim}
    )[0]
    assert example.examples
    assert DocTestRunner().run(example).failed == 0


@pytest.mark.skipif(not DOCS.is_dir(), reason="only the repository has the docs")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", ["refinement", "max_margin_shift"])
def test_the_code_of_the_page_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    X, y = load_digits(return_X_y=True) if page == "max_margin_shift" else load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    for block in blocks:
        exec(block, {"X": X[rows], "y": y[rows], "X_new": X[rows[:5]]})
    assert blocks


def run_cells(cells):
    assert cells
    names = {}
    for cell in cells:
        exec(cell, names)
    return names


@pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are in the repository only")
def test_the_page_on_prediction_runs(tmp_path, monkeypatch):
    testing = pytest.importorskip("typer.testing", reason="typer is not installed")
    from discrim.cli import application

    monkeypatch.chdir(tmp_path)
    iris = load_iris(as_frame=True)
    flowers = iris.data.assign(species=iris.target_names[iris.target])
    flowers[::2].to_csv("flowers.csv", index=False)
    iris.data[1::2].to_csv("new_flowers.csv", index=False)
    text = (DOCS / "predict.md").read_text(encoding="utf-8")
    commands = re.findall(r"^discrim .*$", text, re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["compare", "project", "apply", "project", "apply"]
    for command in commands[1:]:
        assert (
            testing.CliRunner().invoke(application(), shlex.split(command)[1:], catch_exceptions=False).exit_code == 0
        )
    names = run_cells(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert names["accuracy"] > 0.9
    predicted = [line.split(",")[2] for line in Path("predicted.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert np.mean(np.array(predicted) == flowers["species"][1::2]) > 0.9
    assert len(Path("new_features.csv").read_text(encoding="utf-8").splitlines()) == 76


@pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are in the repository only")
def test_the_table_on_prediction_names_every_reducer_that_predicts():
    text = (DOCS / "predict.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*`) \| yes \| (yes|no) \|$", text, re.MULTILINE)
    listed = {name: word == "yes" for names, word in rows for name in re.findall(r"`(\w+)`", names)}
    classes = {name: getattr(discrim, name) for name in PUBLIC}
    reducers = {name: one for name, one in classes.items() if hasattr(one, "transform") and hasattr(one, "predict")}
    assert listed == {name: hasattr(one, "predict_proba") for name, one in reducers.items()}


# The site runs these pages and shows their output; pages of the guide without code are listed here.
GUIDE = sorted(page.stem for page in (DOCS / "guide").glob("*.md") if page.stem not in ("index", "displays"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", GUIDE)
def test_the_page_of_the_guide_runs(page):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    run_cells(
        re.findall(r"```{code-cell}\n(.*?)```", (DOCS / f"guide/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    )
    pyplot.close("all")


@pytest.mark.skipif(not DOCS.is_dir(), reason="only the repository has the docs")
@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_runs_from_top_to_bottom():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    cells = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    run_cells(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"])
    pyplot.close("all")


@pytest.mark.skipif(not DOCS.is_dir(), reason="only the repository has the docs")
def test_the_tests_that_a_page_names_exist():
    for path, name in re.findall(r"`([\w/]+\.py)::(\w+)`", (DOCS / "reliability.md").read_text(encoding="utf-8")):
        held = (DOCS.parent / "tests" / path).read_text(encoding="utf-8")
        assert f"def {name}(" in held, f"{path} has no {name}"
