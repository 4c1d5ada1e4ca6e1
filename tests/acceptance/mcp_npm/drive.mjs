// Drives `remem mcp` with the TypeScript SDK, which checks every result against its schema.
//
//   node drive.mjs COMMAND ARG...
//
// The environment of the process is handed to the server.  Prints one JSON value: what was done and
// what came of it; any surprise ends it with status 1.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "typescript-client", version: "1.0.0" });
await client.connect(transport);

const { tools } = await client.listTools();
const called = [];
async function call(name, given) {
  const result = await client.callTool({ name, arguments: given });
  called.push(name);
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  if (!result.structuredContent) throw new Error(`${name}: nothing structured`);
  return result;
}
async function refused(name, given) {
  try {
    const result = await client.callTool({ name, arguments: given });
    return result.isError ? "tool" : "taken";
  } catch (error) {
    return error.code === -32602 ? "protocol" : `other: ${error}`;
  }
}

const kept = (await call("observe", { text: "The deploy host is beta-3.", role: "user" }))
  .structuredContent;
const recalled = await call("recall", { query: "which host do we deploy to?", why: true });
await call("context", { query: "deploy host" });
await call("show", { id: kept.id });
await call("history", { id: kept.id });
await call("propose", {
  operations: [{ action: "new", text: "The deploy host is beta-3", evidence: [kept.id] }],
});
const loop = (await call("loop", { text: "check the host", topic: "deploy" })).structuredContent;
await call("loops", { due: true, about: "deploy" });
await call("loop", { done: loop.id });
await call("task", { key: "deploy", text: "begun" });
await call("tasks", {});
await call("brief", { text: "the host moved" });
const status = (await call("status", {})).structuredContent;

const errors = {
  unknown_argument: await refused("recall", { query: "x", project: "p" }),
  wrong_type: await refused("recall", { query: 3 }),
  no_such_tool: await refused("forget", { id: kept.id }),
  no_such_id: await refused("show", { id: "ab".repeat(32) }),
};
const { resources } = await client.listResources();
for (const { uri } of resources) await client.readResource({ uri });
await client.ping();

const began = Date.now();
await client.close();
console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    untried: tools.map((tool) => tool.name).filter((name) => !called.includes(name)),
    first: recalled.structuredContent.hits[0].text,
    agent: status.scope.agent,
    errors,
    resources: resources.map((one) => one.uri),
    closed_ms: Date.now() - began,
  }),
);
