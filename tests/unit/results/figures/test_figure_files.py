import pytest
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.plan.results import FORMATS
from fedstage.results.figures.style import Facets, save_figure, style


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


def test_other_suffixes_are_refused_and_leave_nothing(tmp_path):
    with pytest.raises(FedstageError, match=r"a\.gif: suffix = '\.gif': must be \.png, \.svg"):
        save_figure(drawn(), [tmp_path / "a.png", tmp_path / "a.gif"])
    assert list(tmp_path.iterdir()) == []
