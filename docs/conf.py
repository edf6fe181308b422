"""Sphinx configuration: `make docs` builds the site. No network is used; a warning is an error."""

import inspect
import re
import tomllib
from pathlib import Path

from sklearn.base import ClassifierMixin, TransformerMixin

import discrim
from discrim.registry import ENTRIES, OUR_METHODS, PUBLIC

project = "discrim"
author = "The discrim developers"
copyright = author
version = release = discrim.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # the build fails if a page or the tutorial does not run
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True  # show consecutive printed lines in one block
exclude_patterns = ["_build", "README.md", "gallery/*.ipynb", "sg_execution_times.rst"]
default_role = "literal"

html_theme = "pydata_sphinx_theme"
html_title = "discrim"
html_static_path = ["_static"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_nav_level": 2,  # the sidebar of "Which method?" lists the methods
}
html_show_sourcelink = False

numpydoc_show_class_members = False
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": False}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}


def _skips(app, what, name, obj, skip, options):
    """Skip the methods that scikit-learn adds for metadata routing, because their text links to its own pages."""
    return True if name.endswith("_request") or name == "get_metadata_routing" else skip


def _as_text(app, what, name, obj, options, lines):
    """Escape docstrings as plain text: mean_ is an attribute and |a| a length, not references."""
    in_example = False
    for at, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if in_example:
            continue
        line = re.sub(r":ref:`([^`<]+?) *(<[^`]*>)?`", r"\1", line)  # scikit-learn's labels are on its own pages
        parts = re.split(r"(``[^`]*``|`[^`]*`)", line)  # literals are every second part
        parts[::2] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", part).replace("|", "\\|") for part in parts[::2]]
        lines[at] = "".join(parts)


def setup(app):
    app.connect("autodoc-skip-member", _skips)
    app.connect("autodoc-process-docstring", _as_text, priority=900)  # after numpydoc


def _written(path: str, text: str) -> None:
    """Write a page only if it changed, so that a second build is fast."""
    page = Path(__file__).parent / path
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _reference() -> None:
    """Write the pages of the API reference from the registry."""
    kinds = {"Reducers": [], "Classifiers": [], "Comparing": [], "Displays": [], "Files and statistics": []}
    for entry in ENTRIES:
        public = getattr(discrim, entry.name)
        if inspect.isclass(public) and issubclass(public, TransformerMixin):
            kind = "Reducers"
        elif inspect.isclass(public) and issubclass(public, ClassifierMixin):
            kind = "Classifiers"
        elif entry.name.endswith("Display"):
            kind = "Displays"
        else:
            kind = "Comparing" if entry.module.startswith("discrim.evaluation") else "Files and statistics"
        kinds[kind].append(entry)
    lines = ["# API reference", "", "Everything here is imported from `discrim`.", ""]
    for kind, entries in kinds.items():
        lines += [f"## {kind}", "", "| name | description |", "| --- | --- |"]
        for entry in entries:
            summary = inspect.getdoc(getattr(discrim, entry.name)).splitlines()[0]
            lines.append(f"| [{entry.name}](api/{entry.name}.rst) | {summary} |")
        lines += [""]
    lines += ["```{toctree}", ":hidden:", "", *(f"api/{entry.name}" for entry in ENTRIES), "```", ""]
    _written("api.md", "\n".join(lines))
    for name in PUBLIC:
        directive = "autoclass" if inspect.isclass(getattr(discrim, name)) else "autofunction"
        members = "\n   :members:\n   :inherited-members:" if directive == "autoclass" else ""
        _written(f"api/{name}.rst", f"{name}\n{'=' * len(name)}\n\n.. {directive}:: discrim.{name}{members}\n")


def _pictures() -> dict[str, str]:
    """Draw held-out digits on two components of every method; return the accuracy of five neighbours on them."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    X, y = load_digits(return_X_y=True)
    train, new, y_train, y_new = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    scores, folder = {}, Path(__file__).parent / "_static" / "methods"
    folder.mkdir(parents=True, exist_ok=True)
    for method in OUR_METHODS:
        model = make_pipeline(MaxAbsScaler(), method.estimator(2, 0)).fit(train, y_train)
        Z, Z_train = model.transform(new), model.transform(train)
        right = KNeighborsClassifier(5).fit(Z_train, y_train).score(Z, y_new)
        scores[method.name] = f"{100 * right:.0f} %"
        if not (folder / f"{method.name}.png").exists():
            figure, axes = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
            for digit in range(10):
                axes.scatter(*Z[y_new == digit].T, marker=f"${digit}$", s=28, linewidths=0.3, color=f"C{digit}")
            axes.set(xticks=[], yticks=[], aspect="equal", xlabel="component 1", ylabel="component 2")
            figure.savefig(folder / f"{method.name}.png", dpi=100)
            plt.close(figure)
    return scores


def _methods() -> None:
    """Write a page for each method: docstring, picture, when to use it and when not, accuracy."""
    texts = tomllib.loads((Path(__file__).parent / "methods.toml").read_text(encoding="utf-8"))
    scores = _pictures()
    lines = ["# Methods", "", "| method | use it when | also known as |", "| --- | --- | --- |"]
    listed = [entry for entry in ENTRIES if entry.saved]
    for entry in listed:
        text = texts.get(entry.name, {})
        lines.append(
            f"| [{entry.name}](methods/{entry.name}.md) | {text.get('when', entry.gloss)} "
            f"| {', '.join(text.get('aliases', []))} |"
        )
        page = [f"# {entry.name}", "", f"**Use it when:** {text.get('when', '')}", ""]
        page += [f"**Not when:** {text.get('when_not', '')}", ""]
        if "aliases" in text:
            page += [f"*Also known as:* {', '.join(text['aliases'])}.", ""]
        for method in entry.methods:
            page += [
                f"![New digits on two components of {method.name}](../_static/methods/{method.name}.png)",
                "",
                f"`{method.name}`: {method.gloss}. Accuracy of five neighbours on two components of new digits "
                f"(a third of 1,797): {scores[method.name]}. [Results on many data sets](../study.md).",
                "",
            ]
        page += ["```{eval-rst}", f".. autoclass:: discrim.{entry.name}", "   :no-index:", "```", ""]
        _written(f"methods/{entry.name}.md", "\n".join(page))
    lines += ["", "```{toctree}", ":hidden:", "", *(f"methods/{entry.name}" for entry in listed), "```", ""]
    _written("methods.md", "\n".join(lines))


_reference()
_methods()
