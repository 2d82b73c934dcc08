// The playground in Chromium (PLAYGROUND_CHROMIUM), against the service at PLAYGROUND_URL. PLAYGROUND_PICTURES: a folder for pictures of what is seen.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { chromium } from "playwright-core";

const URL = process.env.PLAYGROUND_URL;
const PICTURES = process.env.PLAYGROUND_PICTURES;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ANSWERED = 60_000;
const MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

let browser;
let page;
let failures;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.PLAYGROUND_CHROMIUM, args: ["--no-sandbox"] });
});

after(() => browser?.close());

beforeEach(async () => {
  await page?.context().close();
  await open({});
});

afterEach(() => assert.deepEqual(failures, []));

/** Console errors fail a test, but for those of answers that are errors, which are meant. */
async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  page = await context.newPage();
  page.setDefaultTimeout(ANSWERED);
  failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => message.type() === "error" && !/status of 4/.test(message.text()) && failures.push(message.text()));
  await page.goto(URL);
  await page.locator("#model", { hasText: "context of" }).waitFor();
}

async function run() {
  await page.click("#run");
  await page.locator("#run:not([disabled])").waitFor();
}

function status(number = 0) {
  return page.locator(".answer-status").nth(number).textContent();
}

async function figure(name) {
  return page.locator(".figures").first().locator(`div:has(dt:text-is("${name}")) dd`).textContent();
}

async function type(text) {
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

async function picture(name) {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
}

const EXAMPLES = 6;

for (let number = 0; number < EXAMPLES; number += 1) {
  test(`example ${number + 1} is answered`, async () => {
    await page.selectOption("#example", String(number));
    await page.locator("#check", { hasText: "Enforced exactly" }).waitFor();
    await run();
    assert.equal(await status(), "Complete.");
    assert.notEqual(await page.locator(".answer-text").first().textContent(), "");
    await picture(`example-${number + 1}`);
  });
}

test("forced text is marked, and counted", async () => {
  await run();
  assert.match(await page.locator(".answer-text .forced").first().textContent(), /^\{"customer":/);
  assert.ok(Number(await figure("forced")) > 5);
  assert.match(await figure("forward passes saved"), /^[1-9]\d* of \d+$/);
});

test("the last example is refused, and the editor marks the place", async () => {
  await page.selectOption("#example", String(EXAMPLES));
  await page.locator("#check .error").waitFor();
  assert.match(await page.locator("#check .error").textContent(), /pattern/);
  await page.locator("#editor .cm-lintRange-error").first().waitFor();
  await run();
  assert.match(await status(), /^Refused \(400/);
  await picture("refused");
});

test("a syntax error is shown before anything is sent", async () => {
  await type("{\"type\": ");
  await page.locator("#check .error", { hasText: "This is no JSON" }).waitFor();
});

test("a comparison without a constraint", async () => {
  await page.selectOption("#example", "1");
  await page.selectOption("#comparison", "unconstrained");
  await run();
  assert.equal(await page.locator(".answer").nth(1).isVisible(), true);
  assert.match(await status(1), /Complete|Cut off/);
  await picture("beside");
});

test("a comparison token by token", async () => {
  await page.selectOption("#example", "1");
  await page.selectOption("#comparison", "stepwise");
  await run();
  const answers = (await page.locator(".answer-text").allTextContents()).map((text) => JSON.parse(text));
  assert.deepEqual(Object.keys(answers[0]), Object.keys(answers[1])); // the values may differ: forced text has the tokenizer's tokens
});

test("Ctrl+Enter runs, and leaves the constraint as it is", async () => {
  await page.selectOption("#example", "3");
  const before = await page.locator("#editor .cm-content").textContent();
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("Control+Enter");
  await page.locator(".answer-status", { hasText: "Complete." }).waitFor();
  assert.equal(await page.locator("#editor .cm-content").textContent(), before);
});

test("a second run replaces the first", async () => {
  await page.selectOption("#example", "1");
  await page.locator("#prompt").click();
  for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press("Control+Enter");
  await page.locator(".answer-status", { hasText: "Complete." }).waitFor();
  await page.locator("#run:not([disabled])").waitFor();
  assert.equal(await page.locator("#stop").isDisabled(), true);
  assert.match(await page.locator(".answer-text").first().textContent(), /^\{.*\}$/);
});

test("numeric names keep their order", async () => {
  await page.click("summary:has-text('in code')");
  await type('{"properties": {"total": true, "2024": true, "2023": true}}');
  assert.match(await page.locator("#snippet").textContent(), /total.*2024.*2023/s);
});

test("a stream can be stopped", async () => {
  await page.fill("#max-tokens", "1024");
  await page.selectOption("#kind", "regex");
  await type("[a-z ]{4000}");
  await page.click("#run");
  await page.locator(".answer-text span").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".answer-status", { hasText: "Stopped." }).waitFor();
  assert.equal(await page.locator("#run").isEnabled(), true);
});

test("markup in a schema, a prompt and an answer is text", async () => {
  await page.selectOption("#kind", "choice");
  await type(JSON.stringify([MARKUP]));
  await page.fill("#prompt", MARKUP);
  await run();
  assert.equal(await page.locator(".answer-text").first().textContent(), MARKUP);
  assert.equal(await page.locator(".answer-text img, .answer-text script").count(), 0);
  assert.equal(await page.title(), "Maskcast");
});

test("confidence of fields is shown", async () => {
  await page.selectOption("#example", "1");
  await page.check("#confidence");
  await run();
  assert.equal(await page.locator(".answer").first().locator(".confidence meter").count(), 3);
});

test("the request is shown as code", async () => {
  await page.click("summary:has-text('in code')");
  for (const [language, expected] of [["curl", /curl -s http/], ["python", /from openai import OpenAI/], ["ray", /StructuredClient\.over_handle/]]) {
    await page.selectOption("#language", language);
    assert.match(await page.locator("#snippet").textContent(), expected);
  }
});

test("the cluster is shown live", async () => {
  await page.click("#cluster summary");
  await page.locator("#cluster-state", { hasText: "ready" }).waitFor();
  await page.locator("#chart-grammars .now", { hasText: /\d/ }).waitFor();
  await page.locator("#chart-requests .now", { hasText: /\d/ }).waitFor();
  await picture("cluster");
});

test("a reload clears the answer", async () => {
  await run();
  await page.reload();
  await page.locator("#model", { hasText: "context of" }).waitFor();
  assert.equal(await status(), "Nothing has run yet.");
});

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { viewport: { width: 360, height: 740 } }],
]) {
  test(`accessibility and layout: ${name}`, async () => {
    await page.context().close();
    await open(options);
    await page.selectOption("#comparison", "unconstrained");
    await run();
    await picture(name);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "the page is wider than the window");
  });
}

test("every control can be reached by keyboard", async () => {
  const reached = new Set();
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.tagName));
  }
  for (const id of ["example", "kind", "editor", "prompt", "run", "comparison"]) assert.ok(reached.has(id), `${id} is not reached`);
});
