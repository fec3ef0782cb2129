import { cp, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { checkout, venvPython } from "../lib/paths.mjs";
import { must } from "../lib/run.mjs";
import { say } from "../lib/say.mjs";
import { fingerprint, readStamp, writeStamp } from "../lib/stamp.mjs";

const requirements = join(checkout, "scripts", "bundled-libs.txt");
const bundled = join(checkout, "bundled");
const libs = join(bundled, "libs");
const libsStamp = join(checkout, ".twinlens-cache", "bundled-libs-stamp");

/**
 * Whether a file is more than what Python writes beside a module when it is run, as from bundled/ with F5.
 * @param {string} path
 */
export const isSource = (path) => basename(path) !== "__pycache__";

/** Lays out bundled/: our own package, and the libraries that the server imports. */
export async function buildPythonPart() {
  await copyServer();
  await installLibs();
}

async function copyServer() {
  await rm(join(bundled, "server"), { recursive: true, force: true });
  await cp(join(checkout, "server", "twinlens"), join(bundled, "server", "twinlens"), {
    recursive: true,
    filter: isSource,
  });
}

async function installLibs() {
  const beside = `${libs}.unfinished`;
  // Asking for no platform and no ABI leaves pip only wheels that run everywhere.
  const anywhere = ["--platform", "any", "--abi", "none", "--implementation", "py", "--python-version", "3.10"];
  const options = ["--only-binary", ":all:", "--no-deps", "--no-compile", "--target", beside, "-r", requirements];
  const command = [venvPython, "-m", "pip", "--disable-pip-version-check", "install", "-q", ...anywhere, ...options];
  const wanted = fingerprint([command, await readFile(requirements, "utf8")]);
  if ((await readStamp(libsStamp)) === wanted && (await readdir(libs).catch(() => [])).length > 0) return;
  say("Fetching the Python libraries that the extension carries (a few seconds)…");
  await rm(libsStamp, { force: true });
  await rm(beside, { recursive: true, force: true });
  await must(command, "pip could not fetch the libraries of scripts/bundled-libs.txt.");
  await rm(join(beside, "bin"), { recursive: true, force: true });
  await rm(libs, { recursive: true, force: true });
  await rename(beside, libs);
  await writeStamp(libsStamp, wanted);
}
