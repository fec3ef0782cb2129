/** Which lines of the table are seen: a tree that is opened and closed, filtered, with runs of equal layers folded. */

import type { Filters, JsonNumber, Row, Table, Verdict } from "./messages";

export interface TreeLine {
  readonly kind: "row";
  readonly id: string;
  readonly row: number;
  readonly level: number;
  readonly place: number;
  readonly siblings: number;
  /** Undefined for a line that holds nothing. */
  readonly isOpen: boolean | undefined;
}

/** Neighbouring layers that all agree, as one line. */
export interface FoldLine {
  readonly kind: "fold";
  readonly id: string;
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly level: number;
  readonly place: number;
  readonly siblings: number;
}

export type Line = TreeLine | FoldLine;

export interface Choice {
  readonly opened: ReadonlySet<string>;
  readonly closed: ReadonlySet<string>;
  readonly filters: Filters;
}

const SHORTEST_FOLD = 3;
const QUIET: ReadonlySet<Verdict> = new Set(["agrees", "only on padding"]);

/** The table with what is asked of it again and again. */
export class Model {
  readonly table: Table;
  readonly children: readonly (readonly number[])[];
  readonly roots: readonly number[];
  /** By row: whether it or anything in it is not quiet. */
  readonly #isLoud: readonly boolean[];
  readonly #toOrigin: ReadonlySet<number>;
  readonly #byId: ReadonlyMap<string, number>;

  constructor(table: Table) {
    this.table = table;
    const children: number[][] = table.rows.map(() => []);
    const roots: number[] = [];
    table.rows.forEach((row, place) => {
      (children[row.p] ?? roots).push(place);
    });
    const loud = table.rows.map((row) => !QUIET.has(row.v));
    for (let place = table.rows.length - 1; place >= 0; place--) {
      const parent = table.rows[place]?.p ?? -1;
      if (loud[place] && parent >= 0 && table.rows[place]?.v !== "unpaired") loud[parent] = true;
    }
    const toOrigin = new Set<number>();
    for (const origin of table.origins) {
      for (let at = table.rows[origin.row]?.p ?? -1; at >= 0; at = table.rows[at]?.p ?? -1) toOrigin.add(at);
    }
    this.children = children;
    this.roots = roots;
    this.#isLoud = loud;
    this.#toOrigin = toOrigin;
    this.#byId = new Map(table.rows.map((row, place) => [rowId(row), place]));
  }

  row(place: number): Row {
    const row = this.table.rows[place];
    if (row === undefined) throw new RangeError(`no row ${place}`);
    return row;
  }

  rowOf(id: string): number | undefined {
    return this.#byId.get(id);
  }

  /** Every row around `place`, outermost last. */
  *around(place: number): Generator<number> {
    for (let at = this.row(place).p; at >= 0; at = this.row(at).p) yield at;
  }

  isOpen(place: number, choice: Choice): boolean {
    const id = rowId(this.row(place));
    if (choice.opened.has(id)) return true;
    if (choice.closed.has(id)) return false;
    return this.row(place).p < 0 || this.#toOrigin.has(place);
  }

  lines(choice: Choice): Line[] {
    const kept = this.#kept(choice.filters);
    const found: Line[] = [];
    this.#add(found, this.roots, 1, choice, kept);
    return found;
  }

