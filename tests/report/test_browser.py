"""The page in a real browser: no errors, no requests, and working controls. Skipped without chromium."""

import re
import shutil
from pathlib import Path

import pytest
from pages import HOSTILE, made_up, trees

from discrim.report import page as page_module
from discrim.report.first_split import looks_of
from discrim.report.page import content_policy, write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHARTS = ("curves", "map", "margins", "features", "circle", "spectrum")
MOVES = ("Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes")
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Tab:
    """A page opened from its file, without a network, and all that went wrong on it."""

    def __init__(self, browser, path, viewport, scheme):
        self.errors, self.requests, self.dialogs = [], [], []
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(path.as_uri())
        until(self.page, "!!window.Plotly")

    def require_quiet(self):
        assert not self.errors
        assert not self.dialogs
        assert self.requests  # the file itself
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def tabs(browser):
    """Pages that are open already, by file, width and scheme: starting the charts is what costs time."""
    kept = {}
    yield kept
    for tab in kept.values():
        tab.context.close()


@pytest.fixture
def opened(browser, tabs):
    """Opens a file; at the end of the test nothing may have gone wrong, and no request may have left the page."""
    used = []

    def open_page(path, viewport=DESK, scheme="light"):
        key = path, viewport["width"], scheme
        if key not in tabs:
            tabs[key] = Tab(browser, path, viewport, scheme)
        used.append(tabs[key])
        return tabs[key].page

    yield open_page
    for tab in used:
        tab.require_quiet()


def until(tab, condition, tries=300):
    """Wait for a condition; the page's policy forbids the driver's own way, which evaluates text in the page."""
    for _ in range(tries):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"it did not come to: {condition}")


def chart(tab, name):
    """The chart of that name, in view and drawn."""
    found = tab.locator(f'.block:not([hidden]) [data-chart="{name}"], #ranks [data-chart="{name}"]').first
    found.scroll_into_view_if_needed()
    until(tab, f"""[...document.querySelectorAll('[data-chart="{name}"]')].some((e) => e.dataset.drawn)""")
    return found


def opening(tab):
    """Return the CPU seconds of the page's main thread until it is loaded, independent of the machine's load."""
    other = tab.context.new_page()
    session = tab.context.new_cdp_session(other)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    other.goto(tab.url)
    took = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}["TaskDuration"]
    other.close()
    return took


def traces(found):
    return found.evaluate(
        "(e) => e.data.map((t) => ({name: t.name, type: t.type, visible: t.visible ?? true, x: t.x, y: t.y}))"
    )


def figure(tab, name):
    return tab.locator("figure", has=tab.locator(f'[data-chart="{name}"]'))


def choose(tab, name, control, value):
    figure(tab, name).locator(f'[data-control="{control}"]').first.select_option(value)


def test_every_chart_is_drawn_and_the_page_opens_at_once(opened, page):
    tab = opened(page)
    for name in CHARTS:
        assert chart(tab, name).locator("svg.main-svg").count()
    assert 0 < opening(tab) < 1


def test_large_data_open_quickly_and_state_the_sample(opened, large_page):
    tab = opened(large_page)
    assert 0 < opening(tab) < 1
    chart(tab, "map")
    caption = figure(tab, "map").locator("[data-caption]").inner_text()
    assert caption.endswith("% of the new rows; 500 of 8000 fitted and 500 of 2000 new rows drawn, at random.")


# Every name that a button of plotly's has or had which sends the chart somewhere, or changes it in another service.
LEAVING = ("cloud", "share", "send", "edit", "studio", "upload", "publish", "logo", "plotly")


def test_no_button_leaves_the_page(opened, page):
    tab = opened(page)
    for name in CHARTS:
        shown = chart(tab, name)
        shown.hover()
        buttons = shown.locator(".modebar-btn")
        titles = [str(buttons.nth(at).get_attribute("data-title")) for at in range(buttons.count())]
        assert len(titles) == 6
        assert set(titles) <= {"Download plot as a PNG", "Download plot as a png", "Download plot", *MOVES}
        assert not [title for title in titles if any(word in title.lower() for word in LEAVING)]
        assert shown.locator("a[href], .modebar-btn--logo").count() == 0


def test_the_buttons_are_listed_explicitly():
    script = (Path(page_module.__file__).parent / "templates" / "report.js").read_text(encoding="utf-8")
    (named,) = re.findall(r"const BUTTONS = \[(.*?)\]", script)
    assert "modeBarButtons: [BUTTONS]" in script
    assert not [word for word in LEAVING if word in named.lower()]
    assert "modeBarButtonsToAdd" not in script


