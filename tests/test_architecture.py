"""Rules of the architecture, checked in the source: imports between packages, and positions of imports."""

import ast
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import discrim
from discrim.estimators.base import Reducer
from discrim.registry import PUBLIC, load_target

PACKAGE = Path(discrim.__file__).parent
# A package imports from the lines above its own, or from other packages in its line.
LAYERS = [
    ["registry", "docstrings", "decompositions", "threads", "plain_format", "warn_once"],
    ["tables"],
    ["core"],
    ["engines"],
    ["estimators"],
    ["model_file", "classifier_states"],
    ["spark", "onnx", "tl"],
    ["evaluation"],
    ["report"],
    ["pl", "cli", "__main__"],
    ["papers"],
]
LAYER = {package: level for level, packages in enumerate(LAYERS) for package in packages}
CORE = {"numpy", "scipy", "sklearn"}  # required packages; numba is imported on first use


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MOVED = {"discrim.reducers", "discrim.classifiers"}  # raise an ImportError that explains how to read an old pickle
MODULES = [name for name in FILES if name not in {"discrim", *MOVED}]


def package(module):
    return module.split(".")[1]


@cache
def imports(module):
    """(imported name, whether it stands at the top of the module), typing-only imports aside."""
    parsed = tree(module)
    typing_only = {
        id(inner)
        for node in ast.walk(parsed)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    inside = {
        id(inner)
        for node in ast.walk(parsed)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(parsed):
        if id(node) in typing_only or not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for name in imported_names(node):
            found.append((name, id(node) not in inside))
    return found


def imported_names(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, "imports are absolute"
    # `from discrim.core import enemies` imports a module, `from discrim.core.enemies import f` a name
    return [
        f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in FILES else node.module for alias in node.names
    ]


@cache
def tree(module):
    """Return the syntax tree of a module."""
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def own_imports(module, *, top_only=False):
    return {name for name, top in imports(module) if name in FILES and name != "discrim" and (top or not top_only)}


@cache
def needs_numba(module):
    """Return True if importing the module imports numba."""
    names = {name for name, top in imports(module) if top}
    return any(name.split(".")[0] == "numba" for name in names) or any(
        needs_numba(name) for name in own_imports(module, top_only=True)
    )


def test_every_package_has_a_layer():
    assert {package(module) for module in MODULES} <= set(LAYER)


def test_the_architecture_page_names_every_folder():
    text = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    packages = {package(module) for module in MODULES} - {"__main__"}
    named = {one for one in packages if f"{one}/" in text or f"{one}.py" in text}
    assert packages == named


def test_imports_point_one_way():
    upward = [
        f"{module} uses {name}"
        for module in MODULES
        for name in own_imports(module)
        if LAYER[package(name)] > LAYER[package(module)]
    ]
    assert not upward


def test_the_papers_are_a_leaf():
    outside = [module for module in MODULES if package(module) != "papers"]
    assert not [module for module in outside if any(package(name) == "papers" for name in own_imports(module))]


def test_modules_do_not_import_each_other_in_a_circle():
    tuple(TopologicalSorter({module: own_imports(module) for module in MODULES}).static_order())


def test_packages_do_not_import_each_other_in_a_circle():
    between = {package(module): set() for module in MODULES}
    for module in MODULES:
        between[package(module)] |= {package(name) for name in own_imports(module)} - {package(module)}
    tuple(TopologicalSorter(between).static_order())


def test_only_numba_and_optional_dependencies_are_imported_late():
    always = CORE | set(sys.stdlib_module_names)
    hidden = [
        f"{module} imports {name} inside a function"
        for module in MODULES
        for name, top in imports(module)
        if not top and (not needs_numba(name) if name in FILES else name.split(".")[0] in always)
    ]
    assert not hidden


def test_the_public_modules_do_not_import_numba():
    opened = {entry.module for entry in PUBLIC.values()}
    assert opened <= set(FILES)
    assert not [module for module in opened if needs_numba(module)]


def test_no_module_is_named_utils_common_or_misc():
    parts = {part for path in PACKAGE.rglob("*") for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert parts.isdisjoint({"utils", "util", "common", "misc", "helpers"})


def reducers():
    """Every class of the estimators' package that is built on Reducer."""
    for module in MODULES:
        if package(module) == "estimators" and not needs_numba(module):
            for value in vars(import_module(module)).values():
                if isinstance(value, type) and issubclass(value, Reducer) and value.__module__ == module:
                    yield value


@pytest.mark.parametrize("reducer", sorted(set(reducers()), key=lambda kind: kind.__name__))
def test_fit_and_transform_are_written_once(reducer):
    for step in ("fit", "partial_fit", "transform", "inverse_transform"):
        owner = next(kind for kind in reducer.__mro__ if step in vars(kind))
        assert owner in Reducer.__mro__, f"{reducer.__name__} has a {step} of its own, from {owner.__name__}"


@pytest.mark.parametrize(
    "name", sorted(name for name, one in PUBLIC.items() if hasattr(load_target(one.target), "fit"))
)
def test_at_most_three_of_our_classes_are_above_a_method(name):
    above = [kind for kind in load_target(PUBLIC[name].target).__mro__[1:] if kind.__module__.startswith("discrim.")]
    assert len(above) <= 3, above


def test_an_estimator_is_abstract_or_final():
    for reducer in set(reducers()):
        makers = [kind.__name__ for kind in reducer.__mro__[1:] if issubclass(kind, Reducer) and not is_abstract(kind)]
        assert not makers, f"{reducer.__name__} is built on {makers}, which can be used as they are"


def is_abstract(kind):
    return any(getattr(getattr(kind, name), "__isabstractmethod__", False) for name in dir(kind))


OF_THE_FIT = {"_statistics", "_declared", "_require_solution", "n_features_in_", "n_samples_seen_", "classes_"}
SOLVES = {"_solve", "_find", "_spread", "_count", "_mean_rows", "_rest", "_components", "_factors"}


def test_a_solve_names_no_state_of_a_fit_and_a_method_has_no_flags():
    for module in (one for one in MODULES if package(one) == "estimators"):
        parsed = tree(module)
        for kind in (node for node in ast.walk(parsed) if isinstance(node, ast.ClassDef)):
            for node in kind.body:
                if isinstance(node, ast.FunctionDef) and node.name in SOLVES:
                    named = {one.attr for one in ast.walk(node) if is_of_self(one)}
                    assert not named & OF_THE_FIT, f"{module}: {kind.name}.{node.name} reads {named & OF_THE_FIT}"
                    stored = [one.attr for one in ast.walk(node) if is_of_self(one) and isinstance(one.ctx, ast.Store)]
                    assert not stored, f"{module}: {kind.name}.{node.name} sets {stored}"
    for reducer in set(reducers()) - {Reducer}:
        flags = [name for name, value in vars(reducer).items() if isinstance(value, bool | str) and name not in PLAIN]
        assert not flags, f"{reducer.__name__} states {flags} of its class; what a method needs is in _needs()"


PLAIN = {"__module__", "__doc__", "__qualname__", "__static_attributes__"}


def is_of_self(node):
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


MAY_FAIL = {"eigh", "eigvalsh", "eig", "svd", "svdvals", "cholesky", "cho_factor", "solve", "lstsq", "pinv", "eigsh"}


def test_lapack_functions_that_may_fail_are_called_in_one_module():
    """Other modules use only routines that cannot fail (qr) or that return an error code (lapack.dpotrf)."""
    for module in (one for one in MODULES if one != "discrim.decompositions"):
        parsed = tree(module)
        used = {ast.unparse(node) for node in ast.walk(parsed) if isinstance(node, ast.Attribute)}
        used |= {
            f"{node.module}.{alias.name}"
            for node in ast.walk(parsed)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        modules = ("la", "linalg", "np.linalg", "numpy.linalg", "scipy.linalg", "scipy.sparse.linalg")
        assert not used & {f"{one}.{name}" for one in modules for name in MAY_FAIL}, module


BASES = {"Basis", "Features", "GramRows", "SingularRows", "Products", "LinearOperator"}


def test_no_caller_depends_on_the_kind_of_basis():
    for module in (one for one in MODULES if package(one) != "core"):
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & BASES, f"{module}, line {node.lineno}: callers must not depend on the kind of basis"


# names that are used with the name of their module
USED_TWICE = {"compare", "load", "named"}


def test_a_public_name_has_one_meaning():
    where = {}
    for module in FILES:
        for node in tree(module).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in where.items() if len(modules) > 1 and name not in USED_TWICE} == {}


FITTED_IN = {"tables", "core", "engines", "estimators"}


def test_no_property_of_a_fit_holds_a_lock():
    """Before Python 3.12 `cached_property` has one for all instances; `discrim.threads.computed_once` has none."""
    for module in (one for one in MODULES if package(one) in FITTED_IN):
        assert "cached_property" not in FILES[module].read_text(encoding="utf-8"), module
