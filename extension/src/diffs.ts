/** Compare Traces: which two, the page that shows them, and what the page asks for. */

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import * as vscode from "vscode";
import type { Details, PageState, Table, ToHost, ToPage, Traces } from "../webview/diff/messages";
import { keepPage, keptPage } from "./kept-pages";
import { showFailure } from "./messages";
import type { Server } from "./server";
import { traceRows } from "./trace-text";

const PANEL = "twinlens.diff";
const FORGOTTEN = "VS Code was reloaded before it had kept which two traces were compared here.";

export function registerDiffs(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const open = (panel: vscode.WebviewPanel, traces: Traces | undefined, kept?: PageState) =>
    new DiffPanel(context, server, panel, traces, kept);
  return vscode.Disposable.from(
    vscode.commands.registerCommand("twinlens.compareTraces", async (reference?: string, port?: string) => {
      const traces = await chosenTraces(server, reference, port);
      if (traces !== undefined) {
        const title = "Trace Diff";
        open(vscode.window.createWebviewPanel(PANEL, title, vscode.ViewColumn.Active, {}), traces);
      }
    }),
    vscode.window.registerWebviewPanelSerializer(PANEL, {
      async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: PageState | undefined) {
        const kept = keptPage(context.workspaceState, state);
        open(panel, kept && { reference: kept.reference, port: kept.port, replay: kept.replay }, kept);
      },
    }),
  );
}

async function chosenTraces(server: Server, reference?: string, port?: string): Promise<Traces | undefined> {
  try {
    const ours = reference ?? (await chosenTrace(server, "The reference: what the port should do", undefined));
    if (ours === undefined) return undefined;
    const theirs = port ?? (await chosenTrace(server, "The port", ours));
    return theirs === undefined ? undefined : { reference: ours, port: theirs, replay: false };
  } catch (error) {
    await showFailure(error);
    return undefined;
  }
}

async function chosenTrace(server: Server, title: string, other: string | undefined): Promise<string | undefined> {
  const { traces } = await server.ask("twinlens/traces", {});
  const rows = traceRows(traces.filter(({ folder }) => folder !== other));
  const browse = { label: "$(folder-opened) Choose a folder…", description: "", entry: undefined };
  const placeHolder =
    rows.length > 0
      ? "Choose a trace"
      : "No trace here yet: choose a folder, or trace a model by the lens above its class";
  const picked = await vscode.window.showQuickPick([...rows, browse], {
    title,
    placeHolder,
    matchOnDescription: true,
  });
  if (picked === undefined || picked.entry !== undefined) return picked?.entry.folder;
  const folders = await vscode.window.showOpenDialog({ canSelectFolders: true, canSelectFiles: false, title });
  return folders?.[0]?.fsPath;
}

/** One page. The server holds its diff in a process until the page is closed. */
class DiffPanel {
  readonly #context: vscode.ExtensionContext;
  readonly #server: Server;
  readonly #panel: vscode.WebviewPanel;
  readonly #id = randomBytes(8).toString("hex");
  /** Undefined where a reload of the window left them unknown. */
  #traces: Traces | undefined;
  /** What the page showed before the window was reloaded, until the page has it back. */
  #kept: PageState | undefined;

