/** The environments that the person chose in the Python extensions, where those are there. */

import { isDeepStrictEqual } from "node:util";
import type { PythonEnvironmentApi } from "@vscode/python-environments";
import type { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import type { Candidate, Source } from "./python";
import { within } from "./timeout";

// Both packages are types for us: what they run is no more than this, and the first asks for a newer VS Code than ours.
const PYTHON_ENVIRONMENTS_ID = "ms-python.vscode-python-envs";
const PYTHON_EXTENSION_ID = "ms-python.python";
const PATIENCE_MILLISECONDS = 10_000;

/** An extension that knows which environment was chosen. */
interface Provider {
  readonly executable: (scope: vscode.Uri) => Promise<string | undefined>;
  readonly onDidChange: vscode.Event<unknown>;
}

type Provide = () => Promise<Provider | undefined>;

export class Environments implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listening = new Map<string, vscode.Disposable>();
  readonly #log: (message: string) => void;
  readonly #patience: number;
  #last: readonly Candidate[] = [];

  readonly onDidChange = this.#changed.event;

  constructor(log: (message: string) => void, patience = PATIENCE_MILLISECONDS) {
    this.#log = log;
    this.#patience = patience;
    // An extension that needs a trusted workspace comes a moment after trust was given; others are installed meanwhile.
    this.#listening.set(
      "extensions",
      vscode.extensions.onDidChange(() => this.#tell()),
    );
  }

  /** The environments chosen for the workspace, that of Python Environments first. */
  async chosen(): Promise<readonly Candidate[]> {
    const scope = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.window.activeTextEditor?.document.uri;
    if (scope === undefined) {
      // Asking for no scope in particular has the extensions search the whole machine.
      return [];
    }
    const asked = await Promise.all([
      this.#ask("Python Environments", pythonEnvironments, scope),
      this.#ask("Python extension", pythonExtension, scope),
    ]);
    this.#last = asked.filter((candidate) => candidate !== undefined);
    return this.#last;
  }

  dispose(): void {
    vscode.Disposable.from(...this.#listening.values(), this.#changed).dispose();
  }

  /** One provider's choice; one that fails is as good as absent, and a slow one is heard when it answers. */
  async #ask(source: Source, provide: Provide, scope: vscode.Uri): Promise<Candidate | undefined> {
    const asking = this.#query(source, provide, scope);
    try {
      return await within(this.#patience, asking, () => {
        void asking.then(
          () => this.#tell(),
          () => undefined,
        );
        return new Error(`no answer within ${this.#patience / 1000} s`);
      });
    } catch (error) {
      this.#log(`${source} did not tell its environment: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  }

  async #query(source: Source, provide: Provide, scope: vscode.Uri): Promise<Candidate | undefined> {
    const provider = await provide();
    if (provider === undefined) {
      return undefined;
    }
    if (!this.#listening.has(source)) {
      this.#listening.set(
        source,
        provider.onDidChange(() => void this.#tell()),
      );
    }
    const path = await provider.executable(scope);
    return path === undefined ? undefined : { path, source };
  }

  /** The extensions report one choice several times. */
  async #tell(): Promise<void> {
    const before = this.#last;
    if (!isDeepStrictEqual(before, await this.chosen())) {
      this.#changed.fire();
    }
  }
}

async function pythonEnvironments(): Promise<Provider | undefined> {
  const extension = vscode.extensions.getExtension<PythonEnvironmentApi | null>(PYTHON_ENVIRONMENTS_ID);
  const api = await extension?.activate();
  // Its exports are null where the setting `python.useEnvironmentsExtension` is off.
  if (api === undefined || api === null) {
    return undefined;
  }
  return {
    executable: async (scope) => (await api.getEnvironment(scope))?.execInfo.run.executable,
    onDidChange: api.onDidChangeEnvironment,
  };
}

async function pythonExtension(): Promise<Provider | undefined> {
  const api = await vscode.extensions.getExtension<PythonExtension>(PYTHON_EXTENSION_ID)?.activate();
  if (api === undefined) {
    return undefined;
  }
  const { environments } = api;
  return {
    executable: async (scope) =>
      (await environments.resolveEnvironment(environments.getActiveEnvironmentPath(scope)))?.executable.uri?.fsPath,
    onDidChange: environments.onDidChangeActiveEnvironmentPath,
  };
}
