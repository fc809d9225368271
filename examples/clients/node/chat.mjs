// A conversation of streamed turns through a gateway with Pinwheel:
//
//   OPENAI_BASE_URL=http://127.0.0.1:10000/v1 OPENAI_API_KEY=unused node chat.mjs [TURNS]

import OpenAI from 'openai';
import { withSession } from './session.mjs';

const turns = Number(process.argv[2] ?? 3);
const rules = 'You are a helpful assistant. '.repeat(40); // long enough to fill cache blocks

// A signal ends Node without a finally. Turned into an abort it ends the turn under way, and then the session.
const stop = new AbortController();
for (const [name, number] of [['SIGINT', 2], ['SIGTERM', 15]]) {
  process.once(name, () => {
    process.exitCode = 128 + number;
    stop.abort(new Error(name));
  });
}

async function ask(llm, model, messages) {
  const stream = await llm.chat.completions.create(
    { model, messages, max_tokens: 12, stream: true, stream_options: { include_usage: true } },
    { signal: stop.signal },
  );
  let answer = '';
  let usage;
  for await (const chunk of stream) {
    answer += chunk.choices[0]?.delta?.content ?? '';
    usage = chunk.usage ?? usage;
  }
  stop.signal.throwIfAborted(); // the SDK ends an aborted stream as if it were whole
  return { answer, usage };
}

async function converse(llm, model) {
  const messages = [{ role: 'system', content: rules }];
  for (let turn = 1; turn <= turns; turn++) {
    messages.push({ role: 'user', content: `Question ${turn}?` });
    const { answer, usage } = await ask(llm, model, messages);
    messages.push({ role: 'assistant', content: answer });
    const cached = usage.prompt_tokens_details?.cached_tokens ?? '?'; // vLLM tells with --enable-prompt-tokens-details
    console.log(`turn ${turn}: ${cached} of ${usage.prompt_tokens} prompt tokens cached: ${answer}`);
  }
}

try {
  const client = new OpenAI();
  const model = (await client.models.list()).data[0].id;
  await withSession(client, (llm) => converse(llm, model));
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
