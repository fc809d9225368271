// Sticky turns through a plugin in Node, with host functions that do no more than the gateway's would have to.
// node turns.mjs MODULE.wasm TURNS
import { readFileSync } from "node:fs";

const [module, turns] = [process.argv[2], Number(process.argv[3])];
const sessions = 512, replicas = 3, turnsPerMillisecond = 4;
const text = new TextEncoder();

const configuration = text.encode(JSON.stringify({
  session: { max_sessions: sessions }, // so that shards are as full as they become
  pools: [{ name: "pool", cluster: "pool", replicas: Array.from({ length: replicas }, (_, i) => `127.0.0.1:${9000 + i}`) }],
}));

let memory, allocate;
const view = () => new DataView(memory.buffer);
const bytes = (at, size) => new Uint8Array(memory.buffer, at, size);
const name = (at, size) => Buffer.from(memory.buffer, at, size).toString("latin1");

// give writes a value where the plugin asks for it, as a gateway does: into memory that the plugin allocates.
function give(value, atPointer, sizePointer) {
  const at = allocate(value.length);
  bytes(at, value.length).set(value);
  view().setUint32(atPointer, at, true);
  view().setUint32(sizePointer, value.length, true);
  return 0;
}

function pairs(headers) {
  const parts = headers.map(([k, v]) => [text.encode(k), text.encode(v)]);
  const size = parts.reduce((n, [k, v]) => n + 10 + k.length + v.length, 4);
  const out = new Uint8Array(size), sizes = new DataView(out.buffer);
  sizes.setUint32(0, parts.length, true);
  let at = 4 + 8 * parts.length;
  parts.forEach(([k, v], i) => {
    sizes.setUint32(4 + 8 * i, k.length, true);
    sizes.setUint32(8 + 8 * i, v.length, true);
    out.set(k, at);
    out.set(v, at + k.length + 1);
    at += k.length + v.length + 2;
  });
  return out;
}

const ids = Array.from({ length: sessions }, (_, i) => `session-${String(i).padStart(8, "0")}`);
const requests = ids.map((id) => pairs([
  [":authority", "127.0.0.1:10000"], [":path", "/v1/chat/completions"], [":method", "GET"], [":scheme", "http"],
  ["user-agent", "Go-http-client/1.1"], ["x-session-id", id], ["x-forwarded-proto", "http"],
  ["x-request-id", "7d6bd0fb-6c4b-4a52-8b6d-3cbb6f0c2b64"], ["accept-encoding", "gzip"],
]));
const response = pairs([[":status", "200"], ["content-length", "2"], ["date", "Mon, 01 Jan 2024 00:00:00 GMT"],
  ["content-type", "text/plain; charset=utf-8"], ["x-envoy-upstream-service-time", "0"]]);

let current = requests[0], id = text.encode(ids[0]), clock = 1_000_000_000n, target = 0;
const shared = new Map();
let cas = 0;

const host = {
  proxy_log(level, at, size) { if (level > 1) process.stderr.write(name(at, size) + "\n"); return 0; },
  proxy_get_buffer_bytes: (kind, start, size, at, n) => give(configuration, at, n),
  proxy_get_header_map_pairs: (kind, at, n) => give(kind === 0 ? current : response, at, n),
  proxy_get_header_map_value: (kind, key, keySize, at, n) => give(id, at, n),
  proxy_replace_header_map_value(kind, key, keySize, at, size) { target += size; return 0; },
  proxy_get_shared_data(key, keySize, at, n, casAt) {
    const found = shared.get(name(key, keySize));
    if (!found) return 1;
    view().setUint32(casAt, found.cas, true);
    return give(found.value, at, n);
  },
  proxy_set_shared_data(key, keySize, at, size, expected) {
    const k = name(key, keySize), found = shared.get(k);
    if (expected !== 0 && found && found.cas !== expected) return 8;
    shared.set(k, { value: bytes(at, size).slice(), cas: ++cas });
    return 0;
  },
  proxy_define_metric(kind, at, size, id) { view().setUint32(id, 1, true); return 0; },
};
const wasi = {
  clock_time_get(id, precision, at) { view().setBigUint64(at, clock, true); return 0; },
  random_get(at, size) { bytes(at, size).fill(7); return 0; },
  args_sizes_get(count, size) { view().setUint32(count, 0, true); view().setUint32(size, 0, true); return 0; },
  environ_sizes_get(count, size) { view().setUint32(count, 0, true); view().setUint32(size, 0, true); return 0; },
  proc_exit(code) { process.exit(code); },
};

const compiled = new WebAssembly.Module(readFileSync(module));
const imports = {};
for (const { module: from, name: as, kind } of WebAssembly.Module.imports(compiled)) {
  if (kind !== "function") continue;
  (imports[from] ??= {})[as] = (from === "env" ? host : wasi)[as] ?? (from === "env" ? () => 0 : () => 8);
}
const plugin = new WebAssembly.Instance(compiled, imports).exports;
memory = plugin.memory;
allocate = plugin.proxy_on_memory_allocate;
plugin._initialize();
plugin.proxy_on_context_create(1, 0);
if (!plugin.proxy_on_vm_start(1, 0) || !plugin.proxy_on_configure(1, configuration.length)) throw new Error("the plugin refuses its configuration");
plugin.proxy_on_tick(1);

for (let turn = 0; turn < sessions + turns; turn++) {
  const context = turn + 2;
  current = requests[turn % sessions];
  id = text.encode(ids[turn % sessions]);
  if (turn % turnsPerMillisecond === 0) clock += 1_000_000n;
  if (turn % 4000 === 3999) plugin.proxy_on_tick(1);
  plugin.proxy_on_context_create(context, 1);
  plugin.proxy_on_request_headers(context, 9, 1);
  plugin.proxy_on_response_headers(context, 5, 0);
  plugin.proxy_on_delete(context);
}
if (target === 0) throw new Error("no turn was given a replica");
