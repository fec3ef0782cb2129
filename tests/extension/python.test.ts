// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what a person writes in settings.json

import { chmod, mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { expand, resolveInterpreter, type Surroundings } from "../../extension/src/python";

let folder: string;
let surroundings: Surroundings;

/** An executable that answers the probe as a Python of this version does. */
async function python(place: string, version: string, itself = place): Promise<string> {
  await mkdir(join(place, ".."), { recursive: true });
  await writeFile(
    place,
    `#!/bin/sh\necho '${JSON.stringify({ path: itself, version, torch: "2.9.0", transformers: null })}'\n`,
  );
  await chmod(place, 0o755);
  return place;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "twinlens-python-"));
  const onPath = await python(join(folder, "path", "python3"), "3.12.1");
  surroundings = {
    setting: "",
    folders: [folder],
    trusted: true,
    env: { PATH: join(onPath, "..") },
    chosen: async () => [],
  };
});

describe("the interpreter", () => {
  it("is the one that the setting names, before all others", async () => {
    const named = await python(join(folder, "mine", "python"), "3.11.4");
    const { interpreter, complaints } = await resolveInterpreter({ ...surroundings, setting: named });
    expect(interpreter).toEqual({
      path: named,
      source: "setting",
      version: "3.11.4",
      torch: "2.9.0",
      transformers: null,
    });
    expect(complaints).toEqual([]);
  });

  it("is that of an environment's folder that the setting names", async () => {
    const named = await python(join(folder, "env", "bin", "python"), "3.10.0");
    const { interpreter } = await resolveInterpreter({ ...surroundings, setting: "${workspaceFolder}/env" });
    expect(interpreter?.path).toBe(named);
  });

  it("is another one, with a sentence, where the setting names none that exists", async () => {
    const setting = join(folder, "gone", "python");
    const { interpreter, complaints } = await resolveInterpreter({ ...surroundings, setting });
    expect(interpreter?.source).toBe("PATH");
    expect(complaints).toEqual([
      `The setting twinlens.interpreter names ${setting}, which does not exist or cannot be run.`,
    ]);
  });

  it("is not one that answers as no Python does", async () => {
    const setting = join(folder, "liar");
    await writeFile(setting, "#!/bin/sh\necho hello\n");
    await chmod(setting, 0o755);
    const { complaints } = await resolveInterpreter({ ...surroundings, setting });
    expect(complaints).toEqual([
      `The setting twinlens.interpreter names ${setting}, which does not answer as a Python does.`,
    ]);
  });

  it("is not one that is too old", async () => {
    const setting = await python(join(folder, "old", "python"), "3.9.18");
    const { interpreter, complaints } = await resolveInterpreter({ ...surroundings, setting });
    expect(interpreter?.source).toBe("PATH");
    expect(complaints).toEqual([
      `The setting twinlens.interpreter names ${setting}, a Python 3.9.18; Twinlens needs 3.10 or newer.`,
    ]);
  });

  it("is the one chosen in another extension, before the workspace's .venv", async () => {
    await python(join(folder, ".venv", "bin", "python"), "3.13.0");
    const elsewhere = await python(join(folder, "conda", "bin", "python"), "3.12.9");
    const chosen = async () => [{ path: elsewhere, source: "Python Environments" } as const];
    const { interpreter } = await resolveInterpreter({ ...surroundings, chosen });
    expect(interpreter).toMatchObject({ path: elsewhere, source: "Python Environments" });
  });

  it("is the workspace's .venv before PATH", async () => {
    const inside = await python(join(folder, ".venv", "bin", "python"), "3.13.0");
    const { interpreter } = await resolveInterpreter(surroundings);
    expect(interpreter).toMatchObject({ path: inside, source: ".venv" });
  });

  it("is never run from the workspace in Restricted Mode", async () => {
    const canary = join(folder, "canary");
    const inside = await python(join(folder, ".venv", "bin", "python"), "3.13.0");
    await writeFile(inside, `#!/bin/sh\ntouch ${canary}\n`);
    const chosen = async () => [{ path: inside, source: "Python extension" } as const];
    const { interpreter } = await resolveInterpreter({ ...surroundings, trusted: false, chosen });
    expect(interpreter?.source).toBe("PATH");
    await expect(import("node:fs/promises").then(({ stat }) => stat(canary))).rejects.toThrow();
  });

  it("is looked for on absolute folders of PATH alone", async () => {
    const env = { PATH: ["", ".", "relative"].join(":") };
    const { interpreter, complaints } = await resolveInterpreter({ ...surroundings, env, folders: [] });
    expect(interpreter).toBeUndefined();
    expect(complaints).toEqual(["No Python 3.10 or newer was found. Set twinlens.interpreter to one."]);
  });

  it("is the Python itself where a script on PATH starts one", async () => {
    const real = await python(join(folder, "versions", "3.12", "bin", "python3"), "3.12.0");
    const shim = await python(join(folder, "shims", "python3"), "3.12.0", real);
    const { interpreter } = await resolveInterpreter({ ...surroundings, env: { PATH: join(shim, "..") } });
    expect(interpreter).toMatchObject({ path: real, source: "PATH" });
  });

  it("may be a link, as in a virtual environment", async () => {
    const link = join(folder, ".venv", "bin", "python");
    const real = await python(join(folder, "real", "python3.12"), "3.12.0", link);
    await mkdir(join(folder, ".venv", "bin"), { recursive: true });
    await symlink(real, link);
    const { interpreter } = await resolveInterpreter(surroundings);
    expect(interpreter?.path).toBe(link);
  });
});

describe("the setting twinlens.interpreter", () => {
  it.each([
    ["/usr/bin/python3", "/usr/bin/python3"],
    ["env/bin/python", "/home/me/lumen/env/bin/python"],
    ["${workspaceFolder}/.venv", "/home/me/lumen/.venv"],
    ["${env:CONDA}/bin/python", "/opt/conda/bin/python"],
    ["${userHome}/py", join(homedir(), "py")],
    ["~/py", join(homedir(), "py")],
  ])("%s means %s", (setting, meant) => {
    expect(expand(setting, ["/home/me/lumen"], { CONDA: "/opt/conda" })).toBe(meant);
  });
});
