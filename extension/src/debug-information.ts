/** *Copy Debug Information*: what an issue report needs, as Markdown on the clipboard. */

import * as vscode from "vscode";
import type { IndexStatus } from "./protocol";
import type { Server } from "./server";
import { interpreterText } from "./status-text";

export function registerDebugInformation(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  let index: IndexStatus | undefined;
  return vscode.Disposable.from(
    server.onNotification("twinlens/indexStatus", (status) => {
      index = status;
    }),
    vscode.commands.registerCommand("twinlens.copyDebugInformation", async () => {
      await vscode.env.clipboard.writeText(debugInformation(context, server, index));
      await vscode.window.showInformationMessage("Twinlens: copied, to be pasted into an issue report.");
    }),
  );
}

function debugInformation(context: vscode.ExtensionContext, server: Server, index: IndexStatus | undefined): string {
  const { state } = server;
  const settings = vscode.workspace.getConfiguration("twinlens");
  const lines = {
    Twinlens: String(context.extension.packageJSON.version),
    "VS Code": `${vscode.version} (${vscode.env.appName}${vscode.env.remoteName ? `, ${vscode.env.remoteName}` : ""})`,
    System: `${process.platform} ${process.arch}`,
    Workspace: `${vscode.workspace.workspaceFolders?.length ?? 0} folders, ${vscode.workspace.isTrusted ? "trusted" : "restricted"}`,
    Server: state.kind === "failed" ? `failed: ${state.reason}` : state.kind,
    Interpreter:
      state.kind === "running"
        ? `${state.interpreter.path} (${state.interpreter.source}): ${interpreterText(state.interpreter)}`
        : "none",
    Index: index === undefined ? "unknown" : `${index.state}: ${index.message}`,
    Settings: `\`${JSON.stringify(settings)}\``,
  };
  return Object.entries(lines)
    .map(([name, value]) => `- ${name}: ${value}`)
    .join("\n");
}
