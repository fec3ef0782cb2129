import { defineConfig } from "vitest/config";

export default defineConfig({
  // VS Code itself is there in the journeys alone.
  resolve: { alias: { vscode: new URL("tests/extension/vscode.ts", import.meta.url).pathname } },
  test: {
    include: ["tests/extension/**/*.test.ts", "tests/scripts/**/*.test.ts"],
    passWithNoTests: false,
  },
});
