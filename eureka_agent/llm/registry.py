"""From `--model <provider>/<name>` to a language model. A provider's SDK is imported only when it
is asked for."""

from __future__ import annotations

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import DEFAULT_ACCESS, Access, RetryPolicy
from eureka_agent.llm.interface import LanguageModel

__all__ = ["DEFAULT_ACCESS", "Access", "RetryPolicy", "language_model"]


def language_model(model: str, access: Access = DEFAULT_ACCESS) -> LanguageModel:
    """The model that `model` names. Raises SettingsError for a name without a provider, an unknown
    provider, or a key that is missing."""
    provider, slash, name = (found.strip() for found in model.partition("/"))
    if slash and provider and name and model != f"{provider}/{name}":
        # its price and its share of the proposals would be looked up under another name
        raise SettingsError(
            f"model {model!r} has spaces around its parts", f"write {provider}/{name}"
        )
    if not slash or not provider or not name:
        raise SettingsError(
            (
                f"model {model!r} does not say whose it is"
                if not slash
                else f"model {model!r} is only half a name"
            ),
            "write <provider>/<model>, such as openai/gpt-5, anthropic/claude-sonnet-5 or"
            " gemini/gemini-2.5-pro, or offline for no LLM",
        )
    if provider == "openai":
        from eureka_agent.llm.openai_client import OpenAIModel

        return OpenAIModel(name, access)
    if provider == "anthropic":
        from eureka_agent.llm.anthropic_client import AnthropicModel

        return AnthropicModel(name, access)
    from eureka_agent.llm.litellm_client import LiteLLMModel

    return LiteLLMModel(provider, name, access)
