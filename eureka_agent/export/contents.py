"""Text files of an export, made from a run's report and a reward's source."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from eureka_agent.array_files import COMMAND_POLICY
from eureka_agent.attempt_words import merit_words
from eureka_agent.designer.source_tools import parameter_names
from eureka_agent.export.reward_source import HELPERS_MODULE, needed_helpers, standalone_source
from eureka_agent.markup import code, escaped
from eureka_agent.records import Attempt, Score, TaskDescription
from eureka_agent.report.attempt_page import COMPARED
from eureka_agent.report.run_report import RunReport
from eureka_agent.resources import resource_folder
from eureka_agent.rewards import OBSERVATION_FUNCTION, RewardSpecification
from eureka_agent.simulation.catalogue import GYMNASIUM_PREFIX
from eureka_agent.task import PREVIOUS_PREFIX, QuaternionOrder
from eureka_agent.wording import plural, plus_minus

_WIDTH = 118
TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(template: str, **values: Any) -> str:
    """Text of `templates/<template>.j2`; a missing value is an error."""
    return _templates().get_template(f"{template}.j2").render(**values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(  # Python and Markdown, never HTML
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (comment, escaped, code, column_name, string, batch_shape, plural)
    templates.filters |= {each.__name__: each for each in filters}
    return templates


def comment(text: str) -> str:
    """Text as Python comments, one for every kind of line end, so that no text becomes code."""
    lines = [
        part
        for line in text.replace("\0", "").splitlines()
        for part in textwrap.wrap(line, _WIDTH) or [""]
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def column_name(text: str) -> str:
    """Name as code, or escaped where a table's cell could not hold the code."""
    return code(text) if re.fullmatch(r"[\w.,\[\]-]+", text) else escaped(text)


def string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def batch_shape(shape: tuple[int, ...]) -> str:
    """Shape of a variable in a reward: `(batch,)`, `(batch, 3)`."""
    return f"(batch, {', '.join(map(str, shape))})" if shape else "(batch,)"


README = "README.md"
HELPERS_FILE = f"{HELPERS_MODULE}.py"
MARKER = "written by eureka export"
_OF_EVERY_GYMNASIUM_RUN = ("actions", "terminated", "succeeded", "observation")
"""Variables of `gymnasium:<id>` that are not in `info`."""
_COLUMNS_SHOWN = 200
"""Columns of the observation in the README; policy.json has all of them."""


@dataclass(frozen=True)
class Exported:
    """A reward to export, with its run and attempt."""

    report: RunReport
    attempt: Attempt
    score: Score | None
    """Final score of the run's best attempt; None for another one."""

    @property
    def reward(self) -> RewardSpecification:
        return self.attempt.proposal.reward

    @property
    def description(self) -> TaskDescription:
        return self.report.description

    @property
    def gymnasium_id(self) -> str | None:
        """Gymnasium's id of the environment; None for another environment."""
        name = self.description.environment
        return name.removeprefix(GYMNASIUM_PREFIX) if name.startswith(GYMNASIUM_PREFIX) else None


def text_files(exported: Exported, policy: Mapping[str, Any], *, onnx: bool) -> dict[str, str]:
    """The README and the Python files, by name. `policy`: see `policy_description`; `onnx`: True
    where the policy is written as ONNX too. Raises RewardLoadError for invalid Python."""
    description, source = exported.description, exported.reward.source
    variables = description.public_variables()
    known = {variable.name: variable for variable in variables}
    parameters = parameter_names(source)
    arguments = {
        name: known[variable]
        for name in parameters
        if (variable := name.removeprefix(PREVIOUS_PREFIX)) in known
    }
    read = dict.fromkeys(variable.name for variable in arguments.values())
    observed = parameter_names(source, OBSERVATION_FUNCTION)
    taken = {*parameters, *observed}
    constants = [constant for constant in description.constants if constant.name in taken]
    helpers = bool(needed_helpers(source))
    columns = observed_columns(description) if "observation" in known else {}
    elsewhere = (*_OF_EVERY_GYMNASIUM_RUN, *columns)
    values = {
        "marker": MARKER,
        "run": exported.report.run_name,
        "attempt": exported.attempt.id,
        "sentence": exported.report.sentence,
        "fitness": fitness_text(exported),
        "parameters": trained_under(exported),
        "description": description,
        "gymnasium_id": exported.gymnasium_id,
        "onnx": onnx,
        "kind": exported.reward.kind,
        "observed": {name: known[name] for name in observed if name in known},
        "helpers": helpers,
        "whole_observation": "observation" in known,
        "succeeds": "succeeded" in known,
        "arguments": arguments,
        "example_names": [name for name in read if name not in ("actions", "terminated")],
        "reads_previous": any(name.startswith(PREVIOUS_PREFIX) for name in arguments),
        "constants": constants,
        "observation_order": observation_order(exported),
        "policy": policy,
        "columns_shown": _COLUMNS_SHOWN,
        "has_quaternions": _has_quaternions(description),
        "versions": exported.report.versions,
        "source": standalone_source(source, {each.name: each.value for each in constants}),
        "variables": variables,
        "info_keys": [name for name in known if name not in elsewhere],
        "columns": columns,
        "conversion": _conversion_text(),
    }
    names = (README, "reward.py", "gymnasium_wrapper.py", "vec_task.py")
    written = {name: render(name, **values) for name in names}
    example = "example_policy.py" if exported.gymnasium_id is None else "example_gymnasium.py"
    written["example.py"] = render(example, **values)
    if helpers:
        written[HELPERS_FILE] = _helpers_text(description.quaternion_order)
    return written


