import { UserError } from "./errors.mjs";
import { ask } from "./run.mjs";

const PROBE =
  "import importlib.util as u, json, sys; print(json.dumps({'path': sys.executable, 'version': list(sys.version_info[:3]), " +
  "'venv': all(map(u.find_spec, ('venv', 'ensurepip')))}))";

/**
 * @typedef {object} Python
 * @property {string} path
 * @property {readonly number[]} version
 * @property {boolean} venv whether it can create virtual environments
 */

const COMMANDS = ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python"];

/** @param {Python} python */
export const versionText = (python) => python.version.join(".");

/** @param {Python} python */
const supported = ({ version: [major = 0, minor = 0] }) => major === 3 && minor >= 10;

/** @param {Python} python */
const tried = ({ version: [, minor = 0] }) => minor <= 13;

/**
 * The first interpreter that the project supports, one of the versions it is tried with before a newer one.
 * @param {readonly Python[]} found in order of preference
 * @returns {Python | undefined}
 */
export function choosePython(found) {
  const good = found.filter(supported);
  return good.find((python) => tried(python) && python.venv) ?? good.find(tried) ?? good[0];
}

/**
 * @param {NodeJS.ProcessEnv} environment
 * @returns {Promise<Python>}
 * @throws {UserError} where no supported interpreter is found
 */
export async function findPython(environment = process.env) {
  const named = environment.TWINLENS_PYTHON;
  const found = [];
  for (const command of named ? [named] : COMMANDS) {
    const answer = await ask([command, "-I", "-c", PROBE]);
    if (answer.code === 0) found.push(/** @type {Python} */ (JSON.parse(answer.output)));
    const chosen = choosePython(found);
    if (chosen && tried(chosen) && chosen.venv) return chosen;
  }
  const chosen = choosePython(found);
  if (chosen) return chosen;
  throw new UserError(
    named
      ? `TWINLENS_PYTHON names ${named}, which is no Python 3.10 or newer.`
      : "No Python 3.10 or newer was found on PATH. Install one, or name it in the environment variable TWINLENS_PYTHON.",
  );
}
