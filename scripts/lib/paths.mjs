import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const checkout = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "");
export const venv = join(checkout, ".venv");
export const venvBin = join(venv, "bin");
export const venvPython = join(venvBin, "python");
export const nodeModules = join(checkout, "node_modules");
export const samples = join(checkout, "tests", "samples");

/**
 * The folder outside the checkout that keeps what every checkout of this user can share.
 * @param {NodeJS.ProcessEnv} environment
 * @param {NodeJS.Platform} platform
 * @param {string} home
 */
export function sharedCache(environment = process.env, platform = process.platform, home = homedir()) {
  if (environment.TWINLENS_DEV_CACHE) return environment.TWINLENS_DEV_CACHE;
  if (platform === "darwin") return join(home, "Library", "Caches", "twinlens-dev");
  return join(environment.XDG_CACHE_HOME || join(home, ".cache"), "twinlens-dev");
}
