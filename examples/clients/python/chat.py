"""A conversation of streamed turns through a gateway with Pinwheel:

    OPENAI_BASE_URL=http://127.0.0.1:10000/v1 OPENAI_API_KEY=unused python chat.py [TURNS]
"""

import signal
import sys

from openai import OpenAI
from pinwheel_session import session

RULES = "You are a helpful assistant. " * 40  # long enough to fill cache blocks


def main():
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    # Ctrl-C leaves blocks in order; SIGTERM, by which Slurm and Kubernetes end a process, does so only by this line.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    client = OpenAI()
    model = client.models.list().data[0].id
    with session(client) as llm:
        messages = [{"role": "system", "content": RULES}]
        for turn in range(1, turns + 1):
            messages.append({"role": "user", "content": f"Question {turn}?"})
            answer, usage = ask(llm, model, messages)
            messages.append({"role": "assistant", "content": answer})
            details = usage.prompt_tokens_details  # None from vLLM without --enable-prompt-tokens-details
            print(f"turn {turn}: {details.cached_tokens if details else '?'} of {usage.prompt_tokens} prompt tokens cached: {answer}", flush=True)


def ask(llm, model, messages):
    answer, usage = "", None
    # The inner `with` closes the connection if the loop is left early, and the model server stops to generate.
    with llm.chat.completions.create(
        model=model, messages=messages, max_tokens=12, stream=True, stream_options={"include_usage": True}
    ) as stream:
        for chunk in stream:
            if chunk.choices:
                answer += chunk.choices[0].delta.content or ""
            usage = chunk.usage or usage
    return answer, usage


if __name__ == "__main__":
    main()
