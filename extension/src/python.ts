/**
 * Which Python runs the server, the similarity worker and the user's models: the first of
 *
 * 1. the setting `twinlens.interpreter`, an executable or the folder of an environment,
 * 2. the environment chosen in the Python Environments extension, then in the Python extension,
 * 3. `.venv` of the workspace,
 * 4. `python3` or `python` on PATH,
 *
 * that is a Python 3.10 or newer. In Restricted Mode 2 and 3 are left out: a Python inside the workspace is code of the
 * workspace.
 */

import { execFile } from "node:child_process";
import { access, constants, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

const OLDEST = [3, 10] as const;
const PROBE_MILLISECONDS = 20_000;

export type Source = "setting" | "Python Environments" | "Python extension" | ".venv" | "PATH";

export interface Candidate {
  readonly path: string;
  readonly source: Source;
}

/** What the probe found out about a Python. A package that is missing is null. */
export interface Interpreter extends Candidate {
  readonly version: string;
  readonly torch: string | null;
  readonly transformers: string | null;
}

export interface Resolution {
  readonly interpreter: Interpreter | undefined;
  /** What a person asked for and does not get: one sentence each. */
  readonly complaints: readonly string[];
}

/** What the choice depends on. */
export interface Surroundings {
  readonly setting: string;
  readonly folders: readonly string[];
  readonly trusted: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** The environments chosen in other extensions, best first. */
  readonly chosen: () => Promise<readonly Candidate[]>;
}

export async function resolveInterpreter(surroundings: Surroundings): Promise<Resolution> {
  const complaints: string[] = [];
  for await (const candidate of candidates(surroundings)) {
    const probed = await probe(candidate, surroundings.folders[0]);
    if (typeof probed !== "string") {
      return { interpreter: probed, complaints };
    }
    if (candidate.source !== "PATH") {
      complaints.push(probed);
    }
  }
  complaints.push(`No Python ${OLDEST.join(".")} or newer was found. Set twinlens.interpreter to one.`);
  return { interpreter: undefined, complaints };
}

async function* candidates(surroundings: Surroundings): AsyncGenerator<Candidate> {
  const { setting, folders, trusted, env } = surroundings;
  if (setting !== "") {
    yield { path: await executableIn(expand(setting, folders, env)), source: "setting" };
  }
  if (trusted) {
    yield* await surroundings.chosen();
    for (const folder of folders) {
      const python = await executableIn(path.join(folder, ".venv"));
      if (await isExecutable(python)) {
        yield { path: python, source: ".venv" };
      }
    }
  }
  for (const python of await onPath(env)) {
    yield { path: python, source: "PATH" };
  }
}

/** A setting's value with `~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}` filled in; relative to the first folder. */
export function expand(setting: string, folders: readonly string[], env: NodeJS.ProcessEnv): string {
  const folder = folders[0] ?? "";
  const filled = setting
    .replace(/^~(?=$|[\\/])/, homedir())
    .replace(/\$\{(?:(workspaceFolder)|(userHome)|env:([^}]+))\}/g, (_, workspace, home, name: string) =>
      workspace !== undefined ? folder : home !== undefined ? homedir() : (env[name] ?? ""),
    );
  return path.resolve(folder, filled);
}

/** The Python of an environment's folder; any other path is taken for the executable itself. */
async function executableIn(place: string): Promise<string> {
  const folder = await stat(place).catch(() => undefined);
  const inside = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  return folder?.isDirectory() ? path.join(place, ...inside) : place;
}

async function onPath(env: NodeJS.ProcessEnv): Promise<string[]> {
  const names = process.platform === "win32" ? ["python.exe"] : ["python3", "python"];
  const folders = (env.PATH ?? env.Path ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const found: string[] = [];
  for (const place of folders.flatMap((folder) => names.map((name) => path.join(folder, name)))) {
    if (await isExecutable(place)) {
      found.push(place);
    }
  }
  return found;
}

async function isExecutable(place: string): Promise<boolean> {
  try {
    await access(place, constants.X_OK);
    return (await stat(place)).isFile();
  } catch {
    return false;
  }
}

const PROBE = `
import importlib.metadata, json, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
print(json.dumps({"path": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3],
                  "torch": version("torch"), "transformers": version("transformers")}))
`;

/** What `candidate` is, or the sentence that says why it will not do. */
async function probe(candidate: Candidate, folder: string | undefined): Promise<Interpreter | string> {
  const named =
    candidate.source === "setting" ? "The setting twinlens.interpreter names" : `${candidate.source} offers`;
  if (!(await isExecutable(candidate.path))) {
    return `${named} ${candidate.path}, which does not exist or cannot be run.`;
  }
  // -I: the folder that VS Code stands in and the user's PYTHONPATH must not answer for the interpreter.
  const output = await run(candidate.path, ["-I", "-X", "utf8", "-c", PROBE], folder);
  const found = parseProbe(output);
  if (found === undefined) {
    return `${named} ${candidate.path}, which does not answer as a Python does.`;
  }
  const [major = 0, minor = 0] = found.version.split(".").map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    return `${named} ${candidate.path}, a Python ${found.version}; Twinlens needs ${OLDEST.join(".")} or newer.`;
  }
  return { ...candidate, ...found };
}

/** `path` is the Python itself where the candidate is a script that starts one, as pyenv's are. */
function parseProbe(output: string): Omit<Interpreter, "source"> | undefined {
  try {
    const { path, version, torch, transformers } = JSON.parse(output) as Record<string, unknown>;
    return typeof path === "string" && typeof version === "string"
      ? { path, version, torch: text(torch), transformers: text(transformers) }
      : undefined;
  } catch {
    return undefined;
  }
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function run(command: string, args: readonly string[], cwd: string | undefined): Promise<string> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, timeout: PROBE_MILLISECONDS, encoding: "utf8" }, (error, stdout) =>
      resolve(error === null ? stdout : ""),
    );
  });
}
