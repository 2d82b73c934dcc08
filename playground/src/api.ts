/** The client of the API: the same endpoints that every other client uses. */

export type Body = Record<string, unknown>;

/** An error in OpenAI's form. `param` names the field at fault, with a JSON Pointer behind a `#`. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly param: string | null = null,
  ) {
    super(message);
  }
}

export interface Model {
  id: string;
  max_model_len: number;
}

/** `pointer`: a JSON Pointer into the constraint, or into the request. */
export interface Warning {
  code: string;
  message: string;
  pointer: string;
}

export interface Check {
  kind: string;
  backend: string;
  stopgap: boolean;
  waited_ms: number;
  checked_afterwards: string[];
  maskcast?: { warnings: Warning[] };
}

export interface Readiness {
  status: "ready" | "degraded" | "unavailable";
  degraded: string[];
  replicas: Record<string, number>;
  wanted: Record<string, number>;
  redis: "up" | "down" | null;
}

export interface Engine {
  replica: string;
  running: number;
  grammars: number;
  steps: number;
  restarts: number;
}

export interface ClusterFigures extends Readiness {
  engines: Engine[];
  counters: Record<string, number>;
  compiles: Record<string, number>;
  requests_by_tenant: Record<string, number>;
}

export interface ToolCallDelta {
  index: number;
  function?: { name?: string; arguments?: string };
}

export interface StreamChoice {
  delta: { content?: string | null; reasoning?: string | null; tool_calls?: ToolCallDelta[] };
  finish_reason: string | null;
  logprobs?: { content: { token: string }[] | null } | null;
  forced_spans?: [number, number][];
  field_confidence?: Record<string, number> | null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  completion_tokens_details?: {
    forced_tokens?: number;
    accepted_prediction_tokens?: number;
    rejected_prediction_tokens?: number;
  };
}

export interface StreamEvent {
  choices?: StreamChoice[];
  usage?: Usage | null;
  error?: { message: string; code?: string | null; param?: string | null };
}

/** `key` stays in the memory of the tab. */
export class Api {
  key = "";

  async models(): Promise<Model[]> {
    return (await this.json<{ data: Model[] }>("v1/models")).data;
  }

  /** `body` is JSON. */
  async check(body: string, signal: AbortSignal): Promise<Check> {
    return this.json<Check>("v1/grammars/check", body, signal);
  }

  /** Also of a service that is not ready (503). */
  async readiness(): Promise<Readiness> {
    return (await fetch("readyz", { cache: "no-store" })).json() as Promise<Readiness>;
  }

  async cluster(): Promise<ClusterFigures> {
    return this.json<ClusterFigures>("v1/cluster");
  }

  /** `body` is JSON. */
  async *stream(body: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
    const response = await this.send("v1/chat/completions", body, signal);
    for await (const data of serverSentEvents(response)) {
      if (data !== "[DONE]") yield JSON.parse(data) as StreamEvent;
    }
  }

  private async json<T>(path: string, body?: string, signal?: AbortSignal): Promise<T> {
    return (await this.send(path, body, signal)).json() as Promise<T>;
  }

  private async send(path: string, body?: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = this.key ? { authorization: `Bearer ${this.key}` } : {};
    const asked: RequestInit = { headers, signal: signal ?? null, cache: "no-store" };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      Object.assign(asked, { method: "POST", body });
    }
    const response = await fetch(path, asked);
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { message, code, param } = JSON.parse(text).error;
    return new ApiError(response.status, message, code, param);
  } catch {
    return new ApiError(response.status, text || `The service answered with status ${response.status}.`);
  }
}

async function* serverSentEvents(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (pending + value).split("\n\n");
      pending = events.pop() ?? "";
      for (const event of events) {
        if (event.startsWith("data: ")) yield event.slice("data: ".length);
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
