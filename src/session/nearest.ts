import { distance } from 'fastest-levenshtein';

/** Further off than this, a word is not a slip of the keyboard. */
const MAX_DISTANCE = 3;

/**
 * The known word that another was probably meant to be; undefined when it is known itself, or when none is near. Case
 * counts for nothing. A part of three letters or more is near its whole, so that `poznan` finds `pl-poznan1`.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.includes(word)) return undefined;
  const wanted = word.toLowerCase();
  const containing = known.filter((name) => wanted.length >= 3 && name.toLowerCase().includes(wanted));
  const [only, another] = containing;
  if (only !== undefined && another === undefined) return only;
  const [best] = known
    .filter((name) => Math.abs(name.length - wanted.length) <= MAX_DISTANCE)
    .map((name) => ({ name, far: distance(wanted, name.toLowerCase()) }))
    .sort((a, b) => a.far - b.far);
  // Of a short word hardly a letter would be left.
  return best && best.far <= Math.min(MAX_DISTANCE, wanted.length / 2) ? best.name : undefined;
}
