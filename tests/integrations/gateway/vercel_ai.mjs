// What the Vercel AI SDK makes of a stream: node vercel_ai.mjs BASE_URL [HEADERS], one line of JSON. Run from where its packages are.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { streamText } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const provider = createOpenAICompatible({
  name: "gateway",
  baseURL: process.argv[2],
  apiKey: "mine",
  headers: JSON.parse(process.argv[3] ?? "{}"),
  includeUsage: true,
});
const errors = [];
const result = streamText({ model: provider("m"), prompt: "?", maxRetries: 0, onError: ({ error }) => errors.push(error.name ?? "error") });
const told = { text: "", errors };
try {
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") told.text += part.text ?? part.delta;
    if (part.type === "finish") told.reason = part.finishReason;
    if (part.type === "finish") told.usage = part.totalUsage;
  }
} catch (error) {
  errors.push(error.name);
}
console.log(JSON.stringify(told));
