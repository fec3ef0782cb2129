/** The error over depth: a bar for each call, or for the worst of some neighbours. */

import type { Table } from "./messages";
import { height, shownError } from "./model";

interface Props {
  readonly table: Table;
  readonly chosen: number | undefined;
  readonly onChoose: (row: number) => void;
}

export function Plot({ table, chosen, onChoose }: Props) {
  if (table.plot.every(({ error }) => error === 0)) return null;
  const origins = new Set(table.origins.map((origin) => origin.row));
  const worst = table.plot.reduce((a, b) => (height(b.error) > height(a.error) ? b : a));
  const label = `Relative error of ${table.plot.length} calls in the order of execution, at most ${shownError(worst.error)}`;
  return (
    <svg class="plot" role="img" aria-label={label} viewBox={`0 0 ${table.plot.length} 1`} preserveAspectRatio="none">
      {table.plot.map(({ row, error }, place) => (
        <rect
          key={row}
          class={origins.has(row) ? "origin" : row === chosen ? "chosen" : ""}
          x={place}
          y={1 - height(error)}
          width={0.8}
          height={height(error)}
          onClick={() => onChoose(row)}
        >
          <title>{`${table.rows[row]?.q ?? table.rows[row]?.r} ${shownError(error)}`}</title>
        </rect>
      ))}
    </svg>
  );
}
