"""All other models through litellm: `gemini/…`, `deepseek/…`, `openrouter/…`, a local `ollama/…`.
litellm takes seconds to import: a request does that, if files suffice before it. Two variables
keep it from fetching its price table, and from reading a `.env`."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from eureka_agent.errors import SettingsError, did_you_mean
from eureka_agent.llm import failures
from eureka_agent.llm.access import (
    KEY_VARIABLES,
    NO_KEY,
    ModelAccess,
    ask_loopback_directly,
    missing_key,
    shown_address,
    usable_address,
)
from eureka_agent.llm.clients import ServedModel, bound_clients, requests_bounded
from eureka_agent.llm.interface import Completion, CompletionRequest
from eureka_agent.llm.replies import BOUNDS, Forms, chat_body, read_chat, refused

LOCAL_PROVIDERS = (
    *("ollama", "ollama_chat", "hosted_vllm", "lm_studio", "llamafile", "xinference"),
    *("docker_model_runner", "lemonade"),
)
"""Local servers, which need no key."""


class LiteLLMModel(ServedModel):
    """A model that litellm supports."""

    def __init__(self, provider: str, model: str, access: ModelAccess) -> None:
        """Raises SettingsError for an unknown provider, and for a missing key."""
        name = f"{provider}/{model}"
        ask_loopback_directly()
        if provider not in LOCAL_PROVIDERS and not _has_folder(provider):
            _check_provider(provider, name)
        local = access.base_url is not None or provider in LOCAL_PROVIDERS
        if not local and not _has_variable(provider):
            missing = imported_litellm().validate_environment(name)["missing_keys"]
            if missing and all(key.endswith("_API_KEY") for key in missing):
                raise missing_key(name, *missing)
        self._api_base = usable_address(access.base_url)
        address = self._api_base and shown_address(self._api_base)
        service = failures.Service(
            name=name,
            address=address,
            key_name=f"the key of {provider!r}",
            protocol=f"the servers of {provider!r}",
            address_hint="check --base-url" if address else f"see litellm's page on {provider!r}",
            timeout_s=access.timeout_s,
        )
        super().__init__(service, access, Forms(*BOUNDS))

    async def complete(self, request: CompletionRequest) -> Completion:
        """Try a request, after the import, which takes seconds."""
        await asyncio.to_thread(imported_litellm)
        return await super().complete(request)

    async def close(self) -> None:
        """Do nothing: litellm shares connections in a process, and closes them at its end."""

    async def _once(self, request: CompletionRequest) -> Completion:
        litellm = imported_litellm()
        # `drop_params` stays off: a temperature that a model does not accept is an error
        options = chat_body(self.name, self.forms.of(request), self.forms)
        options |= {"timeout": self.service.timeout_s, "max_retries": 0, "num_retries": 0}
        if self._api_base is not None:
            options["api_base"] = self._api_base
            missing = litellm.validate_environment(self.name)["missing_keys"]
            if any(key.endswith("_API_KEY") for key in missing):
                options["api_key"] = NO_KEY
        try:
            with requests_bounded(self.service.timeout_s):
                async with asyncio.timeout(self.service.timeout_s):
                    response = await litellm.acompletion(**options)
        except TimeoutError:
            raise failures.RequestFailedError(failures.Trouble.TIMEOUT) from None
        except litellm.exceptions.ContentPolicyViolationError:
            return refused()
        except Exception as error:  # noqa: BLE001 - libraries of a hundred providers raise their own
            raise _failure(error) from None
        return read_chat(response)


@cache
def imported_litellm() -> Any:
    """litellm, quiet and without network access."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # the other mode reads a .env file into this process
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        litellm: Any = importlib.import_module("litellm")
        bound_clients()
    except ImportError as error:
        what = f"litellm cannot be imported: {error}"
        raise SettingsError(what, "install eureka-agent again") from None
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        # it would print requests beside the live view
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _failure(error: Exception) -> failures.RequestFailedError:
    """Correct the status: litellm gives one to every error, also to its own, without a request. Its
    prefix, traceback and setup hints are no words of a server's."""
    failure = failures.failure_of(error)
    if failure.trouble is not failures.Trouble.OTHER:
        return failure
    words = str(getattr(error, "message", None) or error)
    words = re.split(r"\s*Traceback \(most recent|\s*To drop unsupported", words)[0]
    words = re.sub(r"^litellm\.\w+: (\w+: )?(\w*Exception - )?", "", words)
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return failures.RequestFailedError(failures.Trouble.OTHER, words or failure.words)
    if status == 200 or "no 'choices'" in words:
        return failures.RequestFailedError(failures.Trouble.NONSENSE)
    # a provider's error under a good status, or an error of litellm's own
    is_told = status in failures.PASSING_STATUSES or status > 500
    return failures.RequestFailedError(
        failures.Trouble.STATUS if is_told else failures.Trouble.OTHER, words, status
    )


def _check_provider(provider: str, name: str) -> None:
    litellm = imported_litellm()
    try:
        litellm.get_llm_provider(name)
    except litellm.exceptions.BadRequestError:
        listed = {str(getattr(known, "value", known)) for known in litellm.provider_list}
        close = did_you_mean(provider, listed | set(KEY_VARIABLES))
        start = f"{close} " if close.startswith("did you mean") else ""
        raise SettingsError(
            f"model {name!r}: there is no provider {provider!r}",
            f"{start}if it has an OpenAI-compatible server: --model openai/… --base-url"
            " https://…/v1; or --model offline",
        ) from None


def _has_variable(provider: str) -> bool:
    """True where a variable of the environment has the provider's name, such as its key."""
    start = re.sub("[_-]", "", provider).upper()
    set_ = (re.sub("[_-]", "", name).upper() for name, value in os.environ.items() if value)
    return any(name.startswith(start) for name in set_)


def _has_folder(provider: str) -> bool:
    """True for a provider whose code lies in litellm's package; others take the import to know."""
    spec = importlib.util.find_spec("litellm")
    origin = None if spec is None else spec.origin
    return origin is not None and (Path(origin).parent / "llms" / provider).is_dir()
