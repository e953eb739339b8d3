import { Failure } from '../contract/failure.ts';

/** The fewest characters of an id that are taken for it (cli/README.md, "Commands"). */
const LEAST_PART = 4;

/**
 * The item with this id, or whose id alone contains it.
 *
 * @param otherwise what is said where there is none, as a sentence, and the command that lists them
 * @throws Failure `not_found`, `usage`
 */
export function theOne<Item extends { id: string }>(
  wanted: string,
  items: readonly Item[],
  { missing, fix }: { missing: string; fix: string },
): Item {
  const exact = items.find(({ id }) => id === wanted);
  if (exact) return exact;
  const found = wanted.length < LEAST_PART ? [] : items.filter(({ id }) => id.includes(wanted));
  const [only, ...others] = found;
  if (!only) {
    throw new Failure('not_found', missing, {
      ...(wanted.length < LEAST_PART
        ? { why: `A part of an id has ${LEAST_PART} characters at least.` }
        : {}),
      fix,
    });
  }
  if (others.length === 0) return only;
  const ids = found.map(({ id }) => id).join(', ');
  throw new Failure('usage', `${JSON.stringify(wanted)} is a part of several ids: ${ids}.`, { fix });
}
