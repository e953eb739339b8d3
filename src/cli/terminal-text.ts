/**
 * C0 and C1 controls, DEL, and the characters that change the direction of text or hide in it: what a service or a
 * token could use to make a terminal show something else (HOSTILE.md 7; CLI.md, "Output").
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/**
 * Text from elsewhere, made fit to print: every control or invisible character is shown as its code.
 *
 * @example escapeText('red\u001b[31m') // 'red\\u001b[31m'
 */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same for a text of several lines, whose line ends are kept. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeText).join('\n');
}

/**
 * JSON on one line, in which no such character stands as it is: inside its strings each has a spelling that means the same.
 */
export function jsonText(value: unknown): string {
  return escapeText(JSON.stringify(value));
}
