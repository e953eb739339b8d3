import { Failure } from '../../../contract/failure.ts';
import { shellWord } from '../../../contract/shell-word.ts';
import type { Invocation, KeyRow } from '../../invocation.ts';
import { databaseAddress } from '../run.ts';

/** The flags of the command, as typed. */
export interface RotateKeysFlags {
  data?: string;
  database?: string;
  retireNow?: boolean;
}

/** Gives the servers on a database new signing keys; asks before it retires those that are in use. */
export async function rotateKeys(
  invocation: Invocation,
  _args: readonly string[],
  flags: RotateKeysFlags,
): Promise<void> {
  const { output } = invocation;
  const retireNow = flags.retireNow === true;
  const database = flags.database === undefined ? undefined : databaseAddress(flags.database);
  if (retireNow) await confirmed(invocation, flags);
  const items = await invocation.rotateKeys({
    ...(flags.data === undefined ? {} : { data: flags.data }),
    ...(database === undefined ? {} : { database }),
    retireNow,
  });
  await output.result({ items }, (print) =>
    print.table(['service', 'key', 'state', 'from', 'until'], items.map(cells)),
  );
}

function cells({ service, kid, state, signs_from, published_until }: KeyRow): string[] {
  return [service, kid, state, signs_from, published_until ?? '–'];
}

async function confirmed({ flags, confirm }: Invocation, { data, database }: RotateKeysFlags): Promise<void> {
  if (flags.yes) return;
  const answer = await confirm('Retire every signing key now? No token that they have signed verifies then.');
  if (answer) return;
  if (answer === false) throw new Failure('usage', 'Nothing was changed.');
  throw new Failure('usage', 'Nobody is there to confirm that the keys are to be retired.', {
    why: 'Without a terminal --retire-now does nothing unless --yes is given.',
    fix: [
      ...['slices-conn', 'serve', 'rotate-keys'],
      ...(data === undefined ? [] : ['--data', data]),
      ...(database === undefined ? [] : ['--database', database]),
      ...['--retire-now', '--yes'],
    ]
      .map(shellWord)
      .join(' '),
  });
}
