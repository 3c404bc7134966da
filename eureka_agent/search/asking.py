"""Questions to what an attempt's policy does: its evaluated episodes are played again, kept in its
folder, and asked behind the wall."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from eureka_agent.analysis.questions import QuestionAnswer, QuestionError, answer
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive import artefacts
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.expressions import CONDITION, question
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.records import Attempt
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.scoring import rescore
from eureka_agent.search.seeds import derive_seed

TIMEOUT_S = 30.0


async def ask(run: Run, attempt: Attempt, expression: str, where: str = "") -> QuestionAnswer:
    """Ask the evaluated episodes of an attempt. Raises QuestionError, and RunFolderError without a
    policy."""
    reward = question(expression, where, run.description)
    path = await all_episodes(run, attempt)
    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        problem = Problem(run.settings.env, run.description.task, run.written_fitness)
        wall = choose_wall(run.settings.sandbox)
        runner = DryRunner(wall, problem, Path(scratch), TIMEOUT_S)
        try:
            asked = await runner.ask(reward, {attempt.id: path})
        finally:
            await runner.close()
    if asked.reason:
        reason = re.sub(r"^line \d+: the total", "it", asked.reason)
        hint = "it gives one number a step: an entry, as in x[:, 0], or what x.norm(dim=-1) gives"
        raise QuestionError(f"{expression!r} has no values: {reason}", hint)
    episodes = await asyncio.to_thread(read_trajectories, path)
    told = (expression.strip(), where.strip())
    return answer(told, asked.total, asked.terms.get(CONDITION), episodes, run.description)


async def all_episodes(run: Run, attempt: Attempt) -> Path:
    """File of all evaluated episodes of an attempt, which are the same whenever they are played."""
    policy = artefacts.stored_policy(run, attempt.id)
    path = artefacts.attempt_folder(run.folder, attempt.id) / artefacts.EPISODES
    if not path.is_file() or path.stat().st_mtime < policy.stat().st_mtime:
        seed, episodes = derive_seed("evaluation", attempt.seed), run.settings.evaluation_episodes
        await rescore(run, policy, seed, episodes, {}, path, recorded="all")
    return path
