// Portkey's gateway: node portkey.mjs --port=PORT --headless, run from where its packages are. It wants to add to the
// headers of what fetch returns, which Node keeps immutable: without a copy of them it answers each request with 500.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const original = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const response = await original(...request);
  const { status, statusText, headers } = response;
  return new Response(response.body, { status, statusText, headers: new Headers(headers) });
};
await import(pathToFileURL(join(process.cwd(), "node_modules/@portkey-ai/gateway/build/start-server.js")).href);
