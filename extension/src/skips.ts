/** Which common tests run: the peek at the places that decide, behind every lens of a test file. */

import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { SkipPlace } from "./protocol";
import type { Server } from "./server";

export function registerSkips(server: Server): vscode.Disposable {
  return vscode.commands.registerCommand(
    "twinlens.showSkips",
    (uri: string, line: number, test: string | null, className: string | null) =>
      peek(server, vscode.Uri.parse(uri), line, test, className),
  );
}

async function peek(
  server: Server,
  uri: vscode.Uri,
  line: number,
  test: string | null,
  className: string | null,
): Promise<void> {
  try {
    const { places } = await server.ask("twinlens/skipPlaces", { uri: uri.toString(), test, className });
    if (places.length === 0) {
      const all = test === null ? `${className} runs every common test.` : `Every class that inherits ${test} runs it.`;
      await vscode.window.showInformationMessage(all);
      return;
    }
    const at = new vscode.Position(line - 1, 0);
    await vscode.commands.executeCommand("editor.action.peekLocations", uri, at, places.map(locationOf), "peek");
  } catch (error) {
    await showFailure(error);
  }
}

function locationOf({ path, line }: SkipPlace): vscode.Location {
  return new vscode.Location(vscode.Uri.file(path), lineRange(line));
}

/** A whole line, counted from 1. */
export function lineRange(line: number): vscode.Range {
  return new vscode.Range(line - 1, 0, line - 1, Number.MAX_SAFE_INTEGER);
}
