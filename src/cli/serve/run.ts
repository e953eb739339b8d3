import { readCertificates } from '../ca-file.ts';
import type { Invocation } from '../invocation.ts';
import type { ServeFlags } from './server.ts';

/** Runs a reference server until it is told to stop. */
export async function serve(
  { flags: { caFile }, output, files, server: commands, stopSignal }: Invocation,
  _args: readonly string[],
  flags: ServeFlags,
): Promise<void> {
  // Before anything can fail: a script that waits for the file would find an earlier server's.
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
