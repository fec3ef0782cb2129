/** The interpreter for this window: python.ts asked with what VS Code knows, and its complaint brought to the person. */

import * as vscode from "vscode";
import { Environments } from "./environments";
import type { Logs } from "./logs";
import { type Interpreter, resolveInterpreter } from "./python";

export class InterpreterChoice implements vscode.Disposable {
  readonly #environments: Environments;
  readonly #logs: Logs;
  #complaint: string | undefined;

  /** Another environment was chosen in a Python extension. */
  readonly onDidChange: vscode.Event<void>;

  constructor(logs: Logs) {
    this.#logs = logs;
    this.#environments = new Environments((message) => logs.client.warn(message));
    this.onDidChange = this.#environments.onDidChange;
  }

  /** What the person asked for and did not get at the last `find`. */
  get complaint(): string | undefined {
    return this.#complaint;
  }

  /** The interpreter to use, or the sentence that says why there is none. */
  async find(): Promise<Interpreter | string> {
    const { interpreter, complaints } = await resolveInterpreter({
      setting: vscode.workspace.getConfiguration("twinlens").get("interpreter", ""),
      folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
      trusted: vscode.workspace.isTrusted,
      env: process.env,
      chosen: () => this.#environments.chosen(),
    });
    const [complaint] = complaints;
    if (complaint !== undefined && complaint !== this.#complaint) {
      this.#logs.client.warn(complaint);
      void complain(complaint, interpreter);
    }
    this.#complaint = complaint;
    return interpreter ?? complaints.join(" ");
  }

  dispose(): void {
    this.#environments.dispose();
  }
}

async function complain(complaint: string, interpreter: Interpreter | undefined): Promise<void> {
  const instead = interpreter === undefined ? "" : ` ${interpreter.path} is used instead.`;
  const choice = await vscode.window.showWarningMessage(`${complaint}${instead}`, "Open Setting", "Show Logs");
  if (choice === "Open Setting") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "twinlens.interpreter");
  } else if (choice === "Show Logs") {
    await vscode.commands.executeCommand("twinlens.showLogs");
  }
}
