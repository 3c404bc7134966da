"""`eureka export` and `eureka prove`: a run's reward and policy as files that work without this
package, and its rewards trained by another library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eureka_agent.cli import completing
from eureka_agent.cli.command import FILE, Command, Number
from eureka_agent.cli.output import FORMAT, TRUST, print_json, say
from eureka_agent.settings import MOST_ENV_STEPS

if TYPE_CHECKING:
    from eureka_agent.export.proof import ProofTraining


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempt", required=False, shell_complete=completing.attempts)
@click.option("--out", type=FILE, help="Folder to write; default: export/ in the run.")
@FORMAT
def export(run: str, attempt: str | None, out: Path | None, output_format: str) -> None:
    """Write the best reward and policy of RUN, or those of one ATTEMPT, as files that work without
    eureka_agent.

    ATTEMPT can be `randomised`: the best policy of trainings under other parameters.

    The reward as plain Python, wrappers for Gymnasium and Isaac Gym, the policy as ONNX and
    TorchScript, an example.

    \b
    eureka export latest
    eureka export latest 2-03 --out my_reward
    eureka export latest randomised
    """
    from eureka_agent.archive.run_folder import reading
    from eureka_agent.export.folder import default_folder, write_export
    from eureka_agent.search.summary import run_report

    with reading(run) as opened:
        folder = default_folder(opened.folder, attempt) if out is None else out
        written = write_export(opened, run_report(opened), attempt, folder)
    if output_format == "json":
        facts = {"run": opened.name, "attempt": written.attempt, "folder": str(written.folder)}
        files = [str(path) for path in written.files]
        print_json({**facts, "files": files, "missing": written.missing})
        return
    say(f"attempt {written.attempt} of {opened.name}:")
    for path in written.files:
        say(f"  {path}")
    for name, reason in written.missing.items():
        say(f"  without {name}: {reason}")


@click.command(cls=Command)
@click.argument("run", shell_complete=completing.runs)
@click.argument("attempt", required=False, shell_complete=completing.attempts)
@click.option(
    "--with",
    "folder",
    required=True,
    metavar="FOLDER",
    help="A command environment (docs/your-own-simulator.md) with variables of the same names.",
)
@click.option("--task", help="Its task; default: its first one.")
@click.option(
    "--seeds", type=Number(int, 1, 100), default=3, show_default=True, help="Trainings of each."
)
@click.option(
    "--env-steps", type=Number(int, 1, MOST_ENV_STEPS), help="Of a training; default: the task's."
)
@TRUST
@FORMAT
def prove(
    run: str,
    attempt: str | None,
    folder: str,
    task: str | None,
    seeds: int,
    env_steps: int | None,
    trust: bool,
    output_format: str,
) -> None:
    """Train the best reward of RUN, or one ATTEMPT's, and the human and the sparse reward by a
    command: another trainer, another simulator.

    The policies are scored there as well, by its task's fitness. The same command goes on after a
    stop.

    \b
    eureka prove latest --with path/to/my_simulator
    eureka prove latest --with path/to/my_simulator --seeds 5
    """
    import asyncio

    from eureka_agent.archive.run_folder import reading
    from eureka_agent.cli.questions import trust_to_film
    from eureka_agent.export.proof import (
        PROOF,
        proof_json,
        proof_rows,
        proof_sentence,
        rewards_to_prove,
    )
    from eureka_agent.export.proof import prove as prove_rewards
    from eureka_agent.fleet.jobs import Problem
    from eureka_agent.search.scoring import score_table

    def tell(training: ProofTraining) -> None:
        found = f"fitness {training.fitness:.4g}" if training.fitness is not None else "failed"
        failure = f": {training.failure}" if training.failure else f" in {training.seconds:.0f} s"
        say(f"{training.name}, seed {training.seed}: {found}{failure}", err=True)

    with reading(run) as opened:
        trust_to_film(opened, trust)
        rewards = rewards_to_prove(opened, attempt)
        problem = Problem(folder, task)
        proof = asyncio.run(prove_rewards(opened, problem, rewards, seeds, env_steps, tell))
        proved = [proof.score(name) for name in rewards]
        own = {score.name: score for score in score_table(opened.archive.trainings())}
        unit = opened.description.fitness_unit
    if output_format == "json":
        facts: dict[str, object] = {
            "run": opened.name,
            "command": proof.command,
            "versions": proof.versions,
        }
        facts["env_steps"] = proof.settings.env_steps
        print_json({**facts, **proof_json(proved, own)})
        return
    titles = ("reward", f"by {proof.command}", "by this trainer")
    rows = [titles, *proof_rows(proved, own, "" if unit in ("", "1") else f" {unit}")]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    for name, theirs, ours in rows:
        say(f"{name:<{widths[0]}}  {theirs:<{widths[1]}}  {ours}".rstrip())
    say(f"\n{proof_sentence(proved, own, proof.command)}")
    steps = f"{proof.settings.env_steps:,} env steps a training"
    say(f"{steps}; all of it is in {opened.folder / PROOF}")
