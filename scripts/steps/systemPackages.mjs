import { UserError } from "../lib/errors.mjs";
import { isRoot, systemKind } from "../lib/os.mjs";
import { ask, must } from "../lib/run.mjs";
import { say } from "../lib/say.mjs";

/**
 * What a step needs from the system.
 * @typedef {object} SystemNeed
 * @property {string} purpose ends the sentence "… needs"
 * @property {readonly string[]} debian package names
 * @property {string} elsewhere how to get the same on another system, as a sentence
 */

/**
 * The packages among these that Debian's own records do not show as installed.
 * @param {readonly string[]} wanted
 * @param {string} records lines of `package status`
 */
export function missingPackages(wanted, records) {
  const installed = new Set(
    records.split("\n").flatMap((line) => (line.endsWith(" installed") ? [String(line.split(" ")[0])] : [])),
  );
  return wanted.filter((name) => !installed.has(name));
}

/**
 * Installs what is missing where that is possible, and else says what is missing and how to get it.
 * @param {SystemNeed} need
 * @throws {UserError}
 */
export async function ensureSystemPackages({ purpose, debian, elsewhere }) {
  if (systemKind() !== "debian") {
    say(`${purpose} needs system software. ${elsewhere}`);
    return;
  }
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholders are dpkg's own
  const records = await ask(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", ...debian]);
  const missing = missingPackages(debian, records.output);
  if (missing.length === 0) return;
  const install = `apt-get install --no-install-recommends ${missing.join(" ")}`;
  if (!isRoot())
    throw new UserError(`${purpose} needs Debian packages that are not installed. Get them with:\n  sudo ${install}`);
  say(`Installing Debian packages (a minute or two): ${missing.join(" ")}`);
  const apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600"];
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  // A list that can't be updated matters only where a package then can't be had.
  const { errors } = await ask([...apt, "update"], { env });
  const command = [...apt, "-y", "--no-install-recommends", "install", ...missing];
  await must(command, `${errors}apt-get could not install what this needs.`, { env });
}