  constructor(
    context: vscode.ExtensionContext,
    server: Server,
    panel: vscode.WebviewPanel,
    traces: Traces | undefined,
    kept: PageState | undefined,
  ) {
    this.#context = context;
    this.#kept = kept;
    this.#server = server;
    this.#panel = panel;
    this.#traces = traces;
    const pages = vscode.Uri.joinPath(context.extensionUri, "dist", "webview");
    panel.webview.options = { enableScripts: true, localResourceRoots: [pages] };
    panel.webview.onDidReceiveMessage((message: ToHost) => this.#answer(message));
    panel.onDidDispose(() => this.#close());
    panel.webview.html = page(panel.webview, pages);
  }

  async #answer(message: ToHost): Promise<void> {
    try {
      await this.#doWhatIsAsked(message);
    } catch (error) {
      this.#post({ kind: "working", doing: "" });
      await showFailure(error);
    }
  }

  async #doWhatIsAsked(message: ToHost): Promise<void> {
    switch (message.kind) {
      case "ready":
        return this.#open();
      case "keep":
        return keepPage(this.#context.workspaceState, message.state);
      case "details": {
        const { json } = await this.#server.ask("twinlens/diffRow", { id: this.#id, row: message.row });
        return this.#post({ kind: "details", row: message.row, details: JSON.parse(json) as Details });
      }
      case "source": {
        const start = new vscode.Position(message.line - 1, 0);
        const where = { selection: new vscode.Range(start, start), viewColumn: vscode.ViewColumn.Beside };
        await vscode.window.showTextDocument(vscode.Uri.file(message.file), where);
        return;
      }
      case "pair":
        await this.#server.ask("twinlens/diffPair", { id: this.#id, ...pairOf(message) });
        return this.#open();
      case "jsonDiff": {
        const { reference, port } = await this.#server.ask("twinlens/diffSummaries", { id: this.#id });
        const [ours, theirs] = [vscode.Uri.file(reference), vscode.Uri.file(port)];
        await vscode.commands.executeCommand("vscode.diff", ours, theirs, "Reference ↔ Port");
        return;
      }
      case "replay":
        if (!vscode.workspace.isTrusted) {
          throw new Error("A replay runs code of the workspace: trust the workspace first.");
        }
        this.#traces = this.#traces && { ...this.#traces, replay: message.on };
        return this.#open();
      case "choose":
        this.#panel.dispose();
        await vscode.commands.executeCommand("twinlens.compareTraces");
        return;
    }
  }

  async #open(): Promise<void> {
    const traces = this.#traces;
    if (traces === undefined) return this.#post({ kind: "failed", sentence: FORGOTTEN });
    await whenRunning(this.#server);
    this.#post({ kind: "working", doing: traces.replay ? "Replaying…" : "Comparing…" });
    try {
      const opened = await this.#server.ask("twinlens/diffOpen", { id: this.#id, ...traces }, { milliseconds: null });
      const table = JSON.parse(await readFile(opened.table, "utf8")) as Table;
      this.#panel.title = titleOf(table, traces);
      this.#post({ kind: "table", traces, table, kept: this.#kept });
      this.#kept = undefined;
    } catch (error) {
      this.#post({ kind: "failed", sentence: error instanceof Error ? error.message : String(error) });
    }
  }

  #post(message: ToPage): void {
    void this.#panel.webview.postMessage(message);
  }

  #close(): void {
    this.#server.ask("twinlens/diffClose", { id: this.#id }).catch(() => undefined);
  }
}

/** Both classes; of one class, the names of the traces. */
function titleOf({ reference, port }: Table, traces: Traces): string {
  return reference.class === port.class
    ? `${basename(traces.reference)} ↔ ${basename(traces.port)}`
    : `${reference.class} ↔ ${port.class}`;
}

/** A page that VS Code restores is there before the server is. */
async function whenRunning(server: Server): Promise<void> {
  if (server.state.kind === "running") return;
  await new Promise<void>((resolve) => {
    const waiting = server.onDidChangeState((state) => {
      if (state.kind === "running") {
        waiting.dispose();
        resolve();
      }
    });
  });
}

function pairOf({ reference, port, apart }: Extract<ToHost, { kind: "pair" }>) {
  return { reference, port, apart };
}

function page(webview: vscode.Webview, pages: vscode.Uri): string {
  const nonce = randomBytes(16).toString("base64");
  const script = webview.asWebviewUri(vscode.Uri.joinPath(pages, "diff.js"));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(pages, "diff.css"));
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; font-src ${webview.cspSource};`;
  return `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="UTF-8">
    <meta http-equiv="Content-Security-Policy" content="${policy}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Trace diff</title>
    <link rel="stylesheet" href="${style}">
  </head>
  <body>
    <div id="root"></div>
    <script nonce="${nonce}" src="${script}"></script>
  </body>
</html>`;
}
