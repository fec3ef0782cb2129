/** The table of two trees, one tab stop: its arrows do what the mouse does. Only the lines in sight are in the page, so that 100,000 rows scroll like a hundred. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { Verdict } from "./messages";
import { type Line, type Model, ownName, shownError } from "./model";

const LINE = 22;
const BESIDE = 12;

/** Shown with its word, so that colour never tells alone. */
const GLYPHS: Record<Verdict, string> = {
  agrees: "=",
  inherited: "~",
  "originates here": "✗",
  "children agree, parent differs": "✗",
  "inputs already differ": "!",
  "only on padding": "≈",
  unpaired: "?",
  "not comparable": "–",
};

interface Props {
  readonly grid: RefObject<HTMLDivElement | null>;
  readonly model: Model;
  readonly lines: readonly Line[];
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
  readonly onOpen: (id: string, isOpen: boolean) => void;
  readonly onOrigin: (step: -1 | 0 | 1) => void;
}

export function Grid({ grid, model, lines, chosen, onChoose, onOpen, onOrigin }: Props) {
  const [scrolled, setScrolled] = useState(0);
  const [room, setRoom] = useState(600);
  const at = lines.findIndex((line) => line.id === chosen);

  useEffect(() => {
    const element = grid.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setRoom(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // The chosen line stays in sight, wherever it was chosen.
  useLayoutEffect(() => {
    const element = grid.current;
    if (element === null || at < 0) return;
    const top = (at + 1) * LINE;
    if (top - LINE < element.scrollTop) element.scrollTop = Math.max(0, top - 3 * LINE);
    else if (top + LINE > element.scrollTop + element.clientHeight)
      element.scrollTop = top + 2 * LINE - element.clientHeight;
  }, [at, chosen]);

  const first = Math.max(0, Math.floor(scrolled / LINE) - BESIDE);
  const last = Math.min(lines.length, Math.ceil((scrolled + room) / LINE) + BESIDE);

  const go = (to: number) => {
    const line = lines[Math.min(Math.max(to, 0), lines.length - 1)];
    if (line !== undefined) onChoose(line.id);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = lines[at];
    const steps: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at < 0 ? 0 : at - 1),
      PageDown: () => go(at + Math.floor(room / LINE) - 1),
      PageUp: () => go(at - Math.floor(room / LINE) + 1),
      Home: () => go(0),
      End: () => go(lines.length - 1),
      ArrowRight: () => {
        if (line?.kind === "fold") onOpen(line.id, true);
        else if (line?.isOpen === false) onOpen(line.id, true);
        else if (line?.isOpen === true) go(at + 1);
      },
      ArrowLeft: () => {
        if (line?.kind === "row" && line.isOpen === true) onOpen(line.id, false);
        else if (line !== undefined && line.level > 1)
          go(lines.findLastIndex((other, place) => place < at && other.level < line.level));
      },
      Enter: () => line?.kind === "fold" && onOpen(line.id, true),
      f: () => onOrigin(0),
      n: () => onOrigin(1),
      p: () => onOrigin(-1),
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      step();
    }
  };

  return (
    <div
      ref={grid}
      class="grid"
      role="treegrid"
      aria-label="Calls of both traces"
      aria-rowcount={lines.length + 1}
      aria-colcount={5}
      aria-activedescendant={at >= first && at < last ? lineId(at) : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={({ currentTarget }) => setScrolled(currentTarget.scrollTop)}
    >
      <div class="line head" role="row" aria-rowindex={1}>
        {["Reference", "Port", "Verdict", "Error", "Output"].map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div class="lines" role="presentation" style={{ height: `${lines.length * LINE}px` }}>
        {lines.slice(first, last).map((line, offset) => (
          <GridLine
            key={line.id}
            model={model}
            line={line}
            at={first + offset}
            isChosen={line.id === chosen}
            onChoose={onChoose}
            onOpen={onOpen}
          />
        ))}
      </div>
    </div>
  );
}

function lineId(at: number): string {
  return `line-${at}`;
}

interface LineProps {
  readonly model: Model;
  readonly line: Line;
  readonly at: number;
  readonly isChosen: boolean;
  readonly onChoose: (id: string) => void;
  readonly onOpen: (id: string, isOpen: boolean) => void;
}

function GridLine({ model, line, at, isChosen, onChoose, onOpen }: LineProps) {
  const common = {
    id: lineId(at),
    role: "row" as const,
    "aria-expanded": line.kind === "fold" ? false : line.isOpen,
    "aria-rowindex": at + 2,
    "aria-level": line.level,
    "aria-posinset": line.place,
    "aria-setsize": line.siblings,
    "aria-selected": isChosen,
    style: { top: `${at * LINE}px`, "--level": String(line.level) },
    onClick: () => onChoose(line.id),
  };
  if (line.kind === "fold") {
    const first = model.row(line.first);
    const last = model.row(line.last);
    return (
      <div {...common} class="line fold" onDblClick={() => onOpen(line.id, true)}>
        <span role="gridcell" class="tree">
          <Twisty isOpen={false} onOpen={() => onOpen(line.id, true)} />
          {end(first.r ?? first.q)} … {end(last.r ?? last.q)}
        </span>
        <span role="gridcell">
          {end(first.q ?? first.r)} … {end(last.q ?? last.r)}
        </span>
        <span role="gridcell" class="verdict">
          {GLYPHS.agrees} {line.count} layers agree
        </span>
        <span role="gridcell" />
        <span role="gridcell" />
      </div>
    );
  }
  const row = model.row(line.row);
  const parent = row.p >= 0 ? model.row(row.p) : undefined;
  const shape = row.s === null ? "" : `[${row.s.join(", ")}]`;
  // Nearly all are of the model's own dtype, which stands above the table.
  const dtype = row.t === null || row.t === model.table.port.dtype ? "" : ` ${row.t}`;
  return (
    <div
      {...common}
      class={`line ${row.v.replace(/[ ,]+/g, "-")}`}
      onDblClick={() => line.isOpen !== undefined && onOpen(line.id, !line.isOpen)}
    >
      <span role="gridcell" class="tree" title={row.r ?? "unpaired"}>
        <Twisty isOpen={line.isOpen} onOpen={() => onOpen(line.id, !line.isOpen)} />
        {ownName(row.r, parent?.r ?? null)}
        {row.c > 0 && <small> call {row.c}</small>}
      </span>
      <span role="gridcell" title={row.q ?? "unpaired"}>
        {ownName(row.q, parent?.q ?? null)}
      </span>
      <span role="gridcell" class="verdict" title={row.h === null ? row.v : `${row.v}, paired by ${row.h}`}>
        {GLYPHS[row.v]} {row.v}
      </span>
      <span role="gridcell" class="number">
        {shownError(row.e)}
      </span>
      <span role="gridcell" class="shape" title={`${shape} ${row.t ?? ""}`}>
        {shape}
        {dtype}
      </span>
    </div>
  );
}

function end(path: string | null): string {
  return path?.split(".").slice(-2).join(".") ?? "";
}

/** The mouse's way to open a line; the keyboard's are the arrows. */
function Twisty({ isOpen, onOpen }: { readonly isOpen: boolean | undefined; readonly onOpen: () => void }) {
  return (
    <span
      class="twisty"
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation();
        if (isOpen !== undefined) onOpen();
      }}
    >
      {isOpen === undefined ? "" : isOpen ? "▾" : "▸"}
    </span>
  );
}
