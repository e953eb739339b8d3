import { Failure } from '../../../contract/failure.ts';
import { shellWord } from '../../../contract/shell-word.ts';
import type { Invocation } from '../../invocation.ts';
import type { KeyRow, RotateKeysFlags } from '../server.ts';

/** Gives the servers on a database new signing keys; asks before it removes keys that are in use. */
export async function rotateKeys(
  invocation: Invocation,
  _args: readonly string[],
  flags: RotateKeysFlags,
): Promise<void> {
  const { output, server } = invocation;
  const items = await server.rotateKeys(flags, () => confirmed(invocation, flags));
  await output.result({ items }, (print) =>
    print.table(['service', 'key', 'state', 'from', 'until'], items.map(cells)),
  );
}

function cells({ service, kid, state, signs_from, published_until }: KeyRow): string[] {
  return [service, kid, state, signs_from, published_until ?? '–'];
}

async function confirmed({ flags, confirm }: Invocation, { data, database }: RotateKeysFlags): Promise<void> {
  if (flags.yes) return;
  const answer = await confirm('Retire every signing key now? No token that they have signed will verify.');
  if (answer) return;
  if (answer === false) throw new Failure('usage', 'Nothing was changed.');
  throw new Failure('usage', 'Retiring the keys was not confirmed.', {
    why: 'Without a terminal, --retire-now needs --yes.',
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
