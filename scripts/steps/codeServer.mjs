import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../lib/lock.mjs";
import { sharedCache, venvPython } from "../lib/paths.mjs";
import { must } from "../lib/run.mjs";
import { say } from "../lib/say.mjs";
import { ensureSystemPackages } from "./systemPackages.mjs";

/** @typedef {import("../lib/node.mjs").ProjectNode} ProjectNode */

/** VS Code 1.139, served to a browser. */
const VERSION = "4.139.1";

const buildNeed = {
  purpose: `Compiling the parts of VS Code (code-server ${VERSION}) that are native`,
  debian: ["build-essential", "pkg-config", "libkrb5-dev", "libsecret-1-dev", "libx11-dev", "libxkbfile-dev"],
  elsewhere:
    "On macOS: xcode-select --install. On Fedora: dnf install gcc-c++ make pkgconf krb5-devel libsecret-devel libX11-devel " +
    "libxkbfile-devel. On Arch: pacman -S base-devel krb5 libsecret libx11 libxkbfile.",
};

/** @param {ProjectNode} project */
const home = ({ version }) =>
  join(sharedCache(), `code-server-${VERSION}-node-${version}-${process.platform}-${process.arch}`);

/**
 * @param {ProjectNode} project
 * @returns {string} the script that this project's Node runs as VS Code
 */
export const codeServerEntry = (project) =>
  join(home(project), "node_modules", "code-server", "out", "node", "entry.js");

/**
 * One VS Code for all checkouts of this user. Native parts are compiled for one Node, so the folder is named after both.
 * @param {ProjectNode} project
 */
export async function ensureCodeServer(project) {
  if (existsSync(codeServerEntry(project))) return;
  await withLock(venvPython, `${home(project)}.lock`, async () => {
    if (!existsSync(codeServerEntry(project))) await install(project);
  });
}

/** @param {ProjectNode} project */
async function install(project) {
  await ensureSystemPackages(buildNeed);
  say(`Installing VS Code (code-server ${VERSION}) into ${home(project)}, once for all checkouts (2 to 4 minutes)…`);
  const beside = `${home(project)}.unfinished`;
  await rm(beside, { recursive: true, force: true });
  await mkdir(beside, { recursive: true });
  const manifest = {
    private: true,
    dependencies: { "code-server": VERSION },
    allowScripts: { "code-server": true, argon2: true },
  };
  await writeFile(join(beside, "package.json"), JSON.stringify(manifest));
  const command = [project.node, project.npm, "install", "--no-audit", "--no-fund", "--loglevel=error"];
  await must(command, "VS Code could not be installed.", {
    cwd: beside,
    // The headers come with our Node, so that node-gyp downloads none.
    env: { ...project.npmEnv, npm_config_nodedir: project.headers, npm_config_python: venvPython },
  });
  await rename(beside, home(project));
}
