/** The one line of status, in the editor's language status: the server, the interpreter and the index. */

import * as vscode from "vscode";
import type { InterpreterChoice } from "./interpreter";
import type { IndexStatus } from "./protocol";
import { DOCUMENTS, type Server } from "./server";
import { type ServerState, statusOf } from "./status-text";

/** Shows the status as it changes. */
export class StatusItem implements vscode.Disposable {
  readonly #item = vscode.languages.createLanguageStatusItem("twinlens.status", DOCUMENTS);
  readonly #interpreters: InterpreterChoice;
  #index: IndexStatus | undefined;

  constructor(server: Server, interpreters: InterpreterChoice) {
    this.#interpreters = interpreters;
    this.#item.name = "Twinlens";
    server.onDidChangeState((state) => {
      this.#index = undefined;
      this.#show(state);
    });
    server.onNotification("twinlens/indexStatus", (index) => {
      this.#index = index;
      this.#show(server.state);
    });
    this.#show(server.state);
  }

  dispose(): void {
    this.#item.dispose();
  }

  #show(state: ServerState): void {
    const status = statusOf(state, this.#index, this.#interpreters.complaint);
    this.#item.text = status.text;
    this.#item.detail = status.detail;
    this.#item.busy = status.busy;
    this.#item.command = status.command;
    this.#item.severity = {
      information: vscode.LanguageStatusSeverity.Information,
      warning: vscode.LanguageStatusSeverity.Warning,
      error: vscode.LanguageStatusSeverity.Error,
    }[status.severity];
    void vscode.commands.executeCommand("setContext", "twinlens.serverState", state.kind);
  }
}