def command_texts(exported: Exported) -> dict[str, str]:
    """The README and the reward of a command environment's attempt, by name. Raises RewardLoadError
    for invalid Python."""
    description, source = exported.description, exported.reward.source
    constants = {each.name: each.value for each in description.constants}
    taken = {name: constants[name] for name in parameter_names(source) if name in constants}
    report = exported.report
    readme = (
        f"<!-- {MARKER} -->\n# A reward and its policy\n\n{escaped(report.sentence)}\n\n"
        f"Run {code(report.run_name)}, attempt {code(exported.attempt.id)}. Fitness:"
        f" {escaped(fitness_text(exported))}.\n\n- `reward.py`: the reward function; needs torch\n"
        f"- `{COMMAND_POLICY}`: the policy, a file in the form of the command"
        f" {code(Path(description.environment).name)}\n"
    )
    written = {README: readme, "reward.py": standalone_source(source, taken)}
    if needed_helpers(source):
        written[HELPERS_FILE] = _helpers_text(description.quaternion_order)
    return written


def observed_columns(description: TaskDescription) -> dict[str, tuple[int, int, float]]:
    """First and last column (excluded) in the observation of each variable that is a part of it,
    and the factor from the variable to the observation."""
    names = {variable.name for variable in description.public_variables()}
    found, start = dict[str, tuple[int, int, float]](), 0
    for channel in description.observation_channels:
        stop = start + (len(channel.entries) or 1)
        if channel.name in names:
            found[channel.name] = start, stop, channel.scale
        start = stop
    return found


def fitness_text(exported: Exported) -> str:
    """`475.00 ± 12.00 s over 5 trainings from fresh seeds (seconds that the pole is up)`."""
    score, attempt, description = exported.score, exported.attempt, exported.description
    unit = "" if description.fitness_unit == "1" else f" {description.fitness_unit}"
    if score is not None and score.mean is not None:
        value = plus_minus(score.mean, score.std)
        basis = f"{plural(len(score.seeds), 'training')} from fresh seeds"
    elif attempt.strength is not None and not exported.report.is_measured:
        compared = f"strength {merit_words(attempt)}, {COMPARED[attempt.strength.by]}"
        return f"not measured, {compared} ({exported.report.fitness_origin})"
    else:
        value = plus_minus(attempt.fitness, None)
        basis = plural(len(attempt.fitness_per_seed), "training")
        basis += " of the search" if attempt.is_ranked else " under other parameters"
    origin = f"; {exported.report.fitness_origin}" if exported.report.fitness_origin else ""
    return f"{value}{unit} over {basis} ({description.fitness_doc}{origin})"


def trained_under(exported: Exported) -> str:
    """`parameters drawn in each episode: torso_mass=0.5..2 (d1)`; empty for the defaults."""
    found = exported.attempt.proposal.distribution
    return "" if found is None else f"parameters drawn in each episode: {found.text} ({found.name})"


def observation_order(exported: Exported) -> str:
    """Sentence on the order of the observation's numbers where they have no names."""
    name = exported.description.environment
    if exported.gymnasium_id is not None:
        order = f"{code(exported.gymnasium_id)}, flattened by `gymnasium.spaces.flatten`"
    elif (resource_folder("envs") / name).is_dir():
        order = f"`compute_observations` in eureka_agent's {code(f'envs/{name}/env.py')}"
    else:
        order = (
            f"`compute_observations` in the environment's `env.py` (the run had it in {code(name)})"
        )
    return f"Their order is that of {order}."


def _has_quaternions(description: TaskDescription) -> bool:
    channels = [(each.name, each.doc) for each in description.observation_channels]
    variables = [(each.name, each.doc) for each in description.public_variables()]
    return any("quaternion" in f"{name} {doc}".lower() for name, doc in channels + variables)


def _conversion_text() -> str:
    """The class that converts actions in a training, with what it needs."""
    file = files("eureka_agent.simulation").joinpath("gymnasium_actions.py")
    _, marker, text = file.read_text(encoding="utf-8").partition("# ── copied into an exported")
    assert marker
    return text.partition("\n")[2].strip()


def _helpers_text(order: QuaternionOrder) -> str:
    """File of helper functions, for this order of quaternions."""
    text = files("eureka_agent.training").joinpath(HELPERS_FILE).read_text(encoding="utf-8")
    chosen, count = re.subn(
        r'^QUATERNION_ORDER = "\w+"$', f'QUATERNION_ORDER = "{order}"', text, flags=re.MULTILINE
    )
    assert count == 1
    return chosen
