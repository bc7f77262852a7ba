// node pi_context.mjs PI_FOLDER FILE: what the real Pi makes of a transcript, as JSON.
import { pathToFileURL } from "node:url";
import { join, resolve } from "node:path";
const [, , folder, file] = process.argv;
const entry = join(resolve(folder), "node_modules/@earendil-works/pi-coding-agent/dist/index.js");
const { SessionManager } = await import(pathToFileURL(entry).href);
const session = SessionManager.open(file);
const { messages, model, thinkingLevel } = session.buildSessionContext();
const text = (m) => m.summary ?? (typeof m.content === "string" ? m.content : (m.content ?? []).map((b) => b.text ?? "").join(""));
console.log(JSON.stringify({ model, thinkingLevel, messages: messages.map((m) => [m.role, text(m)]) }));
