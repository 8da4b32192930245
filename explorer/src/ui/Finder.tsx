/** A search box for items that suggests as one types: the combobox pattern, with arrow keys, Enter and Escape. */
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useAnswer } from "../api/useAnswer";
import type { ItemEntry } from "../api/types";
import { count, nameOf } from "../format";
import { IdTag, keyOf } from "./Parts";

const SHOWN = 12;

export function Finder({
  label,
  placeholder,
  hideLabel,
  onPick,
  onText,
}: {
  label: string;
  placeholder: string;
  hideLabel?: boolean;
  onPick: (item: ItemEntry) => void;
  /** Gets text that is submitted and is no suggestion; true if it could use it. */
  onText?: (text: string) => boolean;
}): JSX.Element {
  const id = useId();
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const wanted = text.trim();
  const state = useAnswer("items", open && wanted ? { search: wanted, size: SHOWN } : null, 80);
  const found = open && wanted && state.answer && !state.loading ? state.answer.items : [];

  useEffect(() => setAt(0), [wanted]);
  useEffect(() => {
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);

  const pick = (item: ItemEntry | undefined): void => {
    if (!item) return;
    setText("");
    setOpen(false);
    onPick(item);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      if (found.length > 0) setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (onText?.(wanted)) {
        setText("");
        setOpen(false);
      } else pick(found[at]);
    } else if (event.key === "Escape") setOpen(false);
  };
  const showing = open && wanted !== "";
  return (
    <div class="finder" ref={box}>
      <label for={id} class={hideLabel ? "visually-hidden" : undefined}>
        {label}
      </label>
      <input
        id={id}
        type="search"
        role="combobox"
        list={undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        aria-expanded={showing && found.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={showing && found[at] ? `${id}-${at}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
        }}
        onKeyDown={keys}
        onBlur={(event) => {
          if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) setOpen(false);
        }}
      />
      <div class="finder-list" hidden={!showing}>
        <ul id={`${id}-list`} role="listbox" aria-label={label}>
          {found.map((item, index) => (
            <li
              key={keyOf(item.id)}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              onPointerEnter={() => setAt(index)}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => pick(item)}
            >
              <span>
                {nameOf(item)}
                <IdTag item={item} />
              </span>
              <span class="muted">{count(item.interactions)}</span>
            </li>
          ))}
        </ul>
        <p class="finder-note" role="status">
          {state.error
            ? state.error.message
            : state.loading
              ? (state.busy ?? "Searching …")
              : found.length === 0
                ? "Nothing found. Search by the beginning of a word or by an id."
                : state.answer && state.answer.total > found.length
                  ? `${count(state.answer.total)} found, the most popular first`
                  : ""}
        </p>
      </div>
    </div>
  );
}
