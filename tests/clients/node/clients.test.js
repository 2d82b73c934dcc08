// Clients for JavaScript that others have written, each as its own documentation says, against the service at MASKCAST_URL.
import assert from "node:assert/strict";
import test from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, streamObject, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const root = process.env.MASKCAST_URL;
const url = `${root}/v1`;
const model = process.env.MASKCAST_MODEL;
const prompt = "Extract name, age, city as JSON.\n\nClara Novak is 34 years old and lives in Lisbon.";
const Person = z.object({ name: z.string().max(24), age: z.number().int().min(0).max(120), city: z.string().max(24) });
const messages = [{ role: "user", content: prompt }];
const openai = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: root, apiKey: "none", maxRetries: 0 });

test("openai: a chat completion is parsed, whole and streamed", async () => {
  const asked = { model, messages, response_format: zodResponseFormat(Person, "person"), max_tokens: 128 };
  const answer = await openai.chat.completions.parse(asked);
  Person.parse(answer.choices[0].message.parsed);
  const streamed = await openai.chat.completions.stream(asked).finalChatCompletion();
  Person.parse(streamed.choices[0].message.parsed);
});

test("openai: a response is parsed, whole and streamed", async () => {
  const asked = { model, input: prompt, text: { format: zodTextFormat(Person, "person") }, max_output_tokens: 128 };
  Person.parse((await openai.responses.parse(asked)).output_parsed);
  Person.parse((await openai.responses.stream(asked).finalResponse()).output_parsed);
});

test("anthropic: a tool is used, whole and streamed", async () => {
  const tools = [{ name: "record", input_schema: z.toJSONSchema(Person), strict: true }];
  const asked = { model, messages, tools, tool_choice: { type: "tool", name: "record" }, max_tokens: 128 };
  Person.parse((await anthropic.messages.create(asked)).content[0].input);
  Person.parse((await anthropic.messages.stream(asked).finalMessage()).content[0].input);
});

const providers = {
  "openai, responses": createOpenAI({ baseURL: url, apiKey: "none" })(model),
  "openai, chat": createOpenAI({ baseURL: url, apiKey: "none" }).chat(model),
  compatible: createOpenAICompatible({ name: "maskcast", baseURL: url, supportsStructuredOutputs: true })(model),
  anthropic: createAnthropic({ baseURL: url, apiKey: "none" })(model),
};

for (const [name, behind] of Object.entries(providers)) {
  const asked = { model: behind, prompt, maxRetries: 0, maxOutputTokens: 128 };

  test(`AI SDK, ${name}: an object is made, whole and streamed`, async () => {
    Person.parse((await generateObject({ ...asked, schema: Person })).object);
    const streamed = streamObject({ ...asked, schema: Person });
    let last;
    for await (const partial of streamed.partialObjectStream) last = partial;
    Person.parse(last);
    Person.parse(await streamed.object);
  });

  test(`AI SDK, ${name}: a tool is called`, async () => {
    const tools = { record: tool({ description: "Record a person.", inputSchema: Person }) };
    const { toolCalls } = await generateText({ ...asked, tools, toolChoice: { type: "tool", toolName: "record" } });
    assert.equal(toolCalls[0].toolName, "record");
    Person.parse(toolCalls[0].input);
  });
}
