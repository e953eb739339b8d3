/**
 * A typed text with a point for the decimal comma that people write. A comma before three digits stays, since it can be
 * read in two ways.
 *
 * @example withDecimalPoint('2,5G') // '2.5G'
 * @example withDecimalPoint('1,500M') // '1,500M'
 */
export function withDecimalPoint(text: string): string {
  return text.replace(/(\d),(\d{1,2})(?!\d)/g, '$1.$2');
}
