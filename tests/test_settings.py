from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.batch.file import BatchSettings
from eureka_agent.cli.command import BadValueError, Number
from eureka_agent.cli.options import Numbers, given_settings
from eureka_agent.errors import SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.search.preparation import effective_settings
from eureka_agent.settings import (
    OUTSIDE,
    WITHIN,
    SearchSettings,
    TrainingSettings,
    check_training,
    parse_settings,
    scalar_type,
    strategy_name,
)
from eureka_agent.settings_files import read_settings_file


def test_flags_override_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    config.write_text("iterations: 7\nsamples: 3\nhidden_sizes: [32, 32]\n")
    values = given_settings(config, {"samples": 5, "seed": None})
    settings = parse_settings(SearchSettings, values, "test")
    assert (settings.iterations, settings.samples, settings.seed) == (7, 5, 0)
    assert settings.hidden_sizes == (32, 32)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("samples", 0),
        ("samples", "many"),
        ("discount", 1.5),
        ("strategy", "luck"),
        ("hidden_sizes", [64, "x"]),
        ("hidden_sizes", [0, -3]),
        ("hidden_sizes", []),
        ("rungs", [0.5, 1.0]),
        ("learning_rate", float("inf")),
        ("clip", float("nan")),
        ("dry_run_timeout", float("inf")),
        ("dry_run_timeout", 86_401),
        ("training_timeout", 1e30),
        ("env", " "),
        ("sentence", "   "),
        ("sentence", "balance \udcff"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(key: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"setting '{key}"):
        parse_settings(SearchSettings, {key: value}, "test")


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [1\n", "just words"])
def test_a_file_that_holds_no_mapping_is_a_clear_error(tmp_path: Path, content: str) -> None:
    config = tmp_path / "search.yaml"
    config.write_text(content)
    with pytest.raises(SettingsError):
        given_settings(config, {})


@pytest.mark.parametrize(
    ("fits", "too_many", "said"),
    [
        ({"num_envs": 1, "horizon": 4}, {"horizon": 3}, "minibatches is 4, but an update has only"),
        ({"env_steps": 8000, "horizon": 8000}, {"horizon": 8001}, "horizon is 8001, expected at m"),
    ],
)
def test_an_update_has_samples(fits: dict[str, int], too_many: dict[str, int], said: str) -> None:
    check_training(TrainingSettings(**fits))
    with pytest.raises(SettingsError, match=said):
        check_training(TrainingSettings(**fits | too_many))


def test_what_a_task_brings_decides_whether_the_minibatches_fit(
    description: TaskDescription,
) -> None:
    # 100 minibatches of 2 steps: too many with 16 environments, right with the 64 of the task
    asked = {"env": "cart", "horizon": 2, "minibatches": 100}
    with pytest.raises(SettingsError, match="horizon x num_envs = 32 samples"):
        effective_settings(asked, description.model_copy(update={"num_envs": 16}), "cpu")
    assert (
        effective_settings(
            asked, description.model_copy(update={"num_envs": 64}), "cpu"
        ).minibatches
        == 100
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"samples: 4\nseed: 1\nsamples: 8\n", "'samples' is written twice, line 3"),
        (b"sentence: d\xe9placer\n", "it is not UTF-8"),
        (b"sentence: [1\n", "it ends in the middle of a value, line 2"),
        (b"seed: 1\nsamples: 4: 5\n", "line 2 is not YAML: 'samples: 4: 5'"),
        (b"seed: 1\niterations:\t3: 4\n", "a tab in line 2: indent with spaces"),
        (b"seed: 1\n\titerations: 3\n", "a tab in line 2: indent with spaces"),
        (b"samples: &many 4\nseed: *many\n", "settings have no aliases, line 2"),
        (b"sentence: hop\x07\n", "it is not a text: it has control characters"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    config = tmp_path / "search.yaml"
    config.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_settings_file(config)
    assert str(config) in caught.value.message
    assert problem in caught.value.message
    assert "\n" not in caught.value.message


def test_what_looks_like_a_date_is_text(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text("sentence: 2026-13-01\ntask: 2026-11-01\n")
    assert read_settings_file(tmp_path / "search.yaml") == {
        "sentence": "2026-13-01",
        "task": "2026-11-01",
    }


def test_a_file_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_bytes("sentence: déplacer\n".encode())
    code = (
        "from pathlib import Path; from eureka_agent.settings_files import read_settings_file;"
        "print(ascii(read_settings_file(Path('search.yaml'))['sentence']))"
    )
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code]
    result = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60
    )
    assert result.stdout == "'d\\xe9placer'\n", result.stderr


def test_a_command_refuses_the_settings_that_it_does_not_take(tmp_path: Path) -> None:
    config = tmp_path / "night.yaml"
    config.write_text("env: hopper\niterations: 4\n")
    with pytest.raises(SettingsError) as caught:
        given_settings(config, {}, takes=("seed", "env"))
    assert (
        caught.value.message
        == f"this command does not take the setting 'iterations' in {str(config)!r}"
    )
    assert caught.value.hint == "take it out; it takes env, seed"


def _bound(name: str) -> tuple[type, float | Decimal, float | Decimal]:
    """Type, least and largest value of a setting that is a number, by the schema that pydantic
    gives to anybody."""
    schema = SearchSettings.model_json_schema()["properties"][name]
    kinds = [schema, *schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    number = next(kind for kind in kinds if kind.get("type") in ("integer", "number"))
    return (
        int if number["type"] == "integer" else float,
        number.get("minimum", number.get("exclusiveMinimum")),
        number.get("maximum", number.get("exclusiveMaximum")),
    )


NUMBERS = [
    name
    for name, field in SearchSettings.model_fields.items()
    if re.search(r"\b(int|float|Decimal)\b", str(field.annotation))
]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_bounds_and_what_is_beyond_them_is_refused_before_anything_is_made(
    name: str,
) -> None:
    kind, least, most = _bound(name)
    flag = f"--{name.replace('_', '-')}"
    several = isinstance(SearchSettings.model_fields[name].default, tuple)
    beyond = [10**23, 99999999999999999999, most + 1, least - 1]
    beyond += [] if kind is int else [float("nan"), float("inf"), float("-inf"), 1e30]
    for value in beyond:
        with pytest.raises(SettingsError, match=rf"^{flag} (is|holds) .*, expected ") as caught:
            given_settings(None, {name: (value,) if several else value})
        assert len(caught.value.message) < 160


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_in_a_file_is_written_as_a_number(tmp_path: Path, name: str) -> None:
    config = tmp_path / "search.yaml"
    several = isinstance(SearchSettings.model_fields[name].default, tuple)
    quoted = (
        [] if name == "max_cost" else ['"3"', "'0.5'", "010"]
    )  # a run's own record has dollars as text
    for text in ("yes", "true", "1:30", *quoted):
        config.write_text(f"{name}: {f'[{text}]' if several else text}\n")
        with pytest.raises(
            SettingsError, match=rf"^setting '{name}' in .*, expected a (whole )?number\b"
        ):
            given_settings(config, {})


@pytest.mark.parametrize("text", ['"no"', "no", "off", "1", "0", "y"])
def test_a_boolean_in_a_file_is_true_or_false(tmp_path: Path, text: str) -> None:
    config = tmp_path / "search.yaml"
    config.write_text(f"baselines: {text}\n")
    with pytest.raises(
        SettingsError, match=r"^setting 'baselines' in .*, expected true or false\n"
    ):
        given_settings(config, {})


def test_numbers_and_booleans_of_a_file_are_those_that_are_written(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    config.write_text(
        "learning_rate: 1e-3\nenv_steps: 200_000\ndiscount: .99\nbaselines: false\nblind:"
        " true\nmax_cost: 2.5\nseed: 7\nbudget: 5000000\n"
    )
    settings = parse_settings(SearchSettings, given_settings(config, {}), "test")
    assert (settings.learning_rate, settings.env_steps, settings.discount, settings.seed) == (
        0.001,
        200_000,
        0.99,
        7,
    )
    assert (settings.baselines, settings.blind, str(settings.max_cost), settings.budget) == (
        False,
        True,
        "2.5",
        "5000000",
    )


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("x" * 2001, "it has 2,001 characters, expected at most 2,000"),
        ("  ", "expected the task in plain words"),
    ],
)
def test_a_sentence_is_refused_by_the_name_that_help_has_for_it(sentence: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        given_settings(None, {"sentence": sentence})
    assert caught.value.message.startswith("SENTENCE is '")
    assert said in caught.value.message
    assert len(caught.value.message) < 160
    assert "search" in caught.value.hint
    parse_settings(SearchSettings, {"sentence": "x" * 2000}, "test")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "best-of-n"),
        ({"drafts": 8}, "best-of-n"),
        ({"drafts": 1}, "greedy"),
        ({"fitness": "chosen"}, "greedy"),
        ({"model": ("openai/any",)}, "greedy"),
        ({"model": ("openai/any",), "drafts": 8}, "greedy"),
        ({"strategy": "islands"}, "islands"),
        ({"model": ("openai/any",), "strategy": "best-of-n"}, "best-of-n"),
    ],
)
def test_the_strategy_unless_one_is_named(given: dict[str, object], name: str) -> None:
    settings = SearchSettings.model_validate(given)
    assert strategy_name(settings) == name
    refined = "greedy" if settings.strategy == "auto" else name
    assert strategy_name(settings, refined=True) == refined