def test_no_requests_with_the_bundled_plotly(opened, page, tmp_path):
    """The newest library offers more buttons by default: with our list none of them is there."""
    other = (
        pytest.importorskip("plotly.offline").get_plotlyjs().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    )
    text = page.read_text(encoding="utf-8")
    shipped = (Path(page_module.__file__).parent / "vendor" / "plotly-basic.min.js").read_text(encoding="utf-8")
    script = (Path(page_module.__file__).parent / "templates" / "report.js").read_text(encoding="utf-8")
    assert shipped in text
    swapped = text.replace(shipped, other).replace(content_policy_in(text), content_policy([other, script]))
    path = tmp_path / "swapped.html"
    path.write_text(swapped, encoding="utf-8")
    tab = opened(path)
    shown = chart(tab, "curves")
    shown.hover()
    buttons = shown.locator(".modebar-btn")
    titles = [str(buttons.nth(at).get_attribute("data-title")) for at in range(buttons.count())]
    assert len(titles) == 6
    assert not [title for title in titles if any(word in title.lower() for word in LEAVING)]


def content_policy_in(text):
    return re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]


@pytest.mark.parametrize(("viewport", "last"), [(DESK, ".command"), (PHONE, ".cards")], ids=["desk", "phone"])
def test_the_answer_is_on_the_first_screen(opened, page, viewport, last):
    tab = opened(page, viewport)
    box = tab.locator(last).first.bounding_box()
    assert box["y"] + box["height"] < viewport["height"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_legend_and_menu_of_the_curves(opened, page, found):
    tab = opened(page)
    curves = chart(tab, "curves")
    first = found.lines[0].classifier
    shown = {trace["name"]: trace for trace in traces(curves) if trace["name"]}
    assert set(shown) == {"fisher-lda", "pca", "raw (6 features)"}
    line = next(line for line in found.lines if (line.method, line.classifier) == ("fisher-lda", first))
    assert shown["fisher-lda"]["x"] == list(line.curve)
    assert shown["fisher-lda"]["y"] == pytest.approx([100 * mean for mean in line.curve.values()], rel=1e-3)
    place = curves.locator(".legendtext").all_text_contents().index("pca")
    curves.locator(".legendtoggle").nth(place).click(force=True)
    until(tab, "document.querySelector('[data-chart=curves]').data.some((trace) => trace.visible === 'legendonly')")
    hidden = [trace for trace in traces(curves) if trace["visible"] == "legendonly"]
    assert "pca" in [trace["name"] for trace in hidden]
    assert len(hidden) == 2  # the curve and its band
    choose(tab, "curves", "classifier", "1")
    other = next(one for one in found.lines if one.method == "fisher-lda" and one.classifier != first)
    curve = next(trace for trace in traces(curves) if trace["name"] == "fisher-lda")
    assert curve["y"] == pytest.approx([100 * mean for mean in other.curve.values()], rel=1e-3)
    options = figure(tab, "curves").locator("[data-control=classifier] option").all_text_contents()
    assert sorted(options) == ["5-nn", "itself", "svm"]  # those of raw features alone have no curve


def test_menus_of_the_projection(opened, page):
    tab = opened(page)
    shown = chart(tab, "map")
    points = [trace for trace in traces(shown) if trace["name"]]
    assert sum(len(trace["x"]) for trace in points) == 18  # of three classes, new
    assert figure(tab, "map").locator("table.matrix:visible").count() == 1
    slider = figure(tab, "map").locator("[data-turn]")
    assert not slider.is_visible()
    choose(tab, "map", "view", "1")
    assert slider.is_visible()
    before = traces(shown)
    slider.focus()
    tab.keyboard.press("ArrowRight")
    until(tab, "Number(document.querySelector('[data-turn]').value) === 36")
    tab.wait_for_timeout(100)
    assert traces(shown) != before
    names = shown.locator("text").filter(has_text="component 3").first
    frame, box = shown.bounding_box(), names.bounding_box()
    assert frame["x"] <= box["x"]
    assert box["x"] + box["width"] <= frame["x"] + frame["width"]
    choose(tab, "map", "view", "0")
    choose(tab, "map", "method", "1")
    assert [trace["x"] for trace in traces(shown) if trace["name"]] != [trace["x"] for trace in points]
    choose(tab, "map", "method", "0")


def test_one_unit_is_as_long_across_as_upwards(opened, page):
    tab = opened(page)
    for name in ("map", "circle"):
        unit = "(a) => a._length / Math.abs(a.range[1] - a.range[0])"
        found = f"(e) => [e._fullLayout.xaxis, e._fullLayout.yaxis].map({unit})"
        across, up = chart(tab, name).evaluate(found)
        assert across == pytest.approx(up, rel=1e-3)


def test_hovering_a_row_shows_its_name_class_and_prediction(opened, page):
    tab = opened(page)
    shown = chart(tab, "map")
    traces = shown.evaluate("(e) => e.data.filter((t) => t.showlegend).map((t) => [t.name, t.hovertext])")
    for name, texts in traces:
        for text in texts:
            assert re.fullmatch(rf"<b>{name}</b><br>row \d+<br>predicted (ash|birch|cedar)", text)
    shown.locator(".scatterlayer .trace").last.locator(".point").first.hover(force=True)
    until(tab, "!!document.querySelector('[data-chart=map] .hovertext')")
    assert "predicted" in shown.locator(".hovertext").first.text_content()


def test_a_chart_is_moved_and_enlarged_by_keys(opened, page):
    tab = opened(page)
    shown = chart(tab, "map")
    limits = "(e) => e._fullLayout.xaxis.range.slice()"
    whole = shown.evaluate(limits)
    shown.focus()
    tab.keyboard.press("+")
    near = shown.evaluate(limits)
    assert near[1] - near[0] < 0.9 * (whole[1] - whole[0])
    tab.keyboard.press("ArrowRight")
    assert shown.evaluate(limits)[0] > near[0]
    tab.keyboard.press("0")
    low = "document.querySelector('[data-chart=map]')._fullLayout.xaxis.range[0]"
    until(tab, f"Math.abs({low} - ({whole[0]})) < 1e-6")


def test_a_feature_is_found_by_its_name(opened, page, found):
    tab = opened(page)
    chart(tab, "features")
    box = figure(tab, "features").locator("[data-search]")
    table = figure(tab, "features").locator("[data-found]")
    assert not table.is_visible()
    box.fill("LEAF 3")
    assert table.locator("tbody tr").count() == 1
    values = looks_of(found).methods[0].loadings.structure[:, 3]
    cells = table.locator("tbody td").all_inner_texts()
    assert [float(text) for text in cells] == pytest.approx(values.tolist(), abs=1e-3)
    box.fill("leaf")
    assert table.locator("tbody tr").count() == 6
    sizes = [max(abs(float(text)) for text in row.split()[2:]) for row in table.locator("tbody tr").all_inner_texts()]
    assert sizes == sorted(sizes, reverse=True)
    box.fill("")
    assert figure(tab, "features").locator("[data-count]").inner_text() == "6 features"


def test_the_command_is_copied(opened, page):
    tab = opened(page)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = tab.locator("[data-copy]").first
    button.click()
    until(tab, "document.querySelector('[data-copy]').textContent === 'copied'")
    assert tab.evaluate("navigator.clipboard.readText()").startswith("discrim project trees.csv --target tree --method")


def test_a_table_that_goes_on_is_shaded_at_its_edge(opened, page):
    tab = opened(page, PHONE)
    shade = tab.locator(".scroll").first.evaluate("(e) => getComputedStyle(e).backgroundImage")
    assert shade.count("linear-gradient") == 4


def test_words_stay_whole_on_a_phone_and_the_legend_is_below_the_title(opened, page):
    tab = opened(page, PHONE)
    lines = "(e) => e.getClientRects().length"
    codes = tab.locator("p code, code.long span")
    assert codes.count() >= 3
    assert {codes.nth(at).evaluate(lines) for at in range(codes.count())} == {1}
    choose(tab, "map", "method", "1")  # a linear map: the title of its axis has two lines
    box = "(e) => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    title, legend = (chart(tab, "map").locator(part).first.evaluate(box) for part in (".xtitle", ".legend"))
    assert title[1] <= legend[0]


def test_menus_of_margins_features_and_spectrum(opened, page):
    tab = opened(page)
    for name in ("margins", "features", "spectrum"):
        before = traces(chart(tab, name))
        choose(tab, name, "method", "1")
        assert traces(chart(tab, name)) != before
    choose(tab, "features", "kind", "1")
    assert chart(tab, "features").evaluate("(e) => e.layout.xaxis.title.text") == "loading"
    caption = figure(tab, "margins").locator("[data-caption]").inner_text()
    assert re.search(r"Above 0: [\d.]+ % of the rows in the features, [\d.]+ % on the components", caption)


def test_one_component_has_no_arrows(opened, tmp_path):
    write_report([made_up(trees(), "wood", [("fisher-lda", 1, 0.9), ("pca", 2, 0.6)])], tmp_path / "report.html")
    tab = opened(tmp_path / "report.html")
    for method, there in enumerate((False, True)):
        choose(tab, "features", "method", str(method))
        assert figure(tab, "features").locator('[data-chart="circle"]').is_visible() == there
        assert figure(tab, "features").get_by_text("The arrows are the features").is_visible() == there


def column(tab, at):
    return tab.locator(".ranked").first.locator(f"tbody tr > :nth-child({at})").all_inner_texts()


def test_the_table_is_sorted_by_mouse_and_keyboard(opened, page, found):
    tab = opened(page)
    head = tab.locator(".ranked").first.locator("thead th")
    head.nth(2).locator("button").click()
    counts = [int(text) for text in column(tab, 3)]
    assert counts == sorted(counts, reverse=True)
    assert head.nth(2).get_attribute("aria-sort") == "descending"
    tab.keyboard.press("Enter")  # the button still has the focus
    counts = [int(text) for text in column(tab, 3)]
    assert counts == sorted(counts)
    assert head.nth(2).get_attribute("aria-sort") == "ascending"
    head.nth(0).locator("button").focus()
    tab.keyboard.press("Space")
    assert column(tab, 1) == sorted(column(tab, 1))
    assert head.nth(2).get_attribute("aria-sort") is None
    gaps = sorted((line.against_pca.mean for line in found.lines if line.method != "pca"), reverse=True)
    for order in (gaps, gaps[::-1]):
        head.nth(5).locator("button").click()
        over_pca = [text.split()[0].replace("−", "-") for text in column(tab, 6)]
        assert over_pca == [f"{100 * gap:+.1f}" for gap in order] + ["–"] * 2  # PCA's own lines: always last


def test_light_and_dark(opened, page):
    tab = opened(page, scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "(e) => e.layout.font.color"
    dark, dark_ink = tab.evaluate(ground), chart(tab, "curves").evaluate(ink)
    tab.locator("#theme").click()
    assert tab.evaluate(ground) == "rgb(255, 255, 255)" != dark
    assert chart(tab, "curves").evaluate(ink) != dark_ink
    tab.locator("#theme").click()
    assert tab.evaluate(ground) == dark


def test_a_print_is_light_whole_and_as_wide_as_the_paper(opened, page):
    tab = opened(page, scheme="dark")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    charts = tab.evaluate(
        "[...document.querySelectorAll('.chart')].map((e) => [e.dataset.drawn, e.layout.font.color, e.clientWidth])"
    )
    assert len(charts) == 6
    assert all(drawn == "yes" and ink == "#000" and 0 < width <= 660 for drawn, ink, width in charts)
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert chart(tab, "curves").evaluate("(e) => e.layout.font.color") != "#000"
    assert len(tab.pdf()) > 50_000


def test_several_data_sets(opened, page_of_three):
    tab = opened(page_of_three)
    ranks = chart(tab, "ranks")
    names = ranks.evaluate("(e) => e.layout.yaxis.ticktext")
    assert [name.split()[0] for name in names] == ["fisher-lda", "raw", "pca"]
    assert "wood 0" in tab.locator(".question:visible").inner_text()
    tab.locator("#block").select_option("2")
    assert "wood 2" in tab.locator(".question:visible").inner_text()
    assert tab.locator('[data-chart="map"]:visible').count() == 0
    assert tab.locator(".note:visible").count() == 4
    tab.locator("#block").select_option("1")
    assert chart(tab, "map").locator("svg.main-svg").count()


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_names_stay_text(opened, hostile_page, viewport):
    tab = opened(hostile_page, viewport)
    for name in CHARTS:
        if name != "circle" or viewport is not PHONE:  # names that are too long for arrows on a narrow screen
            chart(tab, name)
    assert tab.evaluate("document.querySelectorAll('script').length") == 4  # values, plotly as text and at work, ours
    assert (
        tab.evaluate("document.querySelectorAll('main img, main a[href]:not([href^=\"#\"]), main script').length") == 0
    )
    assert "{{7*7}}" in tab.locator("main").inner_text()
    legend = chart(tab, "map").locator(".legendtext").all_text_contents()
    assert any(text.startswith("<script>alert('class')") for text in legend)
    assert any("{{7*7}}" in text for text in legend)
    ticks = chart(tab, "features").locator(".ytick").all_text_contents()
    assert any("<img src" in text or "</script>" in text for text in ticks)
    assert not chart(tab, "features").locator(".ytick tspan[style*='bold'], .ytick a").count()
    assert tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert len(HOSTILE) == tab.locator(".notes li").filter(has_text="failed").count()
