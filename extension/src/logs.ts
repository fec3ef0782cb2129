/** Where Twinlens writes what it did: one channel for the client, one for the server. */

import * as vscode from "vscode";

export interface Logs extends vscode.Disposable {
  readonly client: vscode.LogOutputChannel;
  readonly server: vscode.LogOutputChannel;
}

export function createLogs(): Logs {
  const client = vscode.window.createOutputChannel("Twinlens", { log: true });
  const server = vscode.window.createOutputChannel("Twinlens Language Server", { log: true });
  const commands = [
    vscode.commands.registerCommand("twinlens.showLogs", () => client.show()),
    vscode.commands.registerCommand("twinlens.showServerLogs", () => server.show()),
  ];
  return { client, server, dispose: () => vscode.Disposable.from(...commands, client, server).dispose() };
}
