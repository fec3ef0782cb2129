/** One way to tell a person that something they asked for did not happen. */

import * as vscode from "vscode";

/** Shows the failure's own sentence, with the logs one click away; a cancelled wish is no failure. */
export async function showFailure(error: unknown): Promise<void> {
  if (error instanceof vscode.CancellationError || isCancelled(error)) {
    return;
  }
  const sentence = error instanceof Error ? error.message : String(error);
  const choice = await vscode.window.showErrorMessage(sentence, "Show Logs");
  if (choice === "Show Logs") {
    await vscode.commands.executeCommand("twinlens.showServerLogs");
  }
}

const REQUEST_CANCELLED = -32800;

function isCancelled(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === REQUEST_CANCELLED;
}
