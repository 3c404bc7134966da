"""Keys of the tests, and access to a model that waits for nobody."""

from __future__ import annotations

from dataclasses import dataclass, field

from eureka_agent.llm.access import Access, RetryPolicy

KEYS = {
    "OPENAI_API_KEY": "sk-secret-of-openai",
    "ANTHROPIC_API_KEY": "sk-ant-secret-of-anthropic",
    "OPENROUTER_API_KEY": "sk-or-secret-of-openrouter",
    "DEEPSEEK_API_KEY": "secret-of-deepseek",
}


@dataclass
class Waits:
    """Stands in for the waits between tries: notes them and does not wait."""

    seconds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def policy(self, random: float = 0.0) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, random=lambda: random)

    def access(self, base_url: str, timeout_s: float = 20.0, random: float = 0.0) -> Access:
        return Access(
            base_url=base_url,
            timeout_s=timeout_s,
            on_retry=self.told.append,
            retries=self.policy(random),
        )
