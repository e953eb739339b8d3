/** Words in lines of at most so many columns; a longer word has a line of its own. Gaps of several blanks stay within a line. */
export function folded(text: string, width: number, words = /\S+(?: +(?= ))?/g): string[] {
  const lines: string[] = [];
  for (const word of text.match(words) ?? []) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
