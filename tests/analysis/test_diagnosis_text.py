"""The reflection's exact text, and the diagnosis as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from curve_makers import outcome, point, points

from eureka_agent.analysis.diagnose import diagnose
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.errors import RunFolderError
from eureka_agent.records import EpisodeSummary, Evaluation, TaskDescription

EVALUATION = Evaluation(
    episodes=(
        EpisodeSummary(fitness=2.0, length=100, ended_by="left_the_rail"),
        EpisodeSummary(fitness=5.0, length=500, ended_by="time_out"),
        EpisodeSummary(fitness=5.0, length=500, ended_by="time_out"),
    ),
    seed=1,
)


def test_the_reflection_word_for_word(description: TaskDescription) -> None:
    trained = outcome(
        [None, 1.5, 2.5],
        [0.25, 0.5, 1.0],
        {"centred": [0.3, 0.6, 1.2], "effort": [-0.05, -0.1, -0.2]},
    )
    sizes = {"centred": 0.9, "effort": 0.1}
    curve = points(
        components=sizes,
        component_magnitudes=sizes,
        component_deviations={"centred": 0.3, "effort": 0.1},
    )
    # before the first checkpoint, at 1000 steps, both are of one size
    curve = [
        (
            each.model_copy(
                update={
                    "env_steps": 3000 * place // 9,
                    "component_magnitudes": {"centred": 0.5, "effort": 0.5},
                }
            )
            if place < 4
            else each.model_copy(update={"env_steps": 3000 * (place + 1) // 9})
        )
        for place, each in enumerate(curve)
    ]
    diagnosis = diagnose(trained, curve, EVALUATION, description)
    # (2 − 4)² + 1 + 1 = 6 over n − 1 = 2: a deviation of sqrt(3) = 1.73
    # evaluated (2 + 5 + 5)/3 = 4
    assert (
        diagnosis.text
        == "The training, in which exploration noise costs fitness: means of 3 parts of 3000"
        " environment steps, one seed. Components and reward: a step; in brackets a component's"
        " share of the reward's size in the first and the last part. Fitness: seconds within 0.1"
        " m of the centre. Episode length: control steps, 500 at most. Action noise: its standard"
        " deviation.\ncentred         0.3 0.6"
        " 1.2  (50% → 90%)\neffort          -0.05 -0.1 -0.2  (50% → 10%)\nreward          0.25"
        " 0.5 1\nfitness [s]     – 1.5 2.5\nepisode length  – 100 100\naction noise    0.6 0.6 0.6\n\nThe policy of"
        " checkpoint 3, which was kept, acting without exploration noise in 3 episodes: mean"
        " fitness 4 s (standard deviation between episodes 1.73), 2 to 5; 1 ended early"
        " (left_the_rail 1), after 100 steps on average, with a mean fitness of 2; the others"
        " have 5.\n\nFindings:\n- Component 'centred' makes up 90% of the reward's size and does"
        " not rise with the fitness; the other 1 hardly count. Advice: scale 'centred' down,"
        " unless it alone is the task."
    )
    # (100 + 500 + 500) / 3
    assert (
        diagnosis.endings == "3 episodes of 367 steps on average, 1 ended early (left_the_rail 1)"
    )
    assert diagnosis.fitness == 4.0
    assert diagnosis.fitness_values == (None, 1.5, 2.5)
    assert [component.share for component in diagnosis.components] == pytest.approx([0.9, 0.1])


def test_a_training_that_broke_off_is_diagnosed_from_its_points(
    description: TaskDescription,
) -> None:
    curve = [point(index, fitness=float(index)) for index in range(20)]
    diagnosis = diagnose(None, curve, None, description, "not-a-number: the total was NaN")
    # twenty points in ten pairs: 0.5, 2.5, …, 18.5
    assert diagnosis.fitness_values == tuple(0.5 + 2.0 * index for index in range(10))
    assert diagnosis.fitness is None
    assert diagnosis.findings[0].code == "not-a-number"
    assert "not-a-number: the total was NaN" in diagnosis.text


def test_episodes_are_shown_with_their_end(description: TaskDescription, tmp_path: Path) -> None:
    path = tmp_path / "trajectories.npz"
    position = np.linspace(0.0, 0.99, 100)
    secret = np.ones(100)
    np.savez(
        path,
        **{
            "worst/cart_position": position,
            "worst/actions": np.zeros((100, 1)),
            "best/actions": np.zeros((3, 1)),
            "worst/secret": secret,
            "best/cart_position": position[:3],
        },
    )
    text = diagnose(outcome([1.0]), points(), EVALUATION, description, trajectories=path).whole
    # of 100 steps of 0.02 s the ends of a sixteenth, an eighth, a quarter, a half and three
    # quarters: 7, 13, 25, 50, 75, 100
    assert "Worst episode (fitness 2, ended by left_the_rail after 100 steps):" in text
    assert "time [s]           0.14  0.26  0.5  1  1.5  2\n" in text
    assert "cart_position [m]  0.06  0.12  0.24  0.49  0.74  0.99\n" in text
    assert text.endswith("\n\nIn both episodes constant: actions 0")
    assert "Best episode (fitness 5, ended by time_out after 500 steps):" in text
    assert "secret" not in text


def test_a_file_that_is_no_trajectory_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.npz"
    path.write_bytes(b"PK nonsense")
    with pytest.raises(RunFolderError, match="cannot read the trajectories"):
        read_trajectories(path)


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.npz"
    np.savez(path, **{"worst/x": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(RunFolderError):
        read_trajectories(path)
