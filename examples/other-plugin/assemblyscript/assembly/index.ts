// A gate: requests pass with the configured key only, and those without it are counted.
export * from "@solo-io/proxy-runtime/proxy";
import {
  Context, Counter, FilterHeadersStatusValues, GrpcStatusValues, RootContext, registerRootContext, send_local_response,
  stream_context,
} from "@solo-io/proxy-runtime";

class Gate extends RootContext {
  refused: Counter = new Counter("gate_refused_total");

  createContext(id: u32): Context { return new Request(id, this); }
}

class Request extends Context {
  constructor(id: u32, gate: Gate) { super(id, gate); }

  onRequestHeaders(count: u32, end: bool): FilterHeadersStatusValues {
    const headers = stream_context.headers.request;
    if (headers.get("x-api-key") == this.root_context.getConfiguration()) {
      headers.remove("x-api-key"); // the key is for the gate alone
      return FilterHeadersStatusValues.Continue;
    }
    (this.root_context as Gate).refused.increment(1);
    send_local_response(401, "no key", String.UTF8.encode("no key, no entry\n"), [], GrpcStatusValues.InvalidCode);
    return FilterHeadersStatusValues.StopIteration;
  }
}

registerRootContext((id: u32) => new Gate(id), "gate");
