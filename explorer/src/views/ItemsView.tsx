/** All items, the most popular first, with a search by word or id. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useAnswer, useSource } from "../api/useAnswer";
import { count, counted, plainValue } from "../format";
import { useModel } from "../model";
import { go, pageOf, placeOf } from "../router";
import { useAnnounce } from "../ui/Announce";
import { Answered } from "../ui/Answered";
import { Empty, IdTag, ItemLink, keyOf, Pager, Panel, Title } from "../ui/Parts";

export function ItemsView({ options }: { options: URLSearchParams }): JSX.Element {
  const { items } = useModel();
  const { isFile } = useSource();
  const given = options.get("search") ?? "";
  const page = pageOf(options);
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  const state = useAnswer("items", { search: given.trim(), page, size: 25 });
  const { answer } = state;
  useAnnounce(answer && !state.loading ? (given ? `${counted(answer.total, "item")} found` : counted(answer.total, "item")) : null);
  return (
    <>
      <Title note={<>{counted(items, "item")}, the most popular first.</>}>Items</Title>
      <Panel title="Search">
        <label class="visually-hidden" for="items-search">
          Search by the beginning of words or by id
        </label>
        <input
          id="items-search"
          type="search"
          placeholder="The beginning of words of the title, or an id"
          value={text}
          autocomplete="off"
          onInput={(event) => {
            const next = event.currentTarget.value;
            setText(next);
            go(placeOf("items", "", { search: next }), true);
          }}
        />
        <Answered state={state} what="items">
          {(found) =>
            found.total === 0 ? (
              <Empty>No item has a word that begins with “{found.search}”, and none has this id.</Empty>
            ) : (
              <>
                {given && <p class="muted">{counted(found.total, "item")} found</p>}
                <div class="scroll">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Item</th>
                        <th scope="col" class="hide-narrow">
                          Details
                        </th>
                        <th scope="col" class="number">
                          Interactions
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {found.items.map((item) => (
                        <tr key={keyOf(item.id)}>
                          <td>
                            <ItemLink item={item} />
                            <IdTag item={item} />
                          </td>
                          <td class="muted hide-narrow">{item.details ? Object.values(item.details).map(plainValue).join(" · ") : "–"}</td>
                          <td class="number">{count(item.interactions)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
                <Pager page={found.page} pages={found.pages} total={found.total} noun="items" onPage={(next) => go(placeOf("items", "", { search: given, page: next }))} />
                {found.searched < items && (
                  <p class="muted">
                    {isFile ? <>This file holds the {count(found.searched)} most popular items.</> : <>Titles of the {count(found.searched)} most popular items are searched; the others are found by their id.</>}
                  </p>
                )}
              </>
            )
          }
        </Answered>
      </Panel>
    </>
  );
}
