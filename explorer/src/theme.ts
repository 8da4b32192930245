/** Light, dark, or as the system says. */
import { useLayoutEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";
const KEY = "pathdex-theme";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  useLayoutEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    try {
      if (theme === "auto") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme);
    } catch {
      // Lasts until the page is closed.
    }
  }, [theme]);
  return [theme, () => setTheme(NEXT[theme])];
}
