"""Code of docs/architecture.md: each worked example runs, and its method satisfies the laws."""

import json
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest
import test_contract
import test_invariances
import test_numbers
import test_paths_agree
from estimators import Case
from samples import labelled
from sklearn.utils.estimator_checks import check_estimator

from discrim import FisherLDA
from discrim.report.chart import Words, as_json, chart_json
from discrim.tables.formats import KINDS
from discrim.tables.read import read_table
from discrim.tables.source import OPENERS

PAGE = Path(__file__).parents[1] / "docs/architecture.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the docs are in the repository only")


def blocks():
    """Return the Python blocks of the page by their headings."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    sections = re.split(r"^##+ (.*)$", text, flags=re.MULTILINE)
    found = {
        title: "".join(re.findall(r"```python\n(.*?)```", body, re.DOTALL))
        for title, body in zip(sections[1::2], sections[2::2], strict=True)
    }
    return {title: code for title, code in found.items() if code}


EXAMPLES = blocks()
METHODS = ("A spread", "A gain over a cost", "Rows")


@pytest.fixture(scope="module")
def run():
    """Run the examples in the order of the page, and return the names that each leaves."""
    page, after = ModuleType("architecture_page"), {}
    sys.modules[page.__name__] = page  # where pickle looks for its classes
    with patch.dict(KINDS), patch.dict(OPENERS):
        for title, code in EXAMPLES.items():
            exec(compile(code, str(PAGE), "exec"), vars(page))
            after[title] = dict(vars(page))
        yield after
    del sys.modules[page.__name__]


@pytest.fixture(params=METHODS)
def case(request, run):
    method = run[request.param]["method"]
    return Case(method.name, partial(method.estimator, seed=0), method.laws)


@pytest.mark.parametrize(
    "law",
    [
        test_invariances.test_order_of_rows,
        test_invariances.test_origin,
        test_invariances.test_axes,
        test_invariances.test_unit,
        test_invariances.test_every_row_twice,
        test_invariances.test_weights_are_repetition,
        test_invariances.test_refit_gives_the_same_bits,
    ],
)
def test_an_added_method_is_invariant(case, law, table, rng):
    plain = case(2).fit(*table)
    given = {"case": case, "k": 2, "table": table, "plain": plain, "rng": rng}
    law(**{name: given[name] for name in law.__code__.co_varnames[: law.__code__.co_argcount]})


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_an_added_method_is_exact_at_an_offset(case, table, offset):
    test_numbers.test_directions_at_an_offset(case, table, offset)


def test_an_added_method_gives_the_same_answer_in_every_way(case, table):
    test_paths_agree.test_every_basis_gives_the_same_answer(case, table)
    if case.laws.streams:
        test_paths_agree.test_a_stream_equals_one_fit(case, table)
    else:
        test_contract.test_no_partial_fit_if_statistics_do_not_add_up(case)


def test_an_added_classifier_keeps_scikit_learns_contract(run):
    kind = run["Adding a classifier"]["NearestMean"]
    check_estimator(kind(), on_skip=None)
    X, y = labelled(60, 4)
    assert kind().fit(X, y).score(X, y) > 0.6
    assert run["Adding a classifier"]["entry"].name == kind.__name__
    with pytest.raises(ValueError, match="row 3, column 1"):
        kind().fit(np.where(np.arange(240).reshape(60, 4) == 13, np.nan, X), y)


def test_an_added_chart_is_drawn_by_matplotlib_and_by_the_page(run):
    pytest.importorskip("matplotlib").use("agg")
    kind = run["Adding a chart"]["ClassSizeDisplay"]
    drawn = kind.from_labels(["a", "b", "b"], alpha=0.5)
    assert [bar.get_height() for bar in drawn.artists_["counts"][""]] == [1, 2]
    assert [label.get_text() for label in drawn.ax_.get_xticklabels()] == ["a", "b"]
    assert drawn.artists_["counts"][""][0].get_alpha() == 0.5
    assert "{" not in kind.__doc__ + kind.from_labels.__doc__
    assert '"columns"' in as_json(chart_json(drawn.chart_, Words()))


@pytest.mark.usefixtures("run")
def test_an_added_file_format_is_read_and_fitted(tmp_path):
    X, y = labelled(60, 3)
    lines = [json.dumps({"a": r[0], "b": r[1], "c": r[2], "kind": f"k{c}"}) for r, c in zip(X, y, strict=True)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_table(path, "kind")
    np.testing.assert_array_equal(table.X, X)
    assert list(table.feature_names) == ["a", "b", "c"]
    wanted = FisherLDA(2).fit(X, y).components_
    np.testing.assert_allclose(FisherLDA(2).fit(path, "kind").components_, wanted, atol=1e-10)
    path.write_text("\n".join([*lines, json.dumps({"b": 1.0, "c": 2.0, "kind": "k1"})]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"row 61|'a'"):
        read_table(path, "kind")
