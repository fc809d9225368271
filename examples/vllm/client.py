"""Plays chat sessions with the OpenAI SDK: the plan comes on stdin, and every answer goes out as a line of JSON.

The SDK's own retries are off: a request that fails in any way is a line with an error.
"""

import concurrent.futures
import json
import sys
import threading

import httpx
import openai

plan = json.load(sys.stdin)
client = openai.OpenAI(base_url=plan["gateway"] + "/v1", api_key="none", max_retries=0, timeout=300)
printing = threading.Lock()
everybody = threading.Barrier(len(plan["sessions"]))


def report(**answer):
    with printing:
        print(json.dumps(answer), flush=True)


def play(session):
    messages = []
    for turn, said in enumerate(session["turns"]):
        if turn == plan["meet"] and turn > 0:
            everybody.wait()
        messages += said["messages"]
        try:
            raw = client.chat.completions.with_raw_response.create(
                model="tiny",
                messages=messages,
                max_tokens=plan["max_tokens"],
                temperature=0,
                extra_body={"ignore_eos": True},
                extra_headers={"X-Session-ID": session["id"]},
            )
            usage = raw.parse().usage
            report(
                session=session["id"],
                turn=turn,
                served=raw.headers.get("x-served-by", ""),
                named=raw.headers.get("x-pinwheel-replica", ""),
                reason=raw.headers.get("x-pinwheel-reason", ""),
                attempts=int(raw.headers["x-envoy-attempt-count"]),
                prompt=usage.prompt_tokens,
                cached=usage.prompt_tokens_details.cached_tokens,
            )
        except Exception as e:
            report(session=session["id"], turn=turn, error=f"{type(e).__name__}: {e}")
        # A text of the plan, not the engine's: every arm is to ask for the same prompts.
        messages.append({"role": "assistant", "content": said["answer"]})
    if plan["finish"]:
        answer = httpx.post(plan["gateway"] + "/finish_session", params={"session_id": session["id"]})
        if answer.status_code != 200:
            report(session=session["id"], error=f"finish_session: {answer.status_code} {answer.text}")


with concurrent.futures.ThreadPoolExecutor(len(plan["sessions"])) as pool:
    list(pool.map(play, plan["sessions"]))
