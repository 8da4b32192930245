/** The frame around the views: navigation, search, theme, and what is announced. */
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { EpochContext, SourceContext, useAnswer, useSource } from "./api/useAnswer";
import { useStatus } from "./api/useStatus";
import type { Source } from "./api/source";
import { ModelContext } from "./model";
import { go, itemPlace, nodesPlace, placeOf, usePlace, type Place } from "./router";
import { useTheme, type Theme } from "./theme";
import { AnnounceContext, LiveRegion } from "./ui/Announce";
import { Answered } from "./ui/Answered";
import { Finder } from "./ui/Finder";
import { Notices } from "./ui/Notices";
import { Empty, Title } from "./ui/Parts";
import { Tips } from "./ui/Tip";
import { CompareView } from "./views/CompareView";
import { ItemView } from "./views/ItemView";
import { ItemsView } from "./views/ItemsView";
import { NodeView } from "./views/NodeView";
import { OverviewView } from "./views/OverviewView";
import { PathView } from "./views/PathView";
import { PathsView } from "./views/PathsView";
import { QueryView } from "./views/QueryView";
import { ReplayView } from "./views/ReplayView";

const TABS: readonly (readonly [string, string, readonly string[]])[] = [
  ["overview", "Overview", []],
  ["paths", "Paths", ["path", "node"]],
  ["items", "Items", ["item"]],
  ["query", "Query", []],
  ["replay", "Training", []],
  ["compare", "Compare", []],
];

export function App({ source }: { source: Source }): JSX.Element {
  return (
    <SourceContext.Provider value={source}>
      <Current />
    </SourceContext.Provider>
  );
}

/** The model that is shown; a newer one comes in its place without losing what the person does. */
function Current(): JSX.Element {
  const [epoch, setEpoch] = useState(0);
  return (
    <EpochContext.Provider value={epoch}>
      <Frame onUpdate={() => setEpoch((before) => before + 1)} />
    </EpochContext.Provider>
  );
}

function Frame({ onUpdate }: { onUpdate: () => void }): JSX.Element {
  const place = usePlace();
  const source = useSource();
  const state = useAnswer("overview", {});
  const status = useStatus(state.error === null, state.answer);
  const [follows, setFollows] = useState(false);
  const [said, say] = useState("");
  const main = useRef<HTMLElement>(null);
  const tabs = useRef<HTMLElement>(null);
  const first = useRef(true);
  const here = `${place.view}/${place.name}`;

  const shown = state.loading ? null : (state.answer?.model ?? null);
  useEffect(() => {
    if (follows && status?.live && shown !== null && status.model !== shown) onUpdate();
  }, [status]);

  // A new view starts at its top, with the focus on its heading.
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    main.current?.focus({ preventScroll: true });
  }, [here]);

  const jump = useCallback(
    (text: string): boolean => {
      const model = state.answer;
      const nodes = /^\d+(?:[-,]\s*\d+)+$/.test(text) ? text.split(/[-,]\s*/).map(Number) : null;
      if (!model || !nodes || nodes.length > model.depth) return false;
      go(nodesPlace(nodes, model.depth));
      return true;
    },
    [state.answer],
  );

  return (
    <AnnounceContext.Provider value={say}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="bar">
        <div class="bar-inner">
          <a class="brand" href={placeOf("overview")}>
            <Mark />
            Pathdex explorer
          </a>
          <nav ref={tabs} class="tabs" aria-label="Views">
            {TABS.map(([view, name, also]) => (
              <a key={view} href={placeOf(view)} aria-current={place.view === view || also.includes(place.view) ? "page" : undefined}>
                {name}
              </a>
            ))}
          </nav>
          {state.answer ? (
            <Finder label="Find an item or a path" hideLabel placeholder={state.answer.abilities.titles ? "Find a title, an id or a path" : "Find an id or a path"} onPick={(item) => go(itemPlace(item.id))} onText={jump} />
          ) : (
            <span />
          )}
          <ThemeButton />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Answered state={state} what="the model" doing={status?.preparing}>
          {(model) => (
            <ModelContext.Provider value={model}>
              <View place={place} key={here} />
            </ModelContext.Provider>
          )}
        </Answered>
      </main>
      {state.answer && (
        <footer class="foot">
          {state.answer.estimator} · model {state.answer.model}
          {source.isFile && " · an exported file: it holds a sample of the items and asks no server"}
          {state.answer.abilities.live && (
            <label class="check">
              <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />
              Update by itself when the live model changes
            </label>
          )}
        </footer>
      )}
      <Notices
        status={follows && status?.live && !status.preparing ? null : status}
        shown={shown}
        onUpdate={onUpdate}
        onFollow={() => {
          setFollows(true);
          onUpdate();
        }}
      />
      <LiveRegion text={said} />
      <Tips />
    </AnnounceContext.Provider>
  );
}

function View({ place }: { place: Place }): JSX.Element {
  switch (place.view) {
    case "overview":
      return <OverviewView />;
    case "paths":
      return <PathsView prefix={place.name} options={place.options} />;
    case "node":
      return <NodeView node={place.name} options={place.options} />;
    case "path":
      return <PathView path={place.name} options={place.options} />;
    case "items":
      return <ItemsView options={place.options} />;
    case "item":
      return <ItemView id={place.name} />;
    case "query":
      return <QueryView options={place.options} />;
    case "replay":
      return <ReplayView options={place.options} />;
    case "compare":
      return <CompareView options={place.options} />;
    default:
      return (
        <>
          <Title>No such view</Title>
          <Empty>
            There is nothing at this address. <a href={placeOf("overview")}>Go to the overview.</a>
          </Empty>
        </>
      );
  }
}

function Mark(): JSX.Element {
  return (
    <svg width={22} height={22} viewBox="0 0 24 24" aria-hidden="true">
      <path fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" d="M4 5l8 7 8-7M4 19l8-7 8 7" />
      <circle cx="12" cy="12" r="3" fill="currentColor" />
    </svg>
  );
}

const THEMES: Record<Theme, string> = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

function ThemeButton(): JSX.Element {
  const [theme, next] = useTheme();
  return (
    <button type="button" class="theme" onClick={next} aria-label={THEMES[theme]} data-tip={THEMES[theme]}>
      <svg width={18} height={18} viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2">
        {theme === "light" ? (
          <>
            <circle cx="12" cy="12" r="4.5" />
            <path stroke-linecap="round" d="M12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M19.1 4.9l-1.8 1.8M6.7 17.3l-1.8 1.8" />
          </>
        ) : theme === "dark" ? (
          <path stroke-linejoin="round" d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" />
        ) : (
          <>
            <circle cx="12" cy="12" r="8.5" />
            <path d="M12 3.5a8.5 8.5 0 0 1 0 17z" fill="currentColor" />
          </>
        )}
      </svg>
    </button>
  );
}
