import { describe, expect, it } from "vitest";
import { desktopOpener } from "../../scripts/editor/desktop.mjs";
import { systemKind } from "../../scripts/lib/os.mjs";
import { sharedCache } from "../../scripts/lib/paths.mjs";
import { choosePython } from "../../scripts/lib/python.mjs";
import { findChromium } from "../../scripts/steps/browser.mjs";
import { missingPackages } from "../../scripts/steps/systemPackages.mjs";

const python = (minor: number, venv = true) => ({ path: `/usr/bin/python3.${minor}`, version: [3, minor, 0], venv });

describe("the Python that set-up chooses", () => {
  it("is the first that the project is tried with", () => {
    expect(choosePython([python(12), python(11)])).toEqual(python(12));
  });

  it("is not one that is too old", () => {
    expect(choosePython([python(9), python(10)])).toEqual(python(10));
    expect(choosePython([python(9)])).toBeUndefined();
    expect(choosePython([{ path: "python2", version: [2, 12, 0], venv: true }])).toBeUndefined();
  });

  it("is a newer one only where there is no other", () => {
    expect(choosePython([python(15), python(13)])).toEqual(python(13));
    expect(choosePython([python(15)])).toEqual(python(15));
  });

  it("is one that can create environments, where there is such a one", () => {
    expect(choosePython([python(11, false), python(12)])).toEqual(python(12));
    expect(choosePython([python(11, false)])).toEqual(python(11, false));
  });
});

describe("the kind of system", () => {
  it("is Debian for Debian and what is made from it", () => {
    expect(systemKind("linux", 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n')).toBe("debian");
    expect(systemKind("linux", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n')).toBe("debian");
  });

  it("is told apart from others", () => {
    expect(systemKind("linux", "ID=fedora\nVARIANT_ID=debian\n")).toBe("other");
    expect(systemKind("darwin", "")).toBe("macos");
  });
});

describe("the Debian packages that are missing", () => {
  it("are those that are not fully installed", () => {
    const records = "chromium installed\nlibx11-dev config-files\nfonts-inter not-installed\n";
    expect(missingPackages(["chromium", "libx11-dev", "fonts-inter", "libkrb5-dev"], records)).toEqual([
      "libx11-dev",
      "fonts-inter",
      "libkrb5-dev",
    ]);
  });
});

describe("the shared cache", () => {
  it("lies where the person says, else where the system keeps caches", () => {
    expect(sharedCache({ TWINLENS_DEV_CACHE: "/big" }, "linux", "/home/a")).toBe("/big");
    expect(sharedCache({ XDG_CACHE_HOME: "/c" }, "linux", "/home/a")).toBe("/c/twinlens-dev");
    expect(sharedCache({}, "linux", "/home/a")).toBe("/home/a/.cache/twinlens-dev");
    expect(sharedCache({}, "darwin", "/Users/a")).toBe("/Users/a/Library/Caches/twinlens-dev");
  });
});

describe("Chromium", () => {
  it("is the one that is named, else the first on PATH", () => {
    const there =
      (...files: string[]) =>
      (file: unknown) =>
        files.includes(String(file));
    expect(findChromium({ PATH: "/a:/b" }, there("/b/chromium", "/b/google-chrome"))).toBe("/b/chromium");
    expect(findChromium({ PATH: "/b", TWINLENS_CHROMIUM: "/c/chrome" }, there("/b/chromium", "/c/chrome"))).toBe(
      "/c/chrome",
    );
    expect(findChromium({ PATH: "/a" }, there())).toBeUndefined();
  });
});

describe("the demo's browser", () => {
  it("opens by itself only at a desktop", () => {
    expect(desktopOpener("linux", {})).toBeUndefined();
    expect(desktopOpener("linux", { DISPLAY: ":0" })).toBe("xdg-open");
    expect(desktopOpener("linux", { DISPLAY: ":0", CI: "true" })).toBeUndefined();
    expect(desktopOpener("linux", { DISPLAY: ":10", SSH_CONNECTION: "somewhere" })).toBeUndefined();
    expect(desktopOpener("darwin", {})).toBe("open");
  });
});
