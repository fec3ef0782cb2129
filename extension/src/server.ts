/** The language client's life: one client, started, stopped and restarted one after another. */

import * as path from "node:path";
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  type ErrorHandler,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  type ServerOptions,
} from "vscode-languageclient/node";
import { backOff } from "./backoff";
import type { Logs } from "./logs";
import type { InitializationOptions, Notifications, Requests } from "./protocol";
import type { Interpreter } from "./python";
import { Queue } from "./queue";
import { interpreterText, type ServerState } from "./status-text";
import { within } from "./timeout";

export const DOCUMENTS = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
];

const ANSWER_MILLISECONDS = 10_000;

/** Raised by `ask` while no server runs. Its message is for a person. */
export class ServerUnavailable extends Error {
  override readonly name = "ServerUnavailable";
}

/** Raised by `ask` where the server is late. Its message is for a person. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";

  constructor(method: string, milliseconds: number) {
    super(
      `The Twinlens server did not answer ${method} within ${milliseconds / 1000} s. Restart it, or look at its logs.`,
    );
  }
}

export interface AskOptions {
  readonly token?: vscode.CancellationToken;
  /** How long to wait; null for work that takes as long as it takes and shows its progress. */
  readonly milliseconds?: number | null;
}

type Handler<M extends keyof Notifications> = (params: Notifications[M]) => void;

/** Finds the Python to run, or says why there is none. */
export type FindInterpreter = () => Promise<Interpreter | string>;

export class Server implements vscode.Disposable {
  readonly #queue = new Queue();
  readonly #listeners = new Map<keyof Notifications, Set<Handler<keyof Notifications>>>();
  readonly #changed = new vscode.EventEmitter<ServerState>();
  readonly #context: vscode.ExtensionContext;
  readonly #logs: Logs;
  readonly #findInterpreter: FindInterpreter;
  #client: LanguageClient | undefined;
  #state: ServerState = { kind: "stopped" };
  #crashes: number[] = [];
  #restartTimer: NodeJS.Timeout | undefined;

  readonly onDidChangeState = this.#changed.event;

  constructor(context: vscode.ExtensionContext, logs: Logs, findInterpreter: FindInterpreter) {
    this.#context = context;
    this.#logs = logs;
    this.#findInterpreter = findInterpreter;
  }

  get state(): ServerState {
    return this.#state;
  }

  start(): Promise<void> {
    return this.#queue.run(() => this.#start());
  }

  stop(): Promise<void> {
    return this.#queue.run(() => this.#stop());
  }

