from __future__ import annotations

from pathlib import Path

import pytest

from eureka_agent.cli.options import given_settings
from eureka_agent.errors import SettingsError
from eureka_agent.settings import SearchSettings, parse_settings, training_part


def test_flags_override_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    config.write_text("iterations: 7\nsamples: 3\nhidden_sizes: [32, 32]\n")
    values = given_settings(config, {"samples": 5, "seed": None})
    settings = parse_settings(SearchSettings, values, "test")
    assert (settings.iterations, settings.samples, settings.seed) == (7, 5, 0)
    assert settings.hidden_sizes == (32, 32)


def test_an_unknown_key_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    config.write_text("iteratoins: 7\n")
    with pytest.raises(SettingsError) as caught:
        given_settings(config, {})
    assert "unknown setting 'iteratoins'" in caught.value.message
    assert str(config) in caught.value.message
    assert caught.value.hint == "did you mean 'iterations'?"


@pytest.mark.parametrize(
    ("key", "value"),
    [("samples", 0), ("samples", "many"), ("discount", 1.5), ("strategy", "luck"), ("hidden_sizes", [64, "x"])],
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


def test_the_training_part_keeps_every_training_field() -> None:
    settings = SearchSettings(env_steps=123, learning_rate=0.5, iterations=9)
    part = training_part(settings)
    assert (part.env_steps, part.learning_rate) == (123, 0.5)
    assert not hasattr(part, "iterations")
