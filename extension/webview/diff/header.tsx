/** What came of the comparison, the way to each origin, and the filters. */

import type { Filters, Table, Traces } from "./messages";
import { sentence } from "./model";
import { vscode } from "./vscode-api";

const WORDS: Record<Table["outcome"], string> = {
  agree: "The traces agree",
  differ: "The traces differ",
  "inputs differ": "The inputs differ already",
  "not comparable": "The traces cannot be compared",
};

interface Props {
  readonly table: Table;
  readonly traces: Traces;
  readonly filters: Filters;
  readonly doing: string;
  readonly lines: number;
  readonly onFilters: (filters: Filters) => void;
  readonly onOrigin: (step: -1 | 0 | 1) => void;
}

export function Header({ table, traces, filters, doing, lines, onFilters, onOrigin }: Props) {
  const first = table.origins[0];
  return (
    <header>
      <h1>
        {WORDS[table.outcome]}
        {first !== undefined && (
          <span class="headline">
            {" "}
            – <code>{table.rows[first.row]?.q ?? table.rows[first.row]?.r}</code>: {first.message || first.code}
          </span>
        )}
      </h1>
      <p>
        {sentence(table.reason)}. {table.reference.class} ({table.reference.dtype || "dtype unknown"}) and{" "}
        {table.port.class} ({table.port.dtype || "dtype unknown"}).
      </p>
      {table.notes.map((note) => (
        <p key={note} class="note">
          {sentence(note)}.
        </p>
      ))}
      <div class="bar" role="toolbar" aria-label="Trace diff">
        <button type="button" disabled={first === undefined} title="First origin (F)" onClick={() => onOrigin(0)}>
          First origin
        </button>
        <button type="button" disabled={first === undefined} title="Previous origin (P)" onClick={() => onOrigin(-1)}>
          Previous
        </button>
        <button type="button" disabled={first === undefined} title="Next origin (N)" onClick={() => onOrigin(1)}>
          Next
        </button>
        <label>
          <input
            type="checkbox"
            checked={filters.differs}
            onChange={({ currentTarget }) => onFilters({ ...filters, differs: currentTarget.checked })}
          />{" "}
          differs
        </label>
        <label>
          <input
            type="checkbox"
            checked={filters.unpaired}
            onChange={({ currentTarget }) => onFilters({ ...filters, unpaired: currentTarget.checked })}
          />{" "}
          unpaired
        </label>
        <input
          type="search"
          aria-label="Filter by path, class or verdict"
          placeholder="Filter by path, class or verdict"
          value={filters.text}
          onInput={({ currentTarget }) => onFilters({ ...filters, text: currentTarget.value })}
        />
        <button type="button" onClick={() => vscode.postMessage({ kind: "jsonDiff" })}>
          Open JSON diff
        </button>
        <button type="button" onClick={() => vscode.postMessage({ kind: "replay", on: !traces.replay })}>
          {traces.replay ? "Show the recorded run" : "Replay with reference inputs"}
        </button>
      </div>
      <p class="status" role="status" aria-live="polite">
        {doing || `${lines} lines, ${table.origins.length} ${table.origins.length === 1 ? "origin" : "origins"}`}
      </p>
    </header>
  );
}