COUNTS = {
    "200k": 200_000,
    "1.5M": 1_500_000,
    "2e5": 200_000,
    "1.25e3": 1250,
    "200_000": 200_000,
    "2G": 2 * 10**9,
    "0.5k": 500,
    "3": 3,
}


@pytest.mark.parametrize("name", ["env_steps", "reply_tokens", "max_tokens", "num_envs"])
@pytest.mark.parametrize("text", COUNTS)
def test_a_count_is_typed_as_the_output_shows_it(name: str, text: str, tmp_path: Path) -> None:
    most = {"num_envs": 1_000_000, "reply_tokens": 100_000_000}.get(name, 10**12)
    expected = COUNTS[text]
    if expected > most:
        return
    config = tmp_path / "search.yaml"
    config.write_text(f"{name}: {text}\n")
    from_file = parse_settings(SearchSettings, given_settings(config, {}), "a file")
    assert getattr(from_file, name) == expected
    assert Number(int).convert(text, None, None) == expected


@pytest.mark.parametrize(
    "text", ["200K", "2m", "1.5", "1.2345k", "k", "5M2k", "2e-3", "1__0", "٣k"]
)
def test_what_is_no_count_is_refused_with_examples(text: str) -> None:
    expected = "expected a whole number such as 8, 200k, 1.5M or 2e5"
    with pytest.raises(SettingsError, match=expected):
        parse_settings(SearchSettings, {"env_steps": text}, "a file")
    with pytest.raises(BadValueError, match=expected):
        Number(int).convert(text, None, None)


@pytest.mark.parametrize(
    ("model", "name"), [(SearchSettings, "hidden_sizes"), (BatchSettings, "max_tokens")]
)
def test_counts_in_lists_and_in_batches_are_typed_alike(model: Any, name: str) -> None:
    several = name == "hidden_sizes"
    found = parse_settings(model, {name: ["1k", 64] if several else "200k"}, "a file")
    assert getattr(found, name) == ((1000, 64) if several else 200_000)
    assert Numbers(int, "").convert("1k,64", None, None) == (1000, 64)


def test_every_setting_says_whether_it_reaches_beyond_the_search() -> None:
    """Numbers and switches cannot name an address, a wall, a program or a path."""
    for name, field in SearchSettings.model_fields.items():
        is_number = scalar_type(field.annotation) in (int, float, bool, Decimal)
        said = field.json_schema_extra in (OUTSIDE, WITHIN)
        assert said != (is_number or name in TrainingSettings.model_fields), name
