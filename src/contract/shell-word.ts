/**
 * One word for a POSIX shell, whatever it holds: what is advised to be typed may carry a name that someone else chose.
 *
 * @example shellWord("my link's") // "'my link'\\''s'"
 */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
