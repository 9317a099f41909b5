"""The benchmarks have a row for each method of the library that can run on their partitions."""

from pathlib import Path

import pytest

from fedstage.experiments.catalogue import resolve_alone
from fedstage.experiments.descriptions import describe_runs
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

WORKFLOW = Path(__file__).parents[3] / "workflow"
LIBRARY = set(load_yaml(WORKFLOW / "methods.yaml"))
#: Methods that are no row, by the reason.
ELSEWHERE = {
    "heads on features of a foundation model": {"afl", "fedcgs", "safle", "fedpft"},
    "no scores yet": {
        "feddyn", "feddc",
        "fedema_distill", "fedema_distill_median",
        "takfl",
        "fedproto", "fedtgp",
        "fedgen",
        "dfrd",
    },
    "parts of a pre-trained model": {"linear_probing", "fedit", "ffa_lora", "flora"},
    "personal models, scored on their own": {"fedper", "fedrep", "fedbn", "ditto"},
    "average models, and distil nothing": {
        "fedlc", "fedavgm", "fedyogi", "fednova", "fedavg_median", "fedavg_trimmed_mean", "krum",
        "multi_krum", "fedavg_stc", "fedasync", "fedbuff", "fed_ensemble",
    },
    "variants, in the experiments of a paper": {
        "fedadam_as_released", "fedyogi_as_released", "fedadam_flamby", "fedyogi_flamby",
        "feddf_original", "feddf_improved", "fedbe_as_released", "basic_distillation_warm_up",
        "fedsdd_fedprox", "fedsdd_scaffold", "fedsdd_buffered", "fedsdd_generated", "melting",
        "ema", "ema_round", "fedet_uniform", "fedet_without_heads", "fedet_over_dissenters",
        "fens_as_released",
        "fens_ds", "fens_int8_distilled", "fedboost_all", "dense_as_released",
        "fedkd_4r_fedkd_then_fedavg", "fedkd_4r_fedavg_then_fedkd",
    },
    "the same as a row": {"fedeed", "feddf_heterogeneous", "guha_full"},
    "what a row starts from": {"core_alone"},
}  # fmt: skip


def resolved(name):
    config = validate(Config, load_yaml(WORKFLOW.parent / "config.yaml"), "config.yaml")
    return resolve_alone(config, WORKFLOW, name)


@pytest.mark.slow
def test_every_method_is_a_row_or_is_left_out_for_a_reason():
    rows = {
        run.axes["method"]
        for name in ("benchmark", "benchmark_distillation", "benchmark_one_shot")
        for run in resolved(name).runs[name, "paper"]
    }
    left_out = set().union(*ELSEWHERE.values())
    assert not rows & left_out
    assert rows | left_out == LIBRARY


@pytest.mark.slow
def test_the_legend_has_what_methods_need_more_than_others():
    catalogue = resolved("benchmark_distillation")
    runs = catalogue.runs["benchmark_distillation", "mini"]
    with_labels = {run.style.label for run in runs if run.recipe.core is not None}
    notes = describe_runs(catalogue, "benchmark_distillation", "mini")["notes"]
    assert notes[0].startswith("**FedGEMS, KD, BKD, FT + KD** need labelled samples")
    assert with_labels == {"FedGEMS", "KD", "BKD", "FT + KD"}
    moon = next(run for run in runs if run.axes["method"] == "moon")
    tried = {(run.recipe.local.mu, run.recipe.model.head.relu) for run in moon.candidates}
    assert tried == {(0.1, False), (1.0, False), (5.0, False), (10.0, False)}
    assert {run.length.role for run in moon.compared} == {"validation"}
