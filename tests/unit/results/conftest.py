"""What figures must be to be printed, and a working folder with runs, as `snakemake` leaves it."""

import itertools

import pytest
from measured import described, runs_file, write_metrics

from fedstage.results.figures.style import COLUMN, PAGE
from fedstage.storage.files import save_json

#: Accuracies of three seeds by method and by the value of a further axis.
ACCURACIES = {
    ("fedsdd", 0.1): [70.0, 72.0, 71.0],
    ("fedavg", 0.1): [60.0, 61.0, 61.5],
    ("fedprox", 0.1): [59.0, 63.0, 61.0],
    ("fedsdd", 1.0): [80.0, 82.0, 81.0],
    ("fedavg", 1.0): [79.0, 83.0, 81.0],
    ("fedprox", 1.0): [80.0, 82.0, 81.0],
}


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


@pytest.fixture
def folder(tmp_path):
    """The working folder; one run has scores on validation samples too."""
    runs = []
    for (method, alpha), accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            stem = f"results/training/{method}{alpha}{seed}"
            write_metrics(tmp_path / f"{stem}-test.parquet", [9.0, accuracy], auc=[None] * 2)
            settings = {"method": method, "partition.alpha": alpha, "seed": seed}
            validation = [f"{stem}-validation.parquet"]
            runs.append(described(settings, f"{stem}-test.parquet", validation=validation))
    path = tmp_path / "results/training/fedavg0.10-validation.parquet"
    write_metrics(path, [9.0, 55.0], role=["validation"] * 2)
    head = {"experiment": "tiny", "scale": "mini", "title": "Tiny", "columns": ["partition.alpha"]}
    head |= {"labels": {"fedavg": "FedAvg", "fedsdd": "FedSDD"}}
    path = tmp_path / "results/descriptions/tiny/mini.runs.json"
    path.parent.mkdir(parents=True)
    save_json(path, runs_file(runs, **head))
    return tmp_path
