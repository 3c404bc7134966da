"""The batch file: its expansion, and every mistake with key, line and suggestion at once."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from eureka_agent.batch.file import BatchFileError, read_batch_file
from eureka_agent.batch.matrix import PlannedSearch, expand
from eureka_agent.errors import SettingsError


def planned(folder: Path, text: str) -> tuple[PlannedSearch, ...]:
    path = folder / "batch.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return expand(read_batch_file(path))


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(BatchFileError) as caught:
        planned(folder, text)
    return [str(fault) for fault in caught.value.faults]


def test_a_matrix_has_a_search_for_each_combination(tmp_path: Path) -> None:
    searches = planned(
        tmp_path,
        """\
        defaults: {samples: 4, iterations: 1}
        matrix:
          env: [cartpole, hopper]
          seed: [0, 7]
        """,
    )
    assert [(each.name, each.values) for each in searches] == [
        (f"{env}-seed{seed}", {"samples": 4, "iterations": 1, "env": env, "seed": seed})
        for env in ("cartpole", "hopper")
        for seed in (0, 7)
    ]


def test_groups_have_settings_of_their_own_and_override_what_matches(tmp_path: Path) -> None:
    searches = planned(
        tmp_path,
        """\
        defaults: {samples: 4}
        groups:
          walkers:
            settings: {samples: 6, iterations: 5}
            matrix: {seed: [1, 2], env: [ant, hopper]}
            skip: [{env: ant, seed: 2}]
            overrides:
              - {when: {env: [ant]}, set: {samples: 2}}
          one:
            settings: {env: cartpole}
        """,
    )
    found = {each.name: each.values for each in searches}
    assert found == {
        "walkers-seed1-ant": {"samples": 2, "iterations": 5, "seed": 1, "env": "ant"},
        "walkers-seed1-hopper": {"samples": 6, "iterations": 5, "seed": 1, "env": "hopper"},
        "walkers-seed2-hopper": {"samples": 6, "iterations": 5, "seed": 2, "env": "hopper"},
        "one": {"samples": 4, "env": "cartpole"},
    }


def test_a_case_sets_several_settings_and_names_itself(tmp_path: Path) -> None:
    searches = planned(
        tmp_path,
        """\
        matrix:
          task:
            - {name: swing, env: cartpole, task: swingup, sentence: "swing the pole up"}
            - {env: hopper}
          model: [offline, "openai/gpt-5.5"]
        """,
    )
    assert [each.name for each in searches] == [
        "swing-offline",
        "swing-gpt-5.5",
        "hopper-offline",
        "hopper-gpt-5.5",
    ]
    assert searches[1].values == {
        "env": "cartpole",
        "task": "swingup",
        "sentence": "swing the pole up",
        "model": "openai/gpt-5.5",
    }


def test_mistakes_of_form_and_of_settings_are_told_together_with_their_lines(
    tmp_path: Path,
) -> None:
    assert mistakes(
        tmp_path,
        """\
        at_one: 3
        max_time: soon
        matrix:
          env: cartpole
        defaults: {iteratons: 3}
        groups:
          a: {matrix: {seed: [0, -1]}}
          b: {setings: {seed: 1}}
        """,
    ) == [
        "line 1, at_one: unknown key 'at_one' (did you mean 'at_once'?)",
        "line 2, max_time: it is 'soon': expected a wall time: write 90s, 10m, 8h or 1h30m",
        "line 4, matrix.env: it is 'cartpole', expected a list",
        "line 5, defaults.iteratons: unknown setting 'iteratons' (did you mean 'iterations'?)",
        "line 7, groups.a.matrix.seed[1]: it is -1, expected 0 or more (see `eureka search --help`"
        " for what it takes)",
        "line 8, groups.b.setings: unknown key 'setings' (did you mean 'settings'?)",
    ]


def test_a_wrong_setting_is_told_once_where_it_stands(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        """\
        defaults:
          sample: 4
          workers: 2
        matrix:
          env: [cartpole]
          seed: [0, 1, -3]
          strategy: [greedy, islnds]
        """,
    )
    assert found == [
        "line 2, defaults.sample: unknown setting 'sample' (did you mean 'samples'?)",
        "line 3, defaults.workers: workers is for the whole batch (set the key `workers` of the"
        " file)",
        "line 6, matrix.seed[2]: it is -3, expected 0 or more (see `eureka search --help` for what"
        " it takes)",
        "line 7, matrix.strategy[1]: it is 'islnds', expected auto, greedy, best-of-n, islands or map-elites"
        " (did you mean 'islands'?)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("matrix: {seed: [0, 0], env: [ant]}", "two searches have the name 'seed0-ant'"),
        ("matrix: {fitness: [chosen]}", "a batch cannot search with fitness 'chosen'"),
        ("defaults: {samples: 3}", "it names no search"),
        ("matrix: {env: [ant]}\nskip: [{env: ant}]", "no search is left"),
        *(
            (f"groups: {{{name}: {{settings: {{env: ant}}}}}}", "a group's name has letters")
            for name in ("../../x", "'..'", '"\\e[31m"', "''")
        ),
        ("groups: {Stop: {settings: {env: ant}}}", "no search can have the name 'Stop'"),
        (
            "matrix: {env: [ant]}\noverrides: [{when: {env: ant}}]",
            "line 2, overrides[0]: it has no set",
        ),
        ("matrix: {env: []}", "line 1, matrix.env: it is [], expected at least one value"),
        ("~: 3\nmatrix: {env: [ant]}", "unknown key"),
        ('max_cost: !!int ""', "'' is no int that can be read, line 1"),
        (
            f"matrix: {{seed: {[*range(100)]}, samples: {[*range(1, 101)]}}}",
            "10,000 searches, expected at most 1,000",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "batch.yaml").write_text(text, encoding="utf-8")
    with pytest.raises((BatchFileError, SettingsError)) as caught:
        expand(read_batch_file(tmp_path / "batch.yaml"))
    assert expected in str(caught.value)
