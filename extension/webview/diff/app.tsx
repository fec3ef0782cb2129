/** Two traces side by side: what came of it, the table, and all that is known of the chosen row. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { DetailsPane } from "./details";
import { Header } from "./header";
import type { Details, Filters, PageState, Table, ToPage, Traces } from "./messages";
import { type Choice, Model, rowId } from "./model";
import { Plot } from "./plot";
import { Grid } from "./table";
import { vscode } from "./vscode-api";

const NO_FILTERS: Filters = { differs: false, unpaired: false, text: "" };

export function App() {
  const kept = useMemo(() => vscode.getState(), []);
  const [loaded, setLoaded] = useState<{ traces: Traces; table: Table }>();
  const [doing, setDoing] = useState<string>("Comparing…");
  const [failure, setFailure] = useState<string>();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set(kept?.opened ?? []));
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set(kept?.closed ?? []));
  const [filters, setFilters] = useState<Filters>(kept?.filters ?? NO_FILTERS);
  const [chosen, setChosen] = useState<string | null>(kept?.chosen ?? null);
  const [details, setDetails] = useState<{ row: number; details: Details }>();
  const [partner, setPartner] = useState<string>();
  const grid = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const listen = ({ data }: MessageEvent<ToPage>) => {
      switch (data.kind) {
        case "table":
          if (data.kept !== undefined) {
            setOpened(new Set(data.kept.opened));
            setClosed(new Set(data.kept.closed));
            setFilters(data.kept.filters);
            setChosen(data.kept.chosen);
          }
          setLoaded({ traces: data.traces, table: data.table });
          setDoing("");
          setFailure(undefined);
          setDetails(undefined);
          break;
        case "details":
          setDetails(data);
          break;
        case "working":
          setDoing(data.doing);
          break;
        case "failed":
          setDoing("");
          setFailure(data.sentence);
      }
    };
    window.addEventListener("message", listen);
    vscode.postMessage({ kind: "ready" });
    return () => window.removeEventListener("message", listen);
  }, []);

  const model = useMemo(() => (loaded ? new Model(loaded.table) : undefined), [loaded]);
  const choice: Choice = useMemo(() => ({ opened, closed, filters }), [opened, closed, filters]);
  const lines = useMemo(() => model?.lines(choice) ?? [], [model, choice]);
  const row = model && chosen !== null ? model.rowOf(chosen) : undefined;

  const choose = useCallback(
    (place: number) => {
      if (model === undefined) return;
      setOpened((before) => new Set([...before, ...[...model.around(place)].map((outer) => rowId(model.row(outer)))]));
      setChosen(rowId(model.row(place)));
    },
    [model],
  );

  // A page that opens anew begins at the first origin.
  useEffect(() => {
    const first = loaded?.table.origins[0]?.row;
    if (model !== undefined && row === undefined && first !== undefined && first >= 0) choose(first);
  }, [model]);

  useEffect(() => {
    if (row !== undefined) vscode.postMessage({ kind: "details", row });
  }, [row, loaded]);

  useEffect(() => {
    if (loaded === undefined) return;
    const state: PageState = { ...loaded.traces, opened: [...opened], closed: [...closed], filters, chosen };
    vscode.setState(state);
    vscode.postMessage({ kind: "keep", state });
  }, [loaded, opened, closed, filters, chosen]);

  const toOrigin = useCallback(
    (step: -1 | 0 | 1) => {
      const places = (loaded?.table.origins ?? []).map((origin) => origin.row).filter((place) => place >= 0);
      if (places.length === 0) return;
      const at = row === undefined ? -1 : places.indexOf(row);
      const next = step === 0 ? 0 : (at + step + places.length) % places.length;
      choose(places[next] as number);
      grid.current?.focus();
    },
    [loaded, row, choose],
  );

  if (failure !== undefined) return <Failure sentence={failure} />;
  if (loaded === undefined || model === undefined) return <p role="status">{doing}</p>;
  return (
    <main>
      <Header
        table={loaded.table}
        traces={loaded.traces}
        filters={filters}
        doing={doing}
        lines={lines.length}
        onFilters={setFilters}
        onOrigin={toOrigin}
      />
      <Plot table={loaded.table} chosen={row} onChoose={choose} />
      <div class="panes">
        <Grid
          grid={grid}
          model={model}
          lines={lines}
          chosen={chosen}
          onChoose={setChosen}
          onOpen={(id, isOpen) => {
            setOpened((before) => changed(before, id, isOpen));
            setClosed((before) => changed(before, id, !isOpen));
          }}
          onOrigin={toOrigin}
        />
        {row !== undefined && (
          <DetailsPane
            row={model.row(row)}
            details={details?.row === row ? details.details : undefined}
            partner={partner}
            onPartner={setPartner}
          />
        )}
      </div>
    </main>
  );
}

function Failure({ sentence }: { readonly sentence: string }) {
  return (
    <section class="failure">
      <p role="alert">{sentence}</p>
      <button type="button" onClick={() => vscode.postMessage({ kind: "choose" })}>
        Choose traces…
      </button>
    </section>
  );
}

function changed(before: ReadonlySet<string>, id: string, isIn: boolean): ReadonlySet<string> {
  const after = new Set(before);
  if (isIn) after.add(id);
  else after.delete(id);
  return after;
}
