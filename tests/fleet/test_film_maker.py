"""Videos from real workers: they show the episodes that an evaluation scores, and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import av
import pytest
import pytest_asyncio
from policy_files import save_random_policy
from script_wall import ScriptWall

from eureka_agent.boundary.events import Opened
from eureka_agent.errors import EnvironmentLoadError, WorkerFaultError
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.fleet.warm_worker import FilmMaker, FilmSettings, FilmSubject
from eureka_agent.records import Evaluation
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.inbox import WorkerFileError
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Limits
from eureka_agent.simulation.loading import describe, load_environment

PROBLEM = Problem("cartpole", "balance")
EPISODES = 8
SETTINGS = FilmSettings(
    seed=7, episodes=EPISODES, shown=("best", "median", "worst"), size=(96, 64), seconds=4.0
)
STEP_SECONDS = 0.02
HELD = 15
"""Pictures of the last state."""


@pytest.fixture(scope="module")
def fingerprint() -> str:
    return describe(load_environment("cartpole"), "balance").fingerprint


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("policies")
    return [save_random_policy(folder / f"{seed}.st", 5, 1, seed, bias=0.3) for seed in (1, 2)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scores(
    policies: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> list[Evaluation]:
    """What the evaluator says of the same episodes."""
    evaluator = Evaluator(ProcessWall(), PROBLEM, tmp_path_factory.mktemp("scores"))
    try:
        return [await evaluator.evaluate(path, SETTINGS.seed, EPISODES, None) for path in policies]
    finally:
        await evaluator.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def maker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FilmMaker]:
    found = FilmMaker(ProcessWall(), PROBLEM, tmp_path_factory.mktemp("films"))
    yield found
    await found.close()


def subjects(policies: Sequence[Path]) -> list[FilmSubject]:
    return [FilmSubject(path.stem, path) for path in policies]


def frames(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def pictures_of(steps: int) -> int:
    """Pictures of an episode: 30 a second, at most 4 s, and the held ones."""
    return math.ceil(min(steps * STEP_SECONDS, SETTINGS.seconds) * 30.0 - 1e-9) + HELD


@pytest.mark.asyncio(loop_scope="module")
async def test_the_episodes_are_those_that_the_evaluator_scores(
    maker: FilmMaker,
    policies: list[Path],
    scores: list[Evaluation],
    fingerprint: str,
    tmp_path: Path,
) -> None:
    video, gif = tmp_path / "video.mp4", tmp_path / "video.gif"
    settings = replace(SETTINGS, gif_seconds=1.0)
    filmed = await maker.film(subjects(policies[:1]), settings, fingerprint, video, gif)
    fitness = [episode.fitness for episode in scores[0].episodes]
    assert len(set(fitness)) > 2
    by_name = {each.shown: each for each in filmed.episodes}
    assert by_name["best"].episode.fitness == max(fitness)
    assert by_name["worst"].episode.fitness == min(fitness)
    # of eight the fifth in order
    assert by_name["median"].episode.fitness == sorted(fitness)[4]
    for each in filmed.episodes:
        assert scores[0].episodes[each.number] == each.episode
    longest = max(each.episode.length for each in filmed.episodes)
    shown = frames(video)
    assert len(shown) == pictures_of(longest)
    assert filmed.seconds == pytest.approx(len(shown) / 30.0)
    assert (shown[0].width, shown[0].height) == (3 * 96 + 2 * 4, 24 + 64 + 24)
    assert gif.read_bytes().startswith(b"GIF89a")


@pytest.mark.asyncio(loop_scope="module")
async def test_several_policies_play_from_the_same_start_states(
    maker: FilmMaker,
    policies: list[Path],
    scores: list[Evaluation],
    fingerprint: str,
    tmp_path: Path,
) -> None:
    video = tmp_path / "video.mp4"
    filmed = await maker.film(subjects(policies), SETTINGS, fingerprint, video)
    for each in filmed.episodes:
        assert scores[each.policy].episodes[each.number] == each.episode
    first = {each.shown: each.number for each in filmed.episodes if each.policy == 0}
    second = {each.shown: each.number for each in filmed.episodes if each.policy == 1}
    assert first == second
    fitness = [episode.fitness for episode in scores[0].episodes]
    other = [episode.fitness for episode in scores[1].episodes]
    # the first policy's best start is not the second's, or this would tell nothing
    assert fitness.index(max(fitness)) != other.index(max(other))
    assert fitness[first["best"]] == max(fitness)
    # one start state after the other, each as long as the longer of the two episodes
    lengths = [
        max(each.episode.length for each in filmed.episodes if each.shown == name)
        for name in SETTINGS.shown
    ]
    parts = [pictures_of(length) for length in lengths]
    assert len(frames(video)) == sum(parts)
    begins = [each.begins_s for each in filmed.episodes if each.policy == 1]
    assert begins == pytest.approx([0.0, parts[0] / 30.0, (parts[0] + parts[1]) / 30.0])


@pytest.mark.asyncio(loop_scope="module")
async def test_an_environment_that_has_changed_is_refused(
    maker: FilmMaker, policies: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentLoadError, match="has changed since this run"):
        await maker.film(subjects(policies), SETTINGS, "0" * 64, tmp_path / "video.mp4")
    assert not (tmp_path / "video.mp4").exists()


FORGER = """
import json, sys
opened = json.loads({opened!r})
for line in iter(sys.stdin.buffer.readline, b""):
    command = json.loads(line)
    if command["type"] == "file":
        sys.stdin.buffer.read(command["size"])
    elif command["type"] == "open":
        print(json.dumps(opened), flush=True)
    elif command["type"] == "film":
        content = {content!r}
        sys.stdout.write(json.dumps({{"type": "file", "name": "v.mp4", "size": len(content)}}) + "\\n")
        sys.stdout.write(content)
        filmed = {{"type": "filmed", "job": command["job"], "video": "v.mp4", "seconds": 1.0}}
        print(json.dumps(filmed | {{"episodes": []}}), flush=True)
