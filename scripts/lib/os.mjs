import { readFileSync } from "node:fs";

/** @returns {"debian" | "macos" | "other"} the kind of system, by how software is installed on it */
export function systemKind(platform = process.platform, osRelease = readOsRelease()) {
  if (platform === "darwin") return "macos";
  const ids = [...osRelease.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap((match) => String(match[1]).split(" "));
  return ids.includes("debian") ? "debian" : "other";
}

function readOsRelease() {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    return "";
  }
}

export const isRoot = () => process.getuid?.() === 0;
