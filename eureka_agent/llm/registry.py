"""Language models by `--model <provider>/<name>`; a provider's SDK is imported on demand."""

from __future__ import annotations

from eureka_agent.errors import SettingsError
from eureka_agent.llm.access import DEFAULT_ACCESS, Access, RetryPolicy
from eureka_agent.llm.batches.interface import BatchEndpoints
from eureka_agent.llm.interface import LanguageModel

__all__ = ["DEFAULT_ACCESS", "Access", "RetryPolicy", "batch_endpoints", "language_model"]


def language_model(model: str, access: Access = DEFAULT_ACCESS) -> LanguageModel:
    """Make a model by name. Raises SettingsError for an unknown provider, a missing key, and an SDK
    that cannot be imported."""
    provider, slash, name = (found.strip() for found in model.partition("/"))
    if slash and provider and name and model != f"{provider}/{name}":
        # its price and its share of proposals would have another name
        hint = f"write {provider}/{name}"
        raise SettingsError(f"model {model!r} has spaces around its parts", hint)
    if not slash or not provider or not name:
        what = "is only half a name" if slash else "does not say whose it is"
        raise SettingsError(
            f"model {model!r} {what}",
            "write <provider>/<model>, such as openai/gpt-5, anthropic/claude-sonnet-5 or"
            " gemini/gemini-2.5-pro, or offline for no LLM",
        )
    try:
        if provider == "openai":
            from eureka_agent.llm.openai_client import OpenAIModel

            return OpenAIModel(name, access)
        if provider == "anthropic":
            from eureka_agent.llm.anthropic_client import AnthropicModel

            return AnthropicModel(name, access)
    except ImportError as error:
        what = f"the package {provider} cannot be imported: {error}"
        raise SettingsError(what, "install eureka-agent again") from None
    from eureka_agent.llm.litellm_client import LiteLLMModel

    return LiteLLMModel(provider, name, access)


def batch_endpoints(model: LanguageModel) -> BatchEndpoints:
    """Batch endpoints of a model's provider. Raises SettingsError for a provider without."""
    provider = model.name.partition("/")[0]
    if provider == "openai":
        from eureka_agent.llm.batches.openai_batches import OpenAIBatches
        from eureka_agent.llm.openai_client import OpenAIModel

        if isinstance(model, OpenAIModel):
            return OpenAIBatches(model)
    if provider == "anthropic":
        from eureka_agent.llm.anthropic_client import AnthropicModel
        from eureka_agent.llm.batches.anthropic_batches import AnthropicBatches

        if isinstance(model, AnthropicModel):
            return AnthropicBatches(model)
    raise SettingsError(
        f"--llm-batch cannot hold for {model.name!r}: it is not asked in batches",
        "leave --llm-batch out, or name models of openai/ and anthropic/ alone",
    )
