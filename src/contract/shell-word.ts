/**
 * One word for a shell, whatever it holds: what is advised to be typed may carry a name that someone else chose. The
 * same to POSIX shells, zsh and fish, which differ in backslashes between quotes and in a `=` at the front.
 *
 * @example shellWord("my link's") // "'my link'\\''s'"
 */
export function shellWord(text: string): string {
  if (/^[\w@+:,./-][\w@%+=:,./-]*$/.test(text)) return text;
  return `'${text.replace(/['\\]+/g, (found) => `'${found.replace(/./g, String.raw`\$&`)}'`)}'`;
}

/** The command that moves a file of ours out of the way, which is never deleted (HOSTILE.md 17). */
export function moveAway(path: string): string {
  return ['mv', path, `${path}.bad`].map(shellWord).join(' ');
}
