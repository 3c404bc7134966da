"""The search over distributions of parameters in reports: table, sentence, prior, JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from test_hostile_text import HOSTILE, live_in_commonmark

from eureka_agent.randomisation_records import (
    CurriculumStage,
    HeldOutFitness,
    ParameterPrior,
    Prior,
    Randomisation,
    RandomisedParameters,
    RangeScore,
    ValueScore,
)
from eureka_agent.records import Operator, ParameterSpec
from eureka_agent.report.as_json import to_json
from eureka_agent.report.blocks import Grid, Items
from eureka_agent.report.html.document import html_report
from eureka_agent.report.markdown import markdown
from eureka_agent.report.randomisation import randomisation_blocks, sentence
from eureka_agent.report.run_report import RunReport
from eureka_agent.report.tables import render_run
from eureka_agent.web.run_page import run_parts

MASS = ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0)
PRIOR = Prior(
    base=4.0,
    floor=1.0,
    episodes=16,
    parameters=(
        ParameterPrior(
            name="mass",
            scores=(
                ValueScore(value=0.5, fitness=2.0),
                ValueScore(value=1.0, fitness=4.0),
                ValueScore(value=1.5, fitness=2.5),
                ValueScore(value=2.0, fitness=None),
            ),
            low=1.0,
            high=1.5,
        ),
    ),
)
FIRST = RandomisedParameters(
    name="d1",
    reason="the prior",
    author="offline",
    curriculum=(CurriculumStage(begins=0.0, parameters={"mass": (1.0, 1.5)}),),
)
SECOND = RandomisedParameters(
    name="d2",
    reason="a load, later.",
    author="openai/tiny",
    curriculum=(
        CurriculumStage(begins=0.0, parameters={}),
        CurriculumStage(begins=0.5, parameters={"mass": (0.5, 2.0)}),
    ),
    notes=("mass=0.1..2 was clipped to the safe range 0.5..2",),
)


def scored(means: Sequence[float]) -> tuple[RangeScore, ...]:
    """Scores over the safe ranges, by seed; those to choose by are 100 higher."""
    return tuple(
        RangeScore(
            seed=seed,
            fitness=mean + 1.0,
            choice=HeldOutFitness(mean=mean + 100.0, worst_quarter=0.0),
            held_out=HeldOutFitness(mean=mean, worst_quarter=mean / 2),
        )
        for seed, mean in enumerate(means)
    )


def randomised(
    report: RunReport,
    held_out: Mapping[str, Sequence[float]],
    proposed: Sequence[RandomisedParameters] = (FIRST, SECOND),
    **end: object,
) -> RunReport:
    """The report with distributions for its best attempt and these scores by name; `""` is the
    control."""
    assert report.best is not None
    found = Randomisation(prior=PRIOR, distributions=tuple(proposed)).model_copy(update=end)
    control = scored(held_out.get("", ()))
    best = report.best.model_copy(update={"randomisation": found, "range_scores": control})
    attempts = []
    for each in proposed:
        under = {"operator": Operator.RANDOMISE, "parents": (best.id,), "distribution": each}
        changed = {
            "id": f"{best.id}+{each.name}",
            "proposal": report.best.proposal.model_copy(update=under),
            "range_scores": scored(held_out.get(each.name, ())),
        }
        attempts.append(report.best.model_copy(update=changed))
    return replace(report, best=best, randomised=tuple(attempts))


CONTROLS = (1.0, 1.2, 1.4)
HELPED = {"": CONTROLS, "d1": (1.0, 1.0, 1.0), "d2": (3.0, 3.2, 3.4)}


def told(report: RunReport) -> str:
    assert report.best is not None
    return sentence(report, report.best)


def rendered(what: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@pytest.fixture
def report(report: RunReport) -> RunReport:
    description = report.description.model_copy(update={"parameters": (MASS,)})
    return randomised(replace(report, description=description), HELPED, best="d2")


@pytest.mark.parametrize(
    ("best", "begin", "end"),
    [
        # 3.2 - 1.2 = 2; both variances 0.04, so 2 ± 2.776 sqrt(0.08 / 3) with 4 degrees of freedom
        (
            (3.0, 3.2, 3.4),
            "Randomising helped: over the whole safe ranges the policies of the best distribution,"
            " d2, have 3.20 ± 0.20 m against 1.20 ± 0.20 m of those trained at the defaults, better"
            " beyond the noise of the seeds.",
            "Welch): 1.55 to 2.45.",
        ),
        ((0.1, 0.2, 0.3), "Randomising did not help: ", "Welch): -1.42 to -0.584."),
        ((1.0, 1.2, 1.6), "Randomising did not help beyond noise: ", "Welch): -0.558 to 0.691."),
        (
            (3.0, 3.2),
            "Not sure whether randomising helped: ",
            "and 2 seeds are too few for an interval (3 give one).",
        ),
    ],
)
def test_the_sentence_says_whether_it_helped(
    report: RunReport, best: Sequence[float], begin: str, end: str
) -> None:
    words = told(randomised(report, {"": CONTROLS, "d2": best}, best="d2"))
    assert words.startswith(begin), words
    assert words.endswith(end), words


def test_the_table_has_defaults_mean_and_worst_quarter(report: RunReport) -> None:
    (grid,) = [each for each in randomisation_blocks(report) if isinstance(each, Grid)]
    assert grid.rows == [
        ["defaults", "none", "2.20 ± 0.20", "1.20 ± 0.20", "0.600 ± 0.100"],
        ["d1", "mass=1..1.5", "2.00 ± 0", "1.00 ± 0", "0.500 ± 0"],
        [
            *("d2", "defaults; from 50 %: mass=0.5..2"),
            *("4.20 ± 0.20", "3.20 ± 0.20", "1.60 ± 0.10"),
        ],
    ]
    assert report.best is not None
    best = report.best.id
    assert grid.ids == [best, f"{best}+d1", f"{best}+d2"]
    assert grid.best == f"{best}+d2"


def test_the_values_that_work_are_marked(report: RunReport) -> None:
    # half of the gain is kept at 2.5
    *_, prior = [each for each in randomisation_blocks(report) if isinstance(each, Items)]
    assert list(prior.lines) == [
        "mass: ░██░ works at 1..1.5 of 0.5..2; fitness by value: 0.5: 2.00, 1: 4.00, 1.5: 2.50,"
        " 2: –"
    ]


def test_every_report_has_it(report: RunReport) -> None:
    text = markdown(report)
    section = text.partition("## Under other parameters")[2].partition("\n## ")[0]
    page = re.sub("<[^>]*>", " ", html_report(report))
    live = re.sub("<[^>]*>", " ", run_parts(report, None, ["randomised"])["randomised"])
    terminal = rendered(render_run(report), 100)
    for part in ("Randomising helped", "3.20 ± 0.20", "from 50 %: mass=0.5..2"):
        assert part in section
        assert part in page
        assert part in live
        assert part in terminal
    for part in ("a load, later. mass=0.1..2 was clipped", "░██░", "fitness 2.50 or more"):
        assert part in section
        assert part in page
        assert part in live
    without = plain(report)
    assert "Under other parameters" not in markdown(without)
    assert run_parts(without, None, ["randomised"])["randomised"].strip() == ""


def plain(report: RunReport) -> RunReport:
    """The report without distributions."""
    assert report.best is not None
    best = report.best.model_copy(update={"randomisation": None, "range_scores": ()})
    return replace(report, best=best, randomised=())


def test_json_has_prior_scores_and_the_difference(report: RunReport) -> None:
    told = json.loads(json.dumps(to_json(report), allow_nan=False))["randomisation"]
    assert report.best is not None
    assert (told["attempt"], told["best"]) == (report.best.id, "d2")
    assert told["prior"]["parameters"][0]["scores"][3] == {"value": 2.0, "fitness": None}
    assert told["control"]["scores"][0]["held_out"] == {"mean": 1.0, "worst_quarter": 0.5}
    second = told["distributions"][1]
    assert second["curriculum"][1] == {"begins": 0.5, "parameters": {"mass": [0.5, 2.0]}}
    assert [each["seed"] for each in second["scores"]] == [0, 1, 2]
    assert told["difference"]["difference"] == pytest.approx(2.0)
    assert to_json(plain(report))["randomisation"] is None
    page = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    assert keys(told) - {"mass"} <= set(re.findall("`([a-z_]+)`", page))


def keys(value: object) -> set[str]:
    """All keys in a JSON document."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*map(keys, inner))


@pytest.mark.parametrize("words", HOSTILE)
def test_a_models_words_are_text(report: RunReport, words: str) -> None:
    hostile = SECOND.model_copy(update={"reason": words, "author": words, "notes": (words,)})
    text = markdown(randomised(report, HELPED, (FIRST, hostile), best="d2"))
    section = text.partition("## Under other parameters")[2].partition("\n## ")[0]
    assert live_in_commonmark(section) == []
