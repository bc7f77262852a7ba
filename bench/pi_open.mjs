// node pi_open.mjs PI_FOLDER FILE: CPU milliseconds of the real Pi's open + buildSessionContext, as JSON.
import { pathToFileURL } from "node:url";
import { join, resolve } from "node:path";
const [, , folder, file] = process.argv;
const entry = join(resolve(folder), "node_modules/@earendil-works/pi-coding-agent/dist/index.js");
const { SessionManager } = await import(pathToFileURL(entry).href);
const cpu = process.cpuUsage();
const wall = performance.now();
const context = SessionManager.open(file).buildSessionContext();
const used = process.cpuUsage(cpu);
if (context.messages.length === 0) throw new Error("no messages");
console.log(JSON.stringify({ cpu_ms: (used.user + used.system) / 1000, wall_ms: performance.now() - wall }));
