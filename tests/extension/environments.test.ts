import { beforeEach, describe, expect, it, vi } from "vitest";
import { Environments } from "../../extension/src/environments";
import { EventEmitter, install, uninstallAll, workspace } from "./vscode";

const ENVIRONMENTS = "ms-python.vscode-python-envs";
const PYTHON = "ms-python.python";

/** The Python Environments extension with a choice that a test changes. */
function pythonEnvironments(first: string) {
  const changed = new EventEmitter<void>();
  let executable = first;
  return {
    api: {
      getEnvironment: async () => ({ execInfo: { run: { executable } } }),
      onDidChangeEnvironment: changed.event,
    },
    choose: (next: string) => {
      executable = next;
      changed.fire();
    },
  };
}

/** The Python extension, as `@vscode/python-extension` describes it. */
function pythonExtension(executable: string | undefined) {
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: "env", path: "/conda" }),
      resolveEnvironment: async () => ({ executable: { uri: executable && { fsPath: executable } } }),
      onDidChangeActiveEnvironmentPath: new EventEmitter<void>().event,
    },
  };
}

let log: ReturnType<typeof vi.fn<(message: string) => void>>;

beforeEach(() => {
  uninstallAll();
  workspace.workspaceFolders = [{ uri: { fsPath: "/lumen" } }];
  log = vi.fn<(message: string) => void>();
});

describe("the environment chosen in another extension", () => {
  it("is none where there is no such extension", async () => {
    expect(await new Environments(log).chosen()).toEqual([]);
    expect(log).not.toHaveBeenCalled();
  });

  it("is asked of Python Environments before the Python extension", async () => {
    install(PYTHON, async () => pythonExtension("/conda/bin/python"));
    install(ENVIRONMENTS, async () => pythonEnvironments("/envs/bin/python").api);
    expect(await new Environments(log).chosen()).toEqual([
      { path: "/envs/bin/python", source: "Python Environments" },
      { path: "/conda/bin/python", source: "Python extension" },
    ]);
  });

  it("is that of the Python extension where Python Environments is switched off", async () => {
    install(ENVIRONMENTS, async () => null);
    install(PYTHON, async () => pythonExtension("/conda/bin/python"));
    expect(await new Environments(log).chosen()).toEqual([{ path: "/conda/bin/python", source: "Python extension" }]);
  });

  it("is none where the environment has no executable", async () => {
    install(PYTHON, async () => pythonExtension(undefined));
    expect(await new Environments(log).chosen()).toEqual([]);
  });

  it("is not asked for where nothing is open, since that searches the whole machine", async () => {
    workspace.workspaceFolders = undefined;
    const activate = vi.fn(async () => pythonEnvironments("/envs/bin/python").api);
    install(ENVIRONMENTS, activate);
    expect(await new Environments(log).chosen()).toEqual([]);
    expect(activate).not.toHaveBeenCalled();
  });

  it("is told of once for each change", async () => {
    const provider = pythonEnvironments("/one/bin/python");
    install(ENVIRONMENTS, async () => provider.api);
    const environments = new Environments(log);
    await environments.chosen();
    const changed = vi.fn();
    environments.onDidChange(changed);
    provider.choose("/two/bin/python");
    await vi.waitFor(() => expect(changed).toHaveBeenCalledOnce());
    provider.choose("/two/bin/python");
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(changed).toHaveBeenCalledOnce();
  });

  it("is told of when its extension comes later", async () => {
    const environments = new Environments(log);
    await environments.chosen();
    const changed = vi.fn();
    environments.onDidChange(changed);
    install(ENVIRONMENTS, async () => pythonEnvironments("/envs/bin/python").api);
    await vi.waitFor(() => expect(changed).toHaveBeenCalledOnce());
  });

  it("is left out, with a line in the log, where its extension fails", async () => {
    install(ENVIRONMENTS, async () => {
      throw new Error("no locator");
    });
    install(PYTHON, async () => pythonExtension("/conda/bin/python"));
    expect(await new Environments(log).chosen()).toEqual([{ path: "/conda/bin/python", source: "Python extension" }]);
    expect(log).toHaveBeenCalledWith("Python Environments did not tell its environment: no locator");
  });

  it("is not waited for when its extension is slow, and told of when it answers", async () => {
    let answer: (api: unknown) => void = () => undefined;
    install(ENVIRONMENTS, () => new Promise((resolve) => (answer = resolve)));
    const environments = new Environments(log, 10);
    expect(await environments.chosen()).toEqual([]);
    expect(log).toHaveBeenCalledWith("Python Environments did not tell its environment: no answer within 0.01 s");
    const changed = vi.fn();
    environments.onDidChange(changed);
    const { api } = pythonEnvironments("/envs/bin/python");
    install(ENVIRONMENTS, async () => api);
    answer(api);
    await vi.waitFor(() => expect(changed).toHaveBeenCalled());
  });
});
