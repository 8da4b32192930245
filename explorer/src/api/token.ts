/** The server's token, kept until the tab is closed. */

const KEY = "pathdex-token";
let value: string | null = read();

function read(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null; // Storage is blocked, for example in a sandboxed frame.
  }
}

export function token(): string | null {
  return value;
}

export function setToken(given: string): void {
  value = given || null;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Kept in memory only.
  }
}
