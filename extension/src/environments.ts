/** The environment that the person chose in the Python extensions, where they are there. */

import { isDeepStrictEqual } from "node:util";
import type { PythonEnvironmentApi } from "@vscode/python-environments";
import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import type { Candidate } from "./python";

// The package of this id is types for us: what it would run asks for a newer VS Code than ours.
const PYTHON_ENVIRONMENTS_ID = "ms-python.vscode-python-envs";

export class Environments implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listening = new Map<string, vscode.Disposable>();
  #last: readonly Candidate[] = [];

  readonly onDidChange = this.#changed.event;

  constructor() {
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
    const [environments, python] = await Promise.all([this.#environmentsApi(), this.#pythonApi()]);
    const found: Candidate[] = [];
    const environment = await environments?.getEnvironment(scope);
    if (environment !== undefined) {
      found.push({ path: environment.execInfo.run.executable, source: "Python Environments" });
    }
    if (python !== undefined) {
      const active = await python.environments.resolveEnvironment(python.environments.getActiveEnvironmentPath(scope));
      if (active?.executable.uri !== undefined) {
        found.push({ path: active.executable.uri.fsPath, source: "Python extension" });
      }
    }
    this.#last = found;
    this.#follow(environments, python);
    return found;
  }

  dispose(): void {
    vscode.Disposable.from(...this.#listening.values(), this.#changed).dispose();
  }

  /** Its exports are null where the setting `python.useEnvironmentsExtension` is off. */
  async #environmentsApi(): Promise<PythonEnvironmentApi | undefined> {
    const extension = vscode.extensions.getExtension<PythonEnvironmentApi | null>(PYTHON_ENVIRONMENTS_ID);
    return (await extension?.activate()) ?? undefined;
  }

  async #pythonApi(): Promise<PythonExtension | undefined> {
    return vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined ? undefined : PythonExtension.api();
  }

  #follow(environments: PythonEnvironmentApi | undefined, python: PythonExtension | undefined): void {
    const changed = (): void => void this.#tell();
    if (environments !== undefined && !this.#listening.has(PYTHON_ENVIRONMENTS_ID)) {
      this.#listening.set(PYTHON_ENVIRONMENTS_ID, environments.onDidChangeEnvironment(changed));
    }
    if (python !== undefined && !this.#listening.has(PVSC_EXTENSION_ID)) {
      this.#listening.set(PVSC_EXTENSION_ID, python.environments.onDidChangeActiveEnvironmentPath(changed));
    }
  }

  /** The extensions report one choice several times. */
  async #tell(): Promise<void> {
    const before = this.#last;
    if (!isDeepStrictEqual(before, await this.chosen())) {
      this.#changed.fire();
    }
  }
}
