import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../lib/errors.mjs";
import { checkout, venv, venvPython } from "../lib/paths.mjs";
import { versionText } from "../lib/python.mjs";
import { must } from "../lib/run.mjs";
import { say } from "../lib/say.mjs";
import { fingerprint, readStamp, tomlTables, writeStamp } from "../lib/stamp.mjs";
import { ensureSystemPackages } from "./systemPackages.mjs";

/** @typedef {import("../lib/python.mjs").Python} Python */

const stamp = join(venv, "twinlens-stamp");
const unfinished = join(venv, "twinlens-unfinished");

// What decides the environment's content: the tables that name packages, not those that configure linters.
const packageTables = /^(build-system|project(\..*)?|dependency-groups|tool\.hatch.*)$/;

/** @param {readonly string[]} args */
const pip = (...args) => [venvPython, "-m", "pip", "--disable-pip-version-check", "--no-input", ...args];

/** @param {string} constraints the text of constraints.txt */
function installCommands(constraints) {
  const torch = /^torch==\S+$/m.exec(constraints)?.[0];
  if (!torch) throw new UserError("constraints.txt pins no torch (a line torch==…).");
  const quiet = ["-q", "--progress-bar", "off", "-c", join(checkout, "constraints.txt")];
  return [
    // Dependency groups came with pip 25.1; an older Python brings an older pip.
    pip("install", "-q", "--upgrade", "pip>=25.1"),
    // First and alone: a later resolution must not choose another build of torch.
    pip("install", "-q", "--progress-bar", "off", torch),
    pip(
      "install",
      ...quiet,
      "--group",
      `${join(checkout, "pyproject.toml")}:dev`,
      "-e",
      `${checkout}[embedders,trace]`,
    ),
  ];
}

/**
 * The project's one virtual environment, with the package itself (editable), its tools, and Node.
 * @param {Python} python
 */
export async function ensureVenv(python) {
  const constraints = await readFile(join(checkout, "constraints.txt"), "utf8");
  const commands = installCommands(constraints);
  const packages = tomlTables(await readFile(join(checkout, "pyproject.toml"), "utf8"), (table) =>
    packageTables.test(table),
  );
  const wanted = fingerprint([commands, constraints, packages, python.version.slice(0, 2)]);
  const found = existsSync(venvPython) ? await readStamp(stamp) : undefined;
  if (found === wanted) return;

  const fromScratch = !existsSync(venvPython) || existsSync(unfinished);
  if (fromScratch) await createVenv(python);
  say(`Installing the Python packages into .venv (${fromScratch ? "2 to 5 minutes" : "they changed: a minute"})…`);
  await rm(stamp, { force: true });
  await writeFile(unfinished, "");
  for (const command of commands) await must(command, "pip could not install the project's packages.");
  await writeStamp(stamp, wanted);
  await rm(unfinished);
}

/** @param {Python} python */
async function createVenv(python) {
  if (!python.venv) {
    const name = `python${python.version.slice(0, 2).join(".")}-venv`;
    await ensureSystemPackages({
      purpose: `Creating a virtual environment with ${python.path}`,
      debian: [name],
      elsewhere: "Install this Python's venv and ensurepip modules, or name another Python in TWINLENS_PYTHON.",
    });
  }
  say(`Creating .venv with Python ${versionText(python)} (${python.path})…`);
  // Cleared, because pip does not mend a package that an interruption left half unpacked.
  await must([python.path, "-m", "venv", "--clear", venv], `${python.path} could not create a virtual environment.`);
}
