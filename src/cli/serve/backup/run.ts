import type { Invocation } from '../../invocation.ts';
import { escapeText } from '../../print/terminal-text.ts';

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
