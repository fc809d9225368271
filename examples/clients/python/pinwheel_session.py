"""Sessions of a gateway with Pinwheel, for OpenAI's SDK: a `with` block is a conversation. Made to be copied.

    with session(OpenAI()) as llm:
        llm.chat.completions.create(...)

Inside, every request names the same session, so all of them reach the replica that holds its KV cache. At the end of the
block, whatever ends it, the session is released: its place counts as free at once and not only after
`session.idle_timeout`. A SIGTERM ends a Python process without leaving its blocks: see chat.py and rollouts.py.
"""

import logging
import uuid
from contextlib import asynccontextmanager, contextmanager

from openai import AsyncOpenAI, OpenAI

HEADER = "X-Session-ID"
log = logging.getLogger(__name__)


@contextmanager
def session(client: OpenAI, session_id: str | None = None):
    """Yields a client whose requests belong to one session; it shares connections and options with the given one.

    An id is at most 256 bytes (`session.max_id_bytes`) and another one for each conversation: a random one by default.
    """
    llm = client.with_options(default_headers={HEADER: session_id or uuid.uuid4().hex})
    try:
        yield llm
    finally:
        try:
            llm.with_options(timeout=5).post(_finish(llm), cast_to=object)
        except Exception as error:
            _unreleased(llm, error)


@asynccontextmanager
async def async_session(client: AsyncOpenAI, session_id: str | None = None):
    """The same for a client of asyncio. A task that is cancelled inside the block releases its session, too."""
    llm = client.with_options(default_headers={HEADER: session_id or uuid.uuid4().hex})
    try:
        yield llm
    finally:
        try:
            await llm.with_options(timeout=5).post(_finish(llm), cast_to=object)
        except Exception as error:
            _unreleased(llm, error)


def _finish(llm):
    """The release: at the root, and not below /v1; without a body; the session stands in the client's header."""
    return str(llm.base_url.join("/finish_session"))


def _unreleased(llm, error):
    # Not raised: it would hide what ended the block, and the session ends by itself after session.idle_timeout.
    log.warning("session %r is not released: %s", llm.default_headers[HEADER], error)
