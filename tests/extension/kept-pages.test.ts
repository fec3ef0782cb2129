import { expect, test } from "vitest";
import type { Memento } from "vscode";
import { keepPage, keptPage } from "../../extension/src/kept-pages";
import type { PageState } from "../../extension/webview/diff/messages";

function storage(): Memento {
  const values = new Map<string, unknown>();
  return {
    keys: () => [...values.keys()],
    get: <T>(key: string, otherwise?: T) => (values.get(key) as T | undefined) ?? (otherwise as T),
    update: async (key: string, value: unknown) => void values.set(key, value),
  };
}

function page(reference: string, port: string, text = ""): PageState {
  const filters = { differs: false, unpaired: false, text };
  return { reference, port, replay: false, opened: [], closed: [], filters, chosen: null };
}

test("a page whose state VS Code stored too early is restored as it was last", async () => {
  const memento = storage();
  await keepPage(memento, page("a", "b", "norm"));
  expect(keptPage(memento, page("a", "b"))).toEqual(page("a", "b", "norm"));
});

test("of two pages each is restored as its own", async () => {
  const memento = storage();
  await keepPage(memento, page("a", "b", "norm"));
  await keepPage(memento, page("a", "c", "mlp"));
  expect(keptPage(memento, page("a", "b"))).toEqual(page("a", "b", "norm"));
  expect(keptPage(memento, page("a", "c"))).toEqual(page("a", "c", "mlp"));
});

test("a page whose state VS Code lost is restored as the one that was seen last", async () => {
  const memento = storage();
  await keepPage(memento, page("a", "b"));
  await keepPage(memento, page("a", "c", "mlp"));
  expect(keptPage(memento, undefined)).toEqual(page("a", "c", "mlp"));
});

test("a page that nothing is kept of is restored from VS Code's own state, or not at all", () => {
  expect(keptPage(storage(), page("a", "b", "head"))).toEqual(page("a", "b", "head"));
  expect(keptPage(storage(), undefined)).toBeUndefined();
});
