import { readCertificates } from '../ca-file.ts';
import type { Invocation } from '../invocation.ts';
import { escapeText } from '../print/output.ts';
import { confirm } from '../questions.ts';
import type { KeyRow, RotateKeysFlags, ServeFlags } from './server.ts';

/** Runs a reference server until SIGINT or SIGTERM. */
export async function serve(
  { flags: { caFile }, output, files, server: commands, stopSignal }: Invocation,
  _args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  // First of all: a script that waits for this file must not find that of an earlier server.
  if (flags.readyFile !== undefined) await files.remove(flags.readyFile);
  const trusts = caFile !== undefined && flags.trust !== undefined;
  const certificates = trusts ? await readCertificates(files, caFile) : undefined;
  const stopped = stopSignal();
  const { addresses, loginPage, metrics, warnings, stop } = await commands.serve(flags, certificates);
  const shown = metrics === undefined ? {} : { metrics };
  await output.result({ addresses, ...shown }, (print) =>
    print.card(`Serving at ${print.paint.bold(addresses.connectivity)}`, [
      ['portal', addresses.portal],
      ['log in', loginPage],
      ['try it', `${addresses.connectivity}/api-docs`],
      ...Object.entries(shown),
      ['stop', 'Ctrl-C'],
    ]),
  );
  for (const warning of warnings) output.notice(warning);
  await stopped;
  await stop();
}

/** Gives the servers on a database new signing keys; asks before it removes keys that are in use. */
export async function rotateKeys(
  invocation: Invocation,
  _args: readonly string[],
  flags: RotateKeysFlags,
): Promise<void> {
  const { output, server } = invocation;
  const items = await server.rotateKeys(flags, () => confirmed(invocation));
  await output.result({ items }, (print) =>
    print.table(['service', 'key', 'state', 'from', 'until'], items.map(cells)),
  );
}

/** Copies a server's database while it runs. */
export async function serveBackup(
  { server, output }: Invocation,
  [file = '']: readonly string[],
  flags: object,
): Promise<void> {
  const { bytes, reservations } = await server.backUp(flags, file);
  await output.result({ file, bytes, reservations }, (print) =>
    print.card(`Backed up to ${print.paint.bold(escapeText(file))}`, [
      ['holds', `${reservations} reservation${reservations === 1 ? '' : 's'}, ${bytes} bytes`],
      ['secret', 'the signing keys are in it'],
    ]),
  );
}

function cells({ service, kid, state, signs_from, published_until }: KeyRow): string[] {
  return [service, kid, state, signs_from, published_until ?? '–'];
}

/** Asks before keys that are in use are removed; see {@link confirm}. */
async function confirmed(invocation: Invocation): Promise<void> {
  const question = 'Retire every signing key now? No token that they have signed will verify.';
  await confirm(invocation, question, { unasked: 'Retiring the keys was not confirmed.' });
}
