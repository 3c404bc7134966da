"""report.md, the JSON and the terminal tables of one small run."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from eureka_agent.records import Attempt, CurvePoint, RunStatus, Score, Stage
from eureka_agent.report.as_json import attempt_in_full_to_json, to_json
from eureka_agent.report.attempt_page import attempt_document, render_attempt
from eureka_agent.report.html.document import html_report
from eureka_agent.report.markdown import markdown
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.tables import render_end, render_run, render_runs
from eureka_agent.settings import SearchSettings


def printed(renderable: RenderableType, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(renderable)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    return text


def test_report_answers_in_order(report: RunReport) -> None:
    text = markdown(report)
    titles = [
        line for line in text.splitlines() if line.startswith("#") and not line.startswith("###")
    ]
    assert titles == [
        "# jump as high as you can",
        "## Verdict",
        "## Scores",
        "## The best reward function",
        "## How it came about",
        "## A clip of its policy",
        "## Lineage",
        "## What failed, and why",
        "## All attempts",
        "## Cost and time",
        "## How to reproduce it",
    ]
    lines = [line for line in text.splitlines() if line]
    assert (
        "Fitness is the metric of the environment's own task 'jump': highest point of the foot."
    ) in lines[1]
    assert [line.partition("**: ")[0] for line in lines[3:7]] == [
        "- **best",
        "- **against",
        "- **certainty",
        "- **next",
    ]


def test_report_says_what_happened(report: RunReport) -> None:
    text = markdown(report)
    assert "| **2-01 (best)** | 2.50 ± 0.50 | 1.50 | 2.00, 2.50, 3.00 |" in text
    assert "1.00, failed, 2.00" in text
    assert "> height is what counts" in text
    assert "The analyzer found nothing wrong in its training." in text
    first = markdown(replace(report, best=report.attempts[0]))
    assert "- dominant-component: height makes up 97 % of the reward Try: scale it down." in first
    assert "| **2-01** | improve | trained | 2.50 |" in text
    assert "the reward \\| turned NaN" in text
    assert (
        "| thrown out by the critic: C102 | 1 × | 1-02: C102 line 3: unknown variable 'heigth' |"
        in text
    )
    assert "| human | 2.00 ± 0.10 | 1.00 | 1.90, 2.00, 2.10 (from the cache) |" in text
    assert "An earlier run trained the rewards from the cache" in text
    assert "1 training started again because a worker died." in text
    assert "| samples | 3 | 8 |" in text
    assert "| discount" not in text
    assert "eureka search 'jump as high as you can' --env jumper" in text


def test_settings_are_those_that_differ_from_what_the_task_has_by_default(
    report: RunReport,
) -> None:
    # of the task itself: 1000 env steps on 4 environments, and its own horizon
    description = report.description.model_copy(
        update={"training_overrides": {"horizon": 48, "hidden_sizes": [8, 8]}}
    )
    given = {
        "env_steps": 1000,
        "num_envs": 8,
        "horizon": 48,
        "hidden_sizes": (8, 8),
        "model": ("openai/a", "openai/b"),
    }
    settings = SearchSettings(env="jumper", **given)
    text = markdown(replace(report, description=description, settings=settings)).partition(
        "| setting | value | default |"
    )[2]
    rows = [line for line in text.splitlines()[2:] if line.startswith("| ")]
    assert rows == [
        "| num_envs | 8 | 4 |",
        "| env | jumper | cartpole |",
        "| model | openai/a, openai/b | offline |",
    ]
    assert (
        f"{len(SearchSettings.model_fields) - 3} other settings at the default:"
        " all are in `settings.yaml`." in text
    )
    on_gpu = description.model_copy(update={"gpu_overrides": {"num_envs": 8}})
    there = replace(report, description=on_gpu, settings=settings, devices=("cuda:0 (A)",))
    assert "| num_envs |" not in markdown(there)


def test_whose_metric_counts_is_said_first(report: RunReport) -> None:
    for text in (markdown(report), printed(render_run(report)), printed(render_end(report))):
        words = " ".join(text.split())
        assert (
            words.count(
                "Fitness is the metric of the environment's own task 'jump': highest point of the"
                " foot."
            )
            == 1
        )
        # the sentence is "jump as high as you can", the task's own is "jump"
        assert (
            words.count(
                "The task in its own words: jump. If your sentence asks for something else, that is"
                " not measured."
            )
            == 1
        )
        assert words.index("own words") < words.index("2.50 ± 0.50")
    agreeing = replace(report, sentence_agrees=True)
    assert "own words" not in markdown(agreeing) + printed(render_run(agreeing))
    same = replace(report, sentence=" Jump. ")
    assert "own words" not in markdown(same) + printed(render_run(same)) + printed(render_end(same))


def test_what_was_not_understood_stands_in_the_report(report: RunReport) -> None:
    told = replace(report, not_understood=("and do not\n jump", "halve the speed"))
    said = "did not understand 'and do not jump'; 'halve the speed', so it made no term of it"
    page = html.unescape(html_report(told))
    for text in (markdown(told), printed(render_run(told)), page):
        words = " ".join(text.split())
        assert words.count(said) == 1
    assert "not understand" not in markdown(report) + html_report(report)


@pytest.mark.parametrize("status", [RunStatus.STOPPED, RunStatus.FAILED])
def test_an_empty_run_has_a_report(report: RunReport, status: RunStatus) -> None:
    text = markdown(replace(report, attempts=(), scores=(), best=None, status=status))
    assert "- **best**: no reward function was proposed\n" in text
    assert f"- **next**: the run is {status.value}; go on:\n\n```sh\neureka resume" in text
    assert "## Scores" not in text


@pytest.mark.parametrize("name", ["report.md", "report.html"])
def test_reports_are_named_only_where_they_exist(
    report: RunReport, tmp_path: Path, name: str
) -> None:
    run = replace(report, folder=tmp_path)
    assert name not in printed(render_run(run)) + printed(render_end(run))
    (tmp_path / name).touch()
    for renderable in (render_run(run), render_end(run)):
        assert str(tmp_path / name) in printed(renderable, width=300)


def test_without_baselines_nothing_is_human_normalised(report: RunReport) -> None:
    scores = tuple(
        score.model_copy(update={"human_normalized": None}) for score in report.finalists
    )
    alone = replace(report, scores=scores)
    assert "uman-normalised" not in markdown(alone)
    assert "| **2-01 (best)** | 2.50 ± 0.50 | 2.00, 2.50, 3.00 |" in markdown(alone)
    assert "uman-normalised" not in printed(render_end(alone))


def test_json_has_the_promised_keys(report: RunReport) -> None:
    values = json.loads(json.dumps(to_json(report), allow_nan=False))
    assert values["task"] == {
        "environment": "jumper",
        "name": "jump",
        "sentence": "jump as high as you can",
        "fitness_doc": "highest point of the foot",
        "fitness_unit": "m",
        "fitness_author": "",
        "fitness_origin": "",
    }
    assert values["best"]["id"] == "2-01"
    assert values["best"]["fitness_per_seed"] == [2.0, 2.5, 3.0]
    assert (values["best"]["mean"], values["best"]["std"], values["best"]["human_normalized"]) == (
        2.5,
        0.5,
        1.5,
    )
    assert values["best"]["source"].endswith("best/reward.py")
    assert (values["human"]["cached"], values["sparse"]["mean"]) == (True, 1.0)
    assert [finalist["name"] for finalist in values["finalists"]] == ["2-01", "1-01"]
    assert [entry["stage"] for entry in values["attempts"]] == [
        "trained",
        "rejected",
        "failed",
        "trained",
        "trained",
    ]
    assert values["attempts"][1]["findings"][0]["code"] == "C102"
    assert values["settings"]["iterations"] == 2
    assert values["cost"]["trainings"] == 13
    assert values["cost"]["money"] == "0", "no request costs nothing"
    unknown = replace(report, cost=replace(report.cost, requests=2, money=None))
    assert to_json(unknown)["cost"]["money"] is None


def test_json_of_numbers_that_are_not_finite_is_null(report: RunReport) -> None:
    broken = Score(name="sparse", seeds=(1,), fitness=(float("nan"),), mean=float("nan"), std=None)
    values = to_json(replace(report, scores=(broken,)))
    assert values["sparse"]["mean"] is None
    assert values["sparse"]["fitness_per_seed"] == [None]
    assert values["best"]["mean"] is None
    assert values["best"]["search_fitness"] == 2.5


@pytest.mark.parametrize("width", [80, 120])
def test_the_end_of_a_search_shows_reward_scores_and_paths(report: RunReport, width: int) -> None:
    text = printed(render_end(report), width)
    assert "return height, {'height': height}" in text
    assert "2-01 (best)  2.50 ± 0.50" in text
    assert "sparse       1.00 ± 0.10" in text
    assert "runs/20261121-035500_jumper_jump/best/reward.py" in text


def test_an_attempt_shows_verdict_curves_and_reflection(
    report: RunReport, point: Callable[..., CurvePoint]
) -> None:
    points = [point(512, 0.0), point(1024, 7.0)]
    trained = printed(render_attempt(attempt_document(report.attempts[0], 1000, points)), 80)
    assert "component effort ▁▁ -0.125 -0.125 -0.125" in " ".join(trained.split())
    assert "- dominant-component: height makes up 97 %" in trained
    rejected = printed(render_attempt(attempt_document(report.attempts[1], 1000)), 80)
    assert "The critic rejected it" in rejected
    assert "3:0 C102 unknown variable 'heigth'" in rejected


def test_an_attempt_that_was_trained_again_shows_every_training_and_their_mean(
    attempt: Callable[..., Attempt], confirm: Callable[..., Attempt]
) -> None:
    again = confirm(attempt("1-01", Stage.TRAINED, 8.0), 2.0, None)
    text = printed(render_attempt(attempt_document(again, 1000)))
    assert "fitness 5.00 over 2 seeds" in text
    assert "first training, seed 7: fitness 8.00" in text
    assert "trained again after iteration 1, seed 11: fitness 2.00" in text
    assert (
        "trained again after iteration 1, seed 12: failed: the reward is NaN, started again 1 time"
        in text
    )
    content = attempt_in_full_to_json(again)
    assert content["fitness"] == 5.0
    assert content["trainings"] == [
        {"seed": 7, "fitness": 8.0},
        {"seed": 11, "fitness": 2.0},
        {"seed": 12, "fitness": None},
    ]
    assert (
        attempt_in_full_to_json(attempt("1-02", Stage.REJECTED, reason="C102"))["trainings"] == []
    )


def test_the_tables_say_how_many_seeds_a_fitness_rests_on(
    report: RunReport, confirm: Callable[..., Attempt]
) -> None:
    assert report.best is not None
    best = confirm(report.best, 3.5)  # 2.5 and 3.5
    attempts = tuple(best if attempt.id == best.id else attempt for attempt in report.attempts)
    again = replace(report, attempts=attempts, best=best)
    text = markdown(again)
    assert "| **2-01** | improve | trained | 3.00 | 2 |" in text
    assert "| 1-01 | fresh | trained | 1.50 | 1 |" in text
    assert "The analyzer found nothing wrong in its first training." in text
    (row,) = (
        line
        for line in printed(render_run(again)).splitlines()
        if line.split()[:2] == ["2-01", "improve"]
    )
    assert row.split()[:5] == ["2-01", "improve", "trained", "3.00", "2"]


def test_a_list_of_runs_keeps_name_and_result_in_eighty_columns(report: RunReport) -> None:
    _, line = printed(render_runs([report]), 80).splitlines()
    assert line.startswith(f"{report.run_name}  finished  jump as")
    assert "2.50 ± 0.50 m" in line