  /** With filters: the rows that pass and those around them. */
  #kept(filters: Filters): ReadonlySet<number> | undefined {
    if (!isFiltered(filters)) return undefined;
    const kept = new Set<number>();
    this.table.rows.forEach((row, place) => {
      if (!passes(row, filters)) return;
      kept.add(place);
      for (const outer of this.around(place)) {
        if (kept.has(outer)) break;
        kept.add(outer);
      }
    });
    return kept;
  }

  #add(
    found: Line[],
    rows: readonly number[],
    level: number,
    choice: Choice,
    kept: ReadonlySet<number> | undefined,
  ): void {
    const shown = kept === undefined ? rows : rows.filter((place) => kept.has(place));
    let unfoldedTo = 0;
    for (let at = 0; at < shown.length; at++) {
      const place = shown[at] as number;
      const run = kept === undefined && at >= unfoldedTo ? this.#quietRun(shown, at) : 1;
      const foldId = `fold ${rowId(this.row(place))}`;
      if (choice.opened.has(foldId)) unfoldedTo = at + run;
      else if (run >= SHORTEST_FOLD) {
        const last = shown[at + run - 1] as number;
        const where = { level, place: at + 1, siblings: shown.length };
        found.push({ kind: "fold", id: foldId, first: place, last, count: run, ...where });
        at += run - 1;
        continue;
      }
      const inner = this.children[place] ?? [];
      const isOpen = inner.length === 0 ? undefined : kept !== undefined || this.isOpen(place, choice);
      const id = rowId(this.row(place));
      found.push({ kind: "row", id, row: place, level, place: at + 1, siblings: shown.length, isOpen });
      if (isOpen) this.#add(found, inner, level + 1, choice, kept);
    }
  }

  /** How many neighbours from `at` on are numbered layers of one class in which all agrees. */
  #quietRun(rows: readonly number[], at: number): number {
    const first = this.row(rows[at] as number);
    if (!isLayer(first)) return 1;
    let end = at;
    while (end < rows.length) {
      const place = rows[end] as number;
      const row = this.row(place);
      if (this.#isLoud[place] || row.k !== first.k || !isLayer(row)) break;
      end++;
    }
    return Math.max(1, end - at);
  }
}

function isLayer(row: Row): boolean {
  return /\.\d+$/.test(row.q ?? row.r ?? "");
}

/** What a row is known by over a reload: both paths and the number of the call. */
export function rowId(row: Row): string {
  return `${row.r ?? ""}|${row.q ?? ""}|${row.c}`;
}

export function isFiltered(filters: Filters): boolean {
  return filters.differs || filters.unpaired || filters.text !== "";
}

function passes(row: Row, filters: Filters): boolean {
  const isUnpaired = row.v === "unpaired";
  const isWanted =
    (!filters.differs && !filters.unpaired) ||
    (filters.differs && !QUIET.has(row.v) && !isUnpaired) ||
    (filters.unpaired && isUnpaired);
  const text = filters.text.toLowerCase();
  return isWanted && [row.r, row.q, row.k, row.v].some((part) => part?.toLowerCase().includes(text));
}

export function asNumber(value: JsonNumber): number {
  return value === null ? Number.NaN : Number(value);
}

/** An error as a person reads it: two digits, nothing where there is none. */
export function shownError(value: JsonNumber): string {
  const number = asNumber(value);
  if (Number.isNaN(number)) return value === "NaN" ? "NaN" : "";
  if (number === 0) return "0";
  return Number.isFinite(number) ? number.toExponential(1) : "∞";
}

export function shownNumber(value: JsonNumber): string {
  const number = asNumber(value);
  if (value === null) return "–";
  return Number.isFinite(number) ? String(Number(number.toPrecision(6))) : String(value);
}

/** What begins a line begins with a capital. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Height of a bar for an error, 0 to 1: the logarithm from 1e-8 to 1. */
export function height(value: JsonNumber): number {
  const number = asNumber(value);
  if (Number.isNaN(number)) return 0;
  return Math.min(1, Math.max(0.02, (Math.log10(Math.max(number, 1e-8)) + 8) / 8));
}

/** The last steps of a path, which tell it from its parent. */
export function ownName(path: string | null, parent: string | null): string {
  if (path === null) return "";
  if (parent !== null && path.startsWith(`${parent}.`) && !path.includes(" + ")) return path.slice(parent.length + 1);
  const names = path.split(" + ").map((part) => part.split(".").at(-1) ?? part);
  return path.includes(" + ") ? names.join(" + ") : path;
}
