"""The page on data, followed: images in folders of clients, and a table of texts."""

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]


def page(heading):
    """Return the first experiment in a section of the page."""
    text = (REPOSITORY / "workflow/docs/data.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return yaml.safe_load(re.findall(r"```yaml\n(title.*?)```", section, re.DOTALL)[0])


def run(project, experiment, **model):
    experiment["base"] |= {"rounds": 3, "numerics": {"device": "cpu"}, **model}
    experiment["grid"] = {"method": ["fedavg"], "seed": [0]}
    config = {"targets": ["mine"], "experiments": {"mine": experiment}}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    return project.make(FEDSTAGE_DATA=str(project.path / "data"))


def check_results(project, clients, classes, tested):
    """Look at the names of clients and classes in all results, and at the scores by client."""
    table = pd.read_csv(project.path / "results/clients/mine/default.csv")
    own = table[table["of"] == "test"]
    assert list(own["client_name"]) == clients
    assert list(own["samples"]) == tested
    assert list(table[table["of"] == "class"]["class_name"]) == classes
    accuracy = pd.read_csv(project.path / "results/tables/mine/default.csv")["top1_accuracy"].item()
    assert (own["accuracy"] * own["samples"]).sum() / sum(tested) == pytest.approx(accuracy)
    assert accuracy > 80
    text = (project.path / "results/clients/mine/default.md").read_text()
    assert all(f"| {name} " in text for name in (*clients, *classes))


def test_images_of_several_owners(new_project):
    project, drawn = new_project(), np.random.default_rng(0)
    for owner, count in (("Basel", 10), ("Bern", 20)):
        for channel, kind in ((0, "cat"), (2, "dog")):
            folder = project.path / f"data/pets/{owner}/{kind}"
            folder.mkdir(parents=True)
            for n in range(count):
                pixels = drawn.integers(0, 90, (*drawn.integers(20, 50, 2), 3), dtype=np.uint8)
                pixels[..., channel] += 150
                Image.fromarray(pixels).save(folder / f"{n}.{'jpg' if n % 2 else 'png'}")
    run(project, page("Your own images"))
    check_results(project, ["Basel", "Bern"], ["cat", "dog"], [4, 8])
    data = str(project.path / "data")
    assert not project.make("--dry-run", FEDSTAGE_DATA=data).jobs
    Image.new("RGB", (30, 30)).save(project.path / "data/pets/Bern/cat/0.png")
    changed = project.make("--dry-run", FEDSTAGE_DATA=data)
    assert changed.jobs["dataset"] == 1
    assert changed.jobs["local_training"] == 3 * 2


def test_texts_of_several_users(new_project):
    project, drawn = new_project(), np.random.default_rng(0)
    (project.path / "data/reviews").mkdir(parents=True)
    words = {"glad": ["good", "fine", "lovely"], "sad": ["bad", "awful", "dull"]}
    rows = [
        (" ".join(drawn.choice(words[mood], 6)) + "\nreally", mood, user, "unused")
        for user, count in (("ann", 20), ("bob", 40), ("cid", 60))
        for n in range(count)
        for mood in [("glad", "sad")[n % 2]]
    ]
    with (project.path / "data/reviews/all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("review", "mood", "user", "note"), *rows])
    lstm = {"lstm": {"vocabulary": 2000, "embedding": 8, "hidden": 16, "layers": 1}}
    client = {"epochs": 8, "batch_size": 8, "learning_rate": 0.5}
    run(project, page("Your own texts"), model=lstm, client=client)
    check_results(project, ["ann", "bob", "cid"], ["glad", "sad"], [4, 8, 12])
