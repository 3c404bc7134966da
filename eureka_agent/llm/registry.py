"""From `--model <provider>/<name>` to a language model. A provider's SDK is imported only when it is asked for."""

from __future__ import annotations

from eureka_agent.errors import SettingsError
from eureka_agent.llm.interface import LanguageModel

SUPPORTED = ("openai",)


def language_model(model: str, base_url: str | None = None) -> LanguageModel:
    """The model that `model` names. Raises SettingsError for a provider that this version does not speak to, or without a key."""
    provider, slash, name = model.partition("/")
    if not slash or not name:
        raise SettingsError(
            f"model {model!r} does not say whose it is",
            "write <provider>/<model>, such as openai/gpt-5, or offline for no LLM",
        )
    if provider not in SUPPORTED:
        raise SettingsError(
            f"model {model!r}: this version speaks to {', '.join(SUPPORTED)} only, not to {provider!r}",
            f"if it has an OpenAI-compatible server: --model openai/{name} --base-url https://…/v1; or --model offline",
        )
    from eureka_agent.llm.openai_client import OpenAIModel

    return OpenAIModel(name, base_url)
