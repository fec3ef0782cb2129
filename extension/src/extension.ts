/** The extension's table of contents. */

import * as vscode from "vscode";
import { registerChecks } from "./checks";
import { registerCompare } from "./compare";
import { registerDebugInformation } from "./debug-information";
import { registerDiffs } from "./diffs";
import { registerInherit } from "./inherit";
import { InterpreterChoice } from "./interpreter";
import { createLogs } from "./logs";
import { Server } from "./server";
import { registerSimilarClassesView } from "./similar-classes-view";
import { registerSimilarity } from "./similarity";
import { registerSkippedTestsView } from "./skipped-tests-view";
import { registerSkips } from "./skips";
import { StatusItem } from "./status";
import { registerTraces } from "./traces";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const logs = createLogs();
  const interpreters = new InterpreterChoice(logs);
  const theServer = new Server(context, logs, () => interpreters.find());
  server = theServer;

  context.subscriptions.push(
    logs,
    interpreters,
    theServer,
    new StatusItem(theServer, interpreters),
    registerDebugInformation(context, theServer),
    registerSimilarity(theServer),
    registerSimilarClassesView(theServer),
    registerCompare(theServer),
    registerInherit(theServer),
    registerSkips(theServer),
    registerSkippedTestsView(theServer),
    registerChecks(theServer),
    registerTraces(theServer),
    registerDiffs(context, theServer),
    vscode.commands.registerCommand("twinlens.restartServer", () => theServer.restart()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => theServer.restart()),
    interpreters.onDidChange(() => theServer.restartIfInterpreterChanged()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("twinlens.interpreter")) {
        void theServer.restartIfInterpreterChanged();
      }
    }),
  );
  // Looking for the interpreter takes a while, and activation is what the whole window waits for.
  setImmediate(() => void theServer.start());
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
