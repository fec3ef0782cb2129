/** The view Traces: what `.twinlens/traces` of the workspace holds, the newest first. */

import * as vscode from "vscode";
import type { TraceEntry } from "./protocol";
import type { Server } from "./server";
import { traceDescription, traceLabel, traceTooltip } from "./trace-text";

const PAUSE_MILLISECONDS = 300;
const FILES = ".twinlens/traces/**";

const ICONS: Record<TraceEntry["status"], vscode.ThemeIcon> = {
  complete: new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed")),
  raised: new vscode.ThemeIcon("error", new vscode.ThemeColor("testing.iconFailed")),
  unfinished: new vscode.ThemeIcon("circle-slash"),
  unreadable: new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground")),
};

export class TracesTree implements vscode.TreeDataProvider<TraceEntry>, vscode.Disposable {
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #following: vscode.Disposable;
  #traces: Promise<readonly TraceEntry[]> | undefined;
  #pause: NodeJS.Timeout | undefined;
  readonly onDidChangeTreeData = this.#changed.event;

  constructor(server: Server) {
    this.#server = server;
    const watcher = vscode.workspace.createFileSystemWatcher(`**/${FILES}`, false, true, false);
    this.#following = vscode.Disposable.from(
      watcher,
      watcher.onDidCreate(() => this.#refreshSoon()),
      watcher.onDidDelete(() => this.#refreshSoon()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refresh()),
      server.onDidChangeState(() => this.refresh()),
    );
  }

  /** The traces as they are listed. */
  traces(): Promise<readonly TraceEntry[]> {
    this.#traces ??= this.#ask();
    return this.#traces;
  }

  refresh(): void {
    this.#traces = undefined;
    this.#changed.fire(undefined);
  }

  /** Lists anew, and answers the trace in `folder`. */
  async reload(folder: string): Promise<TraceEntry | undefined> {
    this.refresh();
    return (await this.traces()).find((entry) => entry.folder === folder);
  }

  async getChildren(entry?: TraceEntry): Promise<TraceEntry[]> {
    return entry === undefined ? [...(await this.traces())] : [];
  }

  /** `reveal` needs it; every trace is at the top. */
  getParent(): undefined {
    return undefined;
  }

  getTreeItem(entry: TraceEntry): vscode.TreeItem {
    const item = new vscode.TreeItem(traceLabel(entry), vscode.TreeItemCollapsibleState.None);
    item.id = entry.folder;
    item.description = traceDescription(entry, new Date());
    item.tooltip = new vscode.MarkdownString(traceTooltip(entry), true);
    item.iconPath = ICONS[entry.status];
    item.contextValue = entry.summary === null ? "trace" : "summarisedTrace";
    item.accessibilityInformation = {
      label: `${traceLabel(entry)}, ${entry.status}, ${traceDescription(entry, new Date())}`,
    };
    if (entry.summary !== null) {
      item.command = { command: "twinlens.traces.openSummary", title: "Open Summary", arguments: [entry] };
    }
    return item;
  }

  async #ask(): Promise<readonly TraceEntry[]> {
    if (this.#server.state.kind !== "running") {
      return [];
    }
    const { traces } = await this.#server.ask("twinlens/traces", {});
    return traces;
  }

  #refreshSoon(): void {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.refresh(), PAUSE_MILLISECONDS);
  }

  dispose(): void {
    clearTimeout(this.#pause);
    this.#following.dispose();
    this.#changed.dispose();
  }
}
