/** Trace forward: runs it with a notification that can be cancelled, and brings what came of it to the person. */

import * as vscode from "vscode";
import { showFailure } from "./messages";
import type { TraceEntry, TraceParams, TraceResult } from "./protocol";
import type { Server } from "./server";
import { progressText } from "./trace-text";

/** What to run instead of the class's own recipe, and what to keep. */
export type TraceChoice = Pick<TraceParams, "recipe" | "dtype" | "statsOnly" | "only">;

type Place = readonly [uri: string, name: string];

export class TraceRunner implements vscode.Disposable {
  readonly #server: Server;
  readonly #output = vscode.window.createOutputChannel("Twinlens Traces");
  readonly #traced = new vscode.EventEmitter<TraceEntry>();
  readonly #listening: vscode.Disposable;
  #runs = 0;

  /** A trace was written. */
  readonly onDidTrace = this.#traced.event;

  constructor(server: Server) {
    this.#server = server;
    this.#listening = server.onNotification("twinlens/traceOutput", ({ text }) => this.#output.append(text));
  }

  async run([uri, name]: Place, choice: TraceChoice = {}): Promise<void> {
    if (!(await mayRunCode())) {
      return;
    }
    try {
      await saved(uri);
      this.#runs += 1;
      const result = await this.#withProgress({ id: String(this.#runs), uri, name, ...choice });
      if (result.trace !== null) {
        this.#traced.fire(result.trace);
      }
      await this.#tell([uri, name], result);
    } catch (error) {
      await showFailure(error);
    }
  }

  #withProgress(params: TraceParams): Thenable<TraceResult> {
    const where = {
      location: vscode.ProgressLocation.Notification,
      title: `Tracing ${params.name}`,
      cancellable: true,
    };
    return vscode.window.withProgress(where, async (progress, token) => {
      this.#output.appendLine(`Tracing ${params.name} of ${vscode.Uri.parse(params.uri).fsPath}`);
      const listening = this.#server.onNotification("twinlens/traceProgress", ({ id, detail, count }) => {
        if (id === params.id) {
          progress.report({ message: progressText(detail, count) });
        }
      });
      try {
        return await this.#server.ask("twinlens/trace", params, { token, milliseconds: null });
      } finally {
        listening.dispose();
      }
    });
  }

  async #tell(place: Place, { status, message, traceback, trace }: TraceResult): Promise<void> {
    if (status === "complete") {
      return;
    }
    this.#output.appendLine(traceback === "" ? message : traceback);
    if (status === "no recipe") {
      await this.#openTemplate(place, message);
    } else if (status === "no torch") {
      await offer(message, { "Open Setting": () => openSetting("twinlens.interpreter") });
    } else if (status === "raised" && trace?.summary) {
      const summary = vscode.Uri.file(trace.summary);
      await offer(`The forward of ${place[1]} raised ${message}`, {
        "Show Output": () => this.#output.show(true),
        "Open Summary": () => vscode.window.showTextDocument(summary),
      });
    } else {
      await offer(message, { "Show Output": () => this.#output.show(true) });
    }
  }

  async #openTemplate([uri, name]: Place, reason: string): Promise<void> {
    const { path, text } = await this.#server.ask("twinlens/recipeTemplate", { uri, name });
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path).with({ scheme: "untitled" }));
    const editor = await vscode.window.showTextDocument(document);
    if (document.getText() === "") {
      await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), text));
    }
    void vscode.window.showInformationMessage(`${reason} Here is a template: fill it in, save it, and trace again.`);
  }

  /** A template for a recipe of the class. */
  async newRecipe(place: Place): Promise<void> {
    try {
      await this.#openTemplate(place, `A recipe says how to make ${place[1]} and its inputs.`);
    } catch (error) {
      await showFailure(error);
    }
  }

  dispose(): void {
    vscode.Disposable.from(this.#listening, this.#traced, this.#output).dispose();
  }
}

async function mayRunCode(): Promise<boolean> {
  if (vscode.workspace.isTrusted) {
    return true;
  }
  await offer("Tracing runs code of this workspace, which is not trusted.", {
    "Manage Workspace Trust": () => vscode.commands.executeCommand("workbench.trust.manage"),
  });
  return false;
}

/** A trace runs what is on disk. */
async function saved(uri: string): Promise<void> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri);
  if (open?.isDirty) {
    await open.save();
  }
}

async function offer(message: string, actions: Record<string, () => unknown>): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(message, ...Object.keys(actions));
  if (chosen !== undefined) {
    await actions[chosen]?.();
  }
}

function openSetting(name: string): Thenable<unknown> {
  return vscode.commands.executeCommand("workbench.action.openSettings", name);
}
