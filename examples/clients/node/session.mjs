// Sessions of a gateway with Pinwheel, for OpenAI's SDK: a callback is a conversation. Made to be copied.
//
//   await withSession(new OpenAI(), async (llm) => { await llm.chat.completions.create({...}) });

import { randomUUID } from 'node:crypto';

/**
 * Calls body with a client whose requests belong to one session, so that all of them reach the replica that holds its KV
 * cache, and releases the session when body is done or has thrown. Returns what body returns.
 *
 * The id is at most 256 bytes (session.max_id_bytes) and another one for each conversation. withOptions replaces the
 * client's own default headers: give those in headers.
 */
export async function withSession(client, body, { id = randomUUID(), headers = {} } = {}) {
  const llm = client.withOptions({ defaultHeaders: { ...headers, 'X-Session-ID': id } });
  try {
    return await body(llm, id);
  } finally {
    try {
      // At the root, and not below /v1; without a body; the session stands in the client's header.
      await llm.post(new URL('/finish_session', llm.baseURL).href, { timeout: 5000 });
    } catch (error) {
      // Not thrown: it would hide what ended body, and the session ends by itself after session.idle_timeout.
      console.warn(`session ${id} is not released: ${error.message}`);
    }
  }
}