  /** Starts anew, as a person asks for it: crashes of the past are forgotten. */
  restart(): Promise<void> {
    return this.#queue.run(async () => {
      this.#crashes = [];
      await this.#stop();
      await this.#start();
    });
  }

  /** Starts anew where another Python would be run now. */
  restartIfInterpreterChanged(): Promise<void> {
    return this.#queue.run(async () => {
      const found = await this.#find();
      const running = this.#state.kind === "running" ? this.#state.interpreter.path : undefined;
      if (typeof found === "string" ? running !== undefined : found.path !== running) {
        await this.#stop();
        await this.#start(found);
      }
    });
  }

  /**
   * The server's answer to a request of our own.
   *
   * Rejects with `ServerUnavailable` while none runs, with `NoAnswer` where it is late, and with the server's own
   * `ResponseError`, whose message is a sentence for a person where the server refuses.
   */
  async ask<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    options: AskOptions = {},
  ): Promise<Requests[M]["result"]> {
    const client = this.#client;
    if (client === undefined || this.#state.kind !== "running") {
      throw new ServerUnavailable("The Twinlens server is not running. Run Twinlens: Restart Server.");
    }
    const giveUp = new vscode.CancellationTokenSource();
    const listening = options.token?.onCancellationRequested(() => giveUp.cancel());
    try {
      const work = client.sendRequest<Requests[M]["result"]>(method, params, giveUp.token);
      const limit = options.milliseconds === undefined ? ANSWER_MILLISECONDS : options.milliseconds;
      if (limit === null) {
        return await work;
      }
      return await within(limit, work, () => {
        giveUp.cancel();
        return new NoAnswer(method, limit);
      });
    } finally {
      listening?.dispose();
      giveUp.dispose();
    }
  }

  /** Calls `handler` with each notification of this kind, of this server and of those that follow it. */
  onNotification<M extends keyof Notifications>(method: M, handler: Handler<M>): vscode.Disposable {
    const general = handler as Handler<keyof Notifications>;
    const listeners = this.#listeners.get(method) ?? new Set();
    if (!this.#listeners.has(method)) {
      this.#listeners.set(method, listeners);
      if (this.#client !== undefined) {
        this.#route(this.#client, method);
      }
    }
    listeners.add(general);
    return new vscode.Disposable(() => listeners.delete(general));
  }

  dispose(): void {
    clearTimeout(this.#restartTimer);
    this.#changed.dispose();
  }

  async #start(found?: Interpreter | string): Promise<void> {
    if (this.#client !== undefined) {
      return;
    }
    this.#become({ kind: "starting" });
    const interpreter = found ?? (await this.#find());
    if (typeof interpreter === "string") {
      this.#become({ kind: "failed", reason: interpreter });
      return;
    }
    this.#logs.client.info(
      `Starting the server with ${interpreter.path} (${interpreter.source}): ${interpreterText(interpreter)}`,
    );
    const client = this.#createClient(interpreter);
    this.#client = client;
    try {
      await client.start();
      this.#become({ kind: "running", interpreter });
    } catch (error) {
      this.#logs.client.error("The server did not start", error instanceof Error ? error : String(error));
      // One that ended while it started has been told of by its connection, and is started again.
      if (this.#client === client) {
        this.#client = undefined;
        this.#become({ kind: "failed", reason: `The server did not start with ${interpreter.path}.` });
      }
    }
  }

  /** A search that fails is a reason like others; without one the state would stay what it was for ever. */
  async #find(): Promise<Interpreter | string> {
    try {
      return await this.#findInterpreter();
    } catch (error) {
      this.#logs.client.error("The search for an interpreter failed", error instanceof Error ? error : String(error));
      return "No interpreter was found, because the search for one failed; the logs say why.";
    }
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#restartTimer);
    const client = this.#client;
    this.#client = undefined;
    this.#become({ kind: "stopped" });
    await client?.dispose();
  }

  #createClient(interpreter: Interpreter): LanguageClient {
    const client = new LanguageClient(
      "twinlens",
      "Twinlens Language Server",
      this.#command(interpreter),
      this.#options(interpreter),
    );
    for (const method of this.#listeners.keys()) {
      this.#route(client, method);
    }
    return client;
  }

  /** A client has room for one handler a method. */
  #route(client: LanguageClient, method: keyof Notifications): void {
    client.onNotification(method, (params: Notifications[typeof method]) => {
      for (const listener of this.#listeners.get(method) ?? []) {
        listener(params);
      }
    });
  }

  #command(interpreter: Interpreter): ServerOptions {
    const server = this.#context.asAbsolutePath(path.join("bundled", "server"));
    const libraries = this.#context.asAbsolutePath(path.join("bundled", "libs"));
    const { PYTHONHOME: _home, PYTHONSTARTUP: _startup, ...env } = process.env;
    return {
      command: interpreter.path,
      // -S: the packages of the user's environment must not take the place of the bundled ones.
      args: ["-S", "-X", "utf8", "-m", "twinlens.lsp"],
      // -m puts the working folder before everything on the path: in the workspace, its files would be run.
      options: { cwd: server, env: { ...env, PYTHONPATH: [server, libraries].join(path.delimiter) } },
    };
  }

  #options(interpreter: Interpreter): LanguageClientOptions {
    const options: InitializationOptions = {
      interpreter: interpreter.path,
      cacheDir: this.#context.globalStorageUri.fsPath,
      trusted: vscode.workspace.isTrusted,
    };
    const log = this.#logs.server;
    return {
      documentSelector: DOCUMENTS,
      initializationOptions: options,
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      diagnosticPullOptions: { onChange: true, onSave: true },
      errorHandler: this.#errorHandler(interpreter),
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => createInterface(stream).on("line", (line) => log.info(line)),
      },
    };
  }

  #errorHandler(interpreter: Interpreter): ErrorHandler {
    return {
      error: (error) => {
        this.#logs.client.error("The connection to the server had an error", error);
        return { action: ErrorAction.Continue, handled: true };
      },
      closed: () => {
        this.#crashed(interpreter);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  #crashed(interpreter: Interpreter): void {
    this.#client = undefined;
    this.#crashes = [...this.#crashes, Date.now()];
    const delay = backOff(this.#crashes);
    if (delay === undefined) {
      this.#become({ kind: "failed", reason: `The server ended again and again with ${interpreter.path}.` });
      return;
    }
    this.#logs.client.warn(`The server ended; starting it again in ${delay / 1000} s`);
    this.#become({ kind: "starting" });
    this.#restartTimer = setTimeout(() => void this.start(), delay);
  }

  #become(state: ServerState): void {
    this.#state = state;
    this.#changed.fire(state);
  }
}
