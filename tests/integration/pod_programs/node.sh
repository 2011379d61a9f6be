cat > a.mjs <<'END'
import assert from "node:assert";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import { Worker } from "node:worker_threads";

assert.equal(os.userInfo().username, "agent");
assert.equal(os.homedir(), "/home/agent");
fs.watch(".").close();
fs.cpSync("a.mjs", "b.mjs");
fs.rmSync("b.mjs");
assert.equal(spawnSync("sh", ["-c", "exit 3"]).status, 3);
const worker = new Worker('require("worker_threads").parentPort.postMessage(1)', { eval: true });
await new Promise((done) => worker.once("message", done));
const server = net.createServer((s) => s.end("hello\n")).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
net.connect(server.address().port, "127.0.0.1").on("data", (data) => {
	process.stdout.write(data);
	server.close();
});
END
node a.mjs
