/** The request as code for other clients. */

import type { Body } from "./api";

export type Language = "curl" | "python" | "ray";

export const LANGUAGES: Record<Language, string> = { curl: "curl", python: "Python (openai)", ray: "Ray handle" };

/** Fields of a chat that the `openai` package has arguments for. */
const OPENAI = new Set(["model", "messages", "response_format", "tools", "tool_choice", "parallel_tool_calls", "temperature", "max_tokens"]);

/** `text` is the body as JSON. */
export function snippet(language: Language, body: Body, text: string, root: string, hasKey: boolean): string {
  switch (language) {
    case "curl":
      return curl(text, root, hasKey);
    case "python":
      return python(body, root, hasKey);
    case "ray":
      return ray(body);
  }
}

function curl(text: string, root: string, hasKey: boolean): string {
  const key = hasKey ? " -H \"Authorization: Bearer $MASKCAST_API_KEY\"" : "";
  const json = text.replaceAll("'", String.raw`'\''`);
  return `curl -s ${root}v1/chat/completions -H 'Content-Type: application/json'${key} -d '${json}'\n`;
}

function python(body: Body, root: string, hasKey: boolean): string {
  const own = Object.entries(body).filter(([name]) => OPENAI.has(name));
  const extra = Object.entries(body).filter(([name]) => !OPENAI.has(name));
  const lines = own.map(([name, value]) => `    ${name}=${literal(value, 1)},`);
  if (extra.length) lines.push(`    extra_body=${literal(Object.fromEntries(extra), 1)},`);
  const key = hasKey ? "os.environ[\"MASKCAST_API_KEY\"]" : "\"none\"";
  return [
    ...(hasKey ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${root}v1", api_key=${key})`,
    "answer = client.chat.completions.create(",
    ...lines,
    ")",
    "print(answer.choices[0].message)",
    "",
  ].join("\n");
}

function ray(body: Body): string {
  const { messages, model: _, ...others } = body;
  return [
    "from ray import serve",
    "",
    "from deployments.client import StructuredClient",
    "",
    "client = StructuredClient.over_handle(serve.get_app_handle(\"maskcast\"))",
    "generation = client.generate(",
    `    ${literal(messages, 1)},`,
    ...Object.entries(others).map(([name, value]) => `    ${name}=${literal(value, 1)},`),
    ")",
    "print(generation.response[\"choices\"][0][\"message\"])",
    "",
  ].join("\n");
}

/** A JSON value as a Python literal. */
function literal(value: unknown, depth: number): string {
  const inner = "    ".repeat(depth + 1);
  const outer = "    ".repeat(depth);
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) {
    const items = value.map((item) => `${inner}${literal(item, depth + 1)},\n`);
    return items.length ? `[\n${items.join("")}${outer}]` : "[]";
  }
  if (typeof value === "object") {
    const items = Object.entries(value!).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${literal(item, depth + 1)},\n`);
    return items.length ? `{\n${items.join("")}${outer}}` : "{}";
  }
  return JSON.stringify(value);
}
