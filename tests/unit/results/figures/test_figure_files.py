import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.results.figures.style import Facets, facet_columns, save_figure, style


def drawn():
    with style():
        figure = Figure(figsize=(3, 2), layout="constrained")
        figure.subplots().plot([0, 1], [1, 0], label="a")
        figure.legend()
    return figure


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files_are_the_same_byte_for_byte_and_carry_no_date_or_version(tmp_path, suffix):
    one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    save_figure(drawn(), one)
    save_figure(drawn(), other)
    assert one.read_bytes() == other.read_bytes()
    assert b"Matplotlib" not in one.read_bytes()
    assert b"<dc:date>" not in one.read_bytes()


def test_png_has_the_resolution_of_print(tmp_path):
    from PIL import Image

    save_figure(drawn(), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)


def test_other_suffixes_are_refused_and_leave_nothing(tmp_path):
    with pytest.raises(FedstageError, match=r"a\.gif: suffix = '\.gif': must be \.png or \.svg"):
        save_figure(drawn(), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_long_title_takes_several_lines():
    facets = Facets([""], (3, 2), beside=0.5)
    figure = facets.annotate("word " * 20, note="", legend="", handles=[])
    assert figure.get_suptitle().count("\n") >= 2
    assert figure.legends == []


@pytest.mark.parametrize(("facets", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (9, 3)])
def test_facets_stand_in_a_grid(facets, columns):
    assert facet_columns(facets) == columns


@pytest.mark.parametrize("name", ["$", "$a$", "$\\frac$", "$x^$ and $", "a\nb"])
def test_names_are_no_formulas(tmp_path, name):
    with style():
        facets = Facets([name], (2, 2), beside=1)
        line = Line2D([], [], label=name)
        facets.label_axes(name, name)
        figure = facets.annotate(name, note=name, legend=name, handles=[line])
    save_figure(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size
