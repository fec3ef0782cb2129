import { spawn } from "node:child_process";

/** @returns {string | undefined} the program that opens an address, where a person sits at a desktop */
export function desktopOpener(platform = process.platform, environment = process.env) {
  if (environment.CI || environment.SSH_CONNECTION) return undefined;
  if (platform === "darwin") return "open";
  return environment.DISPLAY || environment.WAYLAND_DISPLAY ? "xdg-open" : undefined;
}

/** @param {string} url */
export function openInBrowser(url) {
  const opener = desktopOpener();
  if (!opener) return;
  const child = spawn(opener, [url], { stdio: "ignore", detached: true });
  child.on("error", () => console.log(`(${opener} is not there: open the address by hand.)`));
  child.unref();
}
