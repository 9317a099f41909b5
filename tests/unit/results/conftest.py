"""What every figure must be to be printed."""

import itertools

import pytest

from fedstage.results.figures.style import COLUMN, PAGE


def texts_of(figure):
    """Return the texts that are drawn, those of ticks within the axes only."""
    found = [text for legend in figure.legends for text in legend.get_texts()]
    found += [legend.get_title() for legend in figure.legends]
    for axes in figure.axes:
        if axes.axison:
            found += [axes.xaxis.label, axes.yaxis.label]
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = axis.get_major_ticks()
                found += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
        found += [axes.title, *axes.texts]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


@pytest.fixture
def check_print():
    """A function that refuses a figure which is not fit for print."""

    def check(figure):
        figure.draw_without_rendering()
        assert figure.get_suptitle() == figure.get_supxlabel() == "", "captions are the report's"
        width, height = figure.get_size_inches()
        assert width in (COLUMN, PAGE)
        assert height <= 9.3, "higher than a page"
        labels = [axes.get_title() for axes in figure.axes]
        assert len(labels) > 1 or labels == [""], "a label of a single panel"
        texts = texts_of(figure)
        boxes = {text: text.get_window_extent() for text in texts}
        for text, box in boxes.items():
            assert 7 <= text.get_fontsize() <= 9, text
            assert min(box.x0, box.y0) >= -0.5, f"{text} is cut off"
            beyond = max(box.x1 - figure.bbox.x1, box.y1 - figure.bbox.y1)
            assert beyond <= 0.5, f"{text} is cut off"
        for (one, box), (other, its) in itertools.combinations(boxes.items(), 2):
            wide = min(box.x1, its.x1) - max(box.x0, its.x0)
            high = min(box.y1, its.y1) - max(box.y0, its.y0)
            assert wide <= 0.5 or high <= 0.5, f"{one} lies over {other}"

    return check
