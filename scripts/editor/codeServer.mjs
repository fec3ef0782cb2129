import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../lib/errors.mjs";
import { must } from "../lib/run.mjs";
import { codeServerEntry } from "../steps/codeServer.mjs";

/** @typedef {import("../lib/node.mjs").ProjectNode} ProjectNode */

/**
 * Where one VS Code keeps its own things.
 * @typedef {object} Home
 * @property {string} userData
 * @property {string} extensions
 */

/**
 * A VS Code that listens.
 * @typedef {object} RunningEditor
 * @property {string} address
 * @property {(folder: string) => string} urlOf the page that opens a folder
 * @property {Promise<number>} ended settles with the exit code
 * @property {() => Promise<void>} stop ends it with everything it started
 */

// Inside a terminal of VS Code these would make code-server talk to that one instead of starting its own.
const withoutOuterEditor = { VSCODE_IPC_HOOK_CLI: undefined, CODE_SERVER_SESSION_SOCKET: undefined };

/** @param {Home} home */
const homeOptions = ({ userData, extensions }) => [
  ...["--user-data-dir", userData, "--extensions-dir", extensions],
  ...["--config", join(userData, "code-server.yaml")],
];

/**
 * @param {ProjectNode} project
 * @param {Home} home
 * @param {string} extension a .vsix file
 */
export async function installExtension(project, home, extension) {
  const options = [...homeOptions(home), "--install-extension", extension, "--force"];
  await must([project.node, codeServerEntry(project), ...options], `VS Code could not install ${extension}.`, {
    env: withoutOuterEditor,
  });
}

/**
 * Starts VS Code on 127.0.0.1 and waits until it answers.
 * @param {ProjectNode} project
 * @param {Home} home
 * @param {{port: number, trustsEveryFolder?: boolean, env?: Record<string, string>}} options
 * @returns {Promise<RunningEditor>}
 * @throws {UserError} where it ends instead of answering
 */
export async function startEditor(project, home, { port, trustsEveryFolder = true, env = {} }) {
  const address = `http://127.0.0.1:${port}`;
  const quiet = [
    "--auth",
    "none",
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-getting-started-override",
  ];
  const trust = trustsEveryFolder ? ["--disable-workspace-trust"] : [];
  const args = [codeServerEntry(project), ...quiet, ...trust, "--bind-addr", `127.0.0.1:${port}`, ...homeOptions(home)];
  const child = spawn(project.node, args, {
    env: { ...process.env, ...withoutOuterEditor, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, so that it can be ended with all its extension hosts and their language servers.
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output = (output + text).slice(-10_000);
    });
  }
  /** @type {Promise<number>} */
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
  const lastResort = () => void signalGroup(child, "SIGKILL");
  process.once("exit", lastResort);
  const stop = async () => {
    await endGroup(child, ended);
    process.off("exit", lastResort);
  };
  const outcome = await Promise.race([answers(`${address}/healthz`), ended]);
  if (typeof outcome === "number") throw new UserError(`VS Code did not start (exit code ${outcome}):\n${output}`);
  return {
    address,
    urlOf: (folder) => `${address}/?folder=${encodeURIComponent(folder).replaceAll("%2F", "/")}`,
    ended,
    stop,
  };
}

/**
 * @param {string} url
 * @returns {Promise<void>} settles once a request is answered
 */
async function answers(url) {
  for (;;) {
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      // Nothing listens there yet. The caller also watches for the process's end.
    }
    await sleep(100);
  }
}

/**
 * @param {import("node:child_process").ChildProcess} child the leader of its group
 * @param {Promise<number>} ended
 */
async function endGroup(child, ended) {
  signalGroup(child, "SIGTERM");
  const gone = await Promise.race([ended, sleep(5000, "late", { ref: false })]);
  // Once the leader is gone its group may still hold an extension host that has not noticed.
  if (gone === "late" || signalGroup(child, 0)) signalGroup(child, "SIGKILL");
  await ended;
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @param {NodeJS.Signals | 0} signal
 * @returns {boolean} whether anyone was there to receive it
 */
function signalGroup(child, signal) {
  if (!child.pid) return false;
  try {
    return process.kill(-child.pid, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}
