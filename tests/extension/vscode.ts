/** As much of VS Code as the tested modules use, with what a test sets. */

export interface FakeExtension {
  readonly isActive: boolean;
  readonly exports: unknown;
  readonly activate: () => Promise<unknown>;
}

type Listener<T> = (event: T) => unknown;

export class Disposable {
  static from(...parts: { dispose: () => unknown }[]): Disposable {
    return new Disposable(() => {
      for (const part of parts) part.dispose();
    });
  }

  constructor(readonly dispose: () => unknown) {}
}

export class EventEmitter<T> {
  readonly #listeners = new Set<Listener<T>>();

  readonly event = (listener: Listener<T>): Disposable => {
    this.#listeners.add(listener);
    return new Disposable(() => this.#listeners.delete(listener));
  };

  fire(event: T): void {
    for (const listener of this.#listeners) listener(event);
  }

  dispose(): void {
    this.#listeners.clear();
  }
}

export interface Uri {
  readonly fsPath: string;
}

export const workspace: { workspaceFolders: { readonly uri: Uri }[] | undefined } = { workspaceFolders: undefined };

export const window: { activeTextEditor: undefined } = { activeTextEditor: undefined };

const installed = new Map<string, FakeExtension>();
const extensionsChanged = new EventEmitter<void>();

export const extensions = {
  onDidChange: extensionsChanged.event,
  getExtension: (id: string): FakeExtension | undefined => installed.get(id),
};

/** Installs an extension whose `activate` answers `api`, and tells of it. */
export function install(id: string, activate: () => Promise<unknown>): void {
  let api: unknown;
  installed.set(id, {
    isActive: false,
    get exports() {
      return api;
    },
    activate: async () => {
      api = await activate();
      return api;
    },
  });
  extensionsChanged.fire();
}

export function uninstallAll(): void {
  installed.clear();
}
