import xml.etree.ElementTree as ET

import pytest
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.plan.results import FORMATS
from fedstage.results.figures.style import COLUMN, PAGE, Facets, facet_columns, save_figure, style


def drawn(labels=("",), names=("a",)):
    with style():
        facets = Facets(labels, 1.5, [Line2D([], [], label=name) for name in names])
        for axes in facets.grid:
            axes.plot([0, 1], [1, 0])
        facets.label_axes("α", "Accuracy (%)")
    return facets.figure


def paths(folder, name="a"):
    return [folder / f"{name}.{kind}" for kind in FORMATS]


def test_a_figure_is_for_screens_and_print_with_its_caption_beside_it(tmp_path):
    save_figure(drawn(), paths(tmp_path), "**Mean** ± 1 deviation.")
    png, svg, pdf, caption = (path.read_bytes() for path in paths(tmp_path))
    assert png.startswith(b"\x89PNG")
    assert pdf.startswith(b"%PDF")
    assert caption.decode() == "Mean ± 1 deviation.\n"
    assert "Mean" not in svg.decode()


def test_a_caption_is_one_line_so_that_no_title_begins_a_block_of_the_report(tmp_path):
    path = tmp_path / "a.txt"
    save_figure(drawn(), [path], "A\n\n.. raw:: html\n\n   <script>b</script>\u2028. Mean.")
    assert path.read_text() == "A .. raw:: html <script>b</script> . Mean.\n"


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_the_same_byte_for_byte_and_carry_no_date_or_version(tmp_path, monkeypatch, kind):
    one, other = tmp_path / f"one.{kind}", tmp_path / f"other.{kind}"
    save_figure(drawn(), [one])
    monkeypatch.setattr("time.time", lambda: 2e9)
    save_figure(drawn(), [other])
    assert one.read_bytes() == other.read_bytes()
    for mark in (b"Matplotlib", b"<dc:date>", b"CreationDate", b"Producer"):
        assert mark not in one.read_bytes()


def test_text_stays_text(tmp_path):
    _, svg, pdf, _ = paths(tmp_path)
    save_figure(drawn(), [svg, pdf])
    texts = {
        "".join(one.itertext()) for one in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"α", "Accuracy (%)", "a"} <= texts
    assert b"/TrueType" in pdf.read_bytes() or b"/CIDFontType2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()


def test_png_has_the_resolution_of_print(tmp_path):
    from PIL import Image

    save_figure(drawn(), [tmp_path / "a.png"])
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert image.size[0] == 300 * COLUMN


def test_other_suffixes_are_refused_and_leave_nothing(tmp_path):
    with pytest.raises(FedstageError, match=r"a\.gif: suffix = '\.gif': must be \.png, \.svg"):
        save_figure(drawn(), [tmp_path / "a.png", tmp_path / "a.gif"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("facets", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (9, 3)])
def test_facets_stand_in_a_grid_as_wide_as_a_column_or_page(facets, columns, check_print):
    assert facet_columns(facets) == columns
    figure = drawn([f"data set {i}, α = 0.1" for i in range(facets)])
    assert figure.get_figwidth() == (COLUMN if facets == 1 else PAGE)
    check_print(figure)


@pytest.mark.parametrize("facets", [1, 3])
def test_many_long_names_fit_below_the_axes(facets, check_print):
    names = [f"SCAFFOLD (as released, variant {i:02})" for i in range(13)]
    figure = drawn(["a"] * facets, names)
    check_print(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= min(axes.xaxis.label.get_window_extent().y0 for axes in figure.axes[-1:])


def test_a_long_label_of_a_panel_is_folded(check_print):
    labels = ["test samples as each client prepares them, Data = cifar100, α = 0.1"] * 3
    figure = drawn(labels)
    check_print(figure)
    assert "\n" in figure.axes[0].get_title()


@pytest.mark.parametrize("name", ["$", "$a$", "$\\frac$", "$x^$ and $", "a\nb"])
def test_names_are_no_formulas(tmp_path, name):
    save_figure(drawn([name, name], [name]), [tmp_path / "figure.png"])
    assert (tmp_path / "figure.png").stat().st_size
