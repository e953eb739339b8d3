/**
 * Quotes a text as one shell word, since a suggested command may hold a name that another person chose. POSIX shells, zsh
 * and fish read the result alike; they differ in backslashes between quotes and in a `=` at the front.
 *
 * @example shellWord("my link's") // "'my link'\\''s'"
 */
export function shellWord(text: string): string {
  if (/^[\w@+:,./-][\w@%+=:,./-]*$/.test(text)) return text;
  return `'${text.replace(/['\\]+/g, (found) => `'${found.replace(/./g, String.raw`\$&`)}'`)}'`;
}

/** The command that moves an unreadable file of ours away; it is never deleted (HOSTILE.md 17). */
export function moveAway(path: string): string {
  return ['mv', path, `${path}.bad`].map(shellWord).join(' ');
}