"""


@pytest.mark.parametrize("content", ["<script>alert(1)</script>", ""])
async def test_what_is_no_video_is_not_taken(
    policies: list[Path], tmp_path: Path, content: str
) -> None:
    client = await WorkerClient.start(
        ProcessWall(), tmp_path / "real", Limits(), PROBLEM.environment
    )
    opened = await client.open(PROBLEM.environment, PROBLEM.task)
    await client.close()
    wall = ScriptWall(FORGER.format(opened=opened.model_dump_json(), content=content))
    maker = FilmMaker(wall, PROBLEM, tmp_path / "forger")
    fingerprint = describe(load_environment("cartpole"), "balance").fingerprint
    try:
        with pytest.raises(WorkerFileError, match="no video"):
            await maker.film(subjects(policies[:1]), SETTINGS, fingerprint, tmp_path / "v.mp4")
    finally:
        await maker.close()
    assert not (tmp_path / "v.mp4").exists()


async def test_an_episode_of_a_policy_that_was_not_asked_for_is_a_fault(
    policies: list[Path], tmp_path: Path
) -> None:
    opened = Opened(description=describe(load_environment("cartpole"), "balance"))
    episode = {"fitness": 1.0, "length": 1, "ended_by": "time_out"}
    shown = {"policy": 7, "shown": "best", "number": 0, "episode": episode, "begins_s": 0.0}
    forger = FORGER.replace("[]", json.dumps([shown]).replace("{", "{{").replace("}", "}}"))
    wall = ScriptWall(forger.format(opened=opened.model_dump_json(), content="ftypisom" * 9))
    maker = FilmMaker(wall, PROBLEM, tmp_path / "forger")
    try:
        with pytest.raises(WorkerFaultError, match="a policy of its own"):
            await maker.film(
                subjects(policies[:1]), SETTINGS, opened.description.fingerprint, tmp_path / "v.mp4"
            )
    finally:
        await maker.close()
