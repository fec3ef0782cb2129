/** Writes a class as a subclass of its match into the modular file beside it, as an edit that can be undone. */

import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { LibraryClass } from "./protocol";
import type { Server } from "./server";

const WRITING_MILLISECONDS = 60_000;

export function registerInherit(server: Server): vscode.Disposable {
  return vscode.commands.registerCommand(
    "twinlens.inheritFromMatch",
    (uri: string, name: string, parent: LibraryClass) => inherit(server, uri, name, parent),
  );
}

async function inherit(server: Server, uri: string, name: string, parent: LibraryClass): Promise<void> {
  try {
    const { model, path } = parent;
    const written = await server.ask(
      "twinlens/inherit",
      { uri, name, parent: { model, name: parent.name, path } },
      { milliseconds: WRITING_MILLISECONDS },
    );
    const target = vscode.Uri.file(written.path);
    if (!(await replaceText(target, written.text))) {
      throw new Error(`${vscode.workspace.asRelativePath(target)} could not be changed.`);
    }
    const editor = await vscode.window.showTextDocument(target, { preview: false });
    reveal(editor, name);
    if (written.notes.length > 0) {
      void vscode.window.showInformationMessage(written.notes.join(" "));
    }
  } catch (error) {
    await showFailure(error);
  }
}

/** One edit, so that one undo takes it back; a file that is not there yet is made. */
async function replaceText(target: vscode.Uri, text: string): Promise<boolean> {
  const edit = new vscode.WorkspaceEdit();
  if (await exists(target)) {
    const document = await vscode.workspace.openTextDocument(target);
    const everything = new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
    edit.replace(target, everything, text);
  } else {
    edit.createFile(target, { contents: new TextEncoder().encode("") });
    edit.insert(target, new vscode.Position(0, 0), text);
  }
  return vscode.workspace.applyEdit(edit);
}

async function exists(target: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(target);
    return true;
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === "FileNotFound") {
      return false;
    }
    throw error;
  }
}

function reveal(editor: vscode.TextEditor, name: string): void {
  const at = editor.document.getText().indexOf(`class ${name}(`);
  if (at >= 0) {
    const position = editor.document.positionAt(at);
    editor.selection = new vscode.Selection(position, position);
    editor.revealRange(new vscode.Range(position, position), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
}
