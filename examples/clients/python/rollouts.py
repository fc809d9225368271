"""Rollouts at once, several samples of each prompt, each sample a session of its own:

    OPENAI_BASE_URL=http://127.0.0.1:10000/v1 OPENAI_API_KEY=unused python rollouts.py [PROMPTS SAMPLES TURNS]
"""

import asyncio
import signal
import sys

from openai import AsyncOpenAI
from pinwheel_session import async_session

AT_ONCE = 256


async def main():
    prompts, samples, turns = [int(number) for number in sys.argv[1:]] or [20, 4, 3]
    # asyncio.run turns Ctrl-C into a cancellation of this task (Python 3.11); this line does so for SIGTERM. It passes on
    # to all rollouts, and each of them releases its session.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    async with AsyncOpenAI(max_retries=5) as client:
        model = (await client.models.list()).data[0].id
        places = asyncio.Semaphore(AT_ONCE)
        runs = [rollout(client, places, model, f"Task {p}. " * 60, turns) for p in range(prompts) for _ in range(samples)]
        done = await asyncio.gather(*runs, return_exceptions=True)
    failed = [run for run in done if isinstance(run, BaseException)]
    usage = [turn for run in done if not isinstance(run, BaseException) for turn in run]
    prompt = sum(turn.prompt_tokens for turn in usage)
    details = [turn.prompt_tokens_details for turn in usage]  # None from vLLM without --enable-prompt-tokens-details
    cached = "?" if None in details else f"{sum(turn.cached_tokens for turn in details) / max(1, prompt):.0%}"
    print(f"{len(done)} rollouts, {len(failed)} failed, {len(usage)} turns, {cached} of {prompt} prompt tokens cached")
    if failed:
        raise failed[0]


async def rollout(client, places, model, task, turns):
    """One episode: its turns, one after another, and then its session's end."""
    usage = []
    async with places, async_session(client) as llm:
        messages = [{"role": "user", "content": task}]
        for turn in range(turns):
            answer = await llm.chat.completions.create(model=model, messages=messages, max_tokens=12)
            usage.append(answer.usage)
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
            messages.append({"role": "user", "content": f"The tool said {turn}."})
    return usage


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
